//! The way of a message to its sink as a chain of types: what a stage returns is what the next one takes, so
//! that no stage can be left out, and nothing is signed before it is final.
//!
//! ```text
//! Filtered ─draft─▶ Drafted ─on_request─▶ Prepared ─attempt─▶ Answered ─on_response─▶ Concluded
//! ```
//! `Received → Filtered` happens in the inbox, before the commit. The two plugin stages pass on what they get
//! as long as a channel has no plugins installed.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::Value;

use super::{job::Job, payload::Payload, retry::Verdict};
use crate::{channels::runtime::ChannelRuntime, traces::Step};

/// A message that a channel takes.
#[derive(Debug)]
pub struct Filtered<'j> {
    /// The delivery.
    pub job: &'j Job,
    /// The channel's settings as they are now.
    pub channel: Arc<ChannelRuntime>,
}

/// The request as the hub would send it; hooks may change it.
#[derive(Debug)]
pub struct Drafted<'j> {
    /// The delivery.
    pub job: &'j Job,
    /// The channel's settings.
    pub channel: Arc<ChannelRuntime>,
    /// The request.
    pub request: Request,
}

/// A request without anything secret in its headers.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Target.
    pub url: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Exact bytes of the body.
    pub body: Bytes,
}

/// The request after every request hook: final but for authentication.
#[derive(Debug)]
pub struct Prepared<'j> {
    /// The delivery.
    pub job: &'j Job,
    /// The channel's settings.
    pub channel: Arc<ChannelRuntime>,
    /// The request; `None` when a hook said to skip it.
    pub request: Option<Request>,
    /// Texts that hooks want sent to the sender.
    pub replies: Vec<String>,
    /// Steps so far.
    pub steps: Vec<Step>,
}

/// What an attempt at the sink brought.
#[derive(Debug)]
pub struct Answered<'j> {
    /// The delivery.
    pub job: &'j Job,
    /// The channel's settings.
    pub channel: Arc<ChannelRuntime>,
    /// What came back.
    pub outcome: Outcome,
    /// Texts for the sender.
    pub replies: Vec<String>,
    /// Steps so far.
    pub steps: Vec<Step>,
}

/// How an attempt ended.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing was sent, on purpose.
    Skipped,
    /// An answer came.
    Answer {
        /// What it means.
        verdict: Verdict,
        /// One line: `status 200`.
        summary: String,
        /// Whether the body says it is JSON.
        json: bool,
        /// The body.
        body: Bytes,
    },
    /// No answer came, or the request could not be made.
    Failure {
        /// One line: `timeout: …`.
        summary: String,
        /// Whether trying again is of no use.
        permanent: bool,
    },
}

/// An attempt with everything that follows from it.
#[derive(Debug)]
pub struct Concluded {
    /// How it ended.
    pub outcome: Outcome,
    /// Texts for the sender, in order.
    pub replies: Vec<String>,
    /// Steps of this attempt.
    pub steps: Vec<Step>,
}

impl<'j> Filtered<'j> {
    /// Writes the request of the specification.
    pub fn draft(self) -> Drafted<'j> {
        let Self { job, channel } = self;
        let body = Bytes::from(crate::store::json(&Payload::of(job)));
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("message-hub/", env!("CARGO_PKG_VERSION"))),
        );
        let url = job.target_url.clone().unwrap_or_else(|| channel.webhook.url.clone());
        Drafted { job, channel, request: Request { method: Method::POST, url, headers, body } }
    }
}

impl<'j> Drafted<'j> {
    /// Runs the channel's request hooks in their order of installation. No plugin is installed anywhere yet.
    pub fn on_request(self) -> Prepared<'j> {
        let Self { job, channel, request } = self;
        Prepared { job, channel, request: Some(request), replies: Vec::new(), steps: Vec::new() }
    }
}

impl Answered<'_> {
    /// Runs the channel's response hooks, then the automatic reply (`contract.md` §6.5): a plugin that replied
    /// goes first, and no plugin is installed anywhere yet.
    pub fn on_response(self) -> Concluded {
        let Self { channel, outcome, mut replies, steps, .. } = self;
        if channel.webhook.auto_reply && replies.is_empty() {
            replies.extend(outcome.reply());
        }
        Concluded { outcome, replies, steps }
    }
}

impl Outcome {
    /// The text `reply` of a 2xx JSON answer, which a channel may send to the sender (spec §5).
    pub fn reply(&self) -> Option<String> {
        match self {
            Self::Answer { verdict: Verdict::Success, json: true, body, .. } => {
                let answer: Value = serde_json::from_slice(body).ok()?;
                let reply = answer.get("reply")?.as_str()?;
                (!reply.trim().is_empty()).then(|| reply.to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_json_success_with_a_text_replies() {
        let answer = |verdict, json, body: &'static str| {
            let body = Bytes::from_static(body.as_bytes());
            Outcome::Answer { verdict, summary: String::new(), json, body }.reply()
        };
        assert_eq!(answer(Verdict::Success, true, r#"{"reply":"hi","x":1}"#).as_deref(), Some("hi"));
        assert_eq!(answer(Verdict::Success, false, r#"{"reply":"hi"}"#), None);
        assert_eq!(answer(Verdict::Gone, true, r#"{"reply":"hi"}"#), None);
        for body in [r#"{"reply":7}"#, r#"{"reply":"  "}"#, r#"["hi"]"#, "", "{", r#"{"reply":null}"#] {
            assert_eq!(answer(Verdict::Success, true, body), None, "{body}");
        }
    }
}
