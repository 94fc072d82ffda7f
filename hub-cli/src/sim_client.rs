//! Calls to the control API of a running simulator.

use std::time::Duration;

use bytes::Bytes;
use hub_core::egress::{Call, Egress, EgressConfig};
use serde_json::Value;
use url::Url;

use crate::exit::Failure;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a response, in bytes.
const MAX_ANSWER: usize = 16 << 20;

#[derive(Debug)]
pub struct SimClient {
    base: Url,
    egress: Egress,
}

impl SimClient {
    pub fn new(base: &Url) -> Result<Self, Failure> {
        // The operator named the address, so private addresses are allowed.
        Ok(Self { base: base.clone(), egress: Egress::new(EgressConfig::default())?.trusted() })
    }

    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call("GET", path, &Value::Null).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.call("POST", path, body).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.call("DELETE", path, &Value::Null).await
    }

    async fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, Failure> {
        let text = format!("{}{path}", self.base.as_str().trim_end_matches('/'));
        let mut headers = http::HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        let call = Call {
            method: method.parse().map_err(|_| Failure::usage("not a method"))?,
            url: self.egress.check_url(&text)?,
            headers,
            body: if body.is_null() { Bytes::new() } else { body.to_string().into() },
            deadline: REQUEST_TIMEOUT,
            max_answer: MAX_ANSWER,
        };
        let answer = self.egress.send(call).await.map_err(|error| {
            let mut failure = Failure::unreachable(format!("no simulator at {}", self.base));
            failure.causes.push(error.to_string());
            failure.with_hint("start hub-server, or `hub-cli sim serve`; for another address use --sim")
        })?;
        let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() && !document.is_null() {
            return Ok(document);
        }
        Err(Failure::of_response(&document).unwrap_or_else(|| {
            Failure::unreachable(format!("{} is not a simulator: it responded {}", self.base, answer.status))
        }))
    }
}
