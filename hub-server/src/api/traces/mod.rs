//! Traces of a bot.

use std::sync::Arc;

use hub_core::{
    Error, Hub,
    id::{BotId, ChannelId, MessageId, PluginId, ReplayId, TraceId},
    replay::case::{TraceCase, trace_case},
    time::Timestamp,
    traces::{Expand, StepName, Trace, TraceQuery, TraceSearch, TraceStatus, Traces},
};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Header, Path, Query},
};

use super::Tag;
use crate::{
    credentials::User,
    envelope::{ApiResult, ok},
    rate_limit::RateLimits,
    wire::{self, Body, CountedPage, Cursor, Limit, Text, page_request},
};

mod views;

pub use views::{ListedTrace, Order, ReplaySink, ReplayTrace, Replayed, TraceDetail, TraceExpansion};

/// Traces.
#[derive(Debug, Clone, Copy)]
pub struct TracesApi;

#[OpenApi(tag = "Tag::Bots")]
impl TracesApi {
    /// Lists traces of a bot
    ///
    /// Newest first unless `order` is set. `expand=steps,message` adds the steps and the message of each trace; such
    /// a page ends with the trace that reaches 4 MiB of them, even before its limit. A cursor is valid only with the
    /// filters and the order of the first page. A page reads at most 1000 traces: with `status` it may have fewer items
    /// than its limit, or none, and a `next_cursor`. The list ends where that is `null`. Traces are retained for 7 days
    /// unless the operator configures another time.
    #[oai(path = "/api/bots/:id/traces", method = "get", operation_id = "listTraces")]
    #[expect(clippy::too_many_arguments, reason = "one argument per parameter of the operation")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// Id of the bot.
        id: Path<BotId>,
        /// Only traces of this channel.
        channel_id: Query<Option<ChannelId>>,
        /// Only traces with this status.
        status: Query<Option<TraceStatus>>,
        /// Only traces of this message.
        message_id: Query<Option<MessageId>>,
        /// Only traces with these ids, separated by commas.
        #[oai(explode = false, default, validator(max_items = 100))]
        trace_ids: Query<Vec<TraceId>>,
        /// Only traces that began at this time or later.
        since: Query<Option<Timestamp>>,
        /// Only traces that began before this time.
        until: Query<Option<Timestamp>>,
        /// Order; `newest` if absent.
        order: Query<Option<Order>>,
        /// Parts to add to each trace, separated by commas.
        #[oai(explode = false, default)]
        expand: Query<Vec<TraceExpansion>>,
        /// Maximum number of items.
        limit: Query<Option<Limit>>,
        /// Cursor from the previous page's `next_cursor`.
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<wire::Page<ListedTrace>> {
        let query = TraceQuery {
            channel_id: channel_id.0,
            status: status.0,
            message_id: message_id.0,
            ids: trace_ids.0,
            since: since.0,
            until: until.0,
            oldest_first: order.0 == Some(Order::Oldest),
        };
        let page = page_request(&query.list_name(id.0), limit.0, cursor.0.as_ref())?;
        let wanted = |one| expand.0.contains(&one);
        let expand =
            Expand { steps: wanted(TraceExpansion::Steps), message: wanted(TraceExpansion::Message) };
        let found = hub.traces().expanded(&user.0, id.0, &query, &page, expand).await?;
        ok(found.map(|trace| ListedTrace::new(trace, expand)).into())
    }

