//! What the operations about traces return, and the values of their parameters.

use hub_core::{
    Error,
    bots::Message,
    id::TraceId,
    openapi::Api,
    time::Timestamp,
    traces::{Expand, ExpandedTrace, ReplayOptions, ReplayTo, Step, Trace},
};
use poem_openapi::Enum;

use crate::wire::Text;

/// A trace in a list, with the parts named in `expand`.
#[derive(Debug, Api)]
pub struct ListedTrace {
    /// The trace.
    #[api(flatten)]
    pub trace: Trace,
    /// The steps, in order, with `expand=steps`.
    pub steps: Option<Vec<Step>>,
    /// The message if it is still retained, with `expand=message`.
    pub message: Option<Message>,
}

/// Parts of each trace that a list adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum TraceExpansion {
    /// The steps.
    Steps,
    /// The message.
    Message,
}

/// The delivery of a message through one channel, with its steps.
#[derive(Debug, Api)]
pub struct TraceDetail {
    /// The trace.
    #[api(flatten)]
    pub trace: Trace,
    /// When the next attempt is due; absent if no attempt is planned.
    pub next_attempt_at: Option<Timestamp>,
    /// Maximum number of attempts at the webhook; absent if the trace has no delivery to it.
    pub max_attempts: Option<u64>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// Order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum Order {
    /// Newest first.
    Newest,
    /// Oldest first: for reading all of them while new ones arrive.
    Oldest,
}

/// Target of a replay.
#[derive(Debug, Api)]
#[api(input, example = {
    "supersede": false,
    "url": "https://example.com/hook"
})]
pub struct ReplayTrace {
    /// URL to use instead of the channel's. The channel's credentials are not sent to it.
    pub url: Option<Text<1, 2048>>,
    /// The sink that receives the message again; the webhook if absent.
    pub sink: Option<ReplaySink>,
    /// Whether the replay takes the place of a delivery that still waits, which is cancelled.
    pub supersede: Option<bool>,
}

impl ReplayTrace {
    /// Options of the replay.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for a URL with the sink `ai`.
    pub(crate) fn options(&self) -> Result<ReplayOptions<'_>, Error> {
        let to = match (self.sink, self.url.as_deref()) {
            (Some(ReplaySink::Ai), Some(_)) => {
                return Err(Error::invalid("url", "is for the webhook; leave it out"));
            }
            (Some(ReplaySink::Ai), None) => ReplayTo::Model,
            (_, Some(url)) => ReplayTo::Url(url),
            (_, None) => ReplayTo::Webhook,
        };
        Ok(ReplayOptions { to, supersede: self.supersede.unwrap_or(false) })
    }
}

/// A sink for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum ReplaySink {
    /// The webhook.
    Webhook,
    /// The model; the sender receives another response.
    Ai,
}

/// An accepted replay.
#[derive(Debug, Api)]
pub struct Replayed {
    /// Id of the new trace.
    pub trace_id: TraceId,
}

impl ListedTrace {
    pub(super) fn new(expanded: ExpandedTrace, expand: Expand) -> Self {
        let ExpandedTrace { mut trace, message } = expanded;
        let steps = std::mem::take(&mut trace.steps);
        Self { trace, steps: expand.steps.then_some(steps), message }
    }
}

impl From<Trace> for TraceDetail {
    fn from(mut trace: Trace) -> Self {
        let steps = std::mem::take(&mut trace.steps);
        Self { next_attempt_at: trace.next_attempt_at, max_attempts: trace.max_attempts, trace, steps }
    }
}
