//! Sending: a message is accepted into the outbox, or rejected with the reason, before the caller waits.

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    access::Actor,
    bots::{Attachment, BotStatus, Bots, admission::Admission, attachment, login_expired, sender},
    error::{Error, Problems, Result},
    id::{BotId, MessageId, TraceId},
    idempotency::{self, Idempotent},
    model::{private, trace::StepKind},
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
    /// Receiver, byte for byte; the person who owns the account when absent.
    pub to_user_id: Option<String>,
    /// The text; with a file it may be empty, and is its caption otherwise.
    pub content: String,
    /// A file. People see it after the text.
    pub media: Option<Attachment>,
    /// A permission to answer, as programs echo it. It is used if it came with one of the receiver's recent messages,
    /// otherwise the newest one of the receiver is.
    pub context_token: Option<Secret>,
    /// The message of the bot that this one replies to. It is shown with the sent message in the hub; the network has no
    /// quotes of bots.
    pub reply_to: Option<MessageId>,
    /// How the text is marked up.
    pub format: TextFormat,
    /// The trace that the send belongs to: it becomes a step there. A trace that the bot does not have is ignored,
    /// and the send gets its own trace.
    pub trace_id: Option<TraceId>,
    /// Ends the download of a file, and the send with it: a caller that has gone cannot know that it was sent. A message
    /// whose file is complete is stored.
    pub stop: CancellationToken,
}

/// An accepted message: it is stored and will be tried, in order per person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its id.
    pub message_id: MessageId,
    /// State: `queued`.
    pub status: String,
    /// Names the send in traces.
    pub trace_id: TraceId,
    /// The network's handle of its first part.
    #[serde(default)]
    pub client_id: String,
}

/// Longest id of a person, in characters.
pub(super) const MAX_USER_ID: usize = 200;
/// Longest permission to answer, in bytes.
const MAX_CONTEXT_TOKEN: usize = 4096;
/// Messages of a person among which a permission to answer is looked for.
const RECENT_TOKENS: u32 = 20;

