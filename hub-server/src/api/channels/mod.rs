//! Endpoints for channels and their sinks.

use hub_core::{
    Hub,
    channels::{
        Channel, ChannelClients, ChannelPatch, Channels, CreatedChannel, Filter, NewChannel, RegeneratedKey,
        TestedFilter,
        sinks::{AiUpdate, WebSocketSettings, WebhookUpdate},
    },
    delivery::{model_trial::test_model, ping::ping},
    id::{BotId, ChannelId, SocketId},
    openapi::{Api, Set},
};
use poem::{Request, web::Data};
use poem_openapi::{
    OpenApi,
    param::{Header, Path, Query},
};

#[cfg(test)]
mod tests;

use super::{Tag, admin::ai_config::AiTestView, traces::TraceDetail};
use crate::{
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    serve::ClientGone,
    wire::{Body, Cursor, Limit, Number, Page, Text, page_request},
};

/// A filter to test.
#[derive(Debug, Api)]
#[api(input, example = {
    "filter": {
        "expression": "size(content) < 500",
        "keywords": ["order"],
        "match": "all",
        "message_types": ["text"],
    },
    "last": 50,
})]
pub struct TestFilter {
    /// The filter.
    #[api(set)]
    pub filter: Filter,
    /// Number of messages to test it on, the newest first; 20 if absent.
    #[api(range = 1..=100)]
    pub last: Option<u32>,
}

/// Channels and their sinks.
#[derive(Debug, Clone, Copy)]
pub struct ChannelsApi;

