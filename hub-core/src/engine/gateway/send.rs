//! Messages and typing indicators from programs.

use std::time::Duration;

use serde_json::json;

use super::{Gateway, Program, refusal, render::number_of};
use crate::{
    bots::{Attachment, Bots, NewSend},
    error::{Error, ErrorCode, Result},
    id::MessageId,
    model::message::MessageFilter,
    network::server::{Answer, Item, Reply, SendRequest, stamp},
    page::PageRequest,
    secret::TokenHash,
};

/// Lifetime of a typing ticket.
const TICKET_LIFE: Duration = Duration::from_secs(600);
/// Messages with a person among which one that the program quotes is looked for.
const RECENT_MESSAGES: u32 = 50;
/// `message_state` of a text of which more follows.
const GENERATING: u64 = 1;

impl Gateway<'_> {
    /// Accepts a message into the outbox. A repeated `client_id` gets the first response again.
    pub(super) async fn send(&self, program: &Program, send: &SendRequest<'_>) -> Answer {
        let failed = |error: Error| refusal(&error);
        if !self.knows(program, send.to).await.map_err(failed)? {
            return Err(Reply::refuse(-3, "invalid arguments"));
        }
        if !stamp::context_token_fits(&program.key, &program.wx_id, send.to, send.context_token) {
            return Err(Reply::refuse(-2, "prepare failed"));
        }
        // A text that is still being generated. The finished one follows under the same `client_id`, and is what the person
        // gets: on a phone, further texts under a known `client_id` are never shown.
        if send.msg.get("message_state").and_then(serde_json::Value::as_u64) == Some(GENERATING) {
            return Ok(Reply::done());
        }
        let mut new = NewSend { to_user_id: Some(send.to.to_owned()), ..NewSend::default() };
        match &send.item {
            Item::Text(text) => new.content = (*text).to_owned(),
            Item::File(file) => {
                let id = self.sent_upload(program, send.to, file).await.map_err(failed)?;
                let id = id.ok_or_else(|| Reply::refuse(-2, "invalid media"))?;
                new.media = Some(Attachment::Upload(id.to_string()));
            }
            // As on the phone: accepted and never shown.
            Item::Voice | Item::ToolCall => return Ok(Reply::done()),
        }
        if let Some(id) = &send.quoted {
            new.reply_to = self.message_of(program, send.to, id).await.map_err(failed)?;
        }
        // A `client_id` is any text, an idempotency key visible ASCII.
        let client_id = Some(send.client_id).filter(|id| !id.is_empty());
        let key = client_id.map(|id| TokenHash::of(id).as_str().to_owned());
        let sent =
            Bots::new(self.ctx).send(&program.actor(), program.client.bot_id, new, key.as_deref()).await;
        let sent = sent.map_err(failed)?;
        Ok(Reply::json(&json!({"ret": 0, "message_id": number_of(sent.message_id).to_string()})))
    }

    /// The message that the program knows by this id: one of the person's, or one of the last that the bot sent them.
    async fn message_of(&self, program: &Program, to: &str, id: &str) -> Result<Option<MessageId>> {
        let bot_id = program.client.bot_id;
        let mut read = self.ctx.store.read().await?;
        if let Some(message) = read.messages().quoted(bot_id, &[id]).await?.remove(id) {
            return Ok(Some(message.message_id));
        }
        let filter = MessageFilter { user_id: Some(to.to_owned()), ..MessageFilter::default() };
        let request = PageRequest::parse("quoted", Some(RECENT_MESSAGES), None)?;
        let recent = read.messages().page(bot_id, &filter, &request).await?.rows;
        Ok(recent.into_iter().map(|message| message.id).find(|message| number_of(*message).to_string() == id))
    }

    /// Whether the bot may address this person.
    pub(super) async fn knows(&self, program: &Program, user_id: &str) -> Result<bool> {
        if user_id == program.owner_user_id {
            return Ok(true);
        }
        Ok(self.ctx.store.read().await?.contacts().find(program.client.bot_id, user_id).await?.is_some())
    }

    /// A ticket for typing indicators to a person who has written.
    pub(super) async fn typing_ticket(&self, program: &Program, user_id: &str) -> Answer {
        let mut read = self.ctx.store.read().await.map_err(|error| refusal(&error))?;
        let found = read.contacts().find(program.client.bot_id, user_id).await;
        if found.map_err(|error| refusal(&error))?.is_none() {
            return Err(Reply::refuse(-4, "GetTypingTicket rpc failed"));
        }
        let ticket = stamp::typing_ticket(&program.key, &program.wx_id, user_id, self.ctx.store.now());
        Ok(Reply::json(&json!({"ret": 0, "typing_ticket": ticket})))
    }

    /// Passes a typing indicator on.
    pub(super) async fn typing(&self, program: &Program, user_id: &str, ticket: &str, on: bool) -> Answer {
        let made = stamp::typing_ticket_time(&program.key, &program.wx_id, user_id, ticket);
        if made.is_none_or(|made| self.ctx.store.now().since(made) >= TICKET_LIFE) {
            return Err(Reply::refuse(-2, "invalid typing_ticket"));
        }
        let shown =
            Bots::new(self.ctx).typing(&program.actor(), program.client.bot_id, Some(user_id), on).await;
        match shown {
            // The indicator is a courtesy: a bot that has to log in again shows none.
            Ok(_) => Ok(Reply::done()),
            Err(error) if error.code() == ErrorCode::Conflict => Ok(Reply::done()),
            Err(error) => Err(refusal(&error)),
        }
    }
}
