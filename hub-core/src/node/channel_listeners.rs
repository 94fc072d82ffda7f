//! Clients of channels on this node, and how commits reach them.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
};

use tokio::sync::Notify;

use crate::{
    access::ChannelActor,
    config::HubConfig,
    error::Result,
    id::{BotId, ChannelId},
    node::{
        LogEntry,
        connected_client::ConnectedClient,
        connection_slots::{ConnectionSlot, ConnectionSlots, too_many},
        feed::Feed,
        log_reader::LogReader,
    },
    store::log::{Ack, Listening},
};

/// Kinds of connections through which clients listen to a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerKind {
    /// A WebSocket, until it is closed.
    Socket,
    /// One long poll.
    Poll,
    /// One long poll of the iLink protocol.
    Ilink,
}

/// The clients of all channels on this node.
#[derive(Clone, Default)]
pub struct ChannelListeners(Arc<Shared>);

#[derive(Default)]
struct Shared {
    open: Mutex<Open>,
    /// Acknowledged and not stored yet.
    acks: Mutex<HashMap<ChannelId, i64>>,
    /// Channels with unspecified changes in the store.
    stale: Mutex<HashSet<ChannelId>>,
    /// Sockets on other nodes, as far as is known.
    elsewhere: RwLock<HashMap<ChannelId, u32>>,
    /// Wakes the task that waits in [`ChannelListeners::work`].
    work: Notify,
    reader: OnceLock<Arc<LogReader>>,
}

#[derive(Default)]
struct Open {
    feeds: HashMap<ChannelId, Listened>,
    sockets: usize,
    polls: usize,
    /// Channels without listeners at the last announcement.
    unannounced: HashSet<ChannelId>,
}

struct Listened {
    feed: Arc<Feed>,
    sockets: Vec<Arc<ConnectedClient>>,
    polls: usize,
    /// Polls among these by clients of the iLink sink.
    ilink_polls: usize,
}

impl fmt::Debug for ChannelListeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.open();
        f.debug_struct("ChannelListeners")
            .field("sockets", &open.sockets)
            .field("polls", &open.polls)
            .finish()
    }
}

impl ChannelListeners {
    /// No listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sockets and polls of this node.
    pub fn count(&self) -> (usize, usize) {
        let open = self.open();
        (open.sockets, open.polls)
    }

    /// Sockets on a channel, on all nodes as far as is known.
    pub fn sockets(&self, channel: ChannelId) -> usize {
        let here = self.open().feeds.get(&channel).map_or(0, |listened| listened.sockets.len());
        here + self.sockets_elsewhere(channel) as usize
    }

    /// Sockets on a channel on other nodes, as far as is known.
    pub(crate) fn sockets_elsewhere(&self, channel: ChannelId) -> u32 {
        let elsewhere = self.0.elsewhere.read().unwrap_or_else(PoisonError::into_inner);
        elsewhere.get(&channel).copied().unwrap_or(0)
    }

    /// The newest number of a channel with clients here, and its sockets, oldest first.
    pub(crate) fn connected(&self, channel: ChannelId) -> (i64, Vec<Arc<ConnectedClient>>) {
        let open = self.open();
        let listened = open.feeds.get(&channel);
        listened.map_or_else(Default::default, |one| (one.feed.head.borrow().seq, one.sockets.clone()))
    }

    /// Whether a client of a channel's iLink sink waits here: it reads the tables when it is woken.
    pub(crate) fn has_ilink_polls(&self, channel: ChannelId) -> bool {
        self.open().feeds.get(&channel).is_some_and(|listened| listened.ilink_polls > 0)
    }