impl Bots<'_> {
    /// Accepts a message for a person. The answer comes after the commit; delivery follows.
    ///
    /// # Errors
    /// `NOT_FOUND` unless the bot is the actor's (or, for a channel client or an app, its own); `FORBIDDEN` for
    /// an app that was not granted to send; `INVALID_PARAMS` on bad input; `WINDOW_CLOSED` when the network would refuse it now; `CONFLICT` when the bot needs a
    /// new login, or the key was used for another message; `RATE_LIMITED` when too much waits for the person;
    /// `UNAVAILABLE` when `stop` ended the download.
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
        let network =
            self.ctx.networks.get(&bot.network).ok_or_else(|| {
                Error::conflict(format!("this hub does not serve the network {}", bot.network))
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
                // Before anything is fetched or stored: it may not go out anyway.
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
                // Here again, so that sends at the same time count each other.
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

    /// A permission to answer that a caller sent back, if it came with one of the person's recent
    /// messages.
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
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{bots::testing::*, error::ErrorCode};

    async fn code(world: &World, actor: &Actor, bot: BotId, new: NewSend) -> ErrorCode {
        world.hub.bots().send(actor, bot, new, None).await.unwrap_err().code()
    }

    #[tokio::test]
    async fn an_accepted_message_is_stored_with_its_parts() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        world.person_writes(bot, "wx-a").await;
        let mut hints = world.hub.context().node.wake.listen();
        let sent = world.hub.bots().send(&ann, bot, say("one|two"), None).await.unwrap();
        assert_eq!(sent.status, "queued");
        assert_eq!(hints.try_recv().unwrap().hint, Hint::Outbox(bot));
        let parts =
            "SELECT COUNT(DISTINCT client_id) FROM outbox AS o JOIN messages AS m ON m.id = o.message_id
             WHERE o.state = 'queued' AND o.parts = 2 AND o.peer = 'wx-a' AND o.client_id LIKE 'hub-%'
                AND o.text = CASE o.part WHEN 0 THEN 'one' ELSE 'two' END AND o.due_at = o.created_at
                AND m.content = 'one|two' AND m.status = 'queued' AND m.from_user_id = 'wx-a@bot'
                AND m.user_name = 'Name of wx-a' AND m.channel_id IS NULL
                AND (o.part = 1 OR m.dedupe_key = o.client_id)
                AND (o.part = 0 OR o.id > (SELECT id FROM outbox WHERE part = 0))";
        assert_eq!(world.number(parts).await, 2);
        let channel = world.channel_actor(&ann, bot).await;
        world.hub.bots().send(&channel, bot, say("three"), None).await.unwrap();
        let by_channel = "SELECT COUNT(*) FROM messages WHERE channel_id IS NOT NULL";
        assert_eq!(world.number(by_channel).await, 1);
        let other = world.bot(&ann, "wx-b").await;
        assert_eq!(code(&world, &channel, other, say("x")).await, ErrorCode::NotFound);
    }

    #[tokio::test]
    async fn a_reply_names_a_message_of_the_same_bot() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let (bot, other) = (world.bot(&ann, "wx-a").await, world.bot(&ann, "wx-b").await);
        world.person_writes(bot, "wx-a").await;
        world.person_writes(other, "wx-b").await;
        let bots = world.hub.bots();
        let first = bots.send(&ann, bot, say("one"), None).await.unwrap().message_id;
        let foreign = bots.send(&ann, other, say("foreign"), None).await.unwrap().message_id;
        let reply = |id| NewSend { reply_to: Some(id), ..say("two") };
        for unknown in [foreign, MessageId::from_u128(1)] {
            let error = bots.send(&ann, bot, reply(unknown), None).await.unwrap_err();
            assert_eq!(error.details()[0].field.as_ref(), "reply_to");
        }
        let second = bots.send(&ann, bot, reply(first), Some("key")).await.unwrap();
        assert_eq!(bots.send(&ann, bot, reply(first), Some("key")).await.unwrap(), second);
        let other_reply = bots.send(&ann, bot, say("two"), Some("key")).await.unwrap_err();
        assert_eq!(other_reply.code(), ErrorCode::Conflict);
        let stored = bots.message(&ann, bot, second.message_id).await.unwrap();
        let quoted = stored.quoted.unwrap();
        assert_eq!((quoted.message_id, quoted.text.as_deref()), (Some(first), Some("one")));
    }

    #[tokio::test]
    async fn s2_s3_s16_a_closed_window_refuses_and_stores_nothing() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        let bots = world.hub.bots();
        let never = bots.send(&ann, bot, say("hi"), None).await.unwrap_err();
        assert_eq!(never.code(), ErrorCode::WindowClosed);
        assert!(never.message().contains("write first"));
        world.person_writes(bot, "wx-a").await;
        assert_eq!(code(&world, &ann, bot, to("Wx-A", "hi")).await, ErrorCode::WindowClosed);
        let long = bots.send(&ann, bot, say("1|2|3|4"), None).await.unwrap_err();
        assert_eq!(long.code(), ErrorCode::WindowClosed);
        assert!(long.message().contains("text_part_chars"), "{}", long.message());
        bots.send(&ann, bot, say("1|2"), None).await.unwrap();
        let full = bots.send(&ann, bot, say("3|4"), None).await.unwrap_err();
        assert_eq!(full.code(), ErrorCode::WindowClosed);
        assert!(full.message().contains("1 are left"), "{}", full.message());
        bots.send(&ann, bot, say("3"), None).await.unwrap();
        world.sql("UPDATE contacts SET window_closed = 'prepare failed'".to_owned()).await;
        assert_eq!(code(&world, &ann, bot, say("4")).await, ErrorCode::WindowClosed);
        world.sql("DELETE FROM messages".to_owned()).await;
        world.person_writes(bot, "wx-a").await;
        assert!(bots.get(&ann, bot).await.unwrap().can_send);
        world.clock.advance(Duration::from_secs(3600));
        assert_eq!(code(&world, &ann, bot, say("late")).await, ErrorCode::WindowClosed);
        let seen = bots.get(&ann, bot).await.unwrap();
        assert!(!seen.can_send && seen.send_disabled_reason.is_some());
        assert_eq!(
            world.number("SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM outbox)").await,
            0
        );
    }

    #[tokio::test]
    async fn bad_input_names_every_field() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        world.person_writes(bot, "wx-a").await;
        let bad = NewSend {
            to_user_id: Some("a\nb".into()),
            context_token: Some("x".repeat(5000).into()),
            ..say(&"x".repeat(64 * 1024 + 1))
        };
        let error = world.hub.bots().send(&ann, bot, bad, None).await.unwrap_err();
        let fields: Vec<_> = error.details().iter().map(|detail| detail.field.as_ref()).collect();
        assert_eq!(fields, ["to_user_id", "content", "context_token"]);
        for text in ["", " \n", "a\0b", " | "] {
            assert_eq!(code(&world, &ann, bot, say(text)).await, ErrorCode::InvalidParams, "{text:?}");
        }
        world.set_status(bot, BotStatus::Expired, None).await;
        let expired = world.hub.bots().send(&ann, bot, say("hi"), None).await.unwrap_err();
        assert_eq!(expired.code(), ErrorCode::Conflict);
        // For people and for programs.
        assert_eq!(expired.hint(), Some("hub-cli bots bind, or POST /api/bots/bind/start"));
        assert_eq!(world.number("SELECT COUNT(*) FROM messages").await, 0);
    }

    #[tokio::test]
    async fn a_repeated_key_sends_once() {
        let world = World::open().await;
        let (ann, bob) = (world.user("ann").await, world.user("bob").await);
        let (bot, bobs) = (world.bot(&ann, "wx-a").await, world.bot(&bob, "wx-b").await);
        world.person_writes(bot, "wx-a").await;
        world.person_writes(bobs, "wx-b").await;
        let bots = world.hub.bots();
        let first = bots.send(&ann, bot, say("1|2|3"), Some("k")).await.unwrap();
        // The window is used up by the first: the repeat must not trip over it.
        assert_eq!(bots.send(&ann, bot, say("1|2|3"), Some("k")).await.unwrap(), first);
        let other = bots.send(&ann, bot, say("4"), Some("k")).await.unwrap_err();
        assert_eq!(other.code(), ErrorCode::Conflict);
        let his = bots.send(&bob, bobs, say("1|2|3"), Some("k")).await.unwrap();
        assert_ne!(his.message_id, first.message_id, "keys belong to their caller");
        assert_eq!(world.number("SELECT COUNT(*) FROM messages").await, 2);
    }

    #[tokio::test]
    async fn sends_at_once_share_what_is_left() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        world.person_writes(bot, "wx-a").await;
        let bots = world.hub.bots();
        let texts = ["a", "b", "c", "d", "e"];
        let sends = texts.map(|text| bots.send(&ann, bot, say(text), None));
        let accepted = futures_util::future::join_all(sends).await.into_iter().flatten().count();
        assert_eq!(accepted, 3);
        assert_eq!(world.number("SELECT COUNT(*) FROM outbox").await, 3);
    }

    #[tokio::test]
    async fn a_full_queue_refuses() {
        let config = crate::config::HubConfig { max_outbox_per_peer: 2, ..Default::default() };
        let world = World::with(config).await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        world.person_writes(bot, "wx-a").await;
        world.hub.bots().send(&ann, bot, say("1|2"), None).await.unwrap();
        let full = world.hub.bots().send(&ann, bot, say("3"), None).await.unwrap_err();
        assert_eq!(full.code(), ErrorCode::RateLimited);
        assert!(full.retry_after().is_some());
    }

    #[tokio::test]
    async fn enqueue_adds_each_key_once_and_nothing_for_a_bot_that_is_gone() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let bot = world.bot(&ann, "wx-a").await;
        let ctx = world.hub.context();
        let row = |bot_id: BotId, key: &str| NewOutbound {
            message_id: ctx.ids.next(),
            bot_id,
            peer: "Peer".to_owned(),
            dedupe_key: key.to_owned(),
            content: "quo\"te".to_owned(),
            parts: vec![NewPart {
                id: ctx.ids.next(),
                client_id: key.to_owned(),
                text: "quo\"te".to_owned(),
                file: None,
            }],
            quoted: None,
            channel_id: None,
            trace_id: None,
            private: None,
            expires_at: world.clock.now(),
            now: world.clock.now(),
        };
        let run = async |rows: Vec<NewOutbound>| {
            ctx.store
                .write(move |tx| Box::pin(async move { tx.outbox().enqueue(&rows).await }))
                .await
                .unwrap()
        };
        let (one, two) = (row(bot, "dlv:0"), row(bot, "dlv:1"));
        assert_eq!(run(vec![one.clone(), two.clone()]).await, [one.message_id, two.message_id]);
        let three = row(bot, "dlv:2");
        let again = vec![row(bot, "dlv:0"), three.clone(), row(ctx.ids.next(), "dlv:0")];
        assert_eq!(run(again).await, [three.message_id]);
        assert_eq!(run(Vec::new()).await, []);
        assert_eq!(world.number("SELECT COUNT(*) FROM outbox").await, 3);
        let items = r#"SELECT COUNT(*) FROM messages WHERE content = 'quo"te' AND items = ''"#;
        assert_eq!(world.number(items).await, 3);
        let queued = ctx.store.read().await.unwrap().outbox().queued_parts(bot, "Peer").await.unwrap();
        assert_eq!(queued.parts, 3);
    }
}
