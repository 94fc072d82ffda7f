//! What happens in a hub, for programs that embed it. A convenience: the store is the truth, and a listener
//! that lags behind loses events, never messages.

use tokio::sync::broadcast;

use crate::{
    bots::BotStatus,
    id::{BotId, MessageId, TraceId},
    traces::TraceStatus,
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
    /// A trace came to an end, or to its next attempt.
    Trace {
        /// The bot.
        bot_id: BotId,
        /// The trace.
        trace_id: TraceId,
        /// How it stands.
        status: TraceStatus,
    },
    /// A bot's status changed.
    Bot {
        /// The bot.
        bot_id: BotId,
        /// The new status.
        status: BotStatus,
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

/// The bus. It keeps the last 1,024 events for slow listeners.
#[derive(Debug, Clone)]
pub struct Events(broadcast::Sender<Event>);

impl Events {
    /// A bus without listeners.
    pub fn new() -> Self {
        Self(broadcast::Sender::new(1024))
    }

    /// Tells everybody who listens.
    pub fn tell(&self, event: Event) {
        let _ = self.0.send(event);
    }

    /// Hears every event from now on.
    pub fn listen(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}