    /// Publishes a committed entry: wakes the clients here, and returns whether other nodes have any. Without the
    /// entry, the clients read it from the store.
    pub(crate) fn committed(
        &self,
        channel: ChannelId,
        seq: i64,
        entry: impl FnOnce() -> Option<LogEntry>,
    ) -> bool {
        if let Some(feed) = self.feed(channel) {
            if let Some(entry) = entry() {
                feed.add(entry);
            }
            feed.advance(seq);
        }
        self.0.elsewhere.read().unwrap_or_else(PoisonError::into_inner).contains_key(&channel)
    }

    /// Marks a channel as changed in the store; its clients here are updated after a read. Returns whether other
    /// nodes have any.
    pub(crate) fn refresh(&self, channel: ChannelId) -> bool {
        if self.open().feeds.contains_key(&channel) {
            lock(&self.0.stale).insert(channel);
            self.0.work.notify_one();
        }
        self.0.elsewhere.read().unwrap_or_else(PoisonError::into_inner).contains_key(&channel)
    }

    /// As [`ChannelListeners::refresh`], for all channels of a bot.
    pub(crate) fn refresh_bot(&self, bot: BotId) {
        let channels = self.channels(|feed| feed.bot_id == bot);
        if !channels.is_empty() {
            lock(&self.0.stale).extend(channels);
            self.0.work.notify_one();
        }
    }

    /// Marks all channels with clients here as changed in the store.
    pub(crate) fn refresh_all(&self) {
        lock(&self.0.stale).extend(self.channels(|_| true));
    }

    /// Records that another node has a first client of a channel.
    pub(crate) fn note_message(&self, channel: ChannelId) {
        self.elsewhere_mut().entry(channel).or_insert(1);
    }

    pub(crate) fn set_elsewhere(&self, sockets: HashMap<ChannelId, u32>) {
        *self.elsewhere_mut() = sockets;
    }

