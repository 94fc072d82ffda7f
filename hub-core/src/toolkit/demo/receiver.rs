//! The demo's receiver of webhooks: verifies the signature, records requests, and can misbehave on request.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header, request::Parts};
use serde::Serialize;
use serde_json::{Value, json};

use super::signature::Verdict;
use crate::{
    error::{ErrorCode, Result},
    local_http::{Cut, LocalService, refuse_other_pages, require_json},
    secret::Secret,
    time::{Clock, Timestamp},
    words::words,
};

/// Requests that are remembered; the oldest is forgotten.
const MAX_REMEMBERED: usize = 50;
/// Largest body, in bytes: a payload's text is at most 64 KiB.
const MAX_BODY: usize = 1 << 20;
/// Characters of a message that are remembered.
const MAX_CONTENT: usize = 500;
/// Time for which a hanging receiver holds a request: longer than the longest timeout of a webhook.
const HANG: Duration = Duration::from_secs(40);

words! {
    /// What the receiver of the demo does with a request.
    #[derive(Default)]
    #[api(name = "ReceiverMode")]
    pub enum Behaviour {
        /// Checks the signature and responds with a reply.
        #[default]
        Answer = "answer",
        /// Responds with 500.
        Fail = "fail",
        /// Does not respond.
        Hang = "hang",
        /// Closes the connection.
        Cut = "cut",
    }
}

/// A request that the receiver of the demo received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, hub_macros::Api)]
#[api(name = "ReceivedRequest", example = {
    "at": "2026-11-21T09:30:00.000Z",
    "attempt": "1",
    "content": "order 42",
    "mode": "answer",
    "reason": "X-Signature, webhook-signature",
    "reply": "42 is on its way",
    "verified": true,
    "webhook_id": "msg_01K9ZC3V5T8QK4X7M2N6P0RSWA",
})]
pub struct Received {
    /// When it arrived.
    pub at: Timestamp,
    /// The header `webhook-id`, the same for every attempt; empty if absent.
    pub webhook_id: String,
    /// The header `X-Hub-Attempt`; empty if absent.
    pub attempt: String,
    /// Text of the message, at most 500 characters.
    #[api(and(verified: bool = |request: &Self| request.verdict.verified, "Whether the signature is valid."))]
    #[api(and(reason: String = |request: &Self| request.verdict.reason.clone(), "The headers that were checked, or what is wrong."))]
    pub content: String,
    /// What the receiver did.
    #[api(name = "mode")]
    pub behaviour: Behaviour,
    /// The reply in the response, if there was one.
    pub reply: Option<String>,
    /// What the receiver thinks of the signature.
    #[serde(flatten)]
    #[api(skip)]
    pub verdict: Verdict,
}

/// The receiver. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct DemoReceiver {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    secret: Option<Secret>,
    behaviour: Behaviour,
    /// Requests until it responds normally again; `None` for no limit.
    left: Option<u32>,
    received: VecDeque<Received>,
}

impl DemoReceiver {
    /// A receiver without a secret: it accepts no signature.
    pub fn new(clock: Clock) -> Self {
        Self { clock, state: Arc::default() }
    }

    /// Sets the secret of the checks.
    pub fn set_secret(&self, secret: Secret) {
        self.state().secret = Some(secret);
    }

    /// Changes the behaviour, for `times` requests or until the next change.
    pub fn behave(&self, behaviour: Behaviour, times: Option<u32>) {
        let mut state = self.state();
        state.behaviour = behaviour;
        state.left = times;
    }

    /// Returns the behaviour for the next request, and the number of requests that it lasts; `None` until the next
    /// change.
    pub fn behaviour(&self) -> (Behaviour, Option<u32>) {
        let state = self.state();
        match state.left {
            Some(0) => (Behaviour::Answer, None),
            left => (state.behaviour, left),
        }
    }

