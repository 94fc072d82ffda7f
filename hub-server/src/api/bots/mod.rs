//! Endpoints for bots.

use hub_core::{
    Hub,
    bots::{
        BindStep, BindView, Bot, BotHealth, Bots, Contact, Direction, ListedMessage, Message, MessageSearch,
        NewBind, NewSend, Outcome, Sent,
    },
    id::{BindId, BotId, ChannelId, MessageId},
    time::Timestamp,
};
use poem::{Request, web::Data};
use poem_openapi::{
    OpenApi,
    param::{Header, Path, Query},
};

mod requests;
#[cfg(test)]
mod tests;
pub use requests::{ConfirmBind, RenameBot, SendMedia, SendMessage, SetRemark, TextFormat};

use super::Tag;
use crate::{
    AppSettings,
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    serve::ClientGone,
    wire::{Body, CountedPage, Cursor, FileForm, Limit, Page, Text, page_request},
};

/// Bots, their login, messages and contacts.
#[derive(Debug, Clone, Copy)]
pub struct BotsApi;

#[OpenApi(tag = "Tag::Bots")]
impl BotsApi {
    /// Lists your bots
    ///
    /// Bots that you bound, most recently bound first.
    #[oai(path = "/api/bots", method = "get", operation_id = "listBots")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<Bot>> {
        let page = page_request(&Bots::bot_list(&user.0), limit.0, cursor.0.as_ref())?;
        ok(hub.bots().list(&user.0, &page).await?.into())
    }

    /// Starts binding a bot account
    ///
    /// Show `qr_text` as a QR code (or `qr_svg` as it is) and call `confirm` until the status is final. If the
    /// account was bound before, it keeps its bot and channels and gets the new login.
    #[oai(path = "/api/bots/bind/start", method = "post", operation_id = "startBind")]
    async fn start_bind(
        &self,
        hub: Data<&Hub>,
        user: User,
        request: &Request,
        body: Body<Option<NewBind>>,
    ) -> ApiResult<BindView> {
        let new = body.0.unwrap_or_default();
        let bots = hub.bots();
        ok(ClientGone::of(request).while_connected(bots.start_bind(&user.0, new)).await?)
    }

    /// Shows the status of a bind
    ///
    /// As known to the hub: unlike the confirm, it asks the chat network nothing and changes nothing. Only the caller
    /// that started a bind can see it.
    #[oai(path = "/api/binds/:id", method = "get", operation_id = "getBind")]
    async fn get_bind(&self, hub: Data<&Hub>, user: User, id: Path<BindId>) -> ApiResult<BindStep> {
        ok(hub.bots().bind_state(&user.0, id.0).await?)
    }

    /// Waits for the next step of a bind
    ///
    /// Responds after a change, or after `wait_ms`. `need_code`: the phone shows a number; send it as `verify_code`.
    /// An expired code is replaced twice; `qr_text` then differs. `confirmed`, `already_bound`, `expired` and
    /// `refused` are final. Only the caller that started a bind can see it. The wait ends when the session or key of
    /// the request is revoked.
    #[oai(path = "/api/bots/bind/confirm", method = "post", operation_id = "confirmBind")]
    async fn confirm_bind(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        user: User,
        request: &Request,
        body: Body<ConfirmBind>,
    ) -> ApiResult<BindStep> {
        let (wait, code, bots) = (body.0.wait(), body.0.verify_code.as_deref(), hub.bots());
        let step = Box::pin(bots.confirm_bind(&user.0, body.0.bind_id, code, wait));
        ok(user.while_valid(&hub, &settings, request, step).await?)
    }

    /// Shows a bot
    ///
    /// With its connection as last recorded; see its status for details.
    #[oai(path = "/api/bots/:id", method = "get", operation_id = "getBot")]
    async fn get(&self, hub: Data<&Hub>, user: User, id: Path<BotId>) -> ApiResult<Bot> {
        ok(hub.bots().get(&user.0, id.0).await?)
    }

    /// Renames a bot
    ///
    /// The name is used by the hub only; people on the network see the name of the account.
    #[oai(path = "/api/bots/:id", method = "put", operation_id = "renameBot")]
    async fn rename(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        body: Body<RenameBot>,
    ) -> ApiResult<Bot> {
        ok(hub.bots().rename(&user.0, id.0, &body.0.name).await?)
    }

    /// Deletes a bot
    ///
    /// With its channels, messages, contacts, and everything queued for sending or delivery.
    #[oai(path = "/api/bots/:id", method = "delete", operation_id = "deleteBot")]
    async fn delete(&self, hub: Data<&Hub>, user: User, id: Path<BotId>) -> ApiResult<Empty> {
        hub.bots().delete(&user.0, id.0).await?;
        ok(Empty {})
    }

    /// Shows a bot's connection
    ///
    /// Whether it is polled, the last error, and whether it can send.
    #[oai(path = "/api/bots/:id/status", method = "get", operation_id = "getBotStatus")]
    async fn status(&self, hub: Data<&Hub>, user: User, id: Path<BotId>) -> ApiResult<BotHealth> {
        ok(hub.bots().status(&user.0, id.0).await?)
    }

    /// Reconnects a bot
    ///
    /// `CONFLICT` if the chat network requires a new login: bind the account again.
    #[oai(path = "/api/bots/:id/reconnect", method = "post", operation_id = "reconnectBot")]
    async fn reconnect(&self, hub: Data<&Hub>, user: User, id: Path<BotId>) -> ApiResult<Bot> {
        ok(hub.bots().reconnect(&user.0, id.0).await?)
    }

    /// Sends a message through a bot
    ///
    /// Responds once the message is stored; it is then sent in order per person. A file comes in a form
    /// (`multipart/form-data`), at most 50 MiB, is an upload of a channel of this bot, or is first downloaded from a URL,
    /// unless the client disconnects meanwhile; audio is sent as a file. `WINDOW_CLOSED` if the chat network
    /// would refuse it now; the error contains the reason. `CONFLICT` if the bot needs a new login. With an
    /// `Idempotency-Key`, the same request within 24 hours returns the first response.
    #[oai(path = "/api/bots/:id/send", method = "post", operation_id = "sendMessage")]
    async fn send(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        request: &Request,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: FileForm<SendMessage>,
    ) -> ApiResult<Sent> {
        let key = idempotency_key.0.as_deref();
        let mut new = NewSend::try_from(body.value)?;
        new.media = body.file.or(new.media);
        new.stop = ClientGone::of(request).token();
        ok(hub.bots().send(&user.0, id.0, new, key).await?)
    }

    /// Lists a bot's messages
    ///
    /// Newest first. All filters have to match; a cursor is valid only with the filters of the first page. A page
    /// reads at most 1000 messages: with `direction` or `q` it may have fewer items than its limit, or none, and a
    /// `next_cursor`. The list ends where that is `null`.
    #[oai(path = "/api/bots/:id/messages", method = "get", operation_id = "listMessages")]
    #[expect(clippy::too_many_arguments, reason = "each is a query parameter of the document")]
    async fn messages(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        /// Only messages in this direction.
        direction: Query<Option<Direction>>,
        /// Only messages with this person.
        user_id: Query<Option<Text<1, 200>>>,
        /// Only messages received by the hub at this time or later.
        since: Query<Option<Timestamp>>,
        /// Only messages received by the hub before this time.
        until: Query<Option<Timestamp>>,
        /// Only messages that contain this text, regardless of the case of ASCII letters.
        q: Query<Option<Text<1, 200>>>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<Message>> {
        let filter = requests::filter(direction.0, user_id.0, since.0, until.0, q.0);
        let page = page_request(&Bots::message_list(id.0, &filter), limit.0, cursor.0.as_ref())?;
        ok(hub.bots().messages(&user.0, id.0, &filter, &page).await?.into())
    }

    /// Lists the messages of all your bots
    ///
    /// Newest first, each with its outcome in every channel. All filters have to match; a cursor is valid only with the
    /// filters of the first page. A page reads at most 1000 messages: with filters it may have fewer items than its
    /// limit, or none, and a `next_cursor`. The list ends where that is `null`.
    #[oai(path = "/api/messages", method = "get", operation_id = "listAllMessages")]
    #[expect(clippy::too_many_arguments, reason = "each is a query parameter of the document")]
    async fn all_messages(
        &self,
        hub: Data<&Hub>,
        user: User,
        /// Only messages of this bot.
        bot_id: Query<Option<BotId>>,
        /// Only messages that reached this channel or were sent by it.
        channel_id: Query<Option<ChannelId>>,
        /// Only messages with this outcome in a channel.
        outcome: Query<Option<Outcome>>,
        /// Only messages in this direction.
        direction: Query<Option<Direction>>,
        /// Only messages with this person.
        user_id: Query<Option<Text<1, 200>>>,
        /// Only messages received by the hub at this time or later.
        since: Query<Option<Timestamp>>,
        /// Only messages received by the hub before this time.
        until: Query<Option<Timestamp>>,
        /// Only messages that contain this text, regardless of the case of ASCII letters. The id of a message or of a
        /// trace finds that message, regardless of the other filters.
        q: Query<Option<Text<1, 200>>>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<CountedPage<ListedMessage>> {
        let search = MessageSearch {
            filter: requests::filter(direction.0, user_id.0, since.0, until.0, q.0),
            bot_id: bot_id.0,
            channel_id: channel_id.0,
            outcome: outcome.0,
        };
        let list = Bots::all_messages_list(&user.0, &search);
        let page = page_request(&list, limit.0, cursor.0.as_ref())?;
        ok(hub.bots().all_messages(&user.0, &search, &page).await?.into())
    }

    /// Shows one of a bot's messages
    ///
    /// With its parts, files and delivery status.
    #[oai(path = "/api/bots/:id/messages/:messageId", method = "get", operation_id = "getMessage")]
    async fn message(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        /// Id of the message.
        #[oai(name = "messageId")]
        message_id: Path<MessageId>,
    ) -> ApiResult<Message> {
        ok(hub.bots().message(&user.0, id.0, message_id.0).await?)
    }

    /// Lists a bot's contacts
    ///
    /// Most recently active first.
    #[oai(path = "/api/bots/:id/contacts", method = "get", operation_id = "listContacts")]
    async fn contacts(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<Contact>> {
        let page = page_request(&Bots::contact_list(id.0), limit.0, cursor.0.as_ref())?;
        ok(hub.bots().contacts(&user.0, id.0, &page).await?.into())
    }

    /// Sets the remark of a contact
    ///
    /// An empty text removes it.
    #[oai(path = "/api/bots/:id/contacts/:userId", method = "put", operation_id = "setContactRemark")]
    async fn set_remark(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "userId")] user_id: Path<Text<1, 200>>,
        body: Body<SetRemark>,
    ) -> ApiResult<Contact> {
        ok(hub.bots().set_remark(&user.0, id.0, &user_id.0, &body.0.remark).await?)
    }
}