    fn elsewhere_mut(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<ChannelId, u32>> {
        self.0.elsewhere.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an acknowledgement up to a number; it is stored within a second.
    pub(crate) fn acknowledge(&self, channel: ChannelId, seq: i64) {
        let mut acks = lock(&self.0.acks);
        let known = acks.entry(channel).or_insert(0);
        *known = (*known).max(seq);
    }

    /// Returns the acknowledged number that may not be stored yet.
    pub(crate) fn unstored_ack(&self, channel: ChannelId) -> Option<i64> {
        lock(&self.0.acks).get(&channel).copied()
    }

    /// Copies the acknowledgements to store; [`ChannelListeners::stored`] removes them.
    pub(crate) fn acks(&self) -> Vec<Ack> {
        lock(&self.0.acks).iter().map(|(&channel, &seq)| Ack { channel, seq }).collect()
    }

    pub(crate) fn stored(&self, acks: &[Ack]) {
        let mut waiting = lock(&self.0.acks);
        for ack in acks {
            if waiting.get(&ack.channel) == Some(&ack.seq) {
                waiting.remove(&ack.channel);
            }
        }
    }

    pub(crate) fn take_stale(&self) -> Vec<ChannelId> {
        lock(&self.0.stale).drain().collect()
    }

    /// Channels that changed since the last announcement.
    pub(crate) fn take_unannounced(&self) -> HashSet<ChannelId> {
        std::mem::take(&mut self.open().unannounced)
    }

    /// Returns the channels with clients here and their numbers of sockets, for other nodes.
    pub(crate) fn listening(&self) -> Vec<Listening> {
        let row = |(&channel, listened): (&ChannelId, &Listened)| Listening {
            channel,
            sockets: u32::try_from(listened.sockets.len()).unwrap_or(u32::MAX),
        };
        self.open().feeds.iter().map(row).collect()
    }

    pub(crate) fn feed(&self, channel: ChannelId) -> Option<Arc<Feed>> {
        self.open().feeds.get(&channel).map(|listened| Arc::clone(&listened.feed))
    }

    /// Whether no client listens, and all acknowledgements are stored.
    pub(crate) fn is_idle(&self) -> bool {
        self.open().feeds.is_empty() && lock(&self.0.acks).is_empty()
    }

    /// Waits until a channel changed or got its first client.
    pub(crate) async fn work(&self) {
        self.0.work.notified().await;
    }

    /// The reader of all clients, created for the first of them.
    pub(crate) fn reader(&self, create: impl FnOnce() -> LogReader) -> Arc<LogReader> {
        Arc::clone(self.0.reader.get_or_init(|| Arc::new(create())))
    }

    fn channels(&self, wanted: impl Fn(&Feed) -> bool) -> Vec<ChannelId> {
        let open = self.open();
        open.feeds
            .values()
            .map(|listened| &listened.feed)
            .filter(|feed| wanted(feed))
            .map(|f| f.channel_id)
            .collect()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        lock(&self.0.open)
    }

    /// Takes a slot at a channel.
    ///
    /// # Errors
    /// `RATE_LIMITED` when there is none.
    pub(crate) fn enter(
        &self,
        client: &ChannelActor,
        socket: Option<Arc<ConnectedClient>>,
        slots: &ConnectionSlots,
        limits: &HubConfig,
    ) -> Result<(Arc<Feed>, ListenerSlot)> {
        let mut open = self.open();
        let listened = open.feeds.get(&client.channel_id);
        let (sockets, polls) = listened.map_or((0, 0), |listened| (listened.sockets.len(), listened.polls));
        let full = match &socket {
            Some(_) if sockets >= limits.max_sockets_per_channel => "WebSockets on this channel",
            // The sink limits its clients, and each to two polls.
            None if client.ilink.is_none() && polls >= limits.max_polls_per_channel => {
                "polls waiting on this channel"
            }
            None if open.polls >= limits.max_polls => "polls waiting on this node",
            _ => "",
        };
        if !full.is_empty() {
            return Err(too_many(full));
        }
        let connection_slot = socket.as_ref().map(|_| slots.take(client.owner_id, limits)).transpose()?;
        let is_new = listened.is_none();
        let listened = open.feeds.entry(client.channel_id).or_insert_with(|| Listened {
            feed: Arc::new(Feed::new(client.channel_id, client.bot_id)),
            sockets: Vec::new(),
            polls: 0,
            ilink_polls: 0,
        });
        let feed = Arc::clone(&listened.feed);
        if let Some(connected) = &socket {
            listened.sockets.push(Arc::clone(connected));
            open.sockets += 1;
        } else {
            listened.polls += 1;
            listened.ilink_polls += usize::from(client.ilink.is_some());
            open.polls += 1;
        }
        if is_new {
            open.unannounced.insert(client.channel_id);
            self.0.work.notify_one();
        }
        let (channel_id, is_ilink) = (client.channel_id, client.ilink.is_some());
        Ok((
            feed,
            ListenerSlot {
                listeners: self.clone(),
                channel_id,
                socket,
                is_ilink,
                _connection_slot: connection_slot,
            },
        ))
    }
}

/// The slot of a client, which is released when it is dropped.
#[derive(Debug)]
pub(crate) struct ListenerSlot {
    listeners: ChannelListeners,
    channel_id: ChannelId,
    /// `None` for a poll.
    socket: Option<Arc<ConnectedClient>>,
    is_ilink: bool,
    _connection_slot: Option<ConnectionSlot>,
}

impl Drop for ListenerSlot {
    fn drop(&mut self) {
        let mut open = self.listeners.open();
        let open = &mut *open;
        let Some(listened) = open.feeds.get_mut(&self.channel_id) else { return };
        if let Some(connected) = &self.socket {
            listened.sockets.retain(|other| other.id != connected.id);
            open.sockets -= 1;
        } else {
            listened.polls -= 1;
            listened.ilink_polls -= usize::from(self.is_ilink);
            open.polls -= 1;
        }
        if listened.sockets.is_empty() && listened.polls == 0 {
            open.feeds.remove(&self.channel_id);
            open.unannounced.remove(&self.channel_id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
