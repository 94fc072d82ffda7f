//! Apps, their installations, calls and tools.

use std::collections::BTreeMap;

use hub_macros::FromRow;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    access::{AppActor, AppScopes},
    id::{AppCallId, AppId, BotId, InstallationId, TraceId, UserId},
    model::{app_event::AppEventKind, handle::Handle},
    secret::{Sealed, TokenHash, TokenKind},
    time::Timestamp,
    words::words,
};

words! {
    /// Listing state of an app.
    pub enum Listing {
        /// Not requested.
        Unlisted = "unlisted",
        /// Waits for an administrator.
        Pending = "pending",
        /// Every user can find it.
        Listed = "listed",
        /// Rejected by an administrator.
        Rejected = "rejected",
    }
}

/// An app.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, FromRow, hub_macros::Api)]
#[row(table = "apps")]
#[api(name = "AppDetail", example = {
    "created_at": "2026-11-21T09:30:00.000Z",
    "description": "Tells the weather.",
    "events": ["command"],
    "homepage": "",
    "icon_url": "",
    "id": "app_01KAG00000E008000000000007",
    "installs": 1,
    "listing": "unlisted",
    "name": "Weather",
    "owner_id": "usr_01KAG00000E008000000000001",
    "owner_name": "ada",
    "redirect_uris": ["https://weather.example/oauth/callback"],
    "scopes": ["message:read"],
    "slug": "weather",
    "tools": [],
    "updated_at": "2026-11-21T09:30:00.000Z",
    "webhook_url": "https://weather.example/hub",
    "webhook_verified": true,
})]
pub struct App {
    /// Id of the app; also the `client_id` of OAuth.
    pub id: AppId,
    /// Id of the author.
    pub owner_id: UserId,
    /// Username of the author.
    pub owner_name: String,
    /// Name.
    pub name: String,
    /// Slug, unique on the hub.
    pub slug: String,
    /// Description.
    pub description: String,
    /// URL of the icon; may be empty.
    pub icon_url: String,
    /// URL of the homepage; may be empty.
    pub homepage: String,
    /// Redirect URIs, compared exactly.
    #[row(json)]
    pub redirect_uris: Vec<String>,
    /// URL at which the app starts its installation itself.
    pub setup_url: Option<String>,
    /// URL for events; visible to its author.
    pub webhook_url: Option<String>,
    /// Whether the server at this URL has returned the challenge. Events are sent to a verified URL only.
    pub webhook_verified: bool,
    /// Events to receive.
    #[row(json)]
    #[api(with(Vec<String>, |events: &Vec<AppEventKind>| events.iter().map(ToString::to_string).collect()))]
    pub events: Vec<AppEventKind>,
    /// Requested scopes.
    #[row(json)]
    pub scopes: AppScopes,
    /// Tools.
    #[row(json)]
    pub tools: Vec<AppTool>,
    /// Listing state.
    pub listing: Listing,
    /// Why an administrator rejected the listing.
    pub listing_reason: Option<String>,
    /// Number of bots with the app.
    #[row(number)]
    pub installs: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
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
    /// Kinds of apps in a list.
    #[derive(Default)]
    #[api(name = "AppFilter")]
    pub enum AppView {
        /// All apps that the caller may see.
        #[default]
        All = "all",
        /// The caller's own apps.
        Own = "own",
        /// Listed apps.
        Public = "public",
        /// Apps that are installed on the caller's bots.
        Installed = "installed",
    }
}