    /// The last 50 requests, oldest first.
    pub fn received(&self) -> Vec<Received> {
        self.state().received.iter().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks and records a delivery. Returns it with the behaviour for it.
    fn receive(&self, request: &Request<Bytes>) -> Received {
        let now = self.clock.now();
        let mut state = self.state();
        let verdict = Verdict::of(request.headers(), request.body(), state.secret.as_ref(), now);
        let content = content_of(request.body());
        let behaviour = state.next_behaviour();
        let text = |name: &str| {
            let value = request.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let replies = behaviour == Behaviour::Answer && verdict.verified;
        let received = Received {
            at: now,
            webhook_id: text("webhook-id"),
            attempt: text("x-hub-attempt"),
            reply: replies.then(|| reply_to(&content)),
            content,
            verdict,
            behaviour,
        };
        if state.received.len() >= MAX_REMEMBERED {
            state.received.pop_front();
        }
        state.received.push_back(received.clone());
        received
    }

    fn control(&self, body: &[u8]) -> Response<Bytes> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Behave {
            mode: Behaviour,
            times: Option<u32>,
        }
        match serde_json::from_slice::<Behave>(body) {
            Ok(Behave { mode, times }) => {
                self.behave(mode, times);
                answer(StatusCode::OK, &json!({ "mode": mode, "times": times }))
            }
            Err(error) => refuse(StatusCode::BAD_REQUEST, "INVALID_PARAMS", &error.to_string()),
        }
    }
}

impl State {
    fn next_behaviour(&mut self) -> Behaviour {
        let behaviour = match self.left {
            Some(0) => Behaviour::Answer,
            _ => self.behaviour,
        };
        self.left = self.left.map(|left| left.saturating_sub(1));
        behaviour
    }
}

#[async_trait]
impl LocalService for DemoReceiver {
    /// `POST …/behaviour {mode, times?}`, `GET …/requests`, and every other POST is a delivery.
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let path = request.uri().path();
        let is_control = ["/requests", "/behaviour"].iter().any(|call| path.ends_with(call));
        if is_control && let Err(error) = check_caller(&request) {
            let is_no_json = error.code() == ErrorCode::UnsupportedMediaType;
            let status = if is_no_json { StatusCode::UNSUPPORTED_MEDIA_TYPE } else { StatusCode::FORBIDDEN };
            return Ok(refuse(status, error.code().as_str(), error.message()));
        }
        match *request.method() {
            Method::GET if path.ends_with("/requests") => {
                return Ok(answer(StatusCode::OK, &json!({ "items": self.received() })));
            }
            Method::POST if path.ends_with("/behaviour") => return Ok(self.control(request.body())),
            Method::POST => {}
            _ => return Ok(refuse(StatusCode::NOT_FOUND, "NOT_FOUND", "nothing is here but POST /hook")),
        }
        let received = self.receive(&request);
        match (received.behaviour, received.reply) {
            (Behaviour::Answer, Some(reply)) => Ok(answer(StatusCode::OK, &json!({ "reply": reply }))),
            (Behaviour::Answer, None) => {
                Ok(refuse(StatusCode::UNAUTHORIZED, "INVALID_TOKEN", &received.verdict.reason))
            }
            (Behaviour::Fail, _) => {
                Ok(refuse(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", "configured to fail"))
            }
            (Behaviour::Hang, _) => {
                self.clock.sleep(HANG).await;
                Err(Cut)
            }
            (Behaviour::Cut, _) => Err(Cut),
        }
    }

    fn max_body(&self, _: &Parts) -> usize {
        MAX_BODY
    }
}

impl fmt::Debug for DemoReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DemoReceiver")
    }
}

/// `order 42` is answered with `42 is on its way`.
fn reply_to(content: &str) -> String {
    let mut words = content.split_whitespace().skip_while(|word| !word.eq_ignore_ascii_case("order"));
    match words.nth(1) {
        Some(order) => format!("{order} is on its way"),
        None => "Hello! Try: order 42".to_owned(),
    }
}

/// Refuses web pages, as the control API of the simulator does.
fn check_caller(request: &Request<Bytes>) -> Result<()> {
    refuse_other_pages(request.headers(), None)?;
    require_json(request.headers(), request.body())
}

fn content_of(body: &[u8]) -> String {
    let payload: Value = serde_json::from_slice(body).unwrap_or_default();
    payload["content"].as_str().unwrap_or_default().chars().take(MAX_CONTENT).collect()
}

fn answer(status: StatusCode, body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

fn refuse(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    answer(status, &json!({ "error": { "code": code, "message": message } }))
}