#[OpenApi(tag = "Tag::Channels")]
impl ChannelsApi {
    /// Lists the channels of a bot
    ///
    /// With sinks and filters, without keys.
    #[oai(path = "/api/bots/:id/channels", method = "get", operation_id = "listChannels")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<Channel>> {
        let page = page_request(&Channels::channel_list(id.0), limit.0, cursor.0.as_ref())?;
        ok(hub.channels().list(&user.0, id.0, &page).await?.into())
    }

    /// Creates a channel
    ///
    /// The API key of the channel is shown only in this response. Absent fields have their defaults: WebSocket sink
    /// on, no filter, other sinks off. `CONFLICT` if the bot has the maximum number of channels, or a channel with
    /// the same name (regardless of case) or handle. With an `Idempotency-Key`, the same request within 24 hours
    /// returns the first response.
    #[oai(path = "/api/bots/:id/channels", method = "post", operation_id = "createChannel")]
    async fn create(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<NewChannel>,
    ) -> ApiResult<CreatedChannel> {
        let key = idempotency_key.0.as_deref();
        ok(hub.channels().create(&user.0, id.0, body.0, key).await?)
    }

    /// Shows a channel
    ///
    /// With sinks and filter, without the key and the secrets of the sinks.
    #[oai(path = "/api/bots/:id/channels/:channelId", method = "get", operation_id = "getChannel")]
    async fn get(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
    ) -> ApiResult<Channel> {
        ok(hub.channels().get(&user.0, id.0, channel_id.0).await?)
    }

    /// Updates a channel
    ///
    /// Absent fields keep their values. Sinks and filter have separate operations.
    #[oai(path = "/api/bots/:id/channels/:channelId", method = "put", operation_id = "updateChannel")]
    async fn update(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        body: Body<ChannelPatch>,
    ) -> ApiResult<Channel> {
        ok(hub.channels().update(&user.0, id.0, channel_id.0, body.0).await?)
    }

    /// Deletes a channel
    ///
    /// Its key stops working at once; its log, its traces and pending deliveries are deleted.
    #[oai(path = "/api/bots/:id/channels/:channelId", method = "delete", operation_id = "deleteChannel")]
    async fn delete(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
    ) -> ApiResult<Empty> {
        hub.channels().delete(&user.0, id.0, channel_id.0).await?;
        ok(Empty {})
    }

    /// Replaces the API key of a channel
    ///
    /// The new key is shown only in this response. The old one stops working at once, or after `grace_hours` (1 to
    /// 72). With an `Idempotency-Key`, the same request within 24 hours returns the first response.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/regenerate-key",
        method = "post",
        operation_id = "regenerateChannelKey"
    )]
    async fn regenerate_key(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        /// How long the old key stays valid; not at all if absent.
        grace_hours: Query<Option<Number<1, 72>>>,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
    ) -> ApiResult<RegeneratedKey> {
        let (grace, once) = (grace_hours.0.map(u32::from), idempotency_key.0.as_deref());
        ok(hub.channels().regenerate_key(&user.0, id.0, channel_id.0, grace, once).await?)
    }

    /// Configures the WebSocket sink
    ///
    /// A channel whose sink is off accepts no connections.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/websocket",
        method = "put",
        operation_id = "setWebSocketSink"
    )]
    async fn set_websocket(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        body: Body<Set<WebSocketSettings>>,
    ) -> ApiResult<Channel> {
        let Set(websocket) = body.0;
        ok(hub.channels().set_websocket(&user.0, id.0, channel_id.0, &websocket).await?)
    }

    /// Lists the clients of a channel
    ///
    /// Those that are connected over a WebSocket to the node that responds. Clients of other nodes are only counted.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/clients",
        method = "get",
        operation_id = "listChannelClients"
    )]
    async fn clients(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
    ) -> ApiResult<ChannelClients> {
        ok(hub.channels().clients(&user.0, id.0, channel_id.0).await?)
    }

    /// Closes the connection of a client
    ///
    /// With the close code 4410. The client may connect again: to prevent that, regenerate the key or switch the
    /// WebSocket sink off. `NOT_FOUND` for a client of another node.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/clients/:clientId",
        method = "delete",
        operation_id = "deleteChannelClient"
    )]
    async fn close_client(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        #[oai(name = "clientId")] client_id: Path<SocketId>,
    ) -> ApiResult<Empty> {
        hub.channels().close_client(&user.0, id.0, channel_id.0, client_id.0).await?;
        ok(Empty {})
    }

    /// Configures the webhook sink
    ///
    /// Replaces the whole sink. Absent fields get their defaults, except the secret: an absent one is kept, `null`
    /// removes it. The method `hmac` without a secret gets a generated one, which is shown only in this response, in
    /// `webhook.auth.secret`. A replaced secret signs for another 24 hours in addition to the new one. A sink that
    /// was switched off because of failures is switched on again.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/webhook",
        method = "put",
        operation_id = "setWebhookSink"
    )]
    async fn set_webhook(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        body: Body<WebhookUpdate>,
    ) -> ApiResult<Channel> {
        ok(hub.channels().set_webhook(&user.0, id.0, channel_id.0, body.0).await?)
    }

    /// Tests the webhook sink
    ///
    /// Sends a text `ping` from `ping` through the plugins of the channel to its webhook, once, whether the sink is
    /// on or off, and returns the trace. Nothing is stored, and replies are not sent. A receiver that rejects the
    /// request is not an error of this operation: see the trace. The `detail` of the step `request` contains in
    /// `phases` how long the parts of the request took: `dns_ms` (absent for an address), `connect_ms` (including the
    /// TLS handshake for https) and `first_byte_ms`, and after a failure in `error.phase` the part that failed:
    /// `address`, `dns`, `connect`, `tls`, `first_byte` or `response`.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/webhook/test",
        method = "post",
        operation_id = "testWebhookSink"
    )]
    async fn test_webhook(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        request: &Request,
    ) -> ApiResult<TraceDetail> {
        let test = Box::pin(ping(hub.context(), &user.0, id.0, channel_id.0));
        ok(ClientGone::of(request).while_connected(test).await?.into())
    }

    /// Configures the AI sink
    ///
    /// Replaces the whole sink. Absent fields get their defaults, except the key: an absent one is kept, `null`
    /// removes it. `ai.warning` in the response contains a reason if no model can respond yet: until the
    /// administrator configures an endpoint, messages wait for it.
    #[oai(path = "/api/bots/:id/channels/:channelId/ai", method = "put", operation_id = "setAiSink")]
    async fn set_ai(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        body: Body<AiUpdate>,
    ) -> ApiResult<Channel> {
        ok(hub.channels().set_ai(&user.0, id.0, channel_id.0, body.0).await?)
    }

    /// Tests the AI sink
    ///
    /// Asks the model of the channel one question with the settings of the sink, whether it is on or off, within 30
    /// seconds. Nothing is sent to anyone; the tokens count as those of the channel. An error of the endpoint is part of
    /// the response. Its class is `not_asked` if no model was called: no endpoint is configured, the administrator does
    /// not offer the model, or the tokens of the day are used up.
    #[oai(path = "/api/bots/:id/channels/:channelId/ai/test", method = "post", operation_id = "testAiSink")]
    async fn test_ai(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        request: &Request,
    ) -> ApiResult<AiTestView> {
        let test = Box::pin(test_model(hub.context(), &user.0, id.0, channel_id.0));
        ok(ClientGone::of(request).while_connected(test).await?.into())
    }

    /// Configures the filter of a channel
    ///
    /// Replaces the whole filter; with `{}` every message passes.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/filter",
        method = "put",
        operation_id = "setChannelFilter"
    )]
    async fn set_filter(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        body: Body<Set<Filter>>,
    ) -> ApiResult<Channel> {
        let Set(filter) = body.0;
        ok(hub.channels().set_filter(&user.0, id.0, channel_id.0, &filter).await?)
    }

    /// Tests a filter
    ///
    /// Reports which of the last messages that people sent to the bot pass the filter, and for every other one the rule
    /// that rejects it. The channel is not changed; its handle counts, and whether it is enabled does not. An expression
    /// that does not compile is `INVALID_PARAMS`, with the column.
    #[oai(
        path = "/api/bots/:id/channels/:channelId/filter/test",
        method = "post",
        operation_id = "testChannelFilter"
    )]
    async fn test_filter(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        body: Body<TestFilter>,
    ) -> ApiResult<TestedFilter> {
        let TestFilter { filter, last } = body.0;
        let (channels, last) = (hub.channels(), last.unwrap_or(20));
        ok(channels.test_filter(&user.0, id.0, channel_id.0, filter, last).await?)
    }
}
