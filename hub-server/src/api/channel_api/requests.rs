//! What channel clients send, in both dialects (`contract.md` §5.2, `dialects.md` §1.7).

use std::time::Duration;

use hub_core::{Error, Result, access::ChannelActor, bots::NewSend};
use poem_openapi::{Enum, Object, types::Example};

use super::ticket;
use crate::{
    api::bots::{SendMedia, TextFormat},
    wire::{FormTexts, Secret, Text},
};

/// How long a poll waits when the caller does not say (`contract.md` §5.2).
const DEFAULT_TIMEOUT: u32 = 25;
/// How long a step of a login waits when the caller does not say.
const DEFAULT_WAIT_MS: u32 = 25_000;

pub(super) fn timeout(seconds: Option<u32>) -> Duration {
    Duration::from_secs(seconds.unwrap_or(DEFAULT_TIMEOUT).into())
}

pub(super) fn wait(millis: Option<u32>) -> Duration {
    Duration::from_millis(millis.unwrap_or(DEFAULT_WAIT_MS).into())
}

/// A message to send.
#[derive(Debug, Default, Object)]
#[oai(example)]
pub struct ChannelSend {
    /// Receiver; the person who owns the network account when left out.
    pub to_user_id: Option<Text<0, 1024>>,
    /// The same, in the older dialect.
    pub recipient: Option<Text<0, 1024>>,
    /// The text, at most 64 KiB. A long one is sent in several parts, and each part is one send.
    pub content: Option<Text<0, 1_048_576>>,
    /// The same, in the older dialect.
    pub text: Option<Text<0, 1_048_576>>,
    /// A file; it costs a send of its own, and people see it after the text.
    pub media: Option<SendMedia>,
    /// Permission to answer, as a message brought it. It is used if it came with one of the receiver's recent
    /// messages; otherwise, and when it is left out, the receiver's newest one is used.
    pub context_token: Option<Secret<16_384>>,
    /// How the text is marked up; `plain` when left out.
    pub format: Option<TextFormat>,
}

impl Example for ChannelSend {
    fn example() -> Self {
        Self { content: Some(Text("Your order is on its way.".to_owned())), ..Self::default() }
    }
}

impl FormTexts for ChannelSend {
    const TEXTS: &'static [&'static str] =
        &["to_user_id", "recipient", "content", "text", "context_token", "format"];
}

impl TryFrom<ChannelSend> for NewSend {
    type Error = Error;

    fn try_from(body: ChannelSend) -> Result<Self> {
        // The older dialect names nobody by an empty text.
        let to = body.to_user_id.or(body.recipient.filter(|recipient| !recipient.is_empty()));
        Ok(Self {
            to_user_id: to.map(Into::into),
            content: body.content.or(body.text).map(Into::into).unwrap_or_default(),
            media: body.media.map(SendMedia::attachment).transpose()?,
            context_token: body.context_token.map(|token| token.0),
            format: body.format.map(Into::into).unwrap_or_default(),
            trace_id: None,
        })
    }
}

/// Whether the sign is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Enum)]
#[oai(rename_all = "snake_case")]
pub enum TypingState {
    /// Show it.
    #[default]
    Typing,
    /// Take it away.
    Cancel,
}

/// Whom to show that the bot is typing.
#[derive(Debug, Default, Object)]
pub struct ChannelTyping {
    /// The person; the one who owns the network account when left out.
    pub to_user_id: Option<Text<0, 1024>>,
    /// A `typing_ticket` from the configuration, in place of the person.
    pub ticket: Option<Text<0, 4096>>,
    /// `typing` when left out.
    pub status: Option<TypingState>,
}

impl ChannelTyping {
    /// Who is meant.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for a ticket that is none of this channel's.
    pub(super) fn receiver(&self, channel: &ChannelActor) -> Result<Option<String>> {
        match (&self.to_user_id, &self.ticket) {
            (Some(user), _) => Ok(Some(user.to_string())),
            (None, Some(text)) => ticket::read(channel.channel_id, text).map(Some),
            (None, None) => Ok(None),
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.status.unwrap_or_default() == TypingState::Typing
    }
}
