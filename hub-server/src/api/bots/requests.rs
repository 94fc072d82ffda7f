//! What callers send. The rules are hub-core's, which names every broken one at once; the bounds here only
//! stop the absurd.

use std::time::Duration;

use hub_core::{
    Error, Result,
    bots::{Attachment, MessageFilter, NewBind, NewSend},
    network,
};
use poem_openapi::{Enum, Object, types::Example};

use super::views::Direction;
use crate::wire::{BindId, Checked, Digits, NetworkName, Number, Secret, Text, Time};

/// How long a confirm waits when the caller does not say.
const DEFAULT_WAIT: Duration = Duration::from_secs(25);

/// An account to bind.
#[derive(Debug, Default, Object)]
#[oai(deny_unknown_fields, example)]
pub struct StartBind {
    /// Chat network, for example `ilink` or `sim`; the hub's own choice when left out.
    pub network: Option<NetworkName>,
    /// Name of the bot, 1 to 64 characters. Left out, a new bot gets one made up and a known one keeps its own.
    pub name: Option<Checked<1, 64>>,
}

impl Example for StartBind {
    fn example() -> Self {
        Self { network: None, name: Some(Text("Shop".to_owned())) }
    }
}

impl From<StartBind> for NewBind {
    fn from(body: StartBind) -> Self {
        Self { network: body.network.map(Into::into), name: body.name.map(Into::into), for_bot: None }
    }
}

/// Another name of a bot.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct RenameBot {
    /// Name, 1 to 64 characters.
    pub name: Checked<1, 64>,
}

impl Example for RenameBot {
    fn example() -> Self {
        Self { name: Text("Shop".to_owned()) }
    }
}

/// The next step of a bind.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields)]
pub struct ConfirmBind {
    /// From the answer of `start`.
    pub bind_id: BindId,
    /// The number the phone shows, 1 to 16 digits; only after the status `need_code`.
    pub verify_code: Option<Digits>,
    /// How long to wait for a change, in milliseconds, at most 30000; 25000 when left out.
    pub wait_ms: Option<Number<0, 30_000>>,
}

impl ConfirmBind {
    pub(super) fn wait(&self) -> Duration {
        self.wait_ms.map_or(DEFAULT_WAIT, |wait| Duration::from_millis(wait.0.into()))
    }
}

/// How a text is marked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum TextFormat {
    /// As it is.
    Plain,
    /// Markdown; what the chat network cannot show is taken out.
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

/// A file to send: exactly one of the two.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields)]
pub struct SendMedia {
    /// One that was uploaded, by the id that came with the URL for the upload. It can be sent once.
    pub upload_id: Option<Text<1, 64>>,
    /// One that the hub fetches from a public address now: at most 50 MiB within 30 seconds, without redirects.
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
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct SendMessage {
    /// Receiver; the person who owns the network account when left out.
    pub to_user_id: Option<Checked<1, 200>>,
    /// The text, at most 64 KiB; needed unless there is a file. A long one is sent in several parts, and each part
    /// is one send.
    pub content: Option<Text<0, 1_048_576>>,
    /// A file; it costs a send of its own, and people see it after the text.
    pub media: Option<SendMedia>,
    /// Permission to answer, as a message brought it. It is used if it came with one of the receiver's recent
    /// messages; otherwise, and when it is left out, the receiver's newest one is used.
    pub context_token: Option<Secret<4096>>,
    /// How the text is marked up; `plain` when left out.
    pub format: Option<TextFormat>,
}

impl Example for SendMessage {
    fn example() -> Self {
        Self {
            to_user_id: None,
            content: Some(Text("Your order is on its way.".to_owned())),
            media: None,
            context_token: None,
            format: None,
        }
    }
}

impl TryFrom<SendMessage> for NewSend {
    type Error = Error;

    fn try_from(body: SendMessage) -> Result<Self> {
        Ok(Self {
            to_user_id: body.to_user_id.map(Into::into),
            content: body.content.map(Into::into).unwrap_or_default(),
            media: body.media.map(SendMedia::attachment).transpose()?,
            context_token: body.context_token.map(|token| token.0),
            format: body.format.map(Into::into).unwrap_or_default(),
            trace_id: None,
        })
    }
}

/// A note about a contact.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields)]
pub struct SetRemark {
    /// The note, at most 64 characters on one line.
    pub remark: Checked<0, 64>,
}

pub(super) fn filter(
    direction: Option<Direction>,
    user_id: Option<Text<1, 200>>,
    since: Option<Time>,
    until: Option<Time>,
    q: Option<Text<1, 200>>,
) -> MessageFilter {
    MessageFilter {
        direction: direction.map(Into::into),
        user_id: user_id.map(Into::into),
        since: since.map(|time| time.0),
        until: until.map(|time| time.0),
        q: q.map(Into::into),
    }
}
