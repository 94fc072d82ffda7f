//! Response bodies about apps.

use std::collections::BTreeMap;

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
        view,
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

view! {
    /// A tool of an app.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct AppToolView from tool: apps::AppTool {
        /// Name for models.
        pub name: String,
        /// Description.
        pub description: String,
        /// Command with which people call it, without the slash; a tool without a command is for models only.
        pub command: Option<String>,
        /// JSON Schema of its arguments.
        pub parameters: Option<Any<Value>>,
    }
}

view! {
    /// An app.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none, example)]
    pub struct AppDetailView from app: App {
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
        pub events: Vec<String> = app.events.iter().map(ToString::to_string).collect(),
        /// Requested scopes.
        pub scopes: Vec<String> = app.scopes.words(),
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
}

view! {
    /// A created app. The secrets are shown only here.
    #[derive(Debug, Object)]
    pub struct CreatedAppView from created: CreatedApp {
        /// The app.
        #[oai(flatten)]
        pub app: AppDetailView,
        /// Secret that authenticates the app at the token endpoint.
        pub client_secret: ShownOnce,
        /// Secret that signs requests of the hub to the app.
        pub webhook_secret: ShownOnce,
    }
}

view! {
    /// An app on a bot.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none, example)]
    pub struct InstallationView from installation: Installation {
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
        pub scopes: Vec<String> = installation.scopes.words(),
        /// Tools on this bot only.
        pub tools: Vec<AppToolView>,
        /// Configuration by name; each value is masked: `***` and, of 12 characters or more, the last four.
        pub config: BTreeMap<String, String>,
        /// Whether the app receives events and its token works.
        pub enabled: bool,
        /// First and last characters of its token.
        pub app_token_prefix: String = token_prefix(&installation.token_last4),
        /// When it was installed.
        pub created_at: Time,
    }
}

view! {
    /// A created installation. The token is shown only here.
    #[derive(Debug, Object)]
    pub struct InstalledAppView from installed: InstalledApp {
        /// The installation.
        #[oai(flatten)]
        pub installation: InstallationView,
        /// Its token, for the bot API.
        pub app_token: ShownOnce,
    }
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

view! {
    /// A new token, shown only here.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct RegeneratedTokenView from token: RegeneratedToken {
        /// The token.
        pub app_token: ShownOnce,
        /// Until when the old token works; absent if it is invalid already.
        pub old_token_expires_at: Option<Time>,
    }
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

view! {
    /// An event for an app.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct AppEventView from event: apps::AppEvent {
        /// Id of the event.
        pub id: AppEventId,
        /// Id of the trace.
        pub trace_id: Option<TraceId>,
        /// Type of the event.
        pub event_type: String = event.kind,
        /// Payload.
        pub event: Any<Value> = Any(serde_json::from_str(&event.event).unwrap_or_default()),
        /// State.
        pub status: AppEventState = event.state.into(),
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
}

view! {
    /// An API call of an app.
    #[derive(Debug, Object)]
    #[oai(skip_serializing_if_is_none)]
    pub struct AppCallView from call: AppCall {
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
        pub status_code: u16 = call.status,
        /// Beginning of the response: 4 KiB.
        pub response_body: String,
        /// Duration in milliseconds.
        pub duration_ms: u64,
        /// When the response was sent.
        pub created_at: Time,
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
            config: BTreeMap::from([("repository".to_owned(), "***".to_owned())]),
            enabled: true,
            token_last4: "x7qa".to_owned(),
            created_at: MADE,
        }
        .into()
    }
}
