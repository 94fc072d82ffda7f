//! One client: a position in a channel's log.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{
    access::ChannelActor,
    context::Context,
    error::{Error, Result},
    id::{BotId, ChannelId},
    model::{bot::BotStatus, session::ClientInfo},
    node::{
        channel_listeners::{ChannelListeners, ListenerKind, ListenerSlot},
        connected_client::ConnectedClient,
        feed::{ChannelState, Ended, Feed, Head},
        log_entry::LogEntry,
        log_reader::LogReader,
    },
    secret::KeyMark,
    store::{Store, log::Ack},
};

/// Follows a channel's log. Reads nothing until [`Listener::read`] is called.
#[derive(Debug)]
pub struct Listener {
    listeners: ChannelListeners,
    store: Store,
    feed: Arc<Feed>,
    head: watch::Receiver<Head>,
    reader: Arc<LogReader>,
    /// Everything up to this number was given out.
    position: i64,
    /// Whether it was at the log's end before.
    was_at_end: bool,
    sent_state: Arc<ChannelState>,
    key: KeyMark,
    kind: ListenerKind,
    /// Its entry in the list of sockets; `None` for a poll.
    connected: Option<Arc<ConnectedClient>>,
    _slot: ListenerSlot,
}

/// A client's start in the log. A channel's position counts once a client has acknowledged a number or announced
/// that it will.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// After this number; a number beyond the log's end is the end.
    After(i64),
    /// After the last acknowledged number; at the oldest message if the position does not count.
    Acknowledged,
    /// After the last acknowledged number; with the next message if the position does not count.
    #[default]
    Unspecified,
}

/// An item of a page.
#[derive(Debug, Clone)]
pub enum Item {
    /// The client lagged behind the entries in memory: these numbers are read from the store.
    Lagged {
        /// The first of them.
        from: i64,
        /// The last of them.
        to: i64,
    },
    /// These numbers are no longer kept.
    Gone {
        /// The first of them.
        from: i64,
        /// The last of them.
        to: i64,
    },
    /// The next message.
    Message(Arc<LogEntry>),
}

/// An event of a channel other than a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The client may no longer listen, for this reason.
    Ended(Ended),
    /// The status of the bot changed to this one.
    Status(BotStatus),
    /// The name or the settings changed.
    Settings,
}

impl Listener {
    pub(super) async fn attach(
        ctx: &Context,
        client: &ChannelActor,
        kind: ListenerKind,
        start: Start,
        described: ClientInfo,
    ) -> Result<Self> {
        if matches!(start, Start::After(since) if since < 0) {
            return Err(Error::invalid("since", "must be 0 or more"));
        }
        let is_socket = kind == ListenerKind::Socket;
        let connected =
            is_socket.then(|| Arc::new(ConnectedClient::new(ctx.ids.next(), described, ctx.store.now())));
        let (feed, slot) = ctx.node.channel_listeners.enter(
            client,
            connected.clone(),
            &ctx.node.socket_slots,
            &ctx.config,
        )?;
        let pulses = ctx.store.read().await?.log().pulses(&[client.channel_id]).await?;
        feed.refresh(pulses.first(), ctx.store.now());
        let mut head = feed.head.subscribe();
        let now = head.borrow_and_update().clone();
        if let Some(ended) = now.state.ended(client.key, kind) {
            return Err(ended.into());
        }
        let acked = now.acked.max(ctx.node.channel_listeners.unstored_ack(client.channel_id));
        let position = match start {
            Start::After(since) => since,
            Start::Unspecified => acked.unwrap_or(now.seq),
            Start::Acknowledged => acked.unwrap_or(0),
        };
        let reader = || {
            let limits = ctx.config.media.clone();
            LogReader::new(ctx.store.clone(), ctx.sealer.clone(), ctx.media.clone(), limits)
        };
        let position = position.min(now.seq);
        if let Some(connected) = &connected {
            connected.set_sent(position);
        }
        Ok(Self {
            reader: ctx.node.channel_listeners.reader(reader),
            listeners: ctx.node.channel_listeners.clone(),
            store: ctx.store.clone(),
            feed,
            head,
            position,
            was_at_end: false,
            sent_state: now.state,
            key: client.key,
            kind,
            connected,
            _slot: slot,
        })
    }

    /// The channel.
    pub fn channel_id(&self) -> ChannelId {
        self.feed.channel_id
    }

    /// Its bot.
    pub fn bot_id(&self) -> BotId {
        self.feed.bot_id
    }

    /// State of the channel, as last sent to the client.
    pub fn state(&self) -> &ChannelState {
        &self.sent_state
    }

