//! Calls to the API of a hub server over TCP, with an API key.

use std::{sync::Mutex, time::Duration};

use http::{HeaderMap, StatusCode};
use hub_core::{
    ErrorCode,
    delivery::retry::retry_after,
    egress::{Call, Egress, EgressConfig, EgressError},
    secret::Secret,
    time::{Clock, Stopwatch, Timestamp},
};
use serde_json::Value;
use url::{Host, Url};

use super::{Query, Request, address_of, event_stream::Ended};
use crate::{
    exit::{Exit, Failure},
    printer::{print_note, print_request},
};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum total wait of a call for a rate limit; limits are per minute.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// Maximum duration of a stream, after which it is requested again.
const MAX_STREAM: Duration = Duration::from_secs(30 * 60);
/// Maximum size of a response, in bytes.
const MAX_RESPONSE: usize = 16 << 20;

/// Returns the wait before a call is retried, from the server's `Retry-After`. A 503 may be sent after a change, so
/// only idempotent calls are retried then.
fn wait_for(method: &str, status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let is_harmless = status == StatusCode::TOO_MANY_REQUESTS
        || (status == StatusCode::SERVICE_UNAVAILABLE && ["GET", "PUT", "DELETE"].contains(&method));
    if is_harmless { retry_after(headers, now) } else { None }
}

/// Whether a URL leads to this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Checks that a key may be sent to a server.
///
/// # Errors
/// A usage failure for plain `http` beyond this machine.
pub fn check_transport(server: &Url) -> Result<(), Failure> {
    if server.scheme() == "https" || is_loopback(server) {
        return Ok(());
    }
    let message = format!("--server {server}: a key is only sent to https, or to this machine");
    Err(Failure::usage(message))
}

/// A hub server with a credential.
#[derive(Debug)]
pub struct HttpClient {
    base: Url,
    token: Option<Secret>,
    egress: Egress,
    /// Name of the server for the note before the first change; `None` after it.
    unannounced: Mutex<Option<String>>,
}

impl HttpClient {
    /// Creates a client of a server, with an API key or without a credential.
    ///
    /// # Errors
    /// As [`check_transport`].
    pub fn new(base: &Url, token: Option<Secret>) -> Result<Self, Failure> {
        check_transport(base)?;
        let host =
            (!is_loopback(base) && token.is_some()).then(|| base.host_str().unwrap_or_default().to_owned());
        // The operator named the address, so private addresses are allowed.
        let egress = Egress::new(EgressConfig::default())?.trusted();
        Ok(Self { base: base.clone(), token, egress, unannounced: Mutex::new(host) })
    }

    /// Sets the name of the profile.
    #[must_use]
    pub fn named(self, name: String) -> Self {
        if let Ok(mut unannounced) = self.unannounced.lock() {
            *unannounced = unannounced.take().map(|_| name);
        }
        self
    }

    /// Prints the server's name and address once, before the first change on another machine.
    fn announce_server(&self) {
        let name = self.unannounced.lock().ok().and_then(|mut unannounced| unannounced.take());
        if let Some(name) = name {
            print_note(&format!("→ {name} ({})", self.base));
        }
    }

    /// Returns a URL of the server. Query values are encoded here.
    pub fn address(&self, path: &str, query: &Query<'_>) -> Url {
        address_of(&self.base, path, query)
    }

    /// Returns a client of the same server with another credential, or without one.
    pub fn with_token(&self, token: Option<Secret>) -> Result<Self, Failure> {
        let unannounced = self.unannounced.lock().ok().and_then(|mut unannounced| unannounced.take());
        Ok(Self { unannounced: Mutex::new(unannounced), ..Self::new(&self.base, token)? })
    }

