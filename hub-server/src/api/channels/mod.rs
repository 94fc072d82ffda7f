//! Endpoints for channels and their sinks (spec §4, "Channel management"; `contract.md` §5).

use hub_core::{Hub, channels::Channels, delivery::ping::ping};
use poem::web::Data;
use poem_openapi::{
    OpenApi,
    param::{Header, Path, Query},
};

mod parts;
mod requests;
#[cfg(test)]
mod tests;
mod views;

pub use parts::{AiSource, AiSourceChoice, AuthMethod, Match, OnPluginError, Ordering};
pub use requests::{CreateChannel, SetAi, SetFilter, SetWebSocket, SetWebhook, UpdateChannel};
pub use views::{ChannelView, CreatedChannelView, FilterRules, RegeneratedKeyView, WebSocketSink};

use super::{Tag, traces::TraceDetail};
use crate::{
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, BotId, ChannelId, Cursor, Limit, Number, Page, Text, page_request},
};

/// Channels and their sinks.
#[derive(Debug, Clone, Copy)]
pub struct ChannelsApi;

#[OpenApi(tag = "Tag::Channels")]
impl ChannelsApi {
    /// Lists the channels of a bot
    ///
    /// With their sinks and filters, without their keys.
    #[oai(path = "/api/bots/:id/channels", method = "get", operation_id = "listChannels")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<ChannelView>> {
        let page = page_request(&Channels::channel_list(id.0.0), limit.0, cursor.0.as_ref())?;
        ok(hub.channels().list(&user.0, id.0.0, &page).await?.into())
    }

    /// Creates a channel
    ///
    /// The answer is the only sight of the channel's API key. What is left out gets its default: the WebSocket
    /// sink on, no filter, the other sinks off. `CONFLICT` when the bot has as many channels as it may have, or
    /// one with the name (the case of letters does not count) or the handle. With an `Idempotency-Key` the same request within 24 hours gives the first answer.
    #[oai(path = "/api/bots/:id/channels", method = "post", operation_id = "createChannel")]
    async fn create(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<CreateChannel>,
    ) -> ApiResult<CreatedChannelView> {
        let key = idempotency_key.0.as_deref();
        ok(hub.channels().create(&user.0, id.0.0, body.0.into(), key).await?.into())
    }

    /// Shows a channel
    ///
    /// With its sinks and its filter, without its key and without the secrets of the sinks.
    #[oai(path = "/api/bots/:id/channels/:channelId", method = "get", operation_id = "getChannel")]
    async fn get(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
    ) -> ApiResult<ChannelView> {
        ok(hub.channels().get(&user.0, id.0.0, channel_id.0.0).await?.into())
    }

    /// Changes a channel
    ///
    /// What is left out stays. Sinks and filter have calls of their own.
    #[oai(path = "/api/bots/:id/channels/:channelId", method = "put", operation_id = "updateChannel")]
    async fn update(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        body: Body<UpdateChannel>,
    ) -> ApiResult<ChannelView> {
        ok(hub.channels().update(&user.0, id.0.0, channel_id.0.0, body.0.into()).await?.into())
    }

    /// Deletes a channel
    ///
    /// Its key opens nothing from then on; its log, its traces and what was still to be delivered are gone.
    #[oai(path = "/api/bots/:id/channels/:channelId", method = "delete", operation_id = "deleteChannel")]
    async fn delete(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
    ) -> ApiResult<Empty> {
        hub.channels().delete(&user.0, id.0.0, channel_id.0.0).await?;
        ok(Empty {})
    }

    /// Gives a channel a new API key
    ///
    /// The answer is the only sight of the new key. The old one ends at once, or after `grace_hours` (1 to 72).
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
        /// How long the old key stays good; not at all when left out.
        grace_hours: Query<Option<Number<1, 72>>>,
    ) -> ApiResult<RegeneratedKeyView> {
        ok(hub
            .channels()
            .regenerate_key(&user.0, id.0.0, channel_id.0.0, grace_hours.0.map(u32::from))
            .await?
            .into())
    }

    /// Configures the WebSocket sink
    ///
    /// A channel whose sink is off takes no connection.
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
        body: Body<SetWebSocket>,
    ) -> ApiResult<ChannelView> {
        let websocket = body.0.into();
        ok(hub.channels().set_websocket(&user.0, id.0.0, channel_id.0.0, &websocket).await?.into())
    }

    /// Configures the webhook sink
    ///
    /// Replaces the whole sink; what is left out gets its default, except the secret: left out it is kept,
    /// `null` clears it. The method `hmac` without a secret gets a generated one, which this answer alone contains, in
    /// `webhook.auth.secret`. A replaced secret goes on signing for 24 hours next to the new one. A sink that was
    /// switched off after failing for days starts again.
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
        body: Body<SetWebhook>,
    ) -> ApiResult<ChannelView> {
        ok(hub.channels().set_webhook(&user.0, id.0.0, channel_id.0.0, body.0.into()).await?.into())
    }

    /// Tries the webhook sink
    ///
    /// Sends a text `ping` from `ping` through the channel's plugins to its webhook, once, whether the sink is on or
    /// off, and answers the trace. It is stored nowhere, and what is replied is sent to nobody. A receiver that
    /// refuses is no error: the trace says so.
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
    ) -> ApiResult<TraceDetail> {
        ok(ping(&hub, &user.0, id.0.0, channel_id.0.0).await?.into())
    }

    /// Configures the AI sink
    ///
    /// Replaces the whole sink; what is left out gets its default, except the key: left out it is kept, `null`
    /// clears it. `ai.warning` in the response says when no model can answer yet: while the administrator has set no
    /// endpoint, messages wait for one.
    #[oai(path = "/api/bots/:id/channels/:channelId/ai", method = "put", operation_id = "setAiSink")]
    async fn set_ai(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "channelId")] channel_id: Path<ChannelId>,
        body: Body<SetAi>,
    ) -> ApiResult<ChannelView> {
        let channel = hub.channels().set_ai(&user.0, id.0.0, channel_id.0.0, body.0.into()).await?;
        let warning = hub.channels().ai_warning(&channel).await?;
        let mut view = ChannelView::from(channel);
        view.ai.warning = warning.map(str::to_owned);
        ok(view)
    }

    /// Configures which messages a channel gets
    ///
    /// Replaces the whole filter; `{}` lets every message pass.
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
        body: Body<SetFilter>,
    ) -> ApiResult<ChannelView> {
        let filter = body.0.into();
        ok(hub.channels().set_filter(&user.0, id.0.0, channel_id.0.0, &filter).await?.into())
    }
}
