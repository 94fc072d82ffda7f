//! Replays of many traces, and parked deliveries.

use hub_core::{
    Error, Hub,
    id::{BotId, ChannelId, PluginId, ReplayId, TraceId},
    openapi::Api,
    time::Timestamp,
    traces::{BulkOptions, BulkReplay, ReplaySelection, StepName, TraceSearch, TraceStatus},
};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Header, Path},
};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, Number, Text},
};

/// Replays of many traces.
#[derive(Debug, Clone, Copy)]
pub struct ReplaysApi;

/// Traces to replay: `trace_ids` or `filter`.
#[derive(Debug, Api)]
#[api(input, example = {
    "dry_run": false,
    "supersede": false,
    "trace_ids": [
        "tr_01KAG00000E008000000000003"
    ]
})]
pub struct StartReplay {
    /// Ids of the traces.
    #[api(items = ..=1000)]
    pub trace_ids: Option<Vec<TraceId>>,
    /// All traces that match; at most 1000.
    pub filter: Option<ReplayFilter>,
    /// URL to use instead of that of each channel. The credentials of the channels are not sent to it.
    pub url: Option<Text<1, 2048>>,
    /// Whether replays take the place of deliveries that still wait, which are cancelled.
    pub supersede: Option<bool>,
    /// Whether to only count the traces.
    pub dry_run: Option<bool>,
}

/// Filters of the list of all traces. All have to match.
#[derive(Debug, Api)]
#[api(input, example = {
    "failed_step": "response",
    "http_status": 500,
    "status": "error"
})]
pub struct ReplayFilter {
    /// Only traces of this bot.
    pub bot_id: Option<BotId>,
    /// Only traces of this channel.
    pub channel_id: Option<ChannelId>,
    /// Only traces with this status.
    pub status: Option<TraceStatus>,
    /// Only traces that began at this time or later.
    pub since: Option<Timestamp>,
    /// Only traces that began before this time.
    pub until: Option<Timestamp>,
    /// Only traces of messages that contain this text.
    pub q: Option<Text<1, 200>>,
    /// Only traces with a failed step of this name.
    pub failed_step: Option<StepName>,
    /// Only traces with a response of this HTTP status.
    pub http_status: Option<Number<100, 599>>,
    /// Only traces in which this plugin ran.
    pub plugin_id: Option<PluginId>,
}

impl From<ReplayFilter> for TraceSearch {
    fn from(filter: ReplayFilter) -> Self {
        Self {
            bot_id: filter.bot_id,
            channel_id: filter.channel_id,
            status: filter.status,
            message_id: None,
            replay_of: None,
            replay_id: None,
            since: filter.since,
            until: filter.until,
            q: filter.q.map(Into::into),
            failed_step: filter.failed_step,
            http_status: filter.http_status.map(Into::into),
            plugin_id: filter.plugin_id,
        }
    }
}

#[OpenApi(tag = "Tag::Bots")]
impl ReplaysApi {
    /// Replays many traces
    ///
    /// At most 1000, given by their ids or by a filter. Each message is delivered again through its channel as it is
    /// configured now. Responds when all deliveries are committed; see the replay for its progress, also after a
    /// restart of the hub. Traces that cannot be replayed are in `refused`: also those of a message that has a delivery to
    /// the same receiver in flight, or one that waits unless `supersede` is set, and the further traces of a message in a
    /// channel. With an `Idempotency-Key`, the same request within 24 hours returns the first response.
    #[oai(path = "/api/replays", method = "post", operation_id = "startReplay")]
    async fn start(
        &self,
        hub: Data<&Hub>,
        user: User,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<StartReplay>,
    ) -> ApiResult<BulkReplay> {
        let StartReplay { trace_ids, filter, url, supersede, dry_run } = body.0;
        let selection = match (trace_ids, filter) {
            (Some(ids), None) => ReplaySelection::Ids(ids),
            (None, Some(filter)) => ReplaySelection::Matching(Box::new(filter.into())),
            _ => return Err(Error::invalid("trace_ids", "set either trace_ids or filter").into()),
        };
        let options = BulkOptions {
            to: url.as_deref(),
            supersede: supersede.unwrap_or(false),
            dry_run: dry_run.unwrap_or(false),
        };
        ok(hub.traces().replay_all(&user.0, selection, options, idempotency_key.0.as_deref()).await?)
    }

    /// Shows a replay of many traces
    ///
    /// With its progress. The newest 100 replays of a user are retained.
    #[oai(path = "/api/replays/:id", method = "get", operation_id = "getReplay")]
    async fn get(&self, hub: Data<&Hub>, user: User, id: Path<ReplayId>) -> ApiResult<BulkReplay> {
        ok(hub.traces().bulk_replay(&user.0, id.0).await?)
    }

    /// Attempts a parked delivery now
    ///
    /// `CONFLICT` if no delivery of the trace is parked: a delivery in its lane is attempted in order.
    #[oai(path = "/api/bots/:id/traces/:traceId/attempt", method = "post", operation_id = "attemptTrace")]
    async fn attempt(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "traceId")] trace_id: Path<TraceId>,
    ) -> ApiResult<Empty> {
        hub.traces().attempt_now(&user.0, id.0, trace_id.0).await?;
        ok(Empty {})
    }

    /// Cancels a parked delivery
    ///
    /// It fails and can be replayed. `CONFLICT` if no delivery of the trace is parked.
    #[oai(path = "/api/bots/:id/traces/:traceId/cancel", method = "post", operation_id = "cancelTrace")]
    async fn cancel(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "traceId")] trace_id: Path<TraceId>,
    ) -> ApiResult<Empty> {
        hub.traces().cancel(&user.0, id.0, trace_id.0).await?;
        ok(Empty {})
    }
}
