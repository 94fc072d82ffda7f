//! An app on a bot, by its token; and an app as a whole, by its webhook secret.

use hub_core::{ErrorCode, Hub, access::Actor, apps::sockets::AppHolder, secret::Secret};
use poem::{Request, RequestBody, Result};
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions, registry::Registry};

use super::{Presented, api_key, bearer, data, in_process_caller, judged};
use crate::{app_calls::CallNote, envelope::ApiError};

/// An app on a bot. Holding one is the proof that its token was good.
#[derive(Debug, Clone, Copy)]
pub struct AppClient(pub Actor);

impl AppClient {
    async fn of(request: &Request, token: &Secret) -> Result<Self, ApiError> {
        let actor = data::<Hub>(request).apps().authenticate_token(token.expose()).await;
        Self::known(request, judged(request, std::slice::from_ref(token), actor.map_err(ApiError::from))?)
    }

    fn known(request: &Request, actor: Actor) -> Result<Self, ApiError> {
        let client = Self(actor);
        if let Some(note) = request.data::<CallNote>() {
            note.is_of(client.0.app()?.installation_id);
        }
        Ok(client)
    }
}

impl<'a> ApiExtractor<'a> for AppClient {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        registry.create_security_scheme("appToken", bearer("The token `huba_…` of an app on a bot."));
    }

    fn security_schemes() -> Vec<&'static str> {
        vec!["appToken"]
    }

    async fn from_request(
        request: &'a Request,
        _: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> Result<Self> {
        if let Some(actor) = in_process_caller(request) {
            return Ok(Self::known(request, judged(request, &[], Ok(actor))?)?);
        }
        let presented = Presented::of(request.headers(), true);
        let missing =
            || ApiError::new(ErrorCode::Unauthorized, "send the app's token as Authorization: Bearer");
        let token = presented.explicit.ok_or_else(missing)?;
        Ok(Self::of(request, &token).await?)
    }
}

/// An app on a bot that opens a WebSocket: the token may then be in the query.
#[derive(Debug)]
pub struct AppSocketClient {
    /// The app.
    pub actor: Actor,
    /// Its token, which is looked at again whenever it sends.
    pub token: Secret,
}

impl<'a> ApiExtractor<'a> for AppSocketClient {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        AppClient::register(registry);
        let query = api_key("query", "token", "The token of an app on a bot; WebSockets only.");
        registry.create_security_scheme("appTokenQuery", query);
    }

    fn security_schemes() -> Vec<&'static str> {
        vec!["appToken", "appTokenQuery"]
    }

    async fn from_request(
        request: &'a Request,
        _: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> Result<Self> {
        let token = presented_or_queried(
            request,
            "token",
            "send the app's token as Authorization: Bearer, or as ?token=",
        )?;
        let AppClient(actor) = AppClient::of(request, &token).await?;
        Ok(Self { actor, token })
    }
}

/// An app as a whole. Holding one is the proof that its secret was good.
#[derive(Debug, Clone, Copy)]
pub struct AppOwner(pub AppHolder);

impl<'a> ApiExtractor<'a> for AppOwner {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        let header = bearer("The webhook secret of the app that the query names as `app_id`.");
        registry.create_security_scheme("appSecret", header);
        let query = api_key("query", "secret", "The same in the query.");
        registry.create_security_scheme("appSecretQuery", query);
    }

    fn security_schemes() -> Vec<&'static str> {
        vec!["appSecret", "appSecretQuery"]
    }

    async fn from_request(
        request: &'a Request,
        _: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> Result<Self> {
        let message =
            "name the app as ?app_id= and send its webhook secret as Authorization: Bearer, or as ?secret=";
        let secret = presented_or_queried(request, "secret", message)?;
        let app_id = queried(request, "app_id").unwrap_or_default();
        let holder = data::<Hub>(request).apps().authenticate_app(&app_id, secret.expose()).await;
        Ok(Self(judged(request, std::slice::from_ref(&secret), holder.map_err(ApiError::from))?))
    }
}

/// The credential in the headers, or in the query under this name; without either, an error that explains what to
/// send.
fn presented_or_queried(request: &Request, name: &str, message: &'static str) -> Result<Secret, ApiError> {
    let presented = Presented::of(request.headers(), true).explicit;
    let secret = presented.or_else(|| queried(request, name).map(Secret::new));
    secret.ok_or_else(|| ApiError::new(ErrorCode::Unauthorized, message))
}

/// A value of the query, unless it is empty.
fn queried(request: &Request, wanted: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(request.uri().query()?.as_bytes());
    let found = pairs.find(|(name, value)| name == wanted && !value.is_empty());
    found.map(|(_, value)| value.into_owned())
}
