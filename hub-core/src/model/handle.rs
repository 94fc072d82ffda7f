//! `@handle`: how a person speaks to one of several channels of a bot.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    words::text_column,
};

/// A channel's handle without the `@`: 2 to 32 of `a-z0-9_-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Handle(String);

impl Handle {
    /// The handle without the `@`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The message for this channel, or `None` when the text does not mention the handle. A mention that the
    /// text starts with is addressing and is taken off, with what separates it from the rest; a mention
    /// further on is part of the sentence and stays.
    pub fn addressed<'a>(&self, text: &'a str) -> Option<&'a str> {
        let start = text.trim_start();
        if let Some(rest) = self.mention_at(start, None) {
            return Some(rest.trim_start_matches(is_separator));
        }
        let mut before = None;
        text.char_indices().find_map(|(at, c)| {
            let found = self.mention_at(&text[at..], before);
            before = Some(c);
            found
        })?;
        Some(text)
    }

    /// Returns the text after a mention that `text` starts with; `before` is the preceding character.
    fn mention_at<'a>(&self, text: &'a str, before: Option<char>) -> Option<&'a str> {
        let rest = text.strip_prefix(['@', '＠'])?;
        let (name, rest) = rest.split_at_checked(self.0.len())?;
        // It is no mention after a character of an e-mail address, or before a character of a longer handle.
        // Letters of other scripts may be adjacent: Chinese puts no spaces around a mention.
        let joined_before = before.is_some_and(|c| c.is_ascii_alphanumeric() || "._-+".contains(c));
        let joined_behind = rest.starts_with(is_handle_char);
        (name.eq_ignore_ascii_case(&self.0) && !joined_before && !joined_behind).then_some(rest)
    }
}

fn is_handle_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// White space (chat clients put U+2005 behind a mention), and the punctuation after a mention.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || ",:;，：；、".contains(c)
}

#[cfg(feature = "openapi")]
crate::openapi::shown_as!(Handle, String, |handle| handle.as_str().to_owned());

impl FromStr for Handle {
    type Err = Error;

    /// # Errors
    /// `INVALID_PARAMS` on the field `handle`.
    fn from_str(text: &str) -> Result<Self> {
        let well_formed = (2..=32).contains(&text.len())
            && text.chars().all(|c| is_handle_char(c) && !c.is_ascii_uppercase());
        if well_formed {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::invalid("handle", "must be 2 to 32 of a-z, 0-9, _ and -, without the @"))
        }
    }
}

text_column!([] Handle, Self::as_str, |text| Ok(text.parse()?));

impl TryFrom<String> for Handle {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Handle> for String {
    fn from(handle: Handle) -> Self {
        handle.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_found_between_their_neighbours() {
        let bot: Handle = "bot".parse().unwrap();
        for (text, addressed) in [
            ("@bot hello", Some("hello")),
            ("  @BOT\u{2005}hello", Some("hello")),
            ("@bot你好", Some("你好")),
            ("＠bot，你好", Some("你好")),
            ("@bot: hi", Some("hi")),
            ("@bot", Some("")),
            ("@bot\nhi", Some("hi")),
            ("@bot!", Some("!")),
            ("hello @bot", Some("hello @bot")),
            ("你好@bot", Some("你好@bot")),
            ("(@bot)", Some("(@bot)")),
            ("@bott or @bot?", Some("@bott or @bot?")),
            ("@@bot x", Some("@@bot x")),
            ("@bott", None),
            ("@bot2 hi", None),
            ("@bot_x", None),
            ("@bot-x", None),
            ("mail me@bot", None),
            ("me.@bot", None),
            ("@ bot", None),
            ("bot", None),
            ("@bo", None),
            ("@bé", None),
            ("@", None),
            ("", None),
        ] {
            assert_eq!(bot.addressed(text), addressed, "{text:?}");
        }
    }

    #[test]
    fn handles_have_a_fixed_form() {
        for good in ["ab", "a-b_9", &"a".repeat(32)] {
            let handle: Handle = good.parse().unwrap();
            assert_eq!(serde_json::to_string(&handle).unwrap(), format!("{good:?}"));
        }
        for bad in ["", "a", &"a".repeat(33), "Bot", "@bot", "b t", "böt", "机器人", "a.b"] {
            assert!(bad.parse::<Handle>().is_err(), "{bad}");
            assert!(serde_json::from_str::<Handle>(&format!("{bad:?}")).is_err(), "{bad}");
        }
    }
}