/// An API call of an app.
#[derive(Debug, Clone, PartialEq, Eq, FromRow, hub_macros::Api)]
#[row(table = "app_calls")]
pub struct AppCall {
    /// Id of the call.
    pub id: AppCallId,
    /// Id of the trace that the call belongs to.
    pub trace_id: Option<TraceId>,
    /// Method.
    pub method: String,
    /// Path, without its query.
    pub path: String,
    /// Beginning of the body: 4 KiB, without files and context tokens.
    pub request_body: String,
    /// HTTP status of the response.
    #[row(number)]
    #[api(name = "status_code")]
    pub status: u16,
    /// Beginning of the response: 4 KiB.
    pub response_body: String,
    /// Duration in milliseconds.
    #[row(number)]
    pub duration_ms: u64,
    /// When the response was sent.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, FromRow, hub_macros::Api)]
#[row(table = "app_installations")]
#[api(example = {
    "app_id": "app_01KAG00000E008000000000007",
    "app_name": "Weather",
    "app_slug": "weather",
    "app_token_prefix": "huba_…x7qa",
    "bot_id": "bot_01KAG00000E008000000000002",
    "config": {"repository": "***"},
    "created_at": "2026-11-21T09:30:00.000Z",
    "enabled": true,
    "handle": "weather",
    "id": "ins_01KAG00000E008000000000008",
    "scopes": ["message:read"],
    "tools": [],
})]
pub struct Installation {
    /// Id of the installation.
    pub id: InstallationId,
    /// Id of the app.
    pub app_id: AppId,
    /// Name of the app.
    pub app_name: String,
    /// Slug of the app.
    pub app_slug: String,
    /// Id of the bot.
    pub bot_id: BotId,
    /// Handle on this bot, without the `@`.
    pub handle: String,
    /// Granted scopes.
    #[row(json)]
    pub scopes: AppScopes,
    /// Tools on this bot only.
    #[row(json)]
    pub tools: Vec<AppTool>,
    /// Configuration by name; each value is masked: `***` and, of 12 characters or more, the last four.
    #[row(skip)]
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// Whether the app receives events and its token works.
    #[api(and(
        app_token_prefix: String = |installed: &Self| token_prefix(&installed.token_last4),
        "First and last characters of its token."
    ))]
    pub enabled: bool,
    /// When it was installed.
    pub created_at: Timestamp,
    /// The last four characters of its token.
    #[api(skip)]
    pub token_last4: String,
}

/// Returns the part of a token that is shown after its creation: its prefix and the last four characters.
pub fn token_prefix(last4: &str) -> String {
    format!("{}…{last4}", TokenKind::App.prefix())
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
    /// Hash by which a presented token is looked up.
    pub hash: TokenHash,
    /// Last four characters, shown in lists.
    pub last4: String,
    /// Time of creation.
    pub at: Timestamp,
    /// Until when the token before it stays valid; `None` ends it at once.
    pub old_until: Option<Timestamp>,
}

/// Source of the events that a socket receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SocketScope {
    /// One installation.
    Installation(InstallationId),
    /// All installations of an app that have no socket of their own.
    App(AppId),
}

/// An app on a bot that receives events.
#[derive(Debug, Clone)]
pub struct AppRuntime {
    /// Identity and permissions.
    pub app: AppActor,
    /// Handle by which people address it.
    pub handle: Handle,
    /// Events that it subscribed to.
    pub events: Vec<AppEventKind>,
    /// Its commands, without the slash, in lower case.
    pub commands: Vec<String>,
    /// Whether it has a webhook that has echoed a challenge. Without one, events wait for a socket.
    pub has_webhook: bool,
}

/// A tool of an app.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, hub_macros::Api)]
#[api(set("SetAppTool", "A tool of an app."))]
pub struct AppTool {
    /// Name for models: 1 to 64 letters, digits, `_` and `-`; unique in the app.
    #[api(required, length = 1..=64, pattern("^[A-Za-z0-9_-]+$", "weather"))]
    pub name: String,
    /// Description.
    #[serde(default)]
    #[api(length = 0..=1024)]
    pub description: String,
    /// Command with which people call it; a slash before it is removed. A tool without a command is for models only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[api(length = 0..=33)]
    pub command: Option<String>,
    /// JSON Schema of its arguments: the schema of an object, at most 16 KiB, without external references.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[api(
        with(Option<crate::openapi::Any>, crate::openapi::any),
        from(Option<crate::openapi::JsonObject>, crate::openapi::JsonObject::into_value),
    )]
    pub parameters: Option<Value>,
}

/// An app on a bot, with the tools that models may call.
#[derive(Debug, Clone)]
pub struct Toolbox {
    /// Identity and permissions.
    pub app: AppActor,
    /// Its name.
    pub app_name: String,
    /// URL that calls are sent to; verified by a challenge.
    pub webhook_url: String,
    /// Secret that signs calls.
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
