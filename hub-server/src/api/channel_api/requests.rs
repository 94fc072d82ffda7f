//! Requests of channel clients, in both dialects.

use std::time::Duration;

use hub_core::{Error, Result, access::ChannelActor, bots::NewSend, id::MessageId, openapi::Api};
use poem_openapi::Enum;

use super::ticket;
use crate::{
    api::bots::{SendMedia, TextFormat},
    wire::{FormTexts, MAX_TEXT, Secret, Text},
};

/// How long a poll waits by default.
const DEFAULT_TIMEOUT: u32 = 25;
/// How long a step of a login waits by default.
const DEFAULT_WAIT_MS: u32 = 25_000;

pub(super) fn timeout(seconds: Option<u32>) -> Duration {
    Duration::from_secs(seconds.unwrap_or(DEFAULT_TIMEOUT).into())
}

pub(super) fn wait(millis: Option<u32>) -> Duration {
    Duration::from_millis(millis.unwrap_or(DEFAULT_WAIT_MS).into())
}

/// A message to send.
#[derive(Debug, Default, Api)]
#[api(input, lenient, example = {
    "content": "Your order is on its way."
})]
pub struct ChannelSend {
    /// Recipient; the owner of the network account if absent.
    pub to_user_id: Option<Text<0, 1024>>,
    /// Alias of `to_user_id`, in the older dialect.
    pub recipient: Option<Text<0, 1024>>,
    /// The text. The hub accepts `limits.text_bytes` bytes of UTF-8, its setting `max_text`, 64 KiB by default;
    /// `maxLength` is the upper bound of that setting. A long text is sent in several parts, each of which counts as a send.
    pub content: Option<Text<0, MAX_TEXT>>,
    /// Alias of `content`, in the older dialect.
    pub text: Option<Text<0, MAX_TEXT>>,
    /// A file; it counts as a separate send and is shown after the text.
    pub media: Option<SendMedia>,
    /// Context token of a received message. It is used if it belongs to a recent message of the recipient; otherwise,
    /// or if absent, the newest one of the recipient is used.
    pub context_token: Option<Secret<16_384>>,
    /// Id of the message of this bot that this one replies to. The hub shows it as `quoted`; the chat network does not
    /// show it.
    pub reply_to: Option<MessageId>,
    /// Format of the text; `plain` if absent.
    pub format: Option<TextFormat>,
}

impl FormTexts for ChannelSend {
    const TEXTS: &'static [&'static str] =
        &["to_user_id", "recipient", "content", "text", "context_token", "reply_to", "format"];
}

impl TryFrom<ChannelSend> for NewSend {
    type Error = Error;

    fn try_from(body: ChannelSend) -> Result<Self> {
        // In the older dialect an empty text means no recipient.
        let to = body.to_user_id.or(body.recipient.filter(|recipient| !recipient.is_empty()));
        Ok(Self {
            to_user_id: to.map(Into::into),
            content: body.content.or(body.text).map(Into::into).unwrap_or_default(),
            media: body.media.map(SendMedia::attachment).transpose()?,
            context_token: body.context_token.map(|token| token.0),
            reply_to: body.reply_to,
            format: body.format.map(Into::into).unwrap_or_default(),
            ..Self::default()
        })
    }
}

/// Whether the indicator is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Enum)]
#[oai(rename_all = "snake_case")]
pub enum TypingState {
    /// Show the indicator.
    #[default]
    Typing,
    /// Remove the indicator.
    Cancel,
}

/// Recipient of a typing indicator.
#[derive(Debug, Default, Api)]
#[api(input, lenient)]
pub struct ChannelTyping {
    /// The person; the owner of the network account if absent.
    pub to_user_id: Option<Text<0, 1024>>,
    /// A `typing_ticket` from the configuration, instead of the person.
    pub ticket: Option<Text<0, 4096>>,
    /// `typing` if absent.
    pub status: Option<TypingState>,
}

impl ChannelTyping {
    /// The recipient.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for a ticket that does not belong to this channel.
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
