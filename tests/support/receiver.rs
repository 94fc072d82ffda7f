//! Receiver of webhooks: records requests and responds as configured.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;

use hub_core::{
    local_http::{Cut, LocalService},
    time::{Clock, Timestamp},
};

/// One request, as it came.
#[derive(Debug, Clone)]
pub struct Received {
    /// Time of the request.
    pub at: Timestamp,
    /// Method.
    pub method: Method,
    /// Path.
    pub path: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Exact bytes.
    pub body: Bytes,
}

impl Received {
    /// The body.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// A header's text; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Whether `X-Signature` is the one that this secret makes, computed here again.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let expected = format!("sha256={}", HEXLOWER.encode(&mac(secret.as_bytes(), &self.body)));
        self.header("x-signature") == expected
    }

    /// Whether one of the signatures in `webhook-signature` is the one that this secret makes (Standard
    /// Webhooks: over id, timestamp and body), computed here again.
    pub fn is_standard_signed_with(&self, secret: &str) -> bool {
        let (id, at) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        let signed = [format!("{id}.{at}.").as_bytes(), &self.body].concat();
        let expected = format!("v1,{}", BASE64.encode(&mac(secret.as_bytes(), &signed)));
        self.header("webhook-signature").split(' ').any(|signature| signature == expected)
    }
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// Response to a request.
#[derive(Debug, Clone)]
pub struct Reply {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: String,
    delay: Duration,
}

impl Reply {
    /// A status without a body.
    pub fn status(status: u16) -> Self {
        let status = StatusCode::from_u16(status).expect("a status");
        Self { status, headers: Vec::new(), body: String::new(), delay: Duration::ZERO }
    }

    /// 200 with a JSON body.
    #[must_use]
    pub fn json(body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { headers, body: body.to_string(), ..Self::status(200) }
    }

    /// 200 with a body of any type.
    #[must_use]
    pub fn text(content_type: &str, body: &str) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { headers, body: body.to_owned(), ..Self::status(200) }
    }

    /// The same answer with another status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self { status: StatusCode::from_u16(status).expect("a status"), ..self }
    }

    /// The same answer with a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// The same answer after a while of the receiver's clock.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

/// Responds to every request with 200 and `{}` until configured otherwise. Cheap to clone; clones share
/// what they got.
#[derive(Debug, Clone)]
pub struct Receiver {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    received: Vec<Received>,
    next: HashMap<String, VecDeque<Reply>>,
    usual: HashMap<String, Reply>,
    /// Paths at which challenges are returned.
    apps: HashSet<String>,
}

impl Receiver {
    /// A receiver that got nothing yet.
    pub fn new(clock: Clock) -> Self {
        Self { clock, state: Arc::default() }
    }

    /// All requests, in order.
    pub fn received(&self) -> Vec<Received> {
        self.state().received.clone()
    }

    /// Requests to a path, in order.
    pub fn received_at(&self, path: &str) -> Vec<Received> {
        self.state().received.iter().filter(|one| one.path == path).cloned().collect()
    }

    /// Answers the next requests at a path in this way, before the usual answer.
    pub fn then(&self, path: &str, replies: impl IntoIterator<Item = Reply>) {
        self.state().next.entry(path.to_owned()).or_default().extend(replies);
    }

    /// The usual answer at a path from now on.
    pub fn always(&self, path: &str, reply: Reply) {
        self.state().usual.insert(path.to_owned(), reply);
    }

    /// Makes a path one of an app: a challenge is returned, and not recorded.
    pub fn is_app(&self, path: &str) {
        self.state().apps.insert(path.to_owned());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, request: Request<Bytes>) -> Reply {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let mut state = self.state();
        if state.apps.contains(&path)
            && let Ok(asked) = serde_json::from_slice::<Value>(&body)
            && asked["type"] == "url_verification"
        {
            return Reply::json(&json!({ "challenge": asked["challenge"] }));
        }
        let next = state.next.get_mut(&path).and_then(VecDeque::pop_front);
        let reply = next.or_else(|| state.usual.get(&path).cloned());
        let at = self.clock.now();
        state.received.push(Received { at, method: head.method, path, headers: head.headers, body });
        reply.unwrap_or_else(|| Reply::json(&Value::Object(serde_json::Map::new())))
    }
}

#[async_trait]
impl LocalService for Receiver {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let reply = self.note(request);
        if !reply.delay.is_zero() {
            self.clock.sleep(reply.delay).await;
        }
        let mut response = Response::builder().status(reply.status);
        for (name, value) in reply.headers {
            response = response.header(name, value);
        }
        response.body(Bytes::from(reply.body)).map_err(|_| Cut)
    }
}
