//! Request bodies. The rules are hub-core's, which reports every violation at once; the bounds here only reject the
//! absurd.

use std::time::Duration;

use hub_core::{
    Error, Result,
    bots::{Attachment, Direction, MessageFilter, NewSend},
    id::{BindId, MessageId},
    network,
    openapi::Api,
    time::Timestamp,
};
use poem_openapi::Enum;

use crate::wire::{Checked, Digits, FormTexts, MAX_TEXT, Number, Secret, Text};

/// How long a confirm waits by default.
const DEFAULT_WAIT: Duration = Duration::from_secs(25);

/// A new name for a bot.
#[derive(Debug, Api)]
#[api(input, example = {
    "name": "Shop"
})]
pub struct RenameBot {
    /// Name, 1 to 64 characters.
    pub name: Checked<1, 64>,
}

/// The next step of a bind.
#[derive(Debug, Api)]
#[api(input)]
pub struct ConfirmBind {
    /// Id from the response of `start`.
    pub bind_id: BindId,
    /// The number the phone shows, 1 to 16 digits; only after the status `need_code`.
    pub verify_code: Option<Digits>,
    /// Maximum wait for a change in milliseconds, at most 30000; 25000 if absent.
    pub wait_ms: Option<Number<0, 30_000>>,
}

impl ConfirmBind {
    pub(crate) fn wait(&self) -> Duration {
        self.wait_ms.map_or(DEFAULT_WAIT, |wait| Duration::from_millis(wait.0.into()))
    }
}

/// Format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum TextFormat {
    /// Plain text.
    Plain,
    /// Markdown; elements that the chat network cannot show are removed.
    Markdown,
}

impl From<TextFormat> for network::TextFormat {
    fn from(format: TextFormat) -> Self {
        match format {
            TextFormat::Plain => Self::Plain,
            TextFormat::Markdown => Self::Markdown,
        }
    }
}

/// A file to send: exactly one of the two fields.
#[derive(Debug, Api)]
#[api(input)]
pub struct SendMedia {
    /// Id of an upload, from the response with the upload URL. It can be sent once.
    pub upload_id: Option<Text<1, 64>>,
    /// Public URL from which the hub downloads the file now: at most 50 MiB within 30 seconds, after up to five redirects.
    pub url: Option<Text<1, 2048>>,
}

impl SendMedia {
    /// # Errors
    /// `INVALID_PARAMS` unless exactly one is set.
    pub fn attachment(self) -> Result<Attachment> {
        Attachment::either(self.upload_id.map(Into::into), self.url.map(Into::into))
    }
}

/// A message to send.
#[derive(Debug, Api)]
#[api(input, example = {
    "content": "Your order is on its way."
})]
pub struct SendMessage {
    /// Recipient; the owner of the network account if absent.
    pub to_user_id: Option<Checked<1, 200>>,
    /// The text; required without a file. The hub accepts as many bytes of UTF-8 as its setting `max_text` says, 64 KiB
    /// by default; `maxLength` is the upper bound of that setting. A long text is sent in several parts, each of which counts as a send.
    pub content: Option<Text<0, MAX_TEXT>>,
    /// A file; it counts as a separate send and is shown after the text.
    pub media: Option<SendMedia>,
    /// Context token of a received message. It is used if it belongs to a recent message of the recipient; otherwise,
    /// or if absent, the newest one of the recipient is used.
    pub context_token: Option<Secret<4096>>,
    /// Id of the message of this bot that this one replies to. The hub shows it as `quoted`; the chat network does not
    /// show it.
    pub reply_to: Option<MessageId>,
    /// Format of the text; `plain` if absent.
    pub format: Option<TextFormat>,
}

impl FormTexts for SendMessage {
    const TEXTS: &'static [&'static str] = &["to_user_id", "content", "context_token", "reply_to", "format"];
}

impl TryFrom<SendMessage> for NewSend {
    type Error = Error;

    fn try_from(body: SendMessage) -> Result<Self> {
        Ok(Self {
            to_user_id: body.to_user_id.map(Into::into),
            content: body.content.map(Into::into).unwrap_or_default(),
            media: body.media.map(SendMedia::attachment).transpose()?,
            context_token: body.context_token.map(|token| token.0),
            reply_to: body.reply_to,
            format: body.format.map(Into::into).unwrap_or_default(),
            ..Self::default()
        })
    }
}

/// A remark about a contact.
#[derive(Debug, Api)]
#[api(input)]
pub struct SetRemark {
    /// The remark, at most 64 characters on one line.
    pub remark: Checked<0, 64>,
}

pub(super) fn filter(
    direction: Option<Direction>,
    user_id: Option<Text<1, 200>>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    q: Option<Text<1, 200>>,
) -> MessageFilter {
    MessageFilter { direction, user_id: user_id.map(Into::into), since, until, q: q.map(Into::into) }
}
