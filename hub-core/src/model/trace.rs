//! Traces of messages, and their steps.

use serde::{Deserialize, Serialize};

use crate::{
    id::{BotId, ChannelId, MessageId, PluginId, ReplayId, TraceId},
    model::{named::Named, sinks::SinkId},
    time::Timestamp,
    words::words,
};

pub use super::step::{
    Step, StepChanges, StepDetail, StepError, StepFetch, StepKind, StepLog, StepName, StepPhases,
};
pub use super::stored_steps::{PackedSteps, StoredSteps};

words! {
    /// Status of a trace.
    pub enum TraceStatus {
        /// Work goes on.
        Pending = "pending",
        /// Everything that had to happen did.
        Ok = "ok",
        /// It was given up.
        Error = "error",
        /// A filter or a plugin said that nothing has to happen.
        Skipped = "skipped",
    }
}

/// A message's way through one channel. As a document it looks as in the API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Id.
    pub trace_id: TraceId,
    /// The message.
    pub message_id: MessageId,
    /// Its bot.
    pub bot_id: BotId,
    /// The channel; `None` for a send that no channel caused.
    pub channel_id: Option<ChannelId>,
    /// The trace that this one repeats.
    pub replay_of: Option<TraceId>,
    /// Status.
    pub status: TraceStatus,
    /// One line.
    pub summary: String,
    /// When it began.
    pub started_at: Timestamp,
    /// Until the last step's end, in milliseconds.
    pub duration_ms: u64,
    /// Attempts at the sink; of several sinks the most.
    pub attempts: u64,
    /// Name of the channel; absent for a send that no channel caused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_name: Option<String>,
    /// The person on the other side, as the network identifies them.
    #[serde(default)]
    pub user_id: String,
    /// Their name; empty when unknown.
    #[serde(default)]
    pub user_name: String,
    /// The first 120 characters of the message's text.
    #[serde(default)]
    pub preview: String,
    /// When the next attempt is due; absent in lists, and when none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// Attempts after which the webhook gives up; absent when it has none to make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u64>,
    /// The steps in order; empty in lists.
    #[serde(default)]
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

/// Which traces of a bot a list shows.
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

/// Which traces of all bots are wanted. A `q` that is the id of a message or of a trace selects the traces of that
/// message or that trace alone, whatever the other filters are.
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
    /// What the text of the search names by its id.
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

/// What is known of a delivery, to explain it.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::FromRow)]
#[row(table = "deliveries")]
pub struct DeliveryFacts {
    /// The sink.
    pub sink: SinkId,
    /// State.
    pub state: DeliveryState,
    /// Attempts made.
    #[row(number)]
    pub attempts: u64,
    /// When it is due.
    pub due_at: Timestamp,
    /// What went wrong, or what it waits for.
    pub last_error: Option<String>,
}