    /// As [`Client::exchange`](super::Client::exchange).
    pub async fn exchange(&self, request: Request<'_>) -> Result<Value, Failure> {
        let method = request.method;
        if method != "GET" {
            self.announce_server();
        }
        let url = request.url(&self.base);
        let headers = self.headers(request.content_type())?;
        let call = || -> Result<Call, Failure> {
            Ok(Call {
                method: method.parse().map_err(|_| Failure::usage("not a method"))?,
                url: self.egress.check_url(url.as_str())?,
                headers: headers.clone(),
                body: request.bytes(),
                deadline: REQUEST_TIMEOUT,
                max_answer: MAX_RESPONSE,
            })
        };
        let (clock, mut left) = (Clock::system(), MAX_WAIT);
        let answer = loop {
            let call = call()?;
            print_request(|| format!("> {method} {url}"));
            let stopwatch = Stopwatch::start();
            let answer = self.egress.send(call).await.map_err(|error| self.unreachable(&error))?;
            print_request(|| {
                let (millis, size) = (stopwatch.elapsed().as_millis(), answer.body.len());
                format!("< {} in {millis} ms, {size} bytes", answer.status)
            });
            let wait = wait_for(method, answer.status, &answer.headers, clock.now());
            let Some(wait) = wait.filter(|wait| *wait <= left) else { break answer };
            let status = answer.status.as_u16();
            print_note(&format!("the server responded {status}; retrying in {} s", wait.as_secs()));
            clock.sleep(wait).await;
            left -= wait;
        };
        let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() && document["success"] == true {
            return Ok(document);
        }
        Err(self.refused(answer.status, &document))
    }

    /// Follows a stream of events until it ends.
    pub async fn follow(&self, path: &str, query: &Query<'_>, stream: &mut dyn Ended) -> Result<(), Failure> {
        let url = self.address(path, query);
        print_request(|| format!("> GET {url}"));
        let call = Call {
            method: http::Method::GET,
            url: self.egress.check_url(url.as_str())?,
            headers: self.headers("application/json")?,
            body: bytes::Bytes::new(),
            deadline: MAX_STREAM,
            max_answer: usize::MAX,
        };
        // A broken or slow stream returns like any other.
        let ended = self.egress.read(call, stream).await;
        if let Some(failure) = stream.failure() {
            return Err(failure);
        }
        if !stream.status().is_success() {
            return Err(self.refused(stream.status(), &stream.body()));
        }
        ended.map_err(|error| self.unreachable(&error))
    }

    fn headers(&self, content_type: &str) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        let content_type = http::HeaderValue::try_from(content_type);
        let content_type = content_type.map_err(|_| Failure::usage("not a content type"))?;
        headers.insert(http::header::CONTENT_TYPE, content_type);
        let agent = concat!("hub-cli/", env!("CARGO_PKG_VERSION"));
        headers.insert(http::header::USER_AGENT, http::HeaderValue::from_static(agent));
        if let Some(token) = &self.token {
            let bearer = http::HeaderValue::try_from(format!("Bearer {}", token.expose()));
            let mut bearer = bearer.map_err(|_| Failure::usage("the key contains invalid characters"))?;
            bearer.set_sensitive(true);
            headers.insert(http::header::AUTHORIZATION, bearer);
        }
        Ok(headers)
    }

    fn unreachable(&self, error: &EgressError) -> Failure {
        let mut failure = Failure::unreachable(format!("no hub at {}", self.base));
        failure.causes.push(error.to_string());
        failure.with_hint("is the server running? for another address use --server")
    }

    /// Converts an error response to a failure.
    fn refused(&self, status: StatusCode, document: &Value) -> Failure {
        let Some(failure) = Failure::of_response(document) else {
            let what = format!("{} is not a hub: it responded {status}", self.base);
            return Failure::unreachable(what);
        };
        let failure = failure.with_server(&self.base, document["error"]["request_id"].as_str());
        match failure.exit {
            Exit::Denied if failure.code == ErrorCode::Forbidden.as_str() => {
                failure.with_hint("this needs an administrator, or a session in a browser")
            }
            Exit::Denied => failure.with_hint("hub-cli login, or a valid API key in HUB_TOKEN"),
            _ => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_idempotent_requests_are_retried_when_the_server_is_busy() {
        let now = Timestamp::from_millis(1_790_000_000_000);
        let mut headers = HeaderMap::new();
        let wait = |method, status, headers: &HeaderMap| wait_for(method, status, headers, now);
        let (limited, busy) = (StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(wait("GET", limited, &headers), None, "the server does not say when");
        headers.insert("retry-after", http::HeaderValue::from_static("7"));
        let seven = Some(Duration::from_secs(7));
        assert_eq!((wait("POST", limited, &headers), wait("GET", busy, &headers)), (seven, seven));
        assert_eq!(wait("POST", busy, &headers), None);
        assert_eq!(wait("GET", StatusCode::OK, &headers), None);
    }
}
