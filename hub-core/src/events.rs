//! What happens in a hub, for programs that embed it. A convenience: the store is the truth, and a listener
//! that lags behind loses events, never messages.

use tokio::sync::broadcast;

use crate::{
    id::{BotId, ChannelId, MessageId, PluginId, TraceId},
    model::{bot::BotStatus, revocation::Revoked, trace::TraceStatus},
};

/// Something that happened; what it names is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A message came in.
    Message {
        /// The bot that received it.
        bot_id: BotId,
        /// The message.
        message_id: MessageId,
    },
    /// A delivery came to its end, or to its next attempt. Its trace goes on while another sink works on it.
    Trace {
        /// The bot.
        bot_id: BotId,
        /// The trace.
        trace_id: TraceId,
        /// State of the delivery.
        status: TraceStatus,
    },
    /// A file of a message is there, or will not come.
    Media {
        /// The bot that received it.
        bot_id: BotId,
        /// The message.
        message_id: MessageId,
    },
    /// A bot's status changed.
    Bot {
        /// The bot.
        bot_id: BotId,
        /// The new status.
        status: BotStatus,
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
    /// A person got a message, or will not get it.
    Sent {
        /// The bot that sent it.
        bot_id: BotId,
        /// The message.
        message_id: MessageId,
        /// Status word of the item.
        status: &'static str,
    },
}

/// The bus. It keeps the last 1,024 events, and as many revocations, for slow listeners.
#[derive(Debug, Clone)]
pub struct Events {
    events: broadcast::Sender<Event>,
    revocations: broadcast::Sender<Revoked>,
}

impl Events {
    /// A bus without listeners.
    pub fn new() -> Self {
        Self { events: broadcast::Sender::new(1024), revocations: broadcast::Sender::new(1024) }
    }

    /// Notifies all listeners.
    pub fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }

    /// Hears every event from now on.
    pub fn listen(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Tells that something was ended; [`Context::tell_revoked`](crate::context::Context::tell_revoked) also tells
    /// other nodes.
    pub fn revoke(&self, revoked: Revoked) {
        let _ = self.revocations.send(revoked);
    }

    /// Hears every revocation from now on; see [`crate::revocation`].
    pub fn revocations(&self) -> broadcast::Receiver<Revoked> {
        self.revocations.subscribe()
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}
