//! What programs call with a channel's API key (spec §4, "Channel API"; `contract.md` §5.1, §5.2). Fields that
//! the hub does not know are ignored here.

use std::sync::Arc;

use hub_core::{
    Hub,
    bots::NewSend,
    channels::log::{Audience, Start},
    media::NewUpload,
};
use poem::{Request, web::Data};
use poem_openapi::{
    OpenApi,
    param::{Header, Query},
};

mod frames;
mod origin;
mod requests;
mod session;
#[cfg(test)]
mod tests;
mod ticket;
mod views;

pub use requests::{ChannelSend, ChannelTyping, TypingState};
pub use views::{ChannelConfig, ChannelMessage, ChannelMessages, ChannelStatus, TypingView, UploadView};

use super::{
    Tag,
    bots::{BindStepView, SentView, StartedBindView},
};
use crate::{
    AppSettings,
    credentials::ChannelClient,
    envelope::{ApiError, ApiResult, ok},
    rate_limit::RateLimits,
    serve::websocket::{Switched, Upgrade},
    wire::{BindId, Body, Cursor, FileForm, Limit, Text},
};

/// Calls of channel clients.
#[derive(Debug, Clone, Copy)]
pub struct ChannelClientApi;

#[OpenApi(tag = "Tag::ChannelApi")]
impl ChannelClientApi {
    /// Opens a WebSocket
    ///
    /// Every frame is a JSON object `{type, reqID?, data?}`. The hub sends `init`, then `message` for whatever the
    /// channel received, and `status`, `config`, `send_ack`, `error`, `pong`, `lagged`; it takes `send_text`,
    /// `send_typing`, `get_config`, `ping` and `ack`. Messages are numbered by `seq` without a gap. Several clients
    /// may connect; each receives every message.
    ///
    /// Where delivery starts: after `since` if it is given. Otherwise after the last number that a client of the
    /// channel acknowledged with an `ack` frame (`{"type":"ack","data":{"seq":12}}`). If no number was ever
    /// acknowledged, with the next message: what is written to such a connection counts as delivered, and a
    /// reconnect repeats nothing. With `ack=true`, a channel without an acknowledged number starts at its oldest
    /// message, so that a client that acknowledges loses nothing before its first `ack`. How the key is sent does
    /// not change this.
    ///
    /// Older clients reach the same at `/api/ws`, and the calls for messages, send and status under `/api/channel/`: there
    /// the key may be in the query of each, and the fields of `data` are at the top level as well.
    ///
    /// Close codes: 1001 the hub restarts, and the reason says where to go on; 1002, 1007, 1008, 1009 the
    /// client's frames; 4401 the key ended; 4403 the channel or its WebSocket sink was switched off; 4408 the
    /// client does not read or is silent.
    #[oai(path = "/api/v1/channels/connect", method = "get", operation_id = "connectChannel")]
    #[expect(clippy::too_many_arguments, reason = "each is extracted by its type")]
    async fn connect(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        limits: Data<&Arc<RateLimits>>,
        client: ChannelClient,
        request: &Request,
        /// Number of the last message the client has.
        since: Query<Option<i64>>,
        /// The same, as an older dialect spells it.
        last_seq: Query<Option<i64>>,
        /// Whether the client acknowledges what it received: without `since`, delivery starts after the last
        /// acknowledged number, or at the oldest message.
        ack: Query<Option<bool>>,
    ) -> Result<Switched, ApiError> {
        let start = match since.0.or(last_seq.0) {
            Some(since) => Start::After(since),
            None if ack.0 == Some(true) => Start::Acknowledged,
            None => Start::Unspecified,
        };
        origin::check(hub.0, settings.0, &client.0, request).await?;
        let listener = hub.channels().listen(&client.0, Audience::Socket, start).await?;
        let upgrade = Upgrade::of(request)?;
        let session = session::Session::new(hub.0, settings.0, limits.0, client.0, listener);
        Ok(upgrade.switch(&settings.sockets, move |socket| session.serve(socket)))
    }

    /// Waits for messages
    ///
    /// Answers as soon as there are any, at the latest after `timeout` seconds. Oldest first. `next_cursor` is
    /// always there; presenting it acknowledges everything before it. Without a cursor, the list begins after
    /// what was last acknowledged.
    #[oai(path = "/api/v1/channels/messages", method = "get", operation_id = "pollChannelMessages")]
    async fn messages(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        client: ChannelClient,
        cursor: Query<Option<Cursor>>,
        limit: Query<Option<Limit>>,
        /// Seconds to wait while there is nothing, 0 to 60; 25 when left out.
        timeout: Query<Option<u32>>,
    ) -> ApiResult<ChannelMessages> {
        let wait = requests::timeout(timeout.0);
        let (cursor, limit) = (cursor.0.as_ref().map(Cursor::as_str), limit.0.map(Limit::get));
        let stop = settings.draining.cancelled();
        ok(hub.channels().poll(&client.0, cursor, limit, wait, stop).await?.try_into()?)
    }

