//! Permissions of an app on a bot.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    error::{Error, ErrorCode, Result},
    words::words,
};

words! {
    /// One ability.
    #[derive(Hash)]
    pub enum AppScope {
        /// Gets the messages that people write to the bot.
        MessageRead = "message:read",
        /// Sends messages as the bot.
        MessageWrite = "message:write",
        /// Reads the contacts of the bot.
        ContactRead = "contact:read",
        /// Reads the bot's name and status.
        BotRead = "bot:read",
        /// Changes the tools that the app offers.
        ToolsWrite = "tools:write",
        /// Reads the configuration that the bot's owner set for the app.
        ConfigRead = "config:read",
    }
}

impl AppScope {
    /// Description, for the user who grants it.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::MessageRead => "read the messages that people write to this bot",
            Self::MessageWrite => "send messages as this bot",
            Self::ContactRead => "see the contacts of this bot",
            Self::BotRead => "see this bot's name and status",
            Self::ToolsWrite => "change the commands and tools it offers here",
            Self::ConfigRead => "read the configuration that you set for it here",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of scopes, in JSON an array of their names.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct AppScopes(u8);

impl AppScopes {
    /// Parses a list of names.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on the field `scopes`, with the first name that is not a scope.
    pub fn parse<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Result<Self> {
        words.into_iter().try_fold(Self::default(), |set, word| {
            let known = AppScope::parse(word.as_ref()).ok_or_else(|| {
                let all = AppScope::ALL.map(AppScope::as_str).join(", ");
                Error::invalid("scopes", format!("must be of: {all}"))
            })?;
            Ok(set.with(known))
        })
    }

    /// Returns the set with one more scope.
    #[must_use]
    pub const fn with(self, scope: AppScope) -> Self {
        Self(self.0 | scope.bit())
    }

    /// Whether the set contains a scope.
    pub const fn has(self, scope: AppScope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether the set is a subset of another one.
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the scopes in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Checks that the set contains a scope.
    ///
    /// # Errors
    /// `FORBIDDEN` with the missing scope.
    pub fn require(self, scope: AppScope) -> Result<()> {
        if self.has(scope) {
            return Ok(());
        }
        let word = scope.as_str();
        Err(Error::new(ErrorCode::Forbidden, format!("the app was not granted the scope {word} on this bot")))
    }

    /// The scopes, in the order of [`AppScope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = AppScope> {
        AppScope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }

    /// Returns the names of the scopes.
    pub fn words(self) -> Vec<String> {
        self.iter().map(|scope| scope.as_str().to_owned()).collect()
    }
}

#[cfg(feature = "openapi")]
crate::openapi::shown_as!(AppScopes, Vec<String>, |scopes| scopes.words());

/// Formats the names separated by spaces, as in OAuth.
impl fmt::Display for AppScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(" "))
    }
}

impl fmt::Debug for AppScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

impl Serialize for AppScopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(AppScope::as_str))
    }
}

impl<'de> Deserialize<'de> for AppScopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(Vec::<String>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_written_and_compared() {
        let all = AppScopes::parse(AppScope::ALL.map(AppScope::as_str)).unwrap();
        assert_eq!(all.iter().count(), 6);
        let some = AppScopes::parse(["bot:read", "message:write", "bot:read"]).unwrap();
        assert_eq!(some.to_string(), "message:write bot:read");
        assert_eq!(serde_json::to_string(&some).unwrap(), r#"["message:write","bot:read"]"#);
        assert_eq!(serde_json::from_str::<AppScopes>(r#"["bot:read","message:write"]"#).unwrap(), some);
        assert!(some.is_within(all) && !all.is_within(some) && AppScopes::default().is_within(some));
        assert!(some.require(AppScope::BotRead).is_ok());
        let refused = some.require(AppScope::MessageRead).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Forbidden);
        assert!(refused.message().contains("message:read"));
        for bad in ["", "bot:write", "Bot:read", "bot:read "] {
            assert!(AppScopes::parse([bad]).is_err(), "{bad:?}");
        }
    }
}
