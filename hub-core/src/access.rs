//! Who acts. Nothing outside the store reads a thing of somebody without an [`Actor`], and the actor's
//! [`Scope`] stands in the `WHERE` of the query: what is not yours does not exist for you.

use crate::{
    error::{Error, ErrorCode, Result},
    id::{BotId, ChannelId, SessionId, UserId},
};

/// The caller of an operation. Made by authentication, or by a program that embeds the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A signed-in user.
    User(UserActor),
    /// A program with a channel's API key: that channel and its bot, nothing else.
    Channel(ChannelActor),
    /// Whoever may open the store's files: the command line on the same machine, an embedding program.
    Operator,
}

/// A signed-in user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserActor {
    /// Who.
    pub user_id: UserId,
    /// What they may do beyond their own things.
    pub role: Role,
    /// The session of the request; absent when an embedding program acts for the user.
    pub session_id: Option<SessionId>,
}

/// A channel client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelActor {
    /// Its channel.
    pub channel_id: ChannelId,
    /// The channel's bot.
    pub bot_id: BotId,
    /// The bot's owner.
    pub owner_id: UserId,
}

/// A user's role (`contract.md` §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// May administer the hub.
    Admin,
    /// May use it.
    Member,
}

impl Role {
    /// The word on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

/// Whose things a query may see. Only an [`Actor`] makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    owner: Option<UserId>,
}

impl Scope {
    /// The owner whose things are visible; `None` for the operator, who sees all. Store methods bind it as
    /// `CAST($n AS TEXT) IS NULL OR owner_id = $n`.
    pub fn owner(self) -> Option<String> {
        self.owner.map(|owner| owner.to_string())
    }
}

impl Actor {
    /// Whose bots, channels, messages and traces this actor manages.
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client: it manages nothing.
    pub fn scope(&self) -> Result<Scope> {
        match self {
            Self::User(user) => Ok(Scope { owner: Some(user.user_id) }),
            Self::Operator => Ok(Scope { owner: None }),
            Self::Channel(_) => Err(forbidden("a channel key manages nothing")),
        }
    }

    /// The user who acts.
    ///
    /// # Errors
    /// `FORBIDDEN` for anybody who is not a user.
    pub fn user(&self) -> Result<&UserActor> {
        match self {
            Self::User(user) => Ok(user),
            Self::Channel(_) | Self::Operator => Err(forbidden("only a signed-in user can do this")),
        }
    }

    /// Stable name of the caller, for rate limits, idempotency keys and logs.
    pub fn principal(&self) -> String {
        match self {
            Self::User(user) => user.user_id.to_string(),
            Self::Channel(channel) => channel.channel_id.to_string(),
            Self::Operator => "operator".to_owned(),
        }
    }
}

fn forbidden(message: &'static str) -> Error {
    Error::new(ErrorCode::Forbidden, message)
}
