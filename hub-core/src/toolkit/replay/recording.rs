//! A trace as it is exported, and what of it can be sent again.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    model::trace::{Step, StepName, Trace},
    redact::{self, MASK},
};

/// A trace with its message: one line of an export. It contains content and no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The trace, with its steps.
    #[serde(flatten)]
    pub trace: Trace,
    /// The webhook payload before any plugin; absent when the message is not known any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
}

/// The last request in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Method.
    pub method: Method,
    /// Target; secrets in it are masked.
    pub url: String,
    /// Headers whose values were kept, in order, without those that frame the message.
    pub headers: HeaderMap,
    /// Names of headers whose values were masked.
    pub masked: Vec<String>,
    /// Body; secrets in it are masked.
    pub body: String,
}

/// The last response in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedResponse {
    /// Status.
    pub status: u16,
    /// Body; secrets in it are masked.
    pub body: String,
}

impl Recording {
    /// The last request, when there was one that went out.
    pub fn request(&self) -> Option<RecordedRequest> {
        // One that could not even be made has no body.
        let made = |step: &&Step| step.name == StepName::Request && step.detail.body.is_some();
        let detail = &self.trace.steps.iter().rfind(made)?.detail;
        let mut request = RecordedRequest {
            method: detail.method.as_deref()?.parse().ok()?,
            url: detail.url.clone()?,
            headers: HeaderMap::new(),
            masked: Vec::new(),
            body: detail.body.clone()?,
        };
        for (name, value) in detail.headers.iter().flatten() {
            if value == MASK {
                request.masked.push(name.clone());
                continue;
            }
            let parsed = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(value).ok());
            if let Some((name, value)) = parsed
                && !frames(&name)
            {
                request.headers.append(name, value);
            }
        }
        Some(request)
    }

    /// The last answer, when one came to the last request.
    pub fn response(&self) -> Option<RecordedResponse> {
        let last = self.trace.steps.iter().rposition(|step| step.name == StepName::Request)?;
        let answer = self.trace.steps[last..].iter().find(|step| step.name == StepName::Response)?;
        let body = answer.detail.body.clone().unwrap_or_default();
        Some(RecordedResponse { status: answer.detail.status?, body })
    }
}

impl RecordedRequest {
    /// Whether only the beginning of the body was kept.
    pub fn is_cut(&self) -> bool {
        redact::is_cut(&self.body)
    }

    /// Whether a header of this name was there with a value that is not recorded.
    pub fn masks(&self, name: &str) -> bool {
        self.masked.iter().any(|masked| masked == name)
    }
}

/// Set by the connection that carries the request.
fn frames(name: &HeaderName) -> bool {
    [header::HOST, header::CONTENT_LENGTH, header::CONNECTION, header::TRANSFER_ENCODING].contains(name)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A delivery of one message that was answered, and that did not work at first.
    pub fn recording(id: &str, content: &str) -> Recording {
        let body = json!({ "content": content, "contextToken": MASK }).to_string();
        let request = json!({
            "attempt": 2, "method": "POST", "url": "http://receiver.test/hook?key=***", "body": body,
            "headers": [["content-type", "application/json"], ["x-signature", MASK], ["webhook-id", "dlv_1"],
                ["webhook-timestamp", "1700000000"], ["webhook-signature", MASK], ["host", "receiver.test"]],
        });
        let step = |name: &str, detail: Value| {
            json!({ "name": name, "kind": "webhook", "status": "ok", "started_at": "2026-01-02T03:04:05.678Z",
                "duration_ms": 1, "detail": detail })
        };
        let bot = "bot_01KAJ6Z8QH0000000000000000";
        serde_json::from_value(json!({
            "trace_id": id, "message_id": "msg_01KAJ6Z8QH0000000000000000", "bot_id": bot,
            "channel_id": "ch_01KAJ6Z8QH0000000000000000", "status": "ok", "summary": "status 200",
            "started_at": "2026-01-02T03:04:05.678Z", "duration_ms": 12, "attempts": 2,
            "steps": [
                step("request", request.clone()), step("response", json!({ "status": 500, "body": "no" })),
                step("request", request), step("response", json!({ "status": 200, "body": "{\"reply\":\"a\"}" })),
            ],
            "message": { "type": "message", "content": content, "sender": { "user_id": "u", "user_name": "Ada" },
                "msg_type": 1, "timestamp": 1_700_000_000 },
        }))
        .unwrap()
    }

    pub const FIRST: &str = "tr_01KAJ6Z8QH0000000000000001";

    #[test]
    fn the_last_request_and_its_answer_are_what_counts() {
        let recording = recording(FIRST, "order 42");
        let request = recording.request().unwrap();
        assert_eq!((request.method.as_str(), &*request.url), ("POST", "http://receiver.test/hook?key=***"));
        let names: Vec<_> = request.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(
            names,
            ["content-type", "webhook-id", "webhook-timestamp"],
            "what is masked or framing is not sent"
        );
        assert!(request.masks("x-signature") && !request.masks("webhook-id") && !request.is_cut());
        assert_eq!(recording.response().unwrap().status, 200);
        let mut unanswered = recording.clone();
        unanswered.trace.steps.pop();
        assert_eq!(unanswered.response(), None, "the answer to an earlier attempt is not the last one's");
        unanswered.trace.steps.clear();
        assert_eq!(unanswered.request(), None);
    }

    #[test]
    fn a_recording_is_written_and_read_again() {
        let recording = recording(FIRST, "order 42");
        let line = serde_json::to_string(&recording).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Recording>(&line).unwrap(), recording);
        assert!(serde_json::from_str::<Recording>("{}").is_err());
    }
}