    /// Lists the traces of all your bots
    ///
    /// Newest first, without steps. All filters have to match; a cursor is valid only with the filters of the first
    /// page. A page reads at most 1000 traces, or 200 with `failed_step`, `http_status` or `plugin_id`: with filters it
    /// may have fewer items than its limit, or none, and a `next_cursor`. The list ends where that is `null`.
    #[oai(path = "/api/traces", method = "get", operation_id = "listAllTraces")]
    #[expect(clippy::too_many_arguments, reason = "one argument per parameter of the operation")]
    async fn list_all(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// Only traces of this bot.
        bot_id: Query<Option<BotId>>,
        /// Only traces of this channel.
        channel_id: Query<Option<ChannelId>>,
        /// Only traces with this status.
        status: Query<Option<TraceStatus>>,
        /// Only traces of this message.
        message_id: Query<Option<MessageId>>,
        /// Only replays of this trace.
        replay_of: Query<Option<TraceId>>,
        /// Only traces that this replay of many traces created.
        replay_id: Query<Option<ReplayId>>,
        /// Only traces that began at this time or later.
        since: Query<Option<Timestamp>>,
        /// Only traces that began before this time.
        until: Query<Option<Timestamp>>,
        /// Only traces of messages that contain this text, regardless of the case of ASCII letters. The id of a trace
        /// finds that trace, and the id of a message its traces, regardless of the other filters.
        q: Query<Option<Text<1, 200>>>,
        /// Only traces with a failed step of this name.
        failed_step: Query<Option<StepName>>,
        /// Only traces with a response of this HTTP status.
        http_status: Query<Option<wire::Number<100, 599>>>,
        /// Only traces in which this plugin ran.
        plugin_id: Query<Option<PluginId>>,
        /// Maximum number of items.
        limit: Query<Option<Limit>>,
        /// Cursor from the previous page's `next_cursor`.
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<CountedPage<Trace>> {
        let search = TraceSearch {
            bot_id: bot_id.0,
            channel_id: channel_id.0,
            status: status.0,
            message_id: message_id.0,
            replay_of: replay_of.0,
            replay_id: replay_id.0,
            since: since.0,
            until: until.0,
            q: q.0.map(Into::into),
            failed_step: failed_step.0,
            http_status: http_status.0.map(Into::into),
            plugin_id: plugin_id.0,
        };
        let page = page_request(&Traces::search_list(&user.0, &search), limit.0, cursor.0.as_ref())?;
        ok(hub.traces().search(&user.0, &search, &page).await?.into())
    }

    /// Shows a trace with its steps
    ///
    /// Each step with its time, the request and the response, without secrets.
    #[oai(path = "/api/bots/:id/traces/:traceId", method = "get", operation_id = "getTrace")]
    async fn get(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// Id of the bot.
        id: Path<BotId>,
        /// Id of the trace.
        #[oai(name = "traceId")]
        trace_id: Path<TraceId>,
    ) -> ApiResult<TraceDetail> {
        ok(hub.traces().get(&user.0, id.0, trace_id.0).await?.into())
    }

    /// Shows a trace with its steps, without naming its bot
    ///
    /// The same response as for the trace of a named bot.
    #[oai(path = "/api/traces/:traceId", method = "get", operation_id = "findTrace")]
    async fn find(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// The trace.
        #[oai(name = "traceId")]
        trace_id: Path<TraceId>,
    ) -> ApiResult<TraceDetail> {
        let found = hub.traces().find(&user.0, None, trace_id.0).await?;
        ok(found.ok_or_else(|| Error::not_found("trace"))?.into())
    }

    /// Creates a test case from a trace
    ///
    /// The files that `hub-cli plugins test` runs: the source of the version that ran, the recording, and a case for
    /// each hook. User ids, names, telephone numbers, e-mail addresses and tokens are replaced consistently; names
    /// inside a text are not recognized. The expected result is the plugin's output for the replaced data. Nothing is
    /// sent or stored. Counts in the limit of plugin tests: at most 30 per minute and user.
    #[oai(path = "/api/bots/:id/traces/:traceId/case", method = "get", operation_id = "getTraceCase")]
    async fn case(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        user: User,
        /// Id of the bot.
        id: Path<BotId>,
        /// Id of the trace.
        #[oai(name = "traceId")]
        trace_id: Path<TraceId>,
        /// Name of the plugin; required if several ran.
        plugin: Query<Option<Text<1, 64>>>,
    ) -> ApiResult<TraceCase> {
        limits.check_debug(&user.0.principal())?;
        ok(trace_case(&hub, &user.0, id.0, trace_id.0, plugin.0.as_deref()).await?)
    }

    /// Delivers the message of a trace again
    ///
    /// Through the same channel as it is configured now, optionally to another URL. With the sink `ai`, the model
    /// responds again, and the sender receives that response too. Responds when the new delivery is committed; see
    /// the new trace for its outcome. `CONFLICT` while a delivery of the message to the same receiver is in flight or
    /// has its turn in its lane. `CONFLICT` as well if one waits, parked or not loaded yet: attempt it now, cancel it, or set
    /// `supersede`, which cancels it in the commit that creates the replay. A replay to another URL is delivered in
    /// addition. With an `Idempotency-Key`, the same request within 24 hours returns the first response.
    #[oai(path = "/api/bots/:id/traces/:traceId/replay", method = "post", operation_id = "replayTrace")]
    async fn replay(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// Id of the bot.
        id: Path<BotId>,
        /// Id of the trace.
        #[oai(name = "traceId")]
        trace_id: Path<TraceId>,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<ReplayTrace>,
    ) -> ApiResult<Replayed> {
        let (options, once) = (body.0.options()?, idempotency_key.0.as_deref());
        let trace_id = hub.traces().replay(&user.0, id.0, trace_id.0, options, once).await?;
        ok(Replayed { trace_id })
    }
}
