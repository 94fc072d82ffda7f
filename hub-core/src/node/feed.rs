//! State that the clients of one channel on this node share.

use std::{collections::VecDeque, sync::Arc};

use tokio::sync::watch;

use crate::{
    error::{Error, ErrorCode},
    id::{BotId, ChannelId},
    model::{
        bot::BotStatus,
        sinks::{IlinkSettings, WebSocketSettings},
        user::UserStatus,
    },
    node::{channel_listeners::ListenerKind, log_entry::LogEntry},
    secret::KeyMark,
    store::log::PulseRow,
    time::Timestamp,
};

/// Maximum number of entries kept.
pub(crate) const MAX_RECENT: usize = 64;
/// Maximum size of the entries kept, in bytes.
const MAX_RECENT_BYTES: usize = 256 * 1024;

/// One channel with clients.
#[derive(Debug)]
pub(crate) struct Feed {
    pub channel_id: ChannelId,
    pub bot_id: BotId,
    pub head: watch::Sender<Head>,
    /// Held while the newest page is read, so that one client reads it for all.
    pub recent: tokio::sync::Mutex<Recent>,
}

/// The end of the log, and the state of the channel.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    pub seq: i64,
    /// Number up to which clients have acknowledged, as stored; `None` while none ever acknowledged.
    pub acked: Option<i64>,
    pub state: Arc<ChannelState>,
}

/// State of a channel, as needed by its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelState {
    /// Its name.
    pub name: String,
    /// Status of its bot.
    pub bot_status: BotStatus,
    /// Its WebSocket sink.
    pub websocket: WebSocketSettings,
    /// Whether the channel and its owner are switched on.
    pub(crate) open: bool,
    /// Valid keys; none when the channel is gone.
    pub(crate) keys: Vec<KeyMark>,
    /// Valid tokens of iLink clients; none while that sink is switched off.
    pub(crate) ilink_tokens: Vec<KeyMark>,
}

/// Reason why a client was disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Its key was replaced, or the channel is gone.
    Revoked,
    /// The channel or its owner was switched off.
    Off,
    /// The WebSocket sink was switched off.
    SinkOff,
    /// The owner closed the connection.
    Closed,
}

impl Ended {
    /// Returns a human-readable reason.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Revoked => "the channel key is unknown or was replaced",
            Self::Off => "the channel is switched off",
            Self::SinkOff => "the channel's WebSocket sink is switched off",
            Self::Closed => "the owner of the channel closed the connection",
        }
    }
}

impl From<Ended> for Error {
    fn from(ended: Ended) -> Self {
        let code = match ended {
            Ended::Revoked => ErrorCode::InvalidToken,
            Ended::Off | Ended::SinkOff | Ended::Closed => ErrorCode::Forbidden,
        };
        Self::new(code, ended.reason())
    }
}

impl Default for ChannelState {
    /// A channel that is gone.
    fn default() -> Self {
        Self {
            name: String::new(),
            bot_status: BotStatus::Pending,
            websocket: WebSocketSettings::default(),
            open: false,
            keys: Vec::new(),
            ilink_tokens: Vec::new(),
        }
    }
}

