//! Bots, the bind flow, contacts and messages.

use crate::{
    access::{Actor, AppScope},
    app_status::{notify_status, status_of},
    context::Context,
    error::{Advice, Error, Problems, Result},
    events::Event,
    id::{BotId, ChannelId, UserId},
    model::{audit::Action, revocation::Revoked},
    page::{Page, PageRequest},
    text,
    wake::Hint,
};

mod admission;
mod all_messages;
mod attachment;
mod binding;
mod contacts;
pub mod credentials;
mod fetch;
mod messages;
pub mod pacing;
mod send;
mod stats;
#[cfg(test)]
mod testing;
mod typing;

pub use crate::{
    model::{
        bot::{BindStatus, Bot, BotHealth, BotRecord, BotStatus, StoredBind, StoredContact},
        message::{
            Direction, ListedMessage, Message, MessageFilter, MessageOutcome, MessageSearch, MessageStatus,
            Outcome, Quoted,
        },
        window,
    },
    node::typing_connections::TypingConnections,
    qr,
};
pub use attachment::Attachment;
pub use binding::{BindStep, BindView, NewBind};
pub use contacts::Contact;
pub(crate) use fetch::Fetched;
pub use send::{NewSend, Sent};
pub use stats::UserStats;

/// Longest name of a bot, in characters.
const MAX_NAME: usize = 64;

/// Operations on bots, the bind flow, contacts and messages. Each takes the actor of the caller.
#[derive(Debug, Clone, Copy)]
pub struct Bots<'h> {
    ctx: &'h Context,
}

