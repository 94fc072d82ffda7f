//! A test bed for apps: an app on a simulated bot of a real hub, controlled and observed through `/mock/…`, the
//! paths that test suites of published apps use. Everything in between works as in production.
//!
//! | call | body → answer |
//! |---|---|
//! | GET `/mock/config` | `{bot_id, app_id, inst_id, app_token, app_slug, …}`: what the app needs to know |
//! | PUT `/mock/config` | `{webhook_url?, redirect_uris?, setup_url?, events?, scopes?, tools?}` → the same as GET |
//! | POST `/mock/event` | `{sender?, content, type?, group_id?, base64?, filename?}` → `{ok, external_id, sender}` |
//! | GET `/mock/messages` | `?wait_ms=` → `{store_messages, provider_messages}`: what the app sent, and what people got of it |
//! | POST, DELETE `/mock/reset` | `{ok}`: what was sent until now is not listed any more |
//!
//! The four calls and their first fields are known from public documentation; PUT, `wait_ms`, `base64`, `filename`
//! and further fields are this hub's own. Ids and tokens are ordinary ones of the hub; a suite that expects others gets them by
//! [`MockSetup::app_token`] and [`MockSetup::bot_id`].

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::Mutex;

mod event;
mod fixture;
#[cfg(test)]
mod tests;

use event::NewEvent;
use fixture::Fixture;

use crate::{
    access::Actor,
    apps::{AppPatch, AppTool, InstallationPatch},
    error::{Error, ErrorCode, Result},
    hub::Hub,
    local_http::{Cut, LocalService, refuse_other_pages},
    network::sim::Simulator,
    secret::Secret,
};

/// Path prefix of the mock's calls.
pub const MOCK_PATH: &str = "/mock/";
/// The app's short name unless another is chosen.
pub const MOCK_SLUG: &str = "test-app";
/// Longest wait for a message of the app.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Settings of the app under test.
#[derive(Debug, Clone, Default)]
pub struct MockSetup {
    /// Its short name, by which people call it; [`MOCK_SLUG`] when absent.
    pub slug: Option<String>,
    /// URL that receives its events.
    pub webhook_url: Option<String>,
    /// Its commands, with or without the slash; others can be added at any time.
    pub commands: Vec<String>,
    /// App token that `/mock/config` reports, for suites that bring their own; the listener accepts it in place of
    /// the real one, which [`AppMock::token`] returns.
    pub app_token: Option<String>,
    /// Bot id that `/mock/config` reports, and name of the bot; the hub's own id is `hub_bot_id`.
    pub bot_id: Option<String>,
}

/// The mock. Cheap to clone; clones share everything. It creates its bot and its app at the first call.
#[derive(Clone)]
pub struct AppMock(Arc<Inner>);

struct Inner {
    hub: Hub,
    simulator: Simulator,
    setup: MockSetup,
    fixture: Mutex<Option<Fixture>>,
}

/// Changes to the app under test.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Configure {
    webhook_url: Option<String>,
    redirect_uris: Option<Vec<String>>,
    setup_url: Option<String>,
    events: Option<Vec<String>>,
    scopes: Option<Vec<String>>,
    tools: Option<Vec<AppTool>>,
}

impl AppMock {
    /// A mock on a hub that is started, whose network `sim` is this simulator.
    pub fn new(hub: Hub, simulator: Simulator, setup: MockSetup) -> Self {
        Self(Arc::new(Inner { hub, simulator, setup, fixture: Mutex::default() }))
    }

    /// Returns the configuration of the app under test, its token included.
    ///
    /// # Errors
    /// Errors of the creation of the bot and the app.
    pub async fn config(&self) -> Result<Value> {
        let mut fixture = self.0.fixture.lock().await;
        let fixture = self.0.fixture(&mut fixture).await?;
        self.0.document(fixture).await
    }

    /// The token that the hub gave the app.
    ///
    /// # Errors
    /// As [`AppMock::config`].
    pub async fn token(&self) -> Result<Secret> {
        let mut fixture = self.0.fixture.lock().await;
        Ok(self.0.fixture(&mut fixture).await?.token.clone())
    }

    /// Resets the position in the list of sends, after a reset of the simulator, whose numbers restart.
    pub(super) async fn start_over(&self) {
        if let Some(fixture) = &mut *self.0.fixture.lock().await {
            fixture.after = 0;
        }
    }

