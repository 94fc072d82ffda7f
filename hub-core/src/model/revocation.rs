//! Revocations, and the actors that they concern.

use std::{fmt, str::FromStr};

use crate::{
    access::Actor,
    error::{Error, Result},
    id::{AppId, BotId, ChannelId, IlinkClientId, InstallationId, KeyId, RevocationId, SessionId, UserId},
    time::Timestamp,
};

/// An object that was revoked, or that changed so that its permissions must be checked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Revoked {
    /// A session.
    Session(SessionId),
    /// A user's API key.
    Key(KeyId),
    /// Something about a user: disabled, demoted, deleted, or sessions of theirs.
    User(UserId),
    /// A channel's key, or the channel itself.
    Channel(ChannelId),
    /// A bot with all of its channels and apps.
    Bot(BotId),
    /// The token of an app on a bot, or what it may do.
    Installation(InstallationId),
    /// An app with all of its installations.
    App(AppId),
    /// A client of an iLink sink.
    IlinkClient(IlinkClientId),
}

impl Revoked {
    /// Whether an actor's credential may have ended by this.
    pub fn concerns(self, actor: &Actor) -> bool {
        match (self, actor) {
            (Self::Session(id), Actor::User(user)) => user.session_id == Some(id),
            (Self::Key(id), Actor::User(user)) => user.key_id == Some(id),
            (Self::User(id), Actor::User(user)) => user.user_id == id,
            (Self::User(id), Actor::Channel(channel)) => channel.owner_id == id,
            (Self::Channel(id), Actor::Channel(channel)) => channel.channel_id == id,
            (Self::Bot(id), Actor::Channel(channel)) => channel.bot_id == id,
            (Self::User(id), Actor::App(app)) => app.owner_id == id,
            (Self::Bot(id), Actor::App(app)) => app.bot_id == id,
            (Self::Installation(id), Actor::App(app)) => app.installation_id == id,
            (Self::App(id), Actor::App(app)) => app.app_id == id,
            (Self::IlinkClient(id), Actor::Channel(channel)) => channel.ilink == Some(id),
            (_, Actor::User(_) | Actor::Channel(_) | Actor::App(_) | Actor::Operator) => false,
        }
    }
}

/// The id of what ended; its prefix says what it is.
impl fmt::Display for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(id) => id.fmt(f),
            Self::Key(id) => id.fmt(f),
            Self::User(id) => id.fmt(f),
            Self::Channel(id) => id.fmt(f),
            Self::Bot(id) => id.fmt(f),
            Self::Installation(id) => id.fmt(f),
            Self::App(id) => id.fmt(f),
            Self::IlinkClient(id) => id.fmt(f),
        }
    }
}

impl FromStr for Revoked {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let session = text.parse().map(Self::Session);
        session
            .or_else(|_| text.parse().map(Self::Key))
            .or_else(|_| text.parse().map(Self::User))
            .or_else(|_| text.parse().map(Self::Channel))
            .or_else(|_| text.parse().map(Self::Bot))
            .or_else(|_| text.parse().map(Self::Installation))
            .or_else(|_| text.parse().map(Self::App))
            .or_else(|_| text.parse().map(Self::IlinkClient))
    }
}

/// A revocation as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the table")]
pub struct Revocation {
    pub id: RevocationId,
    pub revoked: Revoked,
    pub at: Timestamp,
}
