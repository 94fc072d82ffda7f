//! What an app is.

use std::collections::BTreeMap;

use hub_macros::FromRow;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    access::{AppActor, AppScopes},
    id::{AppCallId, AppId, BotId, InstallationId, TraceId, UserId},
    model::{app_event::AppEventKind, handle::Handle},
    secret::{Sealed, TokenHash},
    time::Timestamp,
    words::words,
};

words! {
    /// Listing state of an app.
    pub enum Listing {
        /// Its author has not asked for it.
        Unlisted = "unlisted",
        /// It waits for an administrator.
        Pending = "pending",
        /// Every user can find it.
        Listed = "listed",
        /// An administrator refused.
        Rejected = "rejected",
    }
}

/// An app.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, FromRow)]
#[row(table = "apps")]
pub struct App {
    /// Id; also its `client_id`.
    pub id: AppId,
    /// Whose it is.
    pub owner_id: UserId,
    /// Their user name.
    pub owner_name: String,
    /// Name.
    pub name: String,
    /// Short name, unique on the hub.
    pub slug: String,
    /// What it does.
    pub description: String,
    /// Picture; may be empty.
    pub icon_url: String,
    /// Page about it; may be empty.
    pub homepage: String,
    /// Where authorizations may lead, to the letter.
    #[row(json)]
    pub redirect_uris: Vec<String>,
    /// Where its installation begins, if the app wants to begin it itself.
    pub setup_url: Option<String>,
    /// Where events go; `None` for who is not its author.
    pub webhook_url: Option<String>,
    /// Whether the server at this URL has returned the challenge.
    pub webhook_verified: bool,
    /// Events that it subscribes to.
    #[row(json)]
    pub events: Vec<AppEventKind>,
    /// What it asks for.
    #[row(json)]
    pub scopes: AppScopes,
    /// What it can be asked to do.
    #[row(json)]
    pub tools: Vec<AppTool>,
    /// Listing state.
    pub listing: Listing,
    /// Why an administrator refused.
    pub listing_reason: Option<String>,
    /// Bots it is installed on.
    #[row(number)]
    pub installs: u64,
    /// Since when it exists.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl App {
    /// The app for its author and administrators, or for other users: a URL may contain a secret of the author.
    #[must_use]
    pub(crate) fn shown_to(mut self, user: Option<UserId>) -> Self {
        if user.is_some_and(|user| user != self.owner_id) {
            self.webhook_url = None;
        }
        self
    }
}

words! {
    /// Which apps a list shows.
    #[derive(Default)]
    pub enum AppView {
        /// All that the caller may see: the other three together.
        #[default]
        All = "all",
        /// Their own.
        Own = "own",
        /// Listed apps.
        Public = "public",
        /// Those that are installed on a bot of theirs.
        Installed = "installed",
    }
}

/// A call of an app.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[row(table = "app_calls")]
pub struct AppCall {
    /// Id.
    pub id: AppCallId,
    /// The trace of what it caused.
    pub trace_id: Option<TraceId>,
    /// Method.
    pub method: String,
    /// Path, without its query.
    pub path: String,
    /// Beginning of the body, without what is confidential in it.
    pub request_body: String,
    /// Status of the answer.
    #[row(number)]
    pub status: u16,
    /// Beginning of the answer.
    pub response_body: String,
    /// How long it took, in milliseconds.
    #[row(number)]
    pub duration_ms: u64,
    /// When it was answered.
    pub created_at: Timestamp,
}

/// A call to be noted. Its bodies are cut to [`MAX_LOGGED_BODY`](crate::apps::MAX_LOGGED_BODY).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are documented where they are shown: `AppCall`")]
pub struct NewAppCall {
    pub installation_id: InstallationId,
    pub trace_id: Option<TraceId>,
    pub method: String,
    pub path: String,
    pub request_body: String,
    pub status: u16,
    pub response_body: String,
    pub duration_ms: u64,
}

/// An app on a bot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, FromRow)]
#[row(table = "app_installations")]
pub struct Installation {
    /// Id.
    pub id: InstallationId,
    /// The app.
    pub app_id: AppId,
    /// Its name.
    pub app_name: String,
    /// Its short name.
    pub app_slug: String,
    /// The bot.
    pub bot_id: BotId,
    /// How people call it there, without the `@`.
    pub handle: String,
    /// What the bot's owner granted.
    #[row(json)]
    pub scopes: AppScopes,
    /// Tools that it has on this bot alone.
    #[row(json)]
    pub tools: Vec<AppTool>,
    /// Its configuration: the mask of each value by name. Stored apart, sealed: [`InstallationRecord::config`].
    #[row(skip)]
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// Whether it receives events and its token works.
    pub enabled: bool,
    /// The last four characters of its token.
    pub token_last4: String,
    /// Since when it is there.
    pub created_at: Timestamp,
}

/// An installation as it is stored.
#[derive(Debug, Clone, PartialEq, FromRow)]
#[row(table = "app_installations")]
pub struct InstallationRecord {
    /// The installation, without the masks of its configuration.
    #[row(flatten)]
    pub installation: Installation,
    /// Its configuration: a JSON object of texts; `None` without configuration.
    pub config: Option<Sealed>,
}

/// A token on its way into the store.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// What is looked up when the token is presented.
    pub hash: TokenHash,
    /// What lists show.
    pub last4: String,
    /// When it was made.
    pub at: Timestamp,
    /// Until when the token before it stays valid; `None` ends it at once.
    pub old_until: Option<Timestamp>,
}

/// Whose events a socket is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seat {
    /// Those of one installation.
    Installation(InstallationId),
    /// Those of all installations of an app that have no socket of their own.
    App(AppId),
}

/// An app on a bot that receives events.
#[derive(Debug, Clone)]
pub struct AppRuntime {
    /// Who it is, and what it may.
    pub app: AppActor,
    /// How people call it.
    pub handle: Handle,
    /// What it asked for.
    pub events: Vec<AppEventKind>,
    /// Its commands, without the slash, in lower case.
    pub commands: Vec<String>,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AppTool {
    /// Its name for models: 1 to 64 of letters, digits, `_` and `-`.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The command by which people call it, without the slash; a tool without one is for models alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// JSON Schema of its arguments: an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
}

/// An app on a bot, with the tools that models may call.
#[derive(Debug, Clone)]
pub struct Toolbox {
    /// Who it is, and what it may.
    pub app: AppActor,
    /// Its name.
    pub app_name: String,
    /// Where it is called; it has echoed a challenge there.
    pub webhook_url: String,
    /// What calls are signed with.
    pub webhook_secret: Sealed,
    /// Its tools, each name once.
    pub tools: Vec<AppTool>,
}

impl Toolbox {
    /// The tools of an app and of its installation. Of two with one name the installation's counts: it was made for
    /// this bot.
    pub fn merged(of_app: Vec<AppTool>, own: Vec<AppTool>) -> Vec<AppTool> {
        let is_own = |tool: &AppTool| own.iter().any(|other| other.name == tool.name);
        let mut tools: Vec<_> = of_app.into_iter().filter(|tool| !is_own(tool)).collect();
        tools.extend(own);
        tools
    }
}