impl<'h> Bots<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// Lists the actor's bots, newest first.
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client.
    pub async fn list(&self, actor: &Actor, page: &PageRequest) -> Result<Page<Bot>> {
        let owner = actor.scope()?.owner();
        let rows = self.ctx.store.read().await?.bots().page(owner, page).await?;
        let page = Page::from_rows(&Self::bot_list(actor), page, rows, |bot| bot.id.to_string());
        Ok(page.map(|bot| self.view(bot)))
    }

    /// The name of an actor's list of bots, for [`PageRequest::parse`].
    pub fn bot_list(actor: &Actor) -> String {
        format!("bots:{}", actor.principal())
    }

    /// One bot.
    ///
    /// # Errors
    /// `NOT_FOUND` unless it is the actor's.
    pub async fn get(&self, actor: &Actor, id: BotId) -> Result<Bot> {
        self.record(actor, id).await.map(|bot| self.view(bot))
    }

    /// The bot of a channel client's channel.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a channel client; `NOT_FOUND` when it was deleted meanwhile.
    pub async fn of_client(&self, actor: &Actor) -> Result<BotRecord> {
        let client = actor.client()?;
        let found = self.ctx.store.read().await?.bots().find(Some(client.owner_id), client.bot_id).await?;
        found.ok_or_else(|| Error::not_found("bot"))
    }

    /// Returns a bot with the last report of its poller.
    ///
    /// # Errors
    /// `NOT_FOUND` unless it is the actor's.
    pub async fn status(&self, actor: &Actor, id: BotId) -> Result<BotHealth> {
        let bot = self.record(actor, id).await?;
        Ok(BotHealth {
            since: bot.status_since,
            last_poll_at: bot.last_poll_at,
            last_error: bot.last_error.clone(),
            poller_node: bot.poller_node(self.ctx.store.now()).map(str::to_owned),
            bot: self.view(bot),
        })
    }

    /// Renames a bot; 1 to 64 characters.
    ///
    /// # Errors
    /// `NOT_FOUND` unless it is the actor's; `INVALID_PARAMS` on a bad name.
    pub async fn rename(&self, actor: &Actor, id: BotId, name: &str) -> Result<Bot> {
        let mut problems = Problems::default();
        text::check_name(&mut problems, "name", name, 1..=MAX_NAME);
        problems.finish()?;
        self.record(actor, id).await?;
        let name = name.trim().to_owned();
        self.ctx
            .store
            .write(move |tx| {
                let name = name.clone();
                Box::pin(async move { tx.bots().rename(id, &name).await })
            })
            .await?;
        let bot = self.get(actor, id).await?;
        self.notify_bot(id, bot.status);
        Ok(bot)
    }

    /// Deletes a bot with its channels, messages, contacts and queued sends.
    ///
    /// # Errors
    /// `NOT_FOUND` unless it is the actor's.
    pub async fn delete(&self, actor: &Actor, id: BotId) -> Result<()> {
        let owner = actor.scope()?.owner();
        let revocation = self.ctx.revocation(Revoked::Bot(id));
        let entry = self.ctx.audit(actor, Action::BotDeleted);
        let owners = self.ctx.node.bot_owners.of(&self.ctx.store, [id].into()).await?;
        self.ctx
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let bot = tx.bots().find(owner, id).await?.ok_or_else(|| Error::not_found("bot"))?;
                    tx.bots().delete(owner, id).await?;
                    tx.binds().delete_of_bot(id).await?;
                    tx.audit().add(&entry.target(id, bot.name)).await?;
                    tx.revocations().add(&revocation).await
                })
            })
            .await?;
        self.ctx.notify_revoked(revocation.revoked);
        self.ctx.node.wake.hint(Hint::Bot(id));
        if let Some(owner_id) = owners.get(&id).copied() {
            self.ctx.node.events.notify(Event::BotRemoved { bot_id: id, owner_id });
        }
        Ok(())
    }

    /// Reconnects a bot.
    ///
    /// # Errors
    /// `NOT_FOUND` unless it is the actor's; `CONFLICT` when the network requires a new login.
    pub async fn reconnect(&self, actor: &Actor, id: BotId) -> Result<Bot> {
        let owner = actor.scope()?.owner();
        let (ids, now) = (self.ctx.ids.clone(), self.ctx.store.now());
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let before = status_of(tx, id).await?;
                let done = tx.bots().reconnect(owner, id, now).await?;
                Ok((done, done && notify_status(tx, &ids, id, before, now).await?))
            })
        });
        let (done, is_told) = write.await?;
        let bot = self.get(actor, id).await?;
        if !done {
            return Err(login_expired());
        }
        self.notify_bot(id, bot.status);
        self.ctx.node.wake.hint(Hint::Bot(id));
        if is_told {
            self.ctx.node.wake.hint(Hint::AppEvents);
            self.ctx.node.wake.hint(Hint::Delivery(id));
        }
        Ok(bot)
    }

    /// Notifies clients that a bot was bound or changed.
    fn notify_bot(self, bot_id: BotId, status: BotStatus) {
        self.ctx.node.events.notify(Event::Bot { bot_id, status });
    }

    async fn record(&self, actor: &Actor, id: BotId) -> Result<BotRecord> {
        let owner = actor.scope()?.owner();
        let found = self.ctx.store.read().await?.bots().find(owner, id).await?;
        found.ok_or_else(|| Error::not_found("bot"))
    }

    fn view(self, bot: BotRecord) -> Bot {
        let rules = self.ctx.networks.get(&bot.network).map(|network| network.window_rules());
        bot.into_view(rules, self.ctx.store.now())
    }
}

pub(crate) fn login_expired() -> Error {
    Error::conflict("the network requires a new login: bind the bot again").with_advice([Advice::BindBot])
}

