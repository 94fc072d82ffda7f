//! Replays of many traces.

use serde::{Deserialize, Serialize};

use crate::{
    id::{BotId, ChannelId, MessageId, ReplayId, TraceId},
    model::message::Direction,
    time::Timestamp,
};

/// Fields of a trace that a replay needs.
#[derive(Debug, Clone, hub_macros::FromRow)]
#[row(table = "traces")]
pub struct ReplaySource {
    /// The trace.
    pub id: TraceId,
    /// Its message.
    pub message_id: MessageId,
    /// Its bot.
    pub bot_id: BotId,
    /// Its channel.
    pub channel_id: Option<ChannelId>,
    /// Direction of the message.
    pub direction: Direction,
    /// Settings of the channel's webhook.
    pub webhook: Option<String>,
    /// Reason why the hub switched the webhook off.
    pub webhook_disabled: Option<String>,
}

/// A trace that was not replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[api(example = {
    "reason": "the channel's webhook is off",
    "reason_cause": {"code": "sink_off", "sink": "webhook"},
    "trace_id": "tr_01KAG00000E008000000000003",
})]
pub struct RefusedReplay {
    /// Id of the trace.
    pub trace_id: TraceId,
    /// Reason.
    #[api(cause)]
    pub reason: String,
}

/// A replay of many traces, with its progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[api(example = {
    "created_at": "2025-11-21T09:30:00.000Z",
    "deleted": 0,
    "error": 1,
    "id": "rpl_01KAG00000E008000000000005",
    "ok": 21,
    "pending": 2,
    "refused": [{
        "reason": "the channel's webhook is off",
        "reason_cause": {"code": "sink_off", "sink": "webhook"},
        "trace_id": "tr_01KAG00000E008000000000003",
    }],
    "skipped": 0,
    "total": 24,
})]
pub struct BulkReplay {
    /// Id of the replay; absent for a dry run.
    pub id: Option<ReplayId>,
    /// When it began.
    pub created_at: Timestamp,
    /// Number of traces that are replayed.
    pub total: u64,
    /// Replays that have not ended.
    pub pending: u64,
    /// Replays that succeeded.
    pub ok: u64,
    /// Replays that failed.
    pub error: u64,
    /// Replays that a plugin skipped.
    pub skipped: u64,
    /// Replays whose trace was deleted after its retention time.
    pub deleted: u64,
    /// Traces that were not replayed.
    pub refused: Vec<RefusedReplay>,
}

impl BulkReplay {
    /// A replay of nothing yet.
    pub(crate) const fn new(
        id: Option<ReplayId>,
        created_at: Timestamp,
        refused: Vec<RefusedReplay>,
    ) -> Self {
        Self { id, created_at, total: 0, pending: 0, ok: 0, error: 0, skipped: 0, deleted: 0, refused }
    }
}
