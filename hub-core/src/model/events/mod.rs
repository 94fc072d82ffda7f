//! Events of a hub, for programs that embed it and for clients that follow it. The store is authoritative: a listener
//! that lags loses events, never messages.
//!
//! Every event has a number on this node. The newest 4,096 are kept, so that a client can continue after its
//! connection broke ([`crate::event_feed`]). Events of other nodes of the same database are added to them. If events
//! of other nodes may have been lost, every client starts over ([`Events::forget`]).

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};

use crate::{
    id::{AppId, BotId, ChannelId, MessageId, PluginId, TraceId, UserId},
    model::{app::Listing, bot::BotStatus, plugin::VersionState, revocation::Revoked, trace::TraceStatus},
    random::Random,
    words::words,
};

mod facts;
mod ring;
mod wire;

pub use facts::{Audience, Facts};
pub(crate) use ring::Page;
use ring::Ring;
pub(crate) use wire::{Batch, parse};

words! {
    /// What an event is about.
    #[derive(Hash)]
    pub enum EventKind {
        /// A message was received.
        Message = "message",
        /// A delivery of a message ended, or has its next attempt.
        Trace = "trace",
        /// A message was sent, or will not be sent.
        Sent = "sent",
        /// A file of a message is available, or will not be.
        Media = "media",
        /// A bot was bound, deleted or renamed, or its status changed.
        Bot = "bot",
        /// Plugins of a channel changed.
        Plugin = "plugin",
        /// A version of a plugin, or the listing of an app, was submitted for a review or reviewed.
        Review = "review",
        /// Apps on a bot changed.
        App = "app",
    }
}

words! {
    /// How the things on a bot or in a channel changed.
    pub enum Changed {
        /// It was installed, or changed.
        Installed = "installed",
        /// It was removed.
        Removed = "removed",
    }
}

/// An event; its changes are committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
#[non_exhaustive]
pub enum Event {
    /// A message was received.
    Message {
        /// The bot that received it.
        bot_id: BotId,
        /// The message.
        message_id: MessageId,
    },
    /// A delivery ended, or has a next attempt. Its trace stays open while another sink is not done.
    Trace {
        /// The bot.
        bot_id: BotId,
        /// The trace.
        trace_id: TraceId,
        /// State of the delivery.
        status: TraceStatus,
    },
    /// A file of a message is available, or will not be.
    Media {
        /// The bot that received it.
        bot_id: BotId,
        /// The message.
        message_id: MessageId,
    },
    /// A bot was bound, or its status or name changed.
    Bot {
        /// The bot.
        bot_id: BotId,
        /// Its status.
        status: BotStatus,
    },
    /// A bot was deleted.
    BotRemoved {
        /// The bot.
        bot_id: BotId,
        /// Its owner.
        owner_id: UserId,
    },
    /// The hub stopped a plugin in a channel: its runs did not end by themselves.
    PluginPaused {
        /// The bot.
        bot_id: BotId,
        /// The channel.
        channel_id: ChannelId,
        /// The plugin.
        plugin_id: PluginId,
    },
    /// A plugin was installed into a channel, changed there, or removed.
    Plugin {
        /// The bot.
        bot_id: BotId,
        /// The channel.
        channel_id: ChannelId,
        /// The plugin.
        plugin_id: PluginId,
        /// Kind of the change.
        change: Changed,
    },
    /// An app was installed on a bot, changed there, or removed.
    App {
        /// The bot.
        bot_id: BotId,
        /// The app.
        app_id: AppId,
        /// Kind of the change.
        change: Changed,
    },
    /// A version of a plugin waits for its review, or was reviewed.
    PluginReview {
        /// The author of the plugin.
        owner_id: UserId,
        /// The plugin.
        plugin_id: PluginId,
        /// State of the version.
        state: VersionState,
    },
    /// The listing of an app changed.
    AppReview {
        /// The author of the app.
        owner_id: UserId,
        /// The app.
        app_id: AppId,
        /// State of the listing.
        state: Listing,
    },
    /// A message was sent to a person, or will not be sent.
    Sent {
        /// The bot that sent it.
        bot_id: BotId,
        /// The message.
        message_id: MessageId,
        /// Status word of the item.
        status: Cow<'static, str>,
    },
}

/// The event bus. It keeps the last 1,024 events, and as many revocations, for slow listeners, and the last 4,096
/// events for clients that continue.
#[derive(Debug, Clone)]
pub struct Events {
    recent: broadcast::Sender<Event>,
    /// For other nodes; `None` means that events were lost.
    outgoing: broadcast::Sender<Option<Event>>,
    revocations: broadcast::Sender<Revoked>,
    ring: Arc<Ring>,
    /// Identifies this node's numbers: those of another node, or of an earlier process, are different ones.
    series: Arc<OnceLock<u64>>,
}

impl Events {
    /// A bus without listeners.
    pub fn new() -> Self {
        Self {
            recent: broadcast::Sender::new(1024),
            outgoing: broadcast::Sender::new(1024),
            revocations: broadcast::Sender::new(1024),
            ring: Arc::default(),
            series: Arc::default(),
        }
    }

    /// Notifies all listeners, on every node.
    pub fn notify(&self, event: Event) {
        let _ = self.outgoing.send(Some(event.clone()));
        self.relay(event);
    }

    /// Notifies the listeners of this node about an event of another.
    pub(crate) fn relay(&self, event: Event) {
        self.ring.add(event.clone());
        let _ = self.recent.send(event);
    }

    /// Removes the kept events, because an event of another node may have been lost: every client of this node starts
    /// over.
    pub(crate) fn forget(&self) {
        self.ring.forget();
    }

    /// As [`forget`](Self::forget), on every node.
    pub(crate) fn forget_everywhere(&self) {
        let _ = self.outgoing.send(None);
        self.forget();
    }

    /// Subscribes to all events.
    pub fn listen(&self) -> broadcast::Receiver<Event> {
        self.recent.subscribe()
    }

    /// Subscribes to the events that this node sends to others; `None` means that events were lost.
    pub(crate) fn outgoing(&self) -> broadcast::Receiver<Option<Event>> {
        self.outgoing.subscribe()
    }

    /// Returns the events after a number, at most a page.
    pub(crate) fn after(&self, position: u64) -> Page {
        self.ring.after(position)
    }

    /// Subscribes to the newest number.
    pub(crate) fn newest(&self) -> watch::Receiver<u64> {
        self.ring.newest()
    }

    /// Identifies the numbers of this node and process.
    pub(crate) fn series(&self, random: &Random) -> u64 {
        *self.series.get_or_init(|| u64::from_be_bytes(random.bytes()))
    }

    /// Notifies the listeners of this node of a revocation;
    /// [`Context::notify_revoked`](crate::context::Context::notify_revoked) also notifies other nodes.
    pub fn revoke(&self, revoked: Revoked) {
        let _ = self.revocations.send(revoked);
    }

    /// Subscribes to all revocations; see [`crate::revocation`].
    pub fn revocations(&self) -> broadcast::Receiver<Revoked> {
        self.revocations.subscribe()
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}
