//! `ctx.fetch`: a plugin's requests to hosts of its `@connect`, made by the hub through the guarded client.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;

use super::request::Reach;
use crate::{
    body_text,
    egress::{Call, CheckedHeaders, Egress},
    sandbox::{FetchAnswer, FetchCall, FetchGate},
};

/// Longest response body that is read, in bytes.
const MAX_ANSWER: usize = 1024 * 1024;
const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Lets one run fetch from the hosts of its plugin's `@connect`, and from nowhere else.
#[derive(Debug)]
pub struct ConnectGate {
    egress: Egress,
    connects: Vec<String>,
    plain_http: bool,
    made: Mutex<Vec<Fetched>>,
}

/// A fetch, for the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Method.
    pub method: String,
    /// Target as the plugin wrote it.
    pub url: String,
    /// Status of the response, or the reason why there is none.
    pub result: Result<u16, String>,
}

impl ConnectGate {
    /// Creates a gate to these hosts. `plain_http` allows requests without TLS, for a webhook that has none either.
    pub fn new(egress: Egress, connects: &[String], plain_http: bool) -> Self {
        Self { egress, connects: connects.to_owned(), plain_http, made: Mutex::default() }
    }

    /// Returns the fetches so far.
    pub fn made(&self) -> Vec<Fetched> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn make(&self, call: FetchCall, left: Duration) -> Result<FetchAnswer, String> {
        let reach = Reach { configured: None, connects: &self.connects, plain_http: self.plain_http };
        let url = reach.check(&call.url).map_err(|violation| violation.message)?;
        let url = self.egress.check_url(url.as_str()).map_err(|error| error.message().to_owned())?;
        let wanted = call.method.to_ascii_uppercase();
        let method = METHODS.into_iter().find(|method| method.as_str() == wanted);
        let method = method.ok_or("the method must be GET, HEAD, POST, PUT, PATCH or DELETE")?;
        let pairs = call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = CheckedHeaders::parse(pairs).map_err(|error| error.message().to_owned())?.into_map();
        let body = Bytes::from(call.body.unwrap_or_default());
        let call = Call { method, url, headers, body, deadline: left, max_answer: MAX_ANSWER };
        let answer = self.egress.send(call).await.map_err(|error| error.to_string())?;
        let mut headers = BTreeMap::new();
        for name in answer.headers.keys() {
            let values = answer.headers.get_all(name).iter();
            let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
            headers.insert(name.as_str().to_owned(), values.collect::<Vec<_>>().join(", "));
        }
        let body = body_text::decode(&answer.headers, &answer.body).into_owned();
        Ok(FetchAnswer { status: answer.status.as_u16(), headers, body })
    }
}

#[async_trait]
impl FetchGate for ConnectGate {
    async fn fetch(&self, call: FetchCall, left: Duration) -> Result<FetchAnswer, String> {
        let (method, url) = (call.method.clone(), call.url.clone());
        let answer = self.make(call, left).await;
        let result = answer.as_ref().map(|answer| answer.status).map_err(Clone::clone);
        let fetched = Fetched { method, url, result };
        // The sandbox limits the number of fetches of a run.
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(fetched);
        answer
    }
}