    /// Everything up to this number was given out.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// The newest number of the log, as far as is known.
    pub fn newest(&self) -> i64 {
        self.head.borrow().seq
    }

    /// Whether there is something to read.
    pub fn is_behind(&self) -> bool {
        self.newest() > self.position
    }

    /// Returns the next event other than a message; `None` when there are no further ones.
    pub fn news(&mut self) -> Option<News> {
        if self.connected.as_ref().is_some_and(|connected| connected.closed.is_cancelled()) {
            return Some(News::Ended(Ended::Closed));
        }
        let now = Arc::clone(&self.head.borrow_and_update().state);
        if Arc::ptr_eq(&now, &self.sent_state) {
            return None;
        }
        if let Some(ended) = now.ended(self.key, self.kind) {
            return Some(News::Ended(ended));
        }
        if now.bot_status != self.sent_state.bot_status {
            // The rest follows.
            self.sent_state =
                Arc::new(ChannelState { bot_status: now.bot_status, ..(*self.sent_state).clone() });
            return Some(News::Status(now.bot_status));
        }
        let same = now.name == self.sent_state.name && now.websocket == self.sent_state.websocket;
        self.sent_state = now;
        (!same).then_some(News::Settings)
    }

    #[cfg(test)]
    pub(super) fn head_changed(&self) -> bool {
        self.head.has_changed().unwrap_or(true)
    }

    /// Waits until there may be something to read or news. May be cancelled.
    pub async fn changed(&mut self) {
        let Some(connected) = &self.connected else {
            // The sender lives in the feed, which this holds.
            let _ = self.head.changed().await;
            return;
        };
        tokio::select! {
            _ = self.head.changed() => {}
            () = connected.closed.cancelled() => {}
        }
    }

    /// Reads the next page: up to `limit` messages, oldest first. Gaps in their numbers are reported as items.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the store cannot be read; the position does not change.
    pub async fn read(&mut self, limit: usize) -> Result<Vec<Item>> {
        let newest = self.newest();
        let page = self.reader.page(&self.feed, self.position, newest, limit).await?;
        let mut items = Vec::with_capacity(page.entries.len() + 1);
        if self.was_at_end && !page.at_the_end {
            self.was_at_end = false;
            items.push(Item::Lagged { from: self.position + 1, to: newest });
        }
        if page.entries.is_empty() && self.position < newest {
            items.push(Item::Gone { from: self.position + 1, to: newest });
            self.position = newest;
        }
        for entry in page.entries {
            if entry.seq > self.position + 1 {
                items.push(Item::Gone { from: self.position + 1, to: entry.seq - 1 });
            }
            self.position = entry.seq;
            items.push(Item::Message(entry));
        }
        self.was_at_end |= self.position >= newest;
        if let Some(connected) = &self.connected {
            connected.set_sent(self.position);
        }
        Ok(items)
    }

    /// Acknowledges everything up to a number: clients of the channel that name no start continue after it. The first
    /// acknowledgement of a channel is stored before this returns, later ones within a second; if the process ends
    /// before that, messages are repeated and none is lost.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for a negative number or one beyond the newest message; `UNAVAILABLE` when the first
    /// acknowledgement cannot be stored.
    pub async fn acknowledge(&self, seq: i64) -> Result<()> {
        let (newest, acked) = {
            let head = self.head.borrow();
            (head.seq, head.acked)
        };
        if !(0..=newest).contains(&seq) {
            return Err(Error::invalid("seq", format!("must be from 0 to {newest}")));
        }
        if let Some(connected) = &self.connected {
            connected.acknowledge(seq);
        }
        if acked.is_none() {
            self.store_first_ack(seq).await?;
        } else if acked < Some(seq) {
            self.listeners.acknowledge(self.feed.channel_id, seq);
        }
        Ok(())
    }

    /// Makes the channel's position count, for a client that will acknowledge: from then on, clients that name no start
    /// continue after the last acknowledged number, or at the oldest message if there is none.
    ///
    /// # Errors
    /// `UNAVAILABLE` when that cannot be stored.
    pub async fn keep_position(&self) -> Result<()> {
        let is_kept = self.head.borrow().acked.is_some();
        if is_kept { Ok(()) } else { self.store_first_ack(0).await }
    }

    async fn store_first_ack(&self, seq: i64) -> Result<()> {
        let ack = Ack { channel: self.feed.channel_id, seq };
        self.store.write(move |tx| Box::pin(async move { tx.log().acknowledge(&[ack]).await })).await?;
        self.feed.note_acked(seq);
        Ok(())
    }
}
