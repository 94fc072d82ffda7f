//! Events that an app can subscribe to.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    error::Error,
    id::{AppEventId, TraceId},
    time::Timestamp,
};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal,)*) => {
        /// A kind of event. As JSON it is its word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum AppEventKind {
            $($(#[$doc])* $kind,)*
        }

        impl AppEventKind {
            /// Every kind, in the order of this page.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The word on the wire and in the store.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)*
                }
            }
        }
    };
}

kinds! {
    /// Any message; only as a subscription.
    Message = "message",
    /// A text.
    MessageText = "message.text",
    /// A picture.
    MessageImage = "message.image",
    /// A voice note.
    MessageVoice = "message.voice",
    /// A video.
    MessageVideo = "message.video",
    /// A file.
    MessageFile = "message.file",
    /// A command of the app's tools.
    Command = "command",
    /// The bot's status changed.
    BotStatus = "bot.status",
    /// The app was installed onto a bot.
    AppInstalled = "app.installed",
    /// The app was taken off a bot.
    AppUninstalled = "app.uninstalled",
}

impl AppEventKind {
    /// The kind of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }
}

impl fmt::Display for AppEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for AppEventKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for AppEventKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Self::parse(&word).ok_or_else(|| serde::de::Error::custom(format!("no kind of event: {word}")))
    }
}

/// The subscriptions of words, each once.
///
/// # Errors
/// `INVALID_PARAMS` on the field `events`.
pub(crate) fn parse_all(words: &[String]) -> Result<Vec<AppEventKind>, Error> {
    let mut kinds = Vec::with_capacity(words.len().min(AppEventKind::ALL.len()));
    for word in words {
        let kind = AppEventKind::parse(word).ok_or_else(|| {
            let all: Vec<_> = AppEventKind::ALL.iter().map(|kind| kind.as_str()).collect();
            Error::invalid("events", format!("must be of: {}", all.join(", ")))
        })?;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

/// State of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppEventState {
    /// It waits for delivery or for a retry.
    Pending,
    /// The app took it.
    Delivered,
    /// It was given up.
    Failed,
}

impl AppEventState {
    /// The word on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// The state of a word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Delivered, Self::Failed].into_iter().find(|state| state.as_str() == word)
    }
}

/// An event in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppEvent {
    /// Id.
    pub id: AppEventId,
    /// The trace of what it tells of.
    pub trace_id: Option<TraceId>,
    /// Word of its kind.
    pub kind: String,
    /// The event as JSON.
    pub event: String,
    /// Status.
    pub state: AppEventState,
    /// Attempts made.
    pub attempts: u32,
    /// When it is tried again.
    pub next_attempt_at: Option<Timestamp>,
    /// Status of the last answer.
    pub response_status: Option<u16>,
    /// Beginning of the last answer.
    pub response_body: String,
    /// What went wrong last.
    pub error: Option<String>,
    /// How long the last attempt took, in milliseconds.
    pub duration_ms: u64,
    /// When it was written to a socket of the app.
    pub written_at: Option<Timestamp>,
    /// When it happened.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_word_and_kept_once() {
        let mut words: Vec<String> = AppEventKind::ALL.iter().map(ToString::to_string).collect();
        words.extend(words.clone());
        assert_eq!(parse_all(&words).unwrap(), AppEventKind::ALL);
        assert!(parse_all(&["message.sticker".to_owned()]).is_err());
    }
}
