//! What happens that an app may want to be told of (`contract.md` §8).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;

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
pub(super) fn parse_all(words: &[String]) -> Result<Vec<AppEventKind>, Error> {
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
