//! What callers see of apps.

use hub_core::{
    apps::{
        self, App, AppCall, AppScopes, CreatedApp, Install, Installation, InstalledApp, RegeneratedToken,
        token_prefix,
    },
    time::Timestamp,
};
use poem::{IntoResponse, Response};
use poem_openapi::{
    ApiResponse, Object,
    payload::Json,
    registry::{MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry},
    types::{Any, Example, Type},
};
use serde_json::Value;

use crate::{
    envelope::{Always, ApiError, Envelope, ok},
    wire::{
        AppCallId, AppEventId, AppId, BotId, InstallationId, ShownOnce, Time, TraceId, UserId, enumeration,
    },
};

enumeration! {
    /// Whether everybody may find an app.
    Listing = apps::Listing {
        /// Its author has not asked for it.
        Unlisted,
        /// It waits for an administrator.
        Pending,
        /// Everybody finds it.
        Listed,
        /// An administrator refused.
        Rejected,
    }
}

/// A tool of an app.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct AppToolView {
    /// Its name for models.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The command by which people call it, without the slash; a tool without one is for models alone.
    pub command: Option<String>,
    /// JSON Schema of its arguments.
    pub parameters: Option<Any<Value>>,
}

/// An app.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none, example)]
pub struct AppDetailView {
    /// Id; also the `client_id` of OAuth.
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
    pub redirect_uris: Vec<String>,
    /// Where its installation begins, when the app begins it itself.
    pub setup_url: Option<String>,
    /// Where events go; shown to its author.
    pub webhook_url: Option<String>,
    /// Whether whoever answers there has echoed the challenge. Events go to no other address.
    pub webhook_verified: bool,
    /// What it wants to be told of.
    pub events: Vec<String>,
    /// What it asks for.
    pub scopes: Vec<String>,
    /// What it can be asked to do.
    pub tools: Vec<AppToolView>,
    /// Whether everybody may find it.
    pub listing: Listing,
    /// Why an administrator refused.
    pub listing_reason: Option<String>,
    /// Bots it is installed on.
    pub installs: u64,
    /// When it was made.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
}

/// A new app, and the only sight of its secrets.
#[derive(Debug, Object)]
pub struct CreatedAppView {
    /// The app.
    #[oai(flatten)]
    pub app: AppDetailView,
    /// Proves to the token endpoint who asks.
    pub client_secret: ShownOnce,
    /// Signs what the hub sends to the app.
    pub webhook_secret: ShownOnce,
}

/// An app on a bot.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none, example)]
pub struct InstallationView {
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
    pub scopes: Vec<String>,
    /// Tools that it has on this bot alone.
    pub tools: Vec<AppToolView>,
    /// Whether it is told and may do anything.
    pub enabled: bool,
    /// Beginning and end of its token.
    pub app_token_prefix: String,
    /// When it was installed.
    pub created_at: Time,
}

/// A new installation, and the only sight of its token.
#[derive(Debug, Object)]
pub struct InstalledAppView {
    /// The installation.
    #[oai(flatten)]
    pub installation: InstallationView,
    /// Its token, for the bot API.
    pub app_token: ShownOnce,
}

/// An app that begins its installation itself.
#[derive(Debug, Object)]
pub struct NeedsOauthView {
    /// Always `true`.
    pub needs_oauth: Always<true>,
    /// Where the browser has to go.
    pub oauth_redirect: String,
}

/// What came of installing an app.
pub(crate) enum InstallAnswer {
    /// It is there.
    Done(Box<Json<Envelope<InstalledAppView>>>),
    /// It is installed elsewhere.
    NeedsOauth(Json<Envelope<NeedsOauthView>>),
}

impl InstallAnswer {
    /// The answer to an installation.
    pub(super) fn of(install: Install) -> Result<Self, ApiError> {
        Ok(match install {
            Install::Done(installed) => Self::Done(Box::new(ok((*installed).into())?)),
            Install::AtTheApp(oauth_redirect) => {
                Self::NeedsOauth(ok(NeedsOauthView { needs_oauth: Always, oauth_redirect })?)
            }
        })
    }
}

