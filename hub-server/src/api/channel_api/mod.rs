//! Calls with the API key of a channel. Unknown fields are ignored here.

use std::sync::Arc;

use hub_core::{
    Hub,
    accounts::ClientInfo,
    bots::{BindStep, BindView, NewSend, Sent},
    channels::log::Start,
    id::BindId,
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

use super::Tag;
use crate::{
    AppSettings, Client,
    credentials::ChannelClient,
    envelope::{ApiError, ApiResult, ok},
    rate_limit::RateLimits,
    serve::{
        ClientGone,
        websocket::{Switched, Upgrade},
    },
    wire::{Body, Cursor, FileForm, Limit, Text},
};

/// Calls of channel clients.
#[derive(Debug, Clone, Copy)]
pub struct ChannelClientApi;

#[OpenApi(tag = "Tag::ChannelApi")]
impl ChannelClientApi {
    /// Opens a WebSocket
    ///
    /// Every frame is a JSON object `{type, reqID?, data?}`. The hub sends `init`, then `message` for each message
    /// that the channel receives, and `status`, `config`, `send_ack`, `error`, `pong`, `lagged`. The client may send
    /// `send_text`, `send_typing`, `get_config`, `ping` and `ack`. Messages are numbered by `seq` without gaps.
    /// Several clients may connect; each receives every message.
    ///
    /// Where delivery starts: after `since` if it is given. Otherwise after the last number that a client of the
    /// channel acknowledged with an `ack` frame (`{"type":"ack","data":{"seq":12}}`), if a client of the channel ever
    /// sent an `ack` frame or connected with `ack=true`. Otherwise with the next message: what is written to such a
    /// connection counts as delivered, and a reconnect repeats nothing. The first connection with `ack=true` starts at
    /// the oldest message of the channel, and later ones without `since` start there until a number is acknowledged,
    /// so that a client that acknowledges loses nothing before its first `ack`. The first `ack` is stored before the
    /// next frame is read, later ones within a second: after a crash of the hub, messages may be repeated, none is
    /// skipped. How the key is sent does not change this.
    ///
    /// Older clients find the same at `/api/ws`, and the calls for messages, send and status under `/api/channel/`:
    /// there the key may be in the query, and the fields of `data` are also at the top level.
    ///
    /// Close codes: 1001 the hub restarts, and the reason contains the position to continue from; 1002, 1007, 1008,
    /// 1009 invalid frames; 4401 the key was revoked; 4403 the channel or its WebSocket sink was switched off; 4408
    /// the client does not read or is silent; 4410 the owner closed this connection.
    #[oai(path = "/api/v1/channels/connect", method = "get", operation_id = "connectChannel")]
    #[expect(clippy::too_many_arguments, reason = "each is extracted by its type")]
    async fn connect(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        limits: Data<&Arc<RateLimits>>,
        client: ChannelClient,
        request: &Request,
        /// Number of the last message that the client has.
        since: Query<Option<i64>>,
        /// Alias in an older dialect.
        last_seq: Query<Option<i64>>,
        /// Whether the client acknowledges what it received: without `since`, delivery starts after the last
        /// acknowledged number, or at the oldest message if there is none. Stored before `init` is sent, and valid
        /// for later connections.
        ack: Query<Option<bool>>,
    ) -> Result<Switched, ApiError> {
        let start = match since.0.or(last_seq.0) {
            Some(since) => Start::After(since),
            None if ack.0 == Some(true) => Start::Acknowledged,
            None => Start::Unspecified,
        };
        origin::check(hub.0, settings.0, &client.0, request).await?;
        let described = request.data::<Client>().cloned().map(ClientInfo::from).unwrap_or_default();
        let upgrade = Upgrade::of(request)?;
        let listener = hub.channels().connect(&client.0, start, described).await?;
        if ack.0 == Some(true) {
            listener.keep_position().await?;
        }
        let session = session::Session::new(hub.0, settings.0, limits.0, client.0, listener);
        Ok(upgrade.switch(&settings.sockets, move |socket| session.serve(socket)))
    }

    /// Waits for messages
    ///
    /// Responds as soon as there are messages, at the latest after `timeout` seconds. Oldest first. `next_cursor` is
    /// always present; presenting it acknowledges everything before it. Without a cursor, the list begins after the
    /// last acknowledged message.
    #[oai(path = "/api/v1/channels/messages", method = "get", operation_id = "pollChannelMessages")]
    async fn messages(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        client: ChannelClient,
        cursor: Query<Option<Cursor>>,
        limit: Query<Option<Limit>>,
        /// Maximum wait in seconds, 0 to 60; 25 if absent.
        timeout: Query<Option<u32>>,
    ) -> ApiResult<ChannelMessages> {
        let wait = requests::timeout(timeout.0);
        let (cursor, limit) = (cursor.0.as_ref().map(Cursor::as_str), limit.0.map(Limit::get));
        let stop = settings.draining.cancelled();
        ok(hub.channels().poll(&client.0, cursor, limit, wait, stop).await?.try_into()?)
    }

    /// Sends a message through the channel
    ///
    /// Like the send of a bot; `recipient` and `text` are aliases of `to_user_id` and `content`. A form
    /// (`multipart/form-data`) may contain the file, at most 50 MiB. Responds once the message is stored. With an
    /// `Idempotency-Key`, the same request within 24 hours returns the first response.
    #[oai(path = "/api/v1/channels/send", method = "post", operation_id = "sendChannelMessage")]
    async fn send(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        client: ChannelClient,
        request: &Request,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: FileForm<ChannelSend>,
    ) -> ApiResult<Sent> {
        limits.check_send(&client.0)?;
        let (bot_id, key) = (client.0.client()?.bot_id, idempotency_key.0.as_deref());
        let mut new = NewSend::try_from(body.value)?;
        new.media = body.file.or(new.media);
        new.stop = ClientGone::of(request).token();
        ok(hub.bots().send(&client.0, bot_id, new, key).await?)
    }

    /// Creates a URL for the upload of a file
    ///
    /// Accepts one PUT with the returned headers within 15 minutes, of exactly this size and type, without further
    /// credentials. `upload_id` can then be used in the `media` of a send, once, within 24 hours.
    #[oai(path = "/api/v1/channels/upload-url", method = "get", operation_id = "getUploadUrl")]
    async fn upload_url(
        &self,
        hub: Data<&Hub>,
        limits: Data<&Arc<RateLimits>>,
        client: ChannelClient,
        /// File name; directories are removed.
        filename: Query<Text<1, 1024>>,
        /// Media type of the file, for example `image/png`.
        content_type: Query<Text<1, 256>>,
        /// Size in bytes; at most 50 MiB.
        size: Query<u64>,
    ) -> ApiResult<UploadView> {
        limits.check_send(&client.0)?;
        let new =
            NewUpload { file_name: filename.0.into(), content_type: content_type.0.into(), size: size.0 };
        ok(hub.media().start_upload(&client.0, new).await?.into())
    }

    /// Shows that the bot is typing
    ///
    /// To `to_user_id`, to the person of a `ticket` from the configuration, or to the owner of the account. The
    /// indicator disappears after a few seconds.
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
    /// Permissions and limits of the client.
    #[oai(path = "/api/v1/channels/config", method = "get", operation_id = "getChannelConfig")]
    async fn config(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        client: ChannelClient,
    ) -> ApiResult<ChannelConfig> {
        ok(views::config(hub.0, settings.0, &client.0).await?)
    }

    /// Shows the channel's configuration, for an older dialect
    ///
    /// The body is ignored.
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
    /// Whether the bot is online, and whether it can send now.
    #[oai(path = "/api/v1/channels/status", method = "get", operation_id = "getChannelStatus")]
    async fn status(&self, hub: Data<&Hub>, client: ChannelClient) -> ApiResult<ChannelStatus> {
        ok(views::status(hub.0, &client.0).await?)
    }

    /// Starts a new login of the channel's bot
    ///
    /// Another account than the bot's is rejected.
    #[oai(path = "/api/v1/channels/login/qr", method = "post", operation_id = "startChannelLogin")]
    async fn start_login(
        &self,
        hub: Data<&Hub>,
        client: ChannelClient,
        request: &Request,
    ) -> ApiResult<BindView> {
        let (bots, new) = (hub.bots(), hub_core::bots::NewBind::default());
        ok(ClientGone::of(request).while_connected(bots.start_bind(&client.0, new)).await?)
    }

    /// Waits for the next step of a login
    ///
    /// Like the confirm of a bind.
    #[oai(path = "/api/v1/channels/login/status", method = "get", operation_id = "getChannelLogin")]
    async fn login_status(
        &self,
        hub: Data<&Hub>,
        client: ChannelClient,
        request: &Request,
        /// Id from the response that started the login.
        bind_id: Query<BindId>,
        /// The number that the phone shows; only after the status `need_code`.
        verify_code: Query<Option<Text<1, 16>>>,
        /// Maximum wait for a change in milliseconds, at most 30000; 25000 if absent.
        wait_ms: Query<Option<u32>>,
    ) -> ApiResult<BindStep> {
        let (wait, code, bots) = (requests::wait(wait_ms.0), verify_code.0.as_deref(), hub.bots());
        let step = Box::pin(bots.confirm_bind(&client.0, bind_id.0, code, wait));
        ok(client.while_valid(&hub, request, step).await?)
    }
}
