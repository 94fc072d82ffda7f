//! Ids and state of an event, for clients.

use std::borrow::Cow;

use super::{Event, EventKind};
use crate::id::{AppId, BotId, ChannelId, MessageId, PluginId, TraceId, UserId};

/// User who may see an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The owner of a bot.
    Bot(BotId),
    /// A user.
    User(UserId),
}

/// The ids and the state in an event. No contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Kind of the event.
    pub kind: EventKind,
    /// User who may see it.
    pub audience: Audience,
    /// The bot.
    pub bot_id: Option<BotId>,
    /// The channel.
    pub channel_id: Option<ChannelId>,
    /// The message.
    pub message_id: Option<MessageId>,
    /// The trace.
    pub trace_id: Option<TraceId>,
    /// The plugin.
    pub plugin_id: Option<PluginId>,
    /// The app.
    pub app_id: Option<AppId>,
    /// State of the object that the event names.
    pub state: Option<Cow<'static, str>>,
}

impl Facts {
    fn of(kind: EventKind, audience: Audience) -> Self {
        let bot_id = match audience {
            Audience::Bot(id) => Some(id),
            Audience::User(_) => None,
        };
        Self {
            kind,
            audience,
            bot_id,
            channel_id: None,
            message_id: None,
            trace_id: None,
            plugin_id: None,
            app_id: None,
            state: None,
        }
    }

    fn of_bot(kind: EventKind, bot_id: BotId) -> Self {
        Self::of(kind, Audience::Bot(bot_id))
    }

    fn state(self, state: &'static str) -> Self {
        Self { state: Some(state.into()), ..self }
    }
}

impl From<Event> for Facts {
    fn from(event: Event) -> Self {
        use EventKind as Kind;
        match event {
            Event::Message { bot_id, message_id } => {
                Self { message_id: Some(message_id), ..Self::of_bot(Kind::Message, bot_id) }
            }
            Event::Trace { bot_id, trace_id, status } => {
                let trace_id = Some(trace_id);
                Self { trace_id, ..Self::of_bot(Kind::Trace, bot_id) }.state(status.as_str())
            }
            Event::Media { bot_id, message_id } => {
                Self { message_id: Some(message_id), ..Self::of_bot(Kind::Media, bot_id) }
            }
            Event::Sent { bot_id, message_id, status } => {
                let (message_id, state) = (Some(message_id), Some(status));
                Self { message_id, state, ..Self::of_bot(Kind::Sent, bot_id) }
            }
            Event::Bot { bot_id, status } => Self::of_bot(Kind::Bot, bot_id).state(status.as_str()),
            Event::BotRemoved { bot_id, owner_id } => {
                let removed = Self::of(Kind::Bot, Audience::User(owner_id));
                Self { bot_id: Some(bot_id), ..removed }.state("removed")
            }
            Event::PluginPaused { bot_id, channel_id, plugin_id } => {
                Self::of_plugin(bot_id, channel_id, plugin_id).state("paused")
            }
            Event::Plugin { bot_id, channel_id, plugin_id, change } => {
                Self::of_plugin(bot_id, channel_id, plugin_id).state(change.as_str())
            }
            Event::App { bot_id, app_id, change } => {
                let app_id = Some(app_id);
                Self { app_id, ..Self::of_bot(Kind::App, bot_id) }.state(change.as_str())
            }
            Event::PluginReview { owner_id, plugin_id, state } => {
                let review = Self::of(Kind::Review, Audience::User(owner_id));
                Self { plugin_id: Some(plugin_id), ..review }.state(state.as_str())
            }
            Event::AppReview { owner_id, app_id, state } => {
                let review = Self::of(Kind::Review, Audience::User(owner_id));
                Self { app_id: Some(app_id), ..review }.state(state.as_str())
            }
        }
    }
}

impl Facts {
    fn of_plugin(bot_id: BotId, channel_id: ChannelId, plugin_id: PluginId) -> Self {
        let (channel_id, plugin_id) = (Some(channel_id), Some(plugin_id));
        Self { channel_id, plugin_id, ..Self::of_bot(EventKind::Plugin, bot_id) }
    }
}
