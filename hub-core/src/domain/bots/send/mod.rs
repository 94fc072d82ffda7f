//! Sending: a message is accepted into the outbox, or rejected with the reason, before the caller waits.

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    access::Actor,
    bots::{Attachment, BotStatus, Bots, admission::Admission, attachment, login_expired, sender},
    error::{Error, Problems, Result},
    id::{BotId, MessageId, TraceId},
    idempotency::{self, Idempotent},
    model::{cause::Cause, private, trace::StepKind},
    network::{Quote, TextFormat, WindowRules},
    secret::{Secret, TokenHash},
    store::{
        Read,
        outbox::{NewOutbound, NewPart},
    },
    text,
    time::Timestamp,
    traces,
    wake::Hint,
};

/// A message to send.
#[derive(Debug, Clone, Default)]
pub struct NewSend {
    /// Id of the receiver, case-sensitive; the owner of the account when absent.
    pub to_user_id: Option<String>,
    /// The text. With a file it is the caption and may be empty.
    pub content: String,
    /// A file, shown after the text.
    pub media: Option<Attachment>,
    /// A context token that a program echoes. It is used if it belongs to one of the receiver's recent messages,
    /// otherwise the receiver's newest one is used.
    pub context_token: Option<Secret>,
    /// The message of the bot that this one replies to. It is shown with the sent message in the hub; the network has no
    /// quotes of bots.
    pub reply_to: Option<MessageId>,
    /// Markup of the text.
    pub format: TextFormat,
    /// The trace to which the send is added as a step. A trace that the bot does not have is ignored, and the send
    /// gets its own trace.
    pub trace_id: Option<TraceId>,
    /// Cancels the download of a file and thereby the send: a caller that has disconnected cannot learn that it was
    /// sent. A message whose file is complete is stored.
    pub stop: CancellationToken,
}

/// An accepted message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct Sent {
    /// Id of the message.
    pub message_id: MessageId,
    /// State: `queued`.
    pub status: String,
    /// Id of the trace of the send.
    pub trace_id: TraceId,
    /// The network's handle of its first part.
    #[serde(default)]
    #[api(skip)]
    pub client_id: String,
}

/// Longest id of a person, in characters.
pub(super) const MAX_USER_ID: usize = 200;
/// Longest context token, in bytes.
const MAX_CONTEXT_TOKEN: usize = 4096;
/// Number of a person's messages among which a context token is searched.
const RECENT_TOKENS: u32 = 20;

