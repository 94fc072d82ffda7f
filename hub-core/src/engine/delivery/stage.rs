//! The path of a message to its sink as a chain of types: what a stage returns is what the next one takes, so
//! that no stage can be left out, and nothing is signed before it is final.
//!
//! ```text
//! Filtered ─draft─▶ Drafted ─on_request─▶ Prepared ─attempt─▶ Answered ─on_response─▶ Concluded
//! ```
//! `Received → Filtered` happens in the inbox, before the commit. The two plugin stages are in `hooks`.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::value::RawValue;

use super::{job::Job, retry::Verdict};
use crate::{
    delivery::channels::ChannelRuntime,
    egress::Receipt,
    id::PluginId,
    model::{
        cause::Cause,
        trace::{Step, StepKind},
    },
};

/// A message that a channel takes.
#[derive(Debug)]
pub struct Filtered<'j> {
    pub job: &'j Job,
    /// The channel's settings as they are now.
    pub channel: Arc<ChannelRuntime>,
}

/// The request as the hub would send it; hooks may change it.
#[derive(Debug)]
pub struct Drafted<'j> {
    pub job: &'j Job,
    pub channel: Arc<ChannelRuntime>,
    pub request: Request,
}

/// A request without anything secret in its headers.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    /// Exact bytes of the body.
    pub body: Bytes,
}

/// The request after every request hook: final but for authentication.
#[derive(Debug)]
pub struct Prepared<'j> {
    pub job: &'j Job,
    pub channel: Arc<ChannelRuntime>,
    /// The request, or how the attempt ends without one.
    pub request: Result<Request, Outcome>,
    /// Replies of request hooks, to be sent at once.
    pub replies: Vec<Reply>,
    /// Whether request hooks replied.
    pub replied: bool,
    /// Values that plugins left for their response hooks.
    pub states: Vec<State>,
    pub steps: Vec<Step>,
}

/// Result of an attempt at the sink.
#[derive(Debug)]
pub struct Answered<'j> {
    pub job: &'j Job,
    pub channel: Arc<ChannelRuntime>,
    pub outcome: Outcome,
    /// The request that was sent, without what authenticated it.
    pub request: Option<Request>,
    /// The response, when one came.
    pub response: Option<Receipt>,
    /// Replies that are still to be sent to the sender.
    pub replies: Vec<Reply>,
    /// Whether a plugin replied before the request.
    pub replied: bool,
    /// Values that plugins left for their response hooks.
    pub states: Vec<State>,
    pub steps: Vec<Step>,
}

/// Value that a plugin left in `ctx.state` for its other hook.
#[derive(Debug)]
pub struct State {
    pub(super) plugin: PluginId,
    pub(super) json: Box<RawValue>,
}

/// Result of an attempt.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing was sent, on purpose.
    Skipped,
    /// This sink does not handle the message.
    Ignored {
        /// Reason for the trace.
        cause: Cause,
    },
    /// An answer came.
    Answer {
        /// Verdict on the response.
        verdict: Verdict,
        /// One line: `status 200`.
        summary: String,
    },
    /// A plugin failed before the request, and nothing was sent.
    PluginFailed {
        /// One line: `plugin tagger: throw`.
        summary: String,
        /// Whether the delivery is tried again.
        retry: bool,
    },
    /// Nothing can be sent until a setting changes; the delivery is parked and no attempt is counted.
    Waits {
        /// Reason for the wait.
        cause: Cause,
        /// Time until the next check.
        recheck: Duration,
    },
    /// No answer came, or the request could not be made.
    Failure {
        /// One line: `timeout: …`.
        summary: String,
        /// Whether a retry cannot succeed.
        permanent: bool,
    },
}

/// A reply to the sender of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Key that is unique among the delivery's replies, and the same when the attempt is made again.
    pub key: String,
    /// Source of the reply, for the trace.
    pub by: StepKind,
    pub content: ReplyContent,
}

/// The content of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyContent {
    /// A text.
    Text(String),
    /// A file.
    File(ReplyFile),
    /// A reply that cannot be sent, with the reason.
    Unsendable(Cause),
}

/// A file that is stored once it is certain that it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyFile {
    /// Text that is sent before the file; may be empty.
    pub caption: String,
    /// May be empty.
    pub file_name: String,
    pub content_type: Option<String>,
    pub bytes: Bytes,
}

impl Reply {
    /// Creates the only text reply of a sink.
    pub fn text(by: StepKind, text: String) -> Self {
        Self { key: "0".to_owned(), by, content: ReplyContent::Text(text) }
    }
}

/// An attempt with everything that follows from it.
#[derive(Debug)]
pub struct Concluded {
    pub outcome: Outcome,
    /// Replies to the sender, in order.
    pub replies: Vec<Reply>,
    pub steps: Vec<Step>,
}

impl<'j> Filtered<'j> {
    /// Writes the request of the specification.
    pub fn draft(self) -> Drafted<'j> {
        let Self { job, channel } = self;
        let body = Bytes::from(job.payload().text());
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