impl IntoResponse for InstallAnswer {
    fn into_response(self) -> Response {
        match self {
            Self::Done(json) => json.into_response(),
            Self::NeedsOauth(json) => json.into_response(),
        }
    }
}

impl ApiResponse for InstallAnswer {
    fn meta() -> MetaResponses {
        let either =
            vec![Envelope::<InstalledAppView>::schema_ref(), Envelope::<NeedsOauthView>::schema_ref()];
        let schema = MetaSchemaRef::Inline(Box::new(MetaSchema { any_of: either, ..MetaSchema::ANY }));
        MetaResponses {
            responses: vec![MetaResponse {
                description: "The installation, or where it begins.",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType { content_type: "application/json", schema }],
                headers: Vec::new(),
            }],
        }
    }

    fn register(registry: &mut Registry) {
        Envelope::<InstalledAppView>::register(registry);
        Envelope::<NeedsOauthView>::register(registry);
    }
}

/// A new token; the only sight of it.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct RegeneratedTokenView {
    /// The token.
    pub app_token: ShownOnce,
    /// Until when the old one works; absent when it ended at once.
    pub old_token_expires_at: Option<Time>,
}

enumeration! {
    /// Where an event stands.
    AppEventState = apps::AppEventState {
        /// It is still to be told, or to be told again.
        Pending,
        /// The app took it.
        Delivered,
        /// It was given up.
        Failed,
    }
}

/// What an app was told, or is to be.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct AppEventView {
    /// Id.
    pub id: AppEventId,
    /// The trace of what it tells of.
    pub trace_id: Option<TraceId>,
    /// Its kind.
    pub event_type: String,
    /// The event.
    pub event: Any<Value>,
    /// Where it stands.
    pub status: AppEventState,
    /// Attempts made.
    pub attempts: u32,
    /// When it is tried again.
    pub next_attempt_at: Option<Time>,
    /// When it was written to a socket of the app.
    pub written_at: Option<Time>,
    /// Status of the last answer.
    pub response_status: Option<u16>,
    /// Beginning of the last answer: 4 KiB.
    pub response_body: String,
    /// What went wrong last.
    pub error: Option<String>,
    /// How long the last attempt took, in milliseconds.
    pub duration_ms: u64,
    /// When it happened.
    pub created_at: Time,
}

impl From<apps::AppEvent> for AppEventView {
    fn from(event: apps::AppEvent) -> Self {
        Self {
            id: event.id.into(),
            trace_id: event.trace_id.map(Into::into),
            event_type: event.kind,
            event: Any(serde_json::from_str(&event.event).unwrap_or_default()),
            status: event.state.into(),
            attempts: event.attempts,
            next_attempt_at: event.next_attempt_at.map(Time),
            written_at: event.written_at.map(Time),
            response_status: event.response_status,
            response_body: event.response_body,
            error: event.error,
            duration_ms: event.duration_ms,
            created_at: event.created_at.into(),
        }
    }
}

/// A call of an app.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct AppCallView {
    /// Id.
    pub id: AppCallId,
    /// The trace of what it caused.
    pub trace_id: Option<TraceId>,
    /// Method.
    pub method: String,
    /// Path, without its query.
    pub path: String,
    /// Beginning of the body: 4 KiB, without files and permissions to answer.
    pub request_body: String,
    /// Status of the answer.
    pub status_code: u16,
    /// Beginning of the answer: 4 KiB.
    pub response_body: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// When it was answered.
    pub created_at: Time,
}

impl From<AppCall> for AppCallView {
    fn from(call: AppCall) -> Self {
        Self {
            id: call.id.into(),
            trace_id: call.trace_id.map(Into::into),
            method: call.method,
            path: call.path,
            request_body: call.request_body,
            status_code: call.status,
            response_body: call.response_body,
            duration_ms: call.duration_ms,
            created_at: call.created_at.into(),
        }
    }
}