impl Bots<'_> {
    /// Accepts a message for a person. Returns after the commit; delivery follows.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the actor's (or, for a channel client or an app, its own); `FORBIDDEN` for an
    /// app without the scope to send; `INVALID_PARAMS` on bad input; `WINDOW_CLOSED` when the network would reject it
    /// now; `CONFLICT` when the bot needs a new login, or the key was used for another message; `RATE_LIMITED` when
    /// too many messages to the person are queued; `UNAVAILABLE` when `stop` cancelled the download.
    pub async fn send(
        &self,
        actor: &Actor,
        bot_id: BotId,
        new: NewSend,
        idempotency_key: Option<&str>,
    ) -> Result<Sent> {
        let (owner, channel_id) = sender(actor, bot_id)?;
        check(&new, self.ctx.config.max_text)?;
        let token = new.context_token.as_ref().map(|token| TokenHash::of(token.expose()));
        let file = new.media.as_ref().map(Attachment::fingerprint);
        let token = token.as_ref().map(TokenHash::as_str);
        let input = (bot_id, &new.to_user_id, &new.content, token, new.format, file, new.trace_id);
        // Without `reply_to` the fingerprint equals that of versions that did not have the field.
        let key = match new.reply_to {
            None => Idempotent::read(self.ctx, actor, "bot.send", &input, idempotency_key)?,
            Some(id) => Idempotent::read(self.ctx, actor, "bot.send", &(input, id), idempotency_key)?,
        };
        let mut read = self.ctx.store.read().await?;
        let bot = read.bots().find(owner, bot_id).await?.ok_or_else(|| Error::not_found("bot"))?;
        if let Some(key) = &key
            && let Some(first) = key.first_answer(&mut read).await?
        {
            return Ok(first);
        }
        let continued = match new.trace_id {
            Some(id) => read.traces().find(Actor::Operator.scope()?, Some(bot_id), id).await?.map(|_| id),
            None => None,
        };
        let quoted = match new.reply_to {
            Some(id) => Some(self.quote_of(&mut read, bot_id, id).await?),
            None => None,
        };
        drop(read);
        let network = self.ctx.networks.get(&bot.network).ok_or_else(|| {
            Error::conflict(Cause::OtherNetwork { network: bot.network.clone() }.to_string())
        })?;
        if bot.status == BotStatus::Expired {
            return Err(login_expired());
        }
        let is_program = matches!(actor, Actor::Channel(client) if client.ilink.is_some());
        let texts = match new.content.trim() {
            "" => Vec::new(),
            _ if is_program => network.split_long_text(&new.content, new.format),
            _ => network.split_text(&new.content, new.format),
        };
        if new.media.is_none() && texts.iter().all(|text| text.trim().is_empty()) {
            return Err(Error::invalid("content", "has nothing to show"));
        }
        let peer = new.to_user_id.unwrap_or_else(|| bot.owner_user_id.clone());
        let admission = Admission {
            rules: self.ctx.config.window_rules(&**network),
            max_queued: self.ctx.config.max_outbox_per_peer,
            may_pause: !is_program,
        };
        let chosen = match new.context_token {
            Some(token) => self.known_token(bot_id, &peer, token, &admission.rules).await?,
            None => None,
        };
        let file = match new.media {
            None => None,
            Some(media) => {
                // Check before anything is fetched or stored for a message that cannot be sent.
                let mut read = self.ctx.store.read().await?;
                let contact = read.contacts().find(bot_id, &peer).await?;
                let queued = read.outbox().queued_parts(bot_id, &peer).await?;
                drop(read);
                admission.check(contact, queued, texts.len() + 1, self.ctx.store.now())?;
                Some(media.keep(self.ctx, &bot, channel_id, &new.stop).await?)
            }
        };
        failpoint!("send.accept");
        let trace_id = continued.unwrap_or_else(|| self.ctx.ids.next());
        let now = self.ctx.store.now();
        let ids = &self.ctx.ids;
        let content = match &file {
            Some(file) if texts.is_empty() => file.file_name.clone(),
            _ => new.content,
        };
        let mut parts: Vec<NewPart> = texts.into_iter().map(|text| NewPart::new(ids, text)).collect();
        parts.extend(file.clone().map(|file| NewPart::file(ids, file)));
        let message_id: MessageId = self.ctx.ids.next();
        let private =
            chosen.map(|token| private::seal(&self.ctx.sealer, message_id, Some(&token), &Secret::from("")));
        let outbound = NewOutbound {
            message_id,
            bot_id,
            peer,
            dedupe_key: parts[0].client_id.clone(),
            content,
            parts,
            quoted: quoted.as_ref().map(text::json),
            channel_id,
            trace_id: Some(trace_id),
            private,
            expires_at: now + self.ctx.config.outbox_lifetime,
            now,
        };
        let caller = match actor {
            Actor::App(_) => StepKind::App,
            Actor::Channel(_) if is_program => StepKind::Ilink,
            Actor::Channel(_) => StepKind::Channel,
            Actor::User(_) | Actor::Operator => StepKind::Api,
        };
        let sent = idempotency::write_once(&self.ctx.store, key, move |tx| {
            Box::pin(async move {
                // Checked again, so that concurrent sends count each other.
                let contact = tx.contacts().find(bot_id, &outbound.peer).await?;
                let queued = tx.outbox().queued_parts(bot_id, &outbound.peer).await?;
                admission.check(contact, queued, outbound.parts.len(), now)?;
                if let Some(file) = &file {
                    attachment::check_unsent(tx, file, now).await?;
                }
                tx.outbox().enqueue(std::slice::from_ref(&outbound)).await?;
                match continued {
                    Some(id) => tx.traces().update(&[&traces::with_send(&outbound, id, caller)]).await?,
                    None => tx.traces().insert(&[&traces::of_send(&outbound, trace_id, caller)]).await?,
                }
                let (message_id, client_id) = (outbound.message_id, outbound.parts[0].client_id.clone());
                Ok(Sent { message_id, status: "queued".to_owned(), trace_id, client_id })
            })
        })
        .await?;
        failpoint!("send.accepted");
        self.ctx.node.wake.hint(Hint::Outbox(bot_id));
        Ok(sent)
    }

    /// A quote of a message of the bot.
    async fn quote_of(&self, read: &mut Read, bot_id: BotId, id: MessageId) -> Result<Quote> {
        let found = read.messages().find(bot_id, id).await?;
        let found = found.ok_or_else(|| Error::invalid("reply_to", "is not a message of this bot"))?;
        let mut quote = Quote::default();
        quote.resolve(id, found.kind, &found.content);
        Ok(quote)
    }

    /// Returns a context token that a caller sent back, if it belongs to one of the person's recent messages.
    async fn known_token(
        &self,
        bot_id: BotId,
        peer: &str,
        token: Secret,
        rules: &WindowRules,
    ) -> Result<Option<Secret>> {
        let since = rules.age.map_or(Timestamp::MIN, |age| self.ctx.store.now() - age);
        let mut read = self.ctx.store.read().await?;
        let recent = read.messages().recent_private(bot_id, peer, since, RECENT_TOKENS).await?;
        drop(read);
        for (id, from, sealed) in recent {
            let known = private::context_token(&self.ctx.sealer, id, (bot_id, &from), Some(&sealed))?;
            if known.is_some_and(|known| known.expose() == token.expose()) {
                return Ok(Some(token));
            }
        }
        Ok(None)
    }
}

fn check(new: &NewSend, max_text: usize) -> Result<()> {
    let mut problems = Problems::default();
    if let Some(user) = &new.to_user_id {
        text::check_name(&mut problems, "to_user_id", user, 1..=MAX_USER_ID);
    }
    if new.content.trim().is_empty() && new.media.is_none() {
        problems.add("content", "must not be empty");
    } else if new.content.len() > max_text {
        problems.add("content", format!("must be at most {max_text} bytes"));
    } else {
        text::check_body(&mut problems, "content", &new.content, max_text);
    }
    if let Some(token) = &new.context_token {
        let fits = token.expose().len() <= MAX_CONTEXT_TOKEN;
        problems.check(fits, "context_token", "must be at most 4096 bytes");
    }
    problems.finish()
}

#[cfg(test)]
mod tests;
