//! Authorization. Outside the store, a user's data is read only with an [`Actor`], and the actor's [`Scope`] is in
//! the `WHERE` of the query: other users' data does not exist for the actor.

mod app_scopes;

pub use app_scopes::{AppScope, AppScopes};

use hub_macros::FromRow;

use crate::{
    error::{Error, ErrorCode, Reason, Result},
    id::{AppId, BotId, ChannelId, IlinkClientId, InstallationId, KeyId, SessionId, UserId},
    secret::KeyMark,
    words::words,
};

/// The caller of an operation, created by authentication or by a program that embeds the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A signed-in user.
    User(UserActor),
    /// A program with a channel's API key. It has access to that channel and its bot only.
    Channel(ChannelActor),
    /// An app on a bot. It has access to that bot within the granted scopes.
    App(AppActor),
    /// A program with access to the store's files: the command line on the same machine, an embedding program.
    Operator,
}

/// A signed-in user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserActor {
    /// Id of the user.
    pub user_id: UserId,
    /// Role of the user, which decides about access to other users' data.
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
    /// Mark of the key or token of the request; connections opened with it close when it is revoked.
    pub key: KeyMark,
    /// The iLink client whose token authenticates the request; absent with the channel's API key.
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
    /// Scopes that the bot's owner granted.
    #[row(json)]
    pub scopes: AppScopes,
    /// Mark of the token of the request; connections opened with it close when it is revoked.
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

/// Owner whose data a query may see. Only an [`Actor`] creates one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    owner: Option<UserId>,
}

impl Scope {
    /// The owner whose data is visible; `None` for the operator, who sees all. Store methods bind it as `CAST($n AS
    /// TEXT) IS NULL OR owner_id = $n`.
    pub fn owner(self) -> Option<UserId> {
        self.owner
    }
}

impl Actor {
    /// Returns the scope of the bots, channels, messages and traces that this actor manages.
    ///
    /// # Errors
    /// `FORBIDDEN` for a channel client and for an app, which manage nothing.
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

    /// Returns the user of the request.
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

    /// Returns the user of a request without an API key. Operations that create or change credentials require it, so
    /// that a stolen key cannot extend its permissions.
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

    /// Returns the channel client. `FORBIDDEN` unless the caller is one.
    pub fn client(&self) -> Result<&ChannelActor> {
        match self {
            Self::Channel(client) => Ok(client),
            Self::User(_) | Self::App(_) | Self::Operator => {
                Err(forbidden("only a channel's client can do this"))
            }
        }
    }

    /// Returns the app.
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
