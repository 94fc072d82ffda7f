//! Traces of messages, and their steps.

use serde::{Deserialize, Serialize};

pub use super::{
    step::{Step, StepChanges, StepDetail, StepError, StepFetch, StepKind, StepLog, StepName, StepPhases},
    stored_steps::{PackedSteps, StoredSteps},
};
use crate::{
    id::{BotId, ChannelId, MessageId, PluginId, ReplayId, TraceId},
    model::{id_search::Named, sinks::SinkKind},
    time::Timestamp,
    words::words,
};

words! {
    /// Status of a trace or a step.
    pub enum TraceStatus {
        /// Not finished.
        Pending = "pending",
        /// Succeeded.
        Ok = "ok",
        /// Failed.
        Error = "error",
        /// Skipped by a filter or a plugin.
        Skipped = "skipped",
    }
}

/// The delivery of a message through one channel, in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, hub_macros::Api)]
#[api(example = {
    "attempts": 1,
    "bot_id": "bot_01KAG00000E008000000000001",
    "channel_id": "ch_01KAG00000E008000000000002",
    "channel_name": "orders",
    "duration_ms": 12,
    "message_id": "msg_01KAG00000E008000000000004",
    "preview": "order 42",
    "started_at": "2025-11-21T09:30:00.000Z",
    "status": "ok",
    "summary": "status 200",
    "summary_cause": {"code": "status", "status": 200},
    "trace_id": "tr_01KAG00000E008000000000003",
    "user_id": "ada@im.wechat",
    "user_name": "Ada",
})]
pub struct Trace {
    /// Id of the trace.
    pub trace_id: TraceId,
    /// Id of the message.
    pub message_id: MessageId,
    /// Id of the bot.
    pub bot_id: BotId,
    /// Id of the channel; absent for a send that no channel caused.
    pub channel_id: Option<ChannelId>,
    /// Id of the trace that this one repeats.
    pub replay_of: Option<TraceId>,
    /// Status.
    pub status: TraceStatus,
    /// Summary in one line.
    #[api(cause)]
    pub summary: String,
    /// When it began.
    pub started_at: Timestamp,
    /// Time until the end of the last step, in milliseconds.
    pub duration_ms: u64,
    /// Number of attempts at the sink.
    pub attempts: u64,
    /// Name of the channel; absent for a send that no channel caused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_name: Option<String>,
    /// Id of the other person on the network.
    #[serde(default)]
    pub user_id: String,
    /// Display name of the other person; empty if unknown.
    #[serde(default)]
    pub user_name: String,
    /// The first 120 characters of the text.
    #[serde(default)]
    pub preview: String,
    /// When the next attempt is due; absent in lists, and when none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[api(skip)]
    pub next_attempt_at: Option<Timestamp>,
    /// Attempts after which the webhook gives up; absent when it has none to make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[api(skip)]
    pub max_attempts: Option<u64>,
    /// The steps in order; empty in lists.
    #[serde(default)]
    #[api(skip)]
    pub steps: Vec<Step>,
}

impl Trace {
    /// A trace of nothing but these steps.
    pub fn new(
        trace_id: TraceId,
        message_id: MessageId,
        bot_id: BotId,
        started_at: Timestamp,
        steps: Vec<Step>,
    ) -> Self {
        Self {
            trace_id,
            message_id,
            bot_id,
            channel_id: None,
            replay_of: None,
            status: TraceStatus::Pending,
            summary: String::new(),
            started_at,
            duration_ms: 0,
            attempts: 0,
            channel_name: None,
            user_id: String::new(),
            user_name: String::new(),
            preview: String::new(),
            next_attempt_at: None,
            max_attempts: None,
            steps,
        }
    }

    /// Whether it is the trace of a send, not of a received message: there is nothing to deliver then. Needs the
    /// steps.
    pub fn is_of_a_send(&self) -> bool {
        let first = self.steps.first();
        first.is_some_and(|step| {
            step.name == StepName::Received && !matches!(step.kind, StepKind::Inbox | StepKind::Replay)
        })
    }
}

