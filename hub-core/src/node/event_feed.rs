//! Feed of the events of a user's bots, plugins and apps, for the clients of that user.
//!
//! A feed is a position in the events of this node ([`crate::events`]): nothing is buffered per client, so that one
//! that does not read costs only a position. An event carries ids and states, and the client reads what it shows. A
//! feed begins with a [`FeedItem::Hello`]. When events may be missing, because the client was away for too long, reads
//! too slowly, continues on another node, or because a node did not pass its events on, the feed reports it, and the
//! client reads its lists again.
//!
//! A client sees the events of its own bots, plugins and apps, an administrator on request those of all users.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use tokio::sync::watch;

use crate::{
    access::Actor,
    context::Context,
    error::{Error, Result},
    events::{Audience, Event, EventKind, Facts, Page},
    id::{BotId, UserId},
    node::connection_slots::ConnectionSlot,
};

/// Event streams of a user on a node.
pub const MAX_STREAMS_PER_USER: usize = 8;
/// Event streams on a node.
pub const MAX_STREAMS: usize = 1_000;
/// Bots that a client may name.
pub const MAX_BOTS: usize = 100;

/// Events that a client follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Only events of these bots; empty for all events.
    pub bots: Vec<BotId>,
    /// Only these kinds; empty for all.
    pub kinds: Vec<EventKind>,
    /// The id of the last event that the client has.
    pub after: Option<String>,
    /// Events of all users, for an administrator.
    pub of_everyone: bool,
}

/// Item of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedItem {
    /// Start of the feed; sent once.
    Hello {
        /// The feed continues after this event.
        id: String,
        /// Whether the event that the client named is too old or unknown.
        resync: bool,
    },
    /// Events may be missing.
    Resync {
        /// The feed continues after this event.
        id: String,
    },
    /// An event.
    Event {
        /// Its id.
        id: String,
        /// Ids and state.
        facts: Box<Facts>,
    },
}

/// The events of a client, from a position on.
#[derive(Debug)]
pub struct EventFeed {
    ctx: Arc<Context>,
    /// `None` for the events of all users.
    owner: Option<UserId>,
    query: EventQuery,
    series: u64,
    position: u64,
    newest: watch::Receiver<u64>,
    hello: Option<FeedItem>,
    _slot: Option<ConnectionSlot>,
}

impl EventFeed {
    /// Opens a feed.
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client and an app, and for the things of all users unless the caller is an
    /// administrator; `NOT_FOUND` for a bot of another user; `INVALID_PARAMS` for more than [`MAX_BOTS`] bots;
    /// `RATE_LIMITED` when the user has [`MAX_STREAMS_PER_USER`] on this node, or the node [`MAX_STREAMS`].
    pub(crate) async fn open(ctx: Arc<Context>, actor: &Actor, query: EventQuery) -> Result<Self> {
        if query.of_everyone {
            actor.admin()?;
        }
        let scope = if query.of_everyone { actor.reviewing_scope()? } else { actor.scope()? };
        if query.bots.len() > MAX_BOTS {
            return Err(Error::invalid("bot_id", format!("at most {MAX_BOTS} bots")));
        }
        let slot = match actor.user() {
            Ok(user) => {
                let take = ctx.node.stream_slots.take_one(
                    "event streams",
                    user.user_id,
                    MAX_STREAMS_PER_USER,
                    MAX_STREAMS,
                );
                Some(take?)
            }
            Err(_) => None,
        };
        let mut feed = Self {
            owner: scope.owner(),
            series: ctx.node.events.series(&ctx.random),
            position: 0,
            newest: ctx.node.events.newest(),
            hello: None,
            _slot: slot,
            ctx,
            query,
        };
        let named = feed.query.bots.iter().copied().collect();
        let owners = feed.ctx.node.bot_owners.of(&feed.ctx.store, named).await?;
        let is_hidden = |bot| owners.get(bot).is_none_or(|owner| !feed.is_visible(Some(*owner)));
        if feed.query.bots.iter().any(is_hidden) {
            return Err(Error::not_found("bot"));
        }
        feed.start();
        Ok(feed)
    }

    /// Finds the position to start at.
    fn start(&mut self) {
        let after = self.query.after.as_deref();
        let known = after.and_then(|after| self.parse(after)).filter(|position| {
            // The place of the oldest event is known, too: everything after it is kept.
            matches!(self.ctx.node.events.after(*position), Page::Events(_))
        });
        self.position = known.unwrap_or(*self.newest.borrow());
        let resync = after.is_some() && known.is_none();
        self.hello = Some(FeedItem::Hello { id: self.id(self.position), resync });
    }

    /// The id of the last event that was given out or passed over: a client that continues after it misses nothing.
    pub fn position(&self) -> String {
        self.id(self.position)
    }

    /// The next items, at least one. May be cancelled.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the store cannot be read; the position stays.
    pub async fn next(&mut self) -> Result<VecDeque<FeedItem>> {
        if let Some(hello) = self.hello.take() {
            return Ok([hello].into());
        }
        loop {
            self.newest.mark_unchanged();
            match self.ctx.node.events.after(self.position) {
                Page::Gone(newest) => {
                    self.position = newest;
                    return Ok([FeedItem::Resync { id: self.id(newest) }].into());
                }
                Page::Events(events) => {
                    let Some((last, _)) = events.last() else {
                        // The sender is in the bus, which this keeps.
                        let _ = self.newest.changed().await;
                        continue;
                    };
                    let last = *last;
                    let items = self.visible(events).await?;
                    self.position = last;
                    if !items.is_empty() {
                        return Ok(items);
                    }
                }
            }
        }
    }

    /// The events that the client follows and may see.
    async fn visible(&self, events: Vec<(u64, Event)>) -> Result<VecDeque<FeedItem>> {
        let EventQuery { bots, kinds, .. } = &self.query;
        let facts = events.into_iter().map(|(number, event)| (number, Facts::from(event)));
        let facts: Vec<_> = facts
            .filter(|(_, facts)| kinds.is_empty() || kinds.contains(&facts.kind))
            .filter(|(_, facts)| bots.is_empty() || facts.bot_id.is_some_and(|bot| bots.contains(&bot)))
            .collect();
        let of_bots = facts.iter().filter_map(|(_, facts)| match facts.audience {
            Audience::Bot(bot) => Some(bot),
            Audience::User(_) => None,
        });
        let owners = match self.owner {
            Some(_) => self.ctx.node.bot_owners.of(&self.ctx.store, of_bots.collect()).await?,
            None => HashMap::default(),
        };
        let is_visible = |facts: &Facts| match facts.audience {
            Audience::Bot(bot) => self.is_visible(owners.get(&bot).copied()),
            Audience::User(user) => self.is_visible(Some(user)),
        };
        let items = facts.into_iter().filter(|(_, facts)| is_visible(facts));
        Ok(items
            .map(|(number, facts)| FeedItem::Event { id: self.id(number), facts: Box::new(facts) })
            .collect())
    }

    fn is_visible(&self, owner: Option<UserId>) -> bool {
        self.owner.is_none_or(|own| owner == Some(own))
    }

    fn id(&self, number: u64) -> String {
        format!("{:016x}-{number}", self.series)
    }

    /// The number in an id of this node and process.
    fn parse(&self, id: &str) -> Option<u64> {
        let (series, number) = id.split_once('-')?;
        (series == format!("{:016x}", self.series)).then(|| number.parse().ok())?
    }
}

#[cfg(test)]
#[path = "event_feed_tests.rs"]
mod tests;
