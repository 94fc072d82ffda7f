//! Wakes the workers of this node and of others.

use tokio::sync::broadcast;

use crate::id::{BotId, ChannelId};

/// Tells the workers that the store has something new. A hint only: polling finds everything without it, so
/// a lost hint costs a second, never a message.
#[derive(Debug, Clone)]
pub struct Wake(broadcast::Sender<ReceivedHint>);

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hint {
    /// A bot was bound, or its login or wanted state changed.
    Bot(BotId),
    /// A bot's outbox has a new row.
    Outbox(BotId),
    /// A bot's deliveries have a new row that no node holds.
    Delivery(BotId),
    /// Something was ended: look at the revocations.
    Revoked,
    /// A bot has files to be fetched again.
    Media(BotId),
    /// A channel's log has a new entry; for nodes that have clients of it.
    Log(ChannelId),
    /// There is something to tell apps.
    AppEvents,
    /// This node has a first client of a channel.
    Listening(ChannelId),
    /// Leases are to be renewed: a node released its own, or the shared clock was set.
    Released,
}

/// A hint, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedHint {
    /// The hint.
    pub hint: Hint,
    /// Whether another node gave it: such a hint is not passed on again.
    pub remote: bool,
}

impl Wake {
    /// A bus that keeps the last 1,024 hints; who lags behind looks at everything.
    pub fn new() -> Self {
        Self(broadcast::Sender::new(1024))
    }

    /// Gives a hint of this node; without listeners it is lost, which is fine.
    pub fn hint(&self, hint: Hint) {
        let _ = self.0.send(ReceivedHint { hint, remote: false });
    }

    /// Repeats a hint of another node.
    pub fn relay(&self, hint: Hint) {
        let _ = self.0.send(ReceivedHint { hint, remote: true });
    }

    /// Hears every hint from now on.
    pub fn listen(&self) -> broadcast::Receiver<ReceivedHint> {
        self.0.subscribe()
    }
}

impl Default for Wake {
    fn default() -> Self {
        Self::new()
    }
}

/// The form in which nodes tell each other: `bot:bot_01…`, `outbox:…`, `log:ch_01…`, `revoked`.
impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bot(id) => write!(f, "bot:{id}"),
            Self::Outbox(id) => write!(f, "outbox:{id}"),
            Self::Delivery(id) => write!(f, "delivery:{id}"),
            Self::Revoked => f.write_str("revoked"),
            Self::Media(id) => write!(f, "media:{id}"),
            Self::Log(id) => write!(f, "log:{id}"),
            Self::AppEvents => f.write_str("apps"),
            Self::Listening(id) => write!(f, "listening:{id}"),
            Self::Released => f.write_str("released"),
        }
    }
}

impl Hint {
    /// Reads the printed form; `None` for what another version may say.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "revoked" => return Some(Self::Revoked),
            "apps" => return Some(Self::AppEvents),
            "released" => return Some(Self::Released),
            _ => {}
        }
        let (what, id) = text.split_once(':')?;
        match what {
            "media" => Some(Self::Media(id.parse().ok()?)),
            "bot" => Some(Self::Bot(id.parse().ok()?)),
            "outbox" => Some(Self::Outbox(id.parse().ok()?)),
            "delivery" => Some(Self::Delivery(id.parse().ok()?)),
            "log" => Some(Self::Log(id.parse().ok()?)),
            "listening" => Some(Self::Listening(id.parse().ok()?)),
            _ => None,
        }
    }
}