/// Filters of a list of a bot's traces.
#[derive(Debug, Clone, Default)]
pub struct TraceQuery {
    /// Only of this channel.
    pub channel_id: Option<ChannelId>,
    /// Only in this state.
    pub status: Option<TraceStatus>,
    /// Only of this message.
    pub message_id: Option<MessageId>,
    /// Only these, unless empty.
    pub ids: Vec<TraceId>,
    /// Begun at this time or later.
    pub since: Option<Timestamp>,
    /// Begun before this time.
    pub until: Option<Timestamp>,
    /// Oldest first, in place of newest first.
    pub oldest_first: bool,
}

impl TraceQuery {
    /// The name of this list for `PageRequest::parse`: a cursor of another bot or filter is refused.
    pub fn list_name(&self, bot_id: BotId) -> String {
        format!("traces:{bot_id}:{self:?}")
    }
}

/// Filters of a search for traces of all bots. A `q` that is the id of a message or of a trace selects the traces of
/// that message or that trace alone; the other filters are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceSearch {
    /// Only of this bot.
    pub bot_id: Option<BotId>,
    /// Only of this channel.
    pub channel_id: Option<ChannelId>,
    /// Only in this state.
    pub status: Option<TraceStatus>,
    /// Only of this message.
    pub message_id: Option<MessageId>,
    /// Only replays of this trace.
    pub replay_of: Option<TraceId>,
    /// Only those that this replay of many traces created.
    pub replay_id: Option<ReplayId>,
    /// Begun at this time or later.
    pub since: Option<Timestamp>,
    /// Begun before this time.
    pub until: Option<Timestamp>,
    /// With this text in the message; the case of ASCII letters does not matter.
    pub q: Option<String>,
    /// With a failed step of this name.
    pub failed_step: Option<StepName>,
    /// With a response of this status.
    pub http_status: Option<u32>,
    /// In which this plugin ran.
    pub plugin_id: Option<PluginId>,
}

impl TraceSearch {
    /// Returns the message or trace whose id is the text of the search.
    pub(crate) fn named(&self) -> Option<Named> {
        Named::read(self.q.as_deref()?.trim())
    }

    /// The search without the filters that do not matter for an id.
    pub(crate) fn effective(&self) -> Self {
        if self.named().is_some() { Self { q: self.q.clone(), ..Self::default() } } else { self.clone() }
    }

    /// Whether the steps have to be read.
    pub fn reads_steps(&self) -> bool {
        self.failed_step.is_some() || self.http_status.is_some() || self.plugin_id.is_some()
    }

    /// Whether the steps of a trace satisfy the filters that need them.
    pub(crate) fn matches_steps(&self, steps: &[Step]) -> bool {
        let failed = |name| steps.iter().any(|step| step.name == name && step.status == TraceStatus::Error);
        let responded = |status| {
            let is_response = |step: &&Step| step.name == StepName::Response;
            steps.iter().filter(is_response).any(|step| step.detail.status.map(u32::from) == Some(status))
        };
        let ran = |plugin| steps.iter().any(|step| step.detail.plugin_id == Some(plugin));
        self.failed_step.is_none_or(failed)
            && self.http_status.is_none_or(responded)
            && self.plugin_id.is_none_or(ran)
    }
}

words! {
    /// State of a delivery.
    pub enum DeliveryState {
        /// In its lane, waiting or in flight.
        Pending = "pending",
        /// Out of its lane, waiting for its time.
        Parked = "parked",
        /// The sink has it.
        Done = "done",
        /// A plugin said that the sink need not have it.
        Skipped = "skipped",
        /// Given up; may be replayed.
        Dead = "dead",
    }
}

/// State of a delivery, for an explanation.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow)]
#[row(table = "deliveries")]
pub struct DeliveryFacts {
    /// The sink.
    pub sink: SinkKind,
    /// State.
    pub state: DeliveryState,
    /// Attempts made.
    #[row(number)]
    pub attempts: u64,
    /// Time at which it is due.
    pub due_at: Timestamp,
    /// The last error, or the reason for waiting.
    pub last_error: Option<String>,
}