impl ChannelState {
    fn of(pulse: &PulseRow, now: Timestamp) -> Self {
        let old = pulse.old_key_until.filter(|until| now < *until);
        let old = old.and(pulse.old_key_hash.as_ref());
        let ilink = serde_json::from_str::<IlinkSettings>(&pulse.ilink);
        let has_ilink = ilink.is_ok_and(|ilink| ilink.enabled);
        Self {
            name: pulse.name.clone(),
            bot_status: pulse.bot_status,
            // What no longer parses is off, not open.
            websocket: serde_json::from_str(&pulse.websocket)
                .unwrap_or(WebSocketSettings { enabled: false, ..WebSocketSettings::default() }),
            open: pulse.enabled && pulse.owner_status == UserStatus::Active,
            keys: [Some(&pulse.key_hash), old]
                .into_iter()
                .flatten()
                .map(|hash| KeyMark::of(hash.as_str()))
                .collect(),
            ilink_tokens: if has_ilink {
                pulse.ilink_tokens.iter().map(|hash| KeyMark::of(hash)).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// Returns the reason why the holder of a key or token may not be a client any more; a poll does not need the
    /// WebSocket sink.
    pub(crate) fn ended(&self, key: KeyMark, kind: ListenerKind) -> Option<Ended> {
        let valid = if kind == ListenerKind::Ilink { &self.ilink_tokens } else { &self.keys };
        if !valid.contains(&key) {
            Some(Ended::Revoked)
        } else if !self.open {
            Some(Ended::Off)
        } else if kind == ListenerKind::Socket && !self.websocket.enabled {
            Some(Ended::SinkOff)
        } else {
            None
        }
    }
}

impl Feed {
    pub(crate) fn new(channel_id: ChannelId, bot_id: BotId) -> Self {
        Self { channel_id, bot_id, head: watch::Sender::default(), recent: tokio::sync::Mutex::default() }
    }

    /// Adds a committed entry. It is left out if the previous one is missing, or while a client reads a page; clients
    /// then read it from the store.
    pub(crate) fn add(&self, entry: LogEntry) {
        if let Ok(mut recent) = self.recent.try_lock() {
            recent.add(Arc::new(entry));
        }
    }

    /// Advances the head to a committed number.
    pub(crate) fn advance(&self, seq: i64) {
        self.head.send_if_modified(|head| {
            let more = seq > head.seq;
            head.seq = head.seq.max(seq);
            more
        });
    }

    /// Updates the stored acknowledgement.
    pub(crate) fn note_acked(&self, seq: i64) {
        self.head.send_if_modified(|head| {
            head.acked = head.acked.max(Some(seq));
            false
        });
    }

    /// Updates the head and the state from the store; `None` when it does not have the channel.
    pub(crate) fn refresh(&self, pulse: Option<&PulseRow>, now: Timestamp) {
        let state = pulse.map(|pulse| ChannelState::of(pulse, now)).unwrap_or_default();
        self.head.send_if_modified(|head| {
            let mut news = false;
            if let Some(pulse) = pulse {
                news = pulse.last_seq > head.seq;
                head.seq = head.seq.max(pulse.last_seq);
                head.acked = head.acked.max(pulse.acked());
            }
            if *head.state != state {
                head.state = Arc::new(state);
                news = true;
            }
            news
        });
    }
}

/// The newest entries that were committed here or read by a client: those after `from`, up to `to`.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    from: i64,
    to: i64,
    entries: VecDeque<Arc<LogEntry>>,
    bytes: usize,
}

impl Recent {
    /// Returns the entries after a position if all of them are here and fresh.
    pub(crate) fn after(&self, position: i64, limit: usize, now: Timestamp) -> Option<Vec<Arc<LogEntry>>> {
        if position < self.from || self.to <= position {
            return None;
        }
        let start = self.entries.partition_point(|entry| entry.seq <= position);
        let following = self.entries.iter().skip(start).take(limit);
        following.map(|entry| entry.is_fresh(now).then(|| Arc::clone(entry))).collect()
    }

    /// Returns the position of the last entry.
    pub(crate) const fn end(&self) -> i64 {
        self.to
    }

    /// Adds the newest entry of the log.
    fn add(&mut self, entry: Arc<LogEntry>) {
        let position = entry.seq - 1;
        if self.to == position || self.entries.is_empty() && self.to < position {
            self.extend(position, &[entry]);
        }
    }

    /// Adds a page that follows a position; older entries are dropped if they do not reach up to it.
    pub(crate) fn extend(&mut self, position: i64, page: &[Arc<LogEntry>]) {
        let Some(last) = page.last() else { return };
        if position != self.to {
            *self = Self { from: position, to: position, ..Self::default() };
        }
        self.to = last.seq;
        for entry in page {
            self.bytes += entry.data().len();
            self.entries.push_back(Arc::clone(entry));
        }
        while self.entries.len() > MAX_RECENT || self.bytes > MAX_RECENT_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.from = oldest.seq;
            self.bytes -= oldest.data().len();
        }
    }
}