    /// Sends a message through the channel
    ///
    /// As the send of a bot; `recipient` and `text` may stand for `to_user_id` and `content`. A form
    /// (`multipart/form-data`) may bring the file itself, at most 50 MiB. The answer comes once the message is
    /// stored. With an `Idempotency-Key` the same request within 24 hours gives the first answer.
    #[oai(path = "/api/v1/channels/send", method = "post", operation_id = "sendChannelMessage")]
    async fn send(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        client: ChannelClient,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: FileForm<ChannelSend>,
    ) -> ApiResult<SentView> {
        limits.check_send(&client.0)?;
        let (bot_id, key) = (client.0.client()?.bot_id, idempotency_key.0.as_deref());
        let mut new = NewSend::try_from(body.value)?;
        new.media = body.file.or(new.media);
        ok(hub.bots().send(&client.0, bot_id, new, key).await?.into())
    }

    /// Gives out a URL to upload a file to
    ///
    /// One PUT with the named headers is taken within 15 minutes, of exactly this many bytes and of this type; no
    /// other credential is needed. `upload_id` then stands in the `media` of a send, once, within 24 hours.
    #[oai(path = "/api/v1/channels/upload-url", method = "get", operation_id = "getUploadUrl")]
    async fn upload_url(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        client: ChannelClient,
        /// Name of the file; folders in it are left out.
        filename: Query<Text<1, 1024>>,
        /// Media type of the file, for example `image/png`.
        content_type: Query<Text<1, 256>>,
        /// Its bytes; at most 50 MiB.
        size: Query<u64>,
    ) -> ApiResult<UploadView> {
        limits.check_send(&client.0)?;
        let new =
            NewUpload { file_name: filename.0.into(), content_type: content_type.0.into(), size: size.0 };
        ok(hub.media().start_upload(&client.0, new).await?.into())
    }

    /// Shows that the bot is typing
    ///
    /// To `to_user_id`, or to the person a `ticket` from the configuration names, or to the person who owns the
    /// account. The sign goes away by itself after a few seconds.
    #[oai(path = "/api/v1/channels/typing", method = "post", operation_id = "setChannelTyping")]
    async fn typing(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        client: ChannelClient,
        body: Body<Option<ChannelTyping>>,
    ) -> ApiResult<TypingView> {
        limits.check_send(&client.0)?;
        let channel = client.0.client()?;
        let body = body.0.unwrap_or_default();
        let (to, on) = (body.receiver(channel)?, body.is_on());
        let shown = hub.bots().typing(&client.0, channel.bot_id, to.as_deref(), on).await?;
        ok(TypingView { shown })
    }

    /// Shows the channel's configuration
    ///
    /// What a program may do here and its limits.
    #[oai(path = "/api/v1/channels/config", method = "get", operation_id = "getChannelConfig")]
    async fn config(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        client: ChannelClient,
    ) -> ApiResult<ChannelConfig> {
        ok(views::config(hub.0, settings.0, &client.0).await?)
    }

    /// Shows the channel's configuration, as an older dialect asks for it
    ///
    /// Whatever the body says.
    #[oai(path = "/api/v1/channels/config", method = "post", operation_id = "postChannelConfig")]
    async fn post_config(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        client: ChannelClient,
    ) -> ApiResult<ChannelConfig> {
        ok(views::config(hub.0, settings.0, &client.0).await?)
    }

    /// Shows the status of the channel's bot
    ///
    /// Whether its bot is online, and whether it can send now.
    #[oai(path = "/api/v1/channels/status", method = "get", operation_id = "getChannelStatus")]
    async fn status(&self, hub: Data<&Hub>, client: ChannelClient) -> ApiResult<ChannelStatus> {
        ok(views::status(hub.0, &client.0).await?)
    }

    /// Starts a new login of the channel's bot
    ///
    /// Another account than the bot's is refused.
    #[oai(path = "/api/v1/channels/login/qr", method = "post", operation_id = "startChannelLogin")]
    async fn start_login(&self, hub: Data<&Hub>, client: ChannelClient) -> ApiResult<StartedBindView> {
        ok(hub.bots().start_bind(&client.0, hub_core::bots::NewBind::default()).await?.into())
    }

    /// Waits for the next step of a login
    ///
    /// As the confirm of a bind.
    #[oai(path = "/api/v1/channels/login/status", method = "get", operation_id = "getChannelLogin")]
    async fn login_status(
        &self,
        hub: Data<&Hub>,
        client: ChannelClient,
        request: &Request,
        /// From the answer that started the login.
        bind_id: Query<BindId>,
        /// The number the phone shows; only after the status `need_code`.
        verify_code: Query<Option<Text<1, 16>>>,
        /// How long to wait for a change, in milliseconds, at most 30000; 25000 when left out.
        wait_ms: Query<Option<u32>>,
    ) -> ApiResult<BindStepView> {
        let (wait, code, bots) = (requests::wait(wait_ms.0), verify_code.0.as_deref(), hub.bots());
        let step = Box::pin(bots.confirm_bind(&client.0, bind_id.0.0, code, wait));
        ok(client.while_valid(&hub, request, step).await?.into())
    }
}