impl From<App> for AppDetailView {
    fn from(app: App) -> Self {
        Self {
            id: app.id.into(),
            owner_id: app.owner_id.into(),
            owner_name: app.owner_name,
            name: app.name,
            slug: app.slug,
            description: app.description,
            icon_url: app.icon_url,
            homepage: app.homepage,
            redirect_uris: app.redirect_uris,
            setup_url: app.setup_url,
            webhook_url: app.webhook_url,
            webhook_verified: app.webhook_verified,
            events: app.events.iter().map(ToString::to_string).collect(),
            scopes: app.scopes.words(),
            tools: app.tools.into_iter().map(Into::into).collect(),
            listing: app.listing.into(),
            listing_reason: app.listing_reason,
            installs: app.installs,
            created_at: app.created_at.into(),
            updated_at: app.updated_at.into(),
        }
    }
}

impl From<CreatedApp> for CreatedAppView {
    fn from(created: CreatedApp) -> Self {
        Self {
            app: created.app.into(),
            client_secret: ShownOnce(created.client_secret),
            webhook_secret: ShownOnce(created.webhook_secret),
        }
    }
}

impl From<Installation> for InstallationView {
    fn from(installation: Installation) -> Self {
        Self {
            id: installation.id.into(),
            app_id: installation.app_id.into(),
            app_name: installation.app_name,
            app_slug: installation.app_slug,
            bot_id: installation.bot_id.into(),
            handle: installation.handle,
            scopes: installation.scopes.words(),
            tools: installation.tools.into_iter().map(Into::into).collect(),
            enabled: installation.enabled,
            app_token_prefix: token_prefix(&installation.token_last4),
            created_at: installation.created_at.into(),
        }
    }
}

impl From<InstalledApp> for InstalledAppView {
    fn from(installed: InstalledApp) -> Self {
        Self { installation: installed.installation.into(), app_token: ShownOnce(installed.app_token) }
    }
}

impl From<RegeneratedToken> for RegeneratedTokenView {
    fn from(token: RegeneratedToken) -> Self {
        Self {
            app_token: ShownOnce(token.app_token),
            old_token_expires_at: token.old_token_expires_at.map(Time),
        }
    }
}

const MADE: Timestamp = Timestamp::from_millis(1_795_253_400_000);

impl Example for AppDetailView {
    fn example() -> Self {
        App {
            id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0007),
            owner_id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0001),
            owner_name: "ada".to_owned(),
            name: "Weather".to_owned(),
            slug: "weather".to_owned(),
            description: "Tells the weather.".to_owned(),
            icon_url: String::new(),
            homepage: String::new(),
            redirect_uris: vec!["https://weather.example/oauth/callback".to_owned()],
            setup_url: None,
            webhook_url: Some("https://weather.example/hub".to_owned()),
            webhook_verified: true,
            events: vec![apps::AppEventKind::Command],
            scopes: AppScopes::default().with(apps::AppScope::MessageRead),
            tools: Vec::new(),
            listing: apps::Listing::Unlisted,
            listing_reason: None,
            installs: 1,
            created_at: MADE,
            updated_at: MADE,
        }
        .into()
    }
}

impl Example for InstallationView {
    fn example() -> Self {
        Installation {
            id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0008),
            app_id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0007),
            app_name: "Weather".to_owned(),
            app_slug: "weather".to_owned(),
            bot_id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0002),
            handle: "weather".to_owned(),
            scopes: AppScopes::default().with(apps::AppScope::MessageRead),
            tools: Vec::new(),
            enabled: true,
            token_last4: "x7qa".to_owned(),
            created_at: MADE,
        }
        .into()
    }
}

impl From<apps::AppTool> for AppToolView {
    fn from(tool: apps::AppTool) -> Self {
        Self {
            name: tool.name,
            description: tool.description,
            command: tool.command,
            parameters: tool.parameters.map(Any),
        }
    }
}
