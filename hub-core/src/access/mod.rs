//! Who acts. Nothing outside the store reads a user's data without an [`Actor`], and the actor's [`Scope`] is in the
//! `WHERE` of the query: other users' data does not exist for the actor.

mod app_scopes;

pub use app_scopes::{AppScope, AppScopes};

use hub_macros::FromRow;

use crate::{
    error::{Error, ErrorCode, Reason, Result},
    id::{AppId, BotId, ChannelId, IlinkClientId, InstallationId, KeyId, SessionId, UserId},
    secret::KeyMark,
    words::words,
};

/// The caller of an operation. Made by authentication, or by a program that embeds the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A signed-in user.
    User(UserActor),
    /// A program with a channel's API key: that channel and its bot, nothing else.
    Channel(ChannelActor),
    /// An app on a bot: that bot, as far as its owner granted it.
    App(AppActor),
    /// A program that may open the store's files: the command line on the same machine, an embedding program.
    Operator,
}

/// A signed-in user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserActor {
    /// Who.
    pub user_id: UserId,
    /// What they may do beyond their own things.
    pub role: Role,
    /// The session of the request; absent with an API key and when an embedding program acts for the user.
    pub session_id: Option<SessionId>,
    /// The API key of the request.
    pub key_id: Option<KeyId>,
}

impl UserActor {
    /// A user for whom an embedding program acts: without session and key.
    pub const fn embedded(user_id: UserId, role: Role) -> Self {
        Self { user_id, role, session_id: None, key_id: None }
    }
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
    /// Which key or token it came with: what it holds open ends with that.
    pub key: KeyMark,
    /// The program with this token, rather than one with the channel's API key.
    pub ilink: Option<IlinkClientId>,
}

/// An app on a bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
#[row(table = "app_installations")]
pub struct AppActor {
    /// The installation.
    pub installation_id: InstallationId,
    /// The app.
    pub app_id: AppId,
    /// The bot.
    pub bot_id: BotId,
    /// The bot's owner.
    pub owner_id: UserId,
    /// Whether the app is the bot owner's own.
    pub is_own: bool,
    /// What the bot's owner granted.
    #[row(json)]
    pub scopes: AppScopes,
    /// Which token it came with: what it holds open ends with that token.
    #[row(skip)]
    pub token: KeyMark,
}

words! {
    /// Role of a user.
    #[api(name = "UserRole")]
    pub enum Role {
        /// May administer the hub.
        Admin = "admin",
        /// May use the hub.
        Member = "member",
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
    pub fn owner(self) -> Option<UserId> {
        self.owner
    }
}

impl Actor {
    /// Whose bots, channels, messages and traces this actor manages.
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client and for an app: they manage nothing.
    pub fn scope(&self) -> Result<Scope> {
        match self {
            Self::User(user) => Ok(Scope { owner: Some(user.user_id) }),
            Self::Operator => Ok(Scope { owner: None }),
            Self::Channel(_) => Err(forbidden("a channel key manages nothing")),
            Self::App(_) => Err(forbidden("an app's token manages nothing")),
        }
    }

    /// The scope of an administrator: everything; for other actors as [`Actor::scope`].
    ///
    /// # Errors
    /// As [`Actor::scope`].
    pub fn reviewing_scope(&self) -> Result<Scope> {
        match self {
            Self::User(UserActor { role: Role::Admin, .. }) => Ok(Scope { owner: None }),
            _ => self.scope(),
        }
    }

    /// The user who acts.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is a user.
    pub fn user(&self) -> Result<&UserActor> {
        match self {
            Self::User(user) => Ok(user),
            Self::Channel(_) | Self::App(_) | Self::Operator => {
                Err(forbidden("only a signed-in user can do this"))
            }
        }
    }

    /// The user who acts, in person: what makes or changes credentials is closed to API keys, so that a stolen key
    /// cannot be turned into more than it is.
    ///
    /// # Errors
    /// `FORBIDDEN` for an API key, and unless the caller is a user.
    pub fn in_person(&self) -> Result<&UserActor> {
        let user = self.user()?;
        if user.key_id.is_some() {
            return Err(forbidden("an API key cannot do this: sign in").with_reason(Reason::SessionRequired));
        }
        Ok(user)
    }

    /// The channel client. `FORBIDDEN` unless the caller is one.
    pub fn client(&self) -> Result<&ChannelActor> {
        match self {
            Self::Channel(client) => Ok(client),
            Self::User(_) | Self::App(_) | Self::Operator => {
                Err(forbidden("only a channel's client can do this"))
            }
        }
    }

    /// The app that acts.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is one.
    pub fn app(&self) -> Result<&AppActor> {
        match self {
            Self::App(app) => Ok(app),
            Self::User(_) | Self::Channel(_) | Self::Operator => {
                Err(forbidden("only an installed app can do this"))
            }
        }
    }

    /// Checks that the caller may administer the hub.
    ///
    /// # Errors
    /// `FORBIDDEN` unless the caller is an administrator or the operator.
    pub fn admin(&self) -> Result<()> {
        match self {
            Self::User(UserActor { role: Role::Admin, .. }) | Self::Operator => Ok(()),
            Self::User(_) | Self::Channel(_) | Self::App(_) => {
                Err(forbidden("only an administrator can do this"))
            }
        }
    }

    /// Stable name of the caller, for rate limits, idempotency keys and logs.
    pub fn principal(&self) -> String {
        match self {
            Self::User(user) => user.user_id.to_string(),
            Self::Channel(ChannelActor { ilink: Some(id), .. }) => id.to_string(),
            Self::Channel(channel) => channel.channel_id.to_string(),
            Self::App(app) => app.installation_id.to_string(),
            Self::Operator => "operator".to_owned(),
        }
    }
}

fn forbidden(message: &'static str) -> Error {
    Error::new(ErrorCode::Forbidden, message)
}
