//! Endpoints for bots (spec §4, "Bot management"; `contract.md` §4).

use hub_core::{Hub, bots::Bots};
use poem::{Request, web::Data};
use poem_openapi::{
    OpenApi,
    param::{Header, Path, Query},
};

mod requests;
#[cfg(test)]
mod tests;
pub(in crate::api) mod views;

pub use requests::{ConfirmBind, RenameBot, SendMedia, SendMessage, SetRemark, StartBind, TextFormat};
pub use views::{
    BindStatus, BindStepView, BotHealthView, BotStatus, BotView, ContactView, Direction, ItemView, MediaView,
    MessageView, QuotedView, SentView, StartedBindView,
};

use super::Tag;
use crate::{
    AppSettings,
    credentials::User,
    envelope::{ApiResult, Empty, ok},
    wire::{Body, BotId, Cursor, Limit, MessageId, Page, Text, Time, page_request},
};

/// Bots, their login, messages and contacts.
#[derive(Debug, Clone, Copy)]
pub struct BotsApi;

#[OpenApi(tag = "Tag::Bots")]
impl BotsApi {
    /// Lists your bots
    ///
    /// Those that you bound, whoever of them was bound last first.
    #[oai(path = "/api/bots", method = "get", operation_id = "listBots")]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<BotView>> {
        let page = page_request(&Bots::bot_list(&user.0), limit.0, cursor.0.as_ref())?;
        ok(hub.bots().list(&user.0, &page).await?.into())
    }

    /// Starts binding a bot account
    ///
    /// Show `qr_text` as a QR code (or `qr_svg` as it is) and call `confirm` until its status is a final one.
    /// The same account bound again keeps its bot and channels and gets the new login.
    #[oai(path = "/api/bots/bind/start", method = "post", operation_id = "startBind")]
    async fn start_bind(
        &self,
        hub: Data<&Hub>,
        user: User,
        body: Body<Option<StartBind>>,
    ) -> ApiResult<StartedBindView> {
        let new = body.0.unwrap_or_default().into();
        ok(hub.bots().start_bind(&user.0, new).await?.into())
    }

    /// Waits for the next step of a bind
    ///
    /// Answers when something changed, or after `wait_ms`. `need_code`: the phone shows a number; send it as
    /// `verify_code`. A code that ran out is replaced twice; then `qr_text` is another one. `confirmed`,
    /// `already_bound`, `expired` and `refused` are final. Only whoever started a bind can see it.
    /// The wait ends with the session or key that asks.
    #[oai(path = "/api/bots/bind/confirm", method = "post", operation_id = "confirmBind")]
    async fn confirm_bind(
        &self,
        hub: Data<&Hub>,
        settings: Data<&AppSettings>,
        user: User,
        request: &Request,
        body: Body<ConfirmBind>,
    ) -> ApiResult<BindStepView> {
        let (wait, code, bots) = (body.0.wait(), body.0.verify_code.as_deref(), hub.bots());
        let step = Box::pin(bots.confirm_bind(&user.0, body.0.bind_id.0, code, wait));
        ok(user.while_valid(&hub, &settings, request, step).await?.into())
    }

    /// Shows a bot
    ///
    /// With its connection as it was noted last; its status says more.
    #[oai(path = "/api/bots/:id", method = "get", operation_id = "getBot")]
    async fn get(&self, hub: Data<&Hub>, user: User, id: Path<BotId>) -> ApiResult<BotView> {
        ok(hub.bots().get(&user.0, id.0.0).await?.into())
    }

    /// Gives a bot another name
    ///
    /// The name is the hub's; people on the network see what the account is called there.
    #[oai(path = "/api/bots/:id", method = "put", operation_id = "renameBot")]
    async fn rename(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        body: Body<RenameBot>,
    ) -> ApiResult<BotView> {
        ok(hub.bots().rename(&user.0, id.0.0, &body.0.name).await?.into())
    }

    /// Deletes a bot
    ///
    /// With its channels, messages, contacts and everything that waits to be sent or delivered.
    #[oai(path = "/api/bots/:id", method = "delete", operation_id = "deleteBot")]
    async fn delete(&self, hub: Data<&Hub>, user: User, id: Path<BotId>) -> ApiResult<Empty> {
        hub.bots().delete(&user.0, id.0.0).await?;
        ok(Empty {})
    }

    /// Shows a bot's connection
    ///
    /// Whether it is polled, what went wrong last, and whether it can send.
    #[oai(path = "/api/bots/:id/status", method = "get", operation_id = "getBotStatus")]
    async fn status(&self, hub: Data<&Hub>, user: User, id: Path<BotId>) -> ApiResult<BotHealthView> {
        ok(hub.bots().status(&user.0, id.0.0).await?.into())
    }

    /// Connects a bot anew
    ///
    /// `CONFLICT` when the chat network wants a new login: then bind the account again.
    #[oai(path = "/api/bots/:id/reconnect", method = "post", operation_id = "reconnectBot")]
    async fn reconnect(&self, hub: Data<&Hub>, user: User, id: Path<BotId>) -> ApiResult<BotView> {
        ok(hub.bots().reconnect(&user.0, id.0.0).await?.into())
    }

    /// Sends a message through a bot
    ///
    /// The answer comes once the message is stored; it is then delivered in order per person.
    /// A file is an upload of a channel of this bot, or is fetched from an address first; sound is sent as a file.
    /// `WINDOW_CLOSED` when the chat network would refuse it now: the message says why, and how many sends are
    /// left. `CONFLICT` when the bot needs a new login. With an `Idempotency-Key` the same request within 24
    /// hours gives the first answer.
    #[oai(path = "/api/bots/:id/send", method = "post", operation_id = "sendMessage")]
    async fn send(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "Idempotency-Key")] idempotency_key: Header<Option<Text<1, 255>>>,
        body: Body<SendMessage>,
    ) -> ApiResult<SentView> {
        let key = idempotency_key.0.as_deref();
        ok(hub.bots().send(&user.0, id.0.0, body.0.try_into()?, key).await?.into())
    }

    /// Lists a bot's messages
    ///
    /// Newest first. Every filter that is set has to match; a cursor goes on only under the filters it was
    /// made with.
    #[oai(path = "/api/bots/:id/messages", method = "get", operation_id = "listMessages")]
    #[expect(clippy::too_many_arguments, reason = "each is a query parameter of the document")]
    async fn messages(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        /// Only messages that went this way.
        direction: Query<Option<Direction>>,
        /// Only messages with this person.
        user_id: Query<Option<Text<1, 200>>>,
        /// Only messages taken by the hub at this time or later.
        since: Query<Option<Time>>,
        /// Only messages taken by the hub before this time.
        until: Query<Option<Time>>,
        /// Only messages that contain this text; the case of ASCII letters does not matter.
        q: Query<Option<Text<1, 200>>>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<MessageView>> {
        let filter = requests::filter(direction.0, user_id.0, since.0, until.0, q.0);
        let page = page_request(&Bots::message_list(id.0.0, &filter), limit.0, cursor.0.as_ref())?;
        ok(hub.bots().messages(&user.0, id.0.0, &filter, &page).await?.into())
    }

    /// Shows one of a bot's messages
    ///
    /// With its parts, its files and what became of it.
    #[oai(path = "/api/bots/:id/messages/:messageId", method = "get", operation_id = "getMessage")]
    async fn message(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        /// The message.
        #[oai(name = "messageId")]
        message_id: Path<MessageId>,
    ) -> ApiResult<MessageView> {
        ok(hub.bots().message(&user.0, id.0.0, message_id.0.0).await?.into())
    }

    /// Lists a bot's contacts
    ///
    /// Whoever was active last comes first.
    #[oai(path = "/api/bots/:id/contacts", method = "get", operation_id = "listContacts")]
    async fn contacts(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<ContactView>> {
        let page = page_request(&Bots::contact_list(id.0.0), limit.0, cursor.0.as_ref())?;
        ok(hub.bots().contacts(&user.0, id.0.0, &page).await?.into())
    }

    /// Notes something about a contact
    ///
    /// Sets the remark; the empty text removes it.
    #[oai(path = "/api/bots/:id/contacts/:userId", method = "put", operation_id = "setContactRemark")]
    async fn set_remark(
        &self,
        hub: Data<&Hub>,
        user: User,
        id: Path<BotId>,
        #[oai(name = "userId")] user_id: Path<Text<1, 200>>,
        body: Body<SetRemark>,
    ) -> ApiResult<ContactView> {
        ok(hub.bots().set_remark(&user.0, id.0.0, &user_id.0, &body.0.remark).await?.into())
    }
}
