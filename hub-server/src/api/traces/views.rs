//! What the operations about traces return, and the values of their parameters.

use hub_core::{
    Error,
    replay::case::{CaseFile, TraceCase},
    traces::{self, Expand, ExpandedTrace, ReplayOptions, ReplayTo, Trace},
};
use poem_openapi::{Enum, Object, types::Example};
use serde_json::json;

use super::steps::StepView;
use crate::{
    api::bots::views::MessageView,
    wire::{self, Text, enumeration, view},
};

enumeration! {
    /// Status of a trace or a step.
    TraceStatus = traces::TraceStatus {
        /// Not finished.
        Pending,
        /// Succeeded.
        Ok,
        /// Failed.
        Error,
        /// Skipped by a filter or a plugin.
        Skipped,
    }
}

view! {
    /// The delivery of a message through one channel, in a list.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none, example)]
    pub struct TraceView from trace: Trace {
        /// Id of the trace.
        pub trace_id: wire::TraceId,
        /// Id of the message.
        pub message_id: wire::MessageId,
        /// Id of the bot.
        pub bot_id: wire::BotId,
        /// Id of the channel; absent for a send that no channel caused.
        pub channel_id: Option<wire::ChannelId>,
        /// Id of the trace that this one repeats.
        pub replay_of: Option<wire::TraceId>,
        /// Status.
        pub status: TraceStatus,
        /// Summary in one line.
        pub summary: String,
        /// When it began.
        pub started_at: wire::Time,
        /// Time until the end of the last step, in milliseconds.
        pub duration_ms: u64,
        /// Number of attempts at the sink.
        pub attempts: u64,
        /// Name of the channel; absent for a send that no channel caused.
        pub channel_name: Option<String>,
        /// Id of the other person on the network.
        pub user_id: String,
        /// Display name of the other person; empty if unknown.
        pub user_name: String,
        /// The first 120 characters of the text.
        pub preview: String,
    }
}

/// A trace in a list, with the parts named in `expand`.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none, example)]
pub struct ListedTrace {
    /// The trace.
    #[oai(flatten)]
    pub trace: TraceView,
    /// The steps, in order, with `expand=steps`.
    pub steps: Option<Vec<StepView>>,
    /// The message if it is still retained, with `expand=message`.
    pub message: Option<MessageView>,
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
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none, example)]
pub struct TraceDetail {
    /// The trace.
    #[oai(flatten)]
    pub trace: TraceView,
    /// When the next attempt is due; absent if no attempt is planned.
    pub next_attempt_at: Option<wire::Time>,
    /// Maximum number of attempts at the webhook; absent if the trace has no delivery to it.
    pub max_attempts: Option<u64>,
    /// The steps, in order.
    pub steps: Vec<StepView>,
}

view! {
    /// A test case of the plugin that ran in a trace.
    #[derive(Debug, Object)]
    #[oai(rename = "TraceCase", skip_serializing_if_is_none, example)]
    pub struct TraceCaseView from case: TraceCase {
        /// Id of the trace.
        pub trace_id: wire::TraceId,
        /// Name of the plugin.
        pub plugin: String,
        /// Why the case may differ from the trace; absent if the plugin does the same as in the trace.
        pub warning: Option<String>,
        /// The files, to be stored in one folder.
        pub files: Vec<CaseFileView> = case.files.into_iter().map(Into::into).collect(),
    }
}

view! {
    /// A file of a test case.
    #[derive(Debug, Object)]
    #[oai(rename = "CaseFile")]
    pub struct CaseFileView from file: CaseFile {
        /// Name, without a folder.
        pub name: String,
        /// Content.
        pub content: String,
    }
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
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
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
#[derive(Debug, Object)]
#[oai(example)]
pub struct Replayed {
    /// Id of the new trace.
    pub trace_id: wire::TraceId,
}

impl ListedTrace {
    pub(super) fn new(expanded: ExpandedTrace, expand: Expand) -> Self {
        let ExpandedTrace { mut trace, message } = expanded;
        let steps = std::mem::take(&mut trace.steps);
        Self {
            trace: trace.into(),
            steps: expand.steps.then(|| steps.into_iter().map(StepView::from).collect()),
            message: message.map(Into::into),
        }
    }
}

impl From<Trace> for TraceDetail {
    fn from(mut trace: Trace) -> Self {
        let steps = std::mem::take(&mut trace.steps);
        Self {
            next_attempt_at: trace.next_attempt_at.map(Into::into),
            max_attempts: trace.max_attempts,
            trace: trace.into(),
            steps: steps.into_iter().map(StepView::from).collect(),
        }
    }
}

pub(super) fn example_time() -> wire::Time {
    wire::Time(hub_core::time::Timestamp::from_millis(1_763_717_400_000))
}

impl Example for TraceView {
    fn example() -> Self {
        Self {
            trace_id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0003).into(),
            message_id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0004).into(),
            bot_id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0001).into(),
            channel_id: Some(hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0002).into()),
            replay_of: None,
            status: TraceStatus::Ok,
            summary: "status 200".to_owned(),
            started_at: example_time(),
            duration_ms: 12,
            attempts: 1,
            channel_name: Some("orders".to_owned()),
            user_id: "ada@im.wechat".to_owned(),
            user_name: "Ada".to_owned(),
            preview: "order 42".to_owned(),
        }
    }
}

impl Example for ListedTrace {
    fn example() -> Self {
        Self { trace: TraceView::example(), steps: None, message: None }
    }
}

impl Example for TraceDetail {
    fn example() -> Self {
        Self {
            trace: TraceView::example(),
            next_attempt_at: None,
            max_attempts: None,
            steps: vec![StepView::example()],
        }
    }
}

impl Example for TraceCaseView {
    fn example() -> Self {
        let trace_id = TraceView::example().trace_id;
        let case = json!({ "script": "tagger.js", "message": { "content": "order 42" },
            "expect": { "skipped": false, "replies": [] } });
        let file = CaseFileView { name: format!("{}.case.json", trace_id.0), content: format!("{case:#}\n") };
        Self { trace_id, plugin: "tagger".to_owned(), warning: None, files: vec![file] }
    }
}

impl Example for ReplayTrace {
    fn example() -> Self {
        Self { url: Some(Text("https://example.com/hook".to_owned())), sink: None, supersede: Some(false) }
    }
}

impl Example for Replayed {
    fn example() -> Self {
        Self { trace_id: TraceView::example().trace_id }
    }
}