/// Checks that the actor may send with the bot. Returns the owner for the `WHERE`, and the channel of a channel
/// client.
///
/// # Errors
/// `NOT_FOUND` for a channel client or an app and another bot than its own; `FORBIDDEN` for an app without the scope
/// to send.
fn sender(actor: &Actor, id: BotId) -> Result<(Option<UserId>, Option<ChannelId>)> {
    match actor {
        Actor::Channel(channel) if channel.bot_id == id => {
            Ok((Some(channel.owner_id), Some(channel.channel_id)))
        }
        Actor::App(app) if app.bot_id == id => {
            app.scopes.require(AppScope::MessageWrite)?;
            Ok((Some(app.owner_id), None))
        }
        Actor::Channel(_) | Actor::App(_) => Err(Error::not_found("bot")),
        Actor::User(_) | Actor::Operator => Ok((actor.scope()?.owner(), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::*, *};
    use crate::error::ErrorCode;

    #[tokio::test]
    async fn only_the_owner_sees_and_changes_a_bot() {
        let world = World::open().await;
        let (ann, bob) = (world.user("ann").await, world.user("bob").await);
        let bot = world.bot(&ann, "wx-a").await;
        let bots = world.hub.bots();
        assert_eq!(bots.get(&ann, bot).await.unwrap().id, bot);
        assert_eq!(bots.get(&Actor::Operator, bot).await.unwrap().id, bot);
        for refused in [
            bots.get(&bob, bot).await.map(drop),
            bots.status(&bob, bot).await.map(drop),
            bots.reconnect(&bob, bot).await.map(drop),
            bots.delete(&bob, bot).await,
            bots.contacts(&bob, bot, &PageRequest::default()).await.map(drop),
            bots.set_remark(&bob, bot, "wx-a", "x").await.map(drop),
            bots.messages(&bob, bot, &MessageFilter::default(), &PageRequest::default()).await.map(drop),
            bots.send(&bob, bot, say("hi"), None).await.map(drop),
        ] {
            assert_eq!(refused.unwrap_err().code(), ErrorCode::NotFound);
        }
        assert!(bots.list(&bob, &PageRequest::default()).await.unwrap().items.is_empty());
        let channel = world.channel_actor(&ann, bot).await;
        assert_eq!(bots.get(&channel, bot).await.unwrap_err().code(), ErrorCode::Forbidden);
        bots.delete(&ann, bot).await.unwrap();
        assert_eq!(bots.get(&ann, bot).await.unwrap_err().code(), ErrorCode::NotFound);
    }

    #[tokio::test]
    async fn pages_are_newest_first_and_stable_under_inserts() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let mut made = Vec::new();
        for n in 0..5 {
            made.push(world.bot(&ann, &format!("wx-{n}")).await);
        }
        let bots = world.hub.bots();
        let two = |cursor: Option<&str>| PageRequest::parse(&Bots::bot_list(&ann), Some(2), cursor).unwrap();
        let first = bots.list(&ann, &two(None)).await.unwrap();
        world.bot(&ann, "wx-late").await;
        let second = bots.list(&ann, &two(first.next_cursor.as_deref())).await.unwrap();
        let third = bots.list(&ann, &two(second.next_cursor.as_deref())).await.unwrap();
        let seen: Vec<_> = [first.items, second.items, third.items].concat().iter().map(|b| b.id).collect();
        made.reverse();
        assert_eq!(seen, made);
        assert_eq!(third.next_cursor, None);
        let bob = world.user("bob").await;
        let stolen = PageRequest::parse(&Bots::bot_list(&bob), None, first.next_cursor.as_deref());
        assert_eq!(stolen.unwrap_err().code(), ErrorCode::InvalidParams);
    }

    #[tokio::test]
    async fn reconnect_starts_over_unless_the_login_expired() {
        let world = World::open().await;
        let ann = world.user("ann").await;
        let id = world.bot(&ann, "wx-a").await;
        let mut hints = world.hub.context().node.wake.listen();
        world.set_status(id, BotStatus::Connecting, None).await;
        world.set_status(id, BotStatus::Error, Some("boom")).await;
        let bots = world.hub.bots();
        assert_eq!(bots.get(&ann, id).await.unwrap().status_reason.as_deref(), Some("boom"));
        let bot = bots.reconnect(&ann, id).await.unwrap();
        assert_eq!((bot.status, bot.status_reason), (BotStatus::Connecting, None));
        assert_eq!(hints.try_recv().unwrap().hint, Hint::Bot(id));
        world.set_status(id, BotStatus::Expired, Some("session timeout")).await;
        assert_eq!(bots.reconnect(&ann, id).await.unwrap_err().code(), ErrorCode::Conflict);
        let bot = bots.get(&ann, id).await.unwrap();
        assert_eq!(bot.status, BotStatus::Expired);
        assert!(!bot.can_send);
        assert!(hints.try_recv().is_err());
    }
}