    async fn answer(&self, request: &Request<Bytes>) -> Result<Value> {
        refuse_other_pages(request.headers(), Some(self.0.hub.context().config.public_url.as_str()))?;
        let name = request.uri().path().strip_prefix(MOCK_PATH).unwrap_or_default();
        let mut held = self.0.fixture.lock().await;
        let fixture = self.0.fixture(&mut held).await?;
        match (request.method(), name) {
            (&Method::GET, "config") => self.0.document(fixture).await,
            (&Method::PUT | &Method::POST, "config") => {
                self.0.configure(fixture, read(request.body())?).await?;
                self.0.document(fixture).await
            }
            (&Method::POST, "event") => self.0.say(fixture, read(request.body())?).await,
            (&Method::GET, "messages") => {
                let fixture = fixture.clone();
                // Others may write while this waits.
                drop(held);
                self.0.messages(&fixture, wait(request.uri().query())?).await
            }
            (&Method::POST | &Method::DELETE, "reset") => {
                self.0.forget(fixture).await?;
                Ok(json!({ "ok": true }))
            }
            _ => Err(Error::not_found("mock call")),
        }
    }
}

impl Inner {
    /// Returns the configuration of the app under test.
    async fn document(&self, fixture: &Fixture) -> Result<Value> {
        let app = self.hub.apps().get(&Actor::Operator, fixture.app_id).await?;
        let installation = self.installation(fixture.bot_id, fixture.app_id).await?;
        let installation = installation.ok_or_else(|| Error::not_found("app on this bot"))?;
        let public_url = &self.hub.context().config.public_url;
        Ok(json!({
            "hub_url": public_url.as_str().trim_end_matches('/'),
            "bot_id": self.setup.bot_id.clone().unwrap_or_else(|| fixture.bot_id.to_string()),
            "hub_bot_id": fixture.bot_id,
            "app_id": app.id,
            "inst_id": installation.id,
            "installation_id": installation.id,
            "app_token": self.setup.app_token.as_deref().unwrap_or(fixture.token.expose()),
            "app_slug": app.slug,
            "handle": installation.handle,
            "webhook_secret": self.webhook_secret(app.id).await?.expose(),
            "webhook_url": app.webhook_url,
            "webhook_verified": app.webhook_verified,
            "redirect_uris": app.redirect_uris,
            "setup_url": app.setup_url,
            "events": app.events,
            "scopes": installation.scopes,
            "tools": app.tools,
        }))
    }

    async fn configure(&self, fixture: &Fixture, wanted: Configure) -> Result<()> {
        let Configure { webhook_url, redirect_uris, setup_url, events, scopes, tools } = wanted;
        let granted = scopes.clone();
        let patch =
            AppPatch { redirect_uris, setup_url, webhook_url, events, scopes, tools, ..AppPatch::default() };
        self.hub.apps().update(&Actor::Operator, fixture.app_id, patch).await?;
        if granted.is_some() {
            let patch = InstallationPatch { scopes: granted, ..InstallationPatch::default() };
            let apps = self.hub.apps();
            apps.change_installation(&Actor::Operator, fixture.bot_id, fixture.app_id, patch).await?;
        }
        self.try_url(fixture).await
    }

    /// Tries the app's URL for events again: an app that is being developed is often started later than the hub.
    async fn try_url(&self, fixture: &Fixture) -> Result<()> {
        let app = self.hub.apps().get(&Actor::Operator, fixture.app_id).await?;
        if app.webhook_url.is_some()
            && !app.webhook_verified
            && let Err(error) = self.hub.apps().verify_url(&Actor::Operator, app.id).await
        {
            tracing::info!(%error, "the app under test does not answer at its URL yet");
        }
        Ok(())
    }

    async fn say(&self, fixture: &Fixture, event: NewEvent) -> Result<Value> {
        let bot = self.hub.bots().get(&Actor::Operator, fixture.bot_id).await?;
        let (sender, message) = event.into_message(&bot.wx_id)?;
        self.try_url(fixture).await?;
        let external_id = self.simulator.inject(message)?;
        Ok(json!({ "ok": true, "external_id": external_id, "sender": sender }))
    }
}

#[async_trait]
impl LocalService for AppMock {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let (status, body) = match self.answer(&request).await {
            Ok(body) => (StatusCode::OK, body),
            Err(error) => {
                let described = json!({ "code": error.code().as_str(), "message": error.message() });
                (status_of(error.code()), json!({ "ok": false, "error": described }))
            }
        };
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = status;
        let json = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok(response)
    }
}

impl fmt::Debug for AppMock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppMock")
    }
}

fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::Conflict => StatusCode::CONFLICT,
        ErrorCode::UpstreamError => StatusCode::BAD_GATEWAY,
        ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| Error::invalid("body", error.to_string()))
}

/// Reads the time for which the caller waits for a message, at most [`MAX_WAIT`].
fn wait(query: Option<&str>) -> Result<Duration> {
    let given = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "wait_ms")
        .map_or(Ok(0), |(_, value)| value.parse());
    let millis = given.map_err(|_| Error::invalid("wait_ms", "must be a number"))?;
    Ok(Duration::from_millis(millis).min(MAX_WAIT))
}
