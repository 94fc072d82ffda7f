//! Response bodies about apps.

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
    /// Listing state of an app.
    Listing = apps::Listing {
        /// Not requested.
        Unlisted,
        /// Waits for an administrator.
        Pending,
        /// Every user can find it.
        Listed,
        /// Rejected by an administrator.
        Rejected,
    }
}

/// A tool of an app.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct AppToolView {
    /// Name for models.
    pub name: String,
    /// Description.
    pub description: String,
    /// Command with which people call it, without the slash; a tool without a command is for models only.
    pub command: Option<String>,
    /// JSON Schema of its arguments.
    pub parameters: Option<Any<Value>>,
}

/// An app.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none, example)]
pub struct AppDetailView {
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
    pub redirect_uris: Vec<String>,
    /// URL at which the app starts its installation itself.
    pub setup_url: Option<String>,
    /// URL for events; visible to its author.
    pub webhook_url: Option<String>,
    /// Whether the server at this URL has returned the challenge. Events are sent to a verified URL only.
    pub webhook_verified: bool,
    /// Events to receive.
    pub events: Vec<String>,
    /// Requested scopes.
    pub scopes: Vec<String>,
    /// Tools.
    pub tools: Vec<AppToolView>,
    /// Listing state.
    pub listing: Listing,
    /// Why an administrator rejected the listing.
    pub listing_reason: Option<String>,
    /// Number of bots with the app.
    pub installs: u64,
    /// When it was created.
    pub created_at: Time,
    /// When it was last changed.
    pub updated_at: Time,
}

/// A created app. The secrets are shown only here.
#[derive(Debug, Object)]
pub struct CreatedAppView {
    /// The app.
    #[oai(flatten)]
    pub app: AppDetailView,
    /// Secret that authenticates the app at the token endpoint.
    pub client_secret: ShownOnce,
    /// Secret that signs requests of the hub to the app.
    pub webhook_secret: ShownOnce,
}

/// An app on a bot.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none, example)]
pub struct InstallationView {
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
    pub scopes: Vec<String>,
    /// Tools on this bot only.
    pub tools: Vec<AppToolView>,
    /// Whether the app receives events and its token works.
    pub enabled: bool,
    /// First and last characters of its token.
    pub app_token_prefix: String,
    /// When it was installed.
    pub created_at: Time,
}

/// A created installation. The token is shown only here.
#[derive(Debug, Object)]
pub struct InstalledAppView {
    /// The installation.
    #[oai(flatten)]
    pub installation: InstallationView,
    /// Its token, for the bot API.
    pub app_token: ShownOnce,
}

/// An app that starts its installation itself.
#[derive(Debug, Object)]
pub struct NeedsOauthView {
    /// Always `true`.
    pub needs_oauth: Always<true>,
    /// Redirect target for the browser.
    pub oauth_redirect: String,
}

/// Result of an installation.
pub(crate) enum InstallAnswer {
    /// The app is installed.
    Done(Box<Json<Envelope<InstalledAppView>>>),
    /// The installation continues at the app.
    NeedsOauth(Json<Envelope<NeedsOauthView>>),
}

impl InstallAnswer {
    /// The response to an installation.
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
                description: "The installation, or the URL at which it starts.",
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

/// A new token, shown only here.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct RegeneratedTokenView {
    /// The token.
    pub app_token: ShownOnce,
    /// Until when the old token works; absent if it is invalid already.
    pub old_token_expires_at: Option<Time>,
}

enumeration! {
    /// State of an event.
    AppEventState = apps::AppEventState {
        /// Waits for delivery or for a retry.
        Pending,
        /// Delivered.
        Delivered,
        /// Failed permanently.
        Failed,
    }
}

/// An event for an app.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct AppEventView {
    /// Id of the event.
    pub id: AppEventId,
    /// Id of the trace.
    pub trace_id: Option<TraceId>,
    /// Type of the event.
    pub event_type: String,
    /// Payload.
    pub event: Any<Value>,
    /// State.
    pub status: AppEventState,
    /// Number of attempts.
    pub attempts: u32,
    /// When the next attempt is due.
    pub next_attempt_at: Option<Time>,
    /// When it was written to a socket of the app.
    pub written_at: Option<Time>,
    /// HTTP status of the last response.
    pub response_status: Option<u16>,
    /// Beginning of the last response: 4 KiB.
    pub response_body: String,
    /// The last error.
    pub error: Option<String>,
    /// Duration of the last attempt, in milliseconds.
    pub duration_ms: u64,
    /// When it occurred.
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

/// An API call of an app.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct AppCallView {
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
    pub status_code: u16,
    /// Beginning of the response: 4 KiB.
    pub response_body: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// When the response was sent.
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
