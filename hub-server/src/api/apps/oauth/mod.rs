//! Installing apps by OAuth: the authorization page, the token endpoint, and the paths that published apps use for
//! both.

use hub_core::{
    Error, ErrorCode, Hub,
    access::Actor,
    apps::{AuthorizationRequest, Decision, Granted, TokenError, TokenRequest},
    id::{AppId, BotId},
};
use poem::{Request, RequestBody, http::StatusCode, web::Data};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions, OpenApi,
    param::{Path, Query},
    payload::Json,
    registry::Registry,
};

mod answers;
mod page;
mod requests;
#[cfg(test)]
mod tests;
mod texts;

pub use answers::{AuthorizationView, DecidedView, GrantedView};
use answers::{ConsentAnswer, Decided, TokenAnswer};
pub use requests::{Choice, DecideApp, ExchangeCode, ExchangeCodeOlder};

use crate::{
    api::{
        Tag,
        external::{SeeOther, wants_a_page},
    },
    appearance::Appearance,
    credentials::User,
    envelope::{ApiError, Bare, bare, ok},
    wire::{FormOrJson, Text},
};

/// OAuth for apps.
#[derive(Debug, Clone, Copy)]
pub struct AppOauthApi;

type Word = Text<0, 1024>;

#[OpenApi(tag = "Tag::Apps")]
impl AppOauthApi {
    /// Shows the authorization page of an app
    ///
    /// A page for browsers, JSON for programs. `client_id` is the id of the app; `redirect_uri` is compared exactly
    /// with its registered ones; PKCE with `S256` is always required. An invalid request is reported here, without a
    /// redirect. Nothing is granted by this request.
    #[oai(path = "/api/auth/oauth/authorize", method = "get", operation_id = "authorizeApp")]
    #[expect(clippy::too_many_arguments, reason = "each is a parameter of OAuth")]
    async fn authorize(
        &self,
        hub: Data<&Hub>,
        person: Person,
        request: &Request,
        /// Id of the app.
        client_id: Query<Word>,
        /// One of the registered redirect URIs; may be absent if there is only one.
        redirect_uri: Query<Option<Word>>,
        /// `code`.
        response_type: Query<Option<Word>>,
        /// Scopes, separated by spaces; everything that the app requests if absent.
        scope: Query<Option<Word>>,
        /// Returned unchanged; at most 512 characters.
        state: Query<Option<Word>>,
        /// Id of the bot; the owner chooses if absent.
        bot_id: Query<Option<Word>>,
        /// SHA-256 of the verifier in base64url.
        code_challenge: Query<Option<Word>>,
        /// `S256`.
        code_challenge_method: Query<Option<Word>>,
    ) -> Result<ConsentAnswer, ApiError> {
        let text = |text: Option<Word>| text.map(String::from);
        let requested = AuthorizationRequest {
            client_id: client_id.0.into(),
            redirect_uri: text(redirect_uri.0),
            response_type: text(response_type.0),
            scope: text(scope.0),
            state: text(state.0),
            bot_id: text(bot_id.0),
            code_challenge: text(code_challenge.0),
            code_challenge_method: text(code_challenge_method.0),
        };
        consent(hub.0, &person.0, request, requested).await
    }

    /// Grants or denies the authorization of an app
    ///
    /// With the parameters of the authorization request and its `consent`. After the form of the page, the browser is
    /// redirected to the app; JSON gets the URL.
    #[oai(path = "/api/auth/oauth/authorize", method = "post", operation_id = "decideApp")]
    async fn decide(
        &self,
        hub: Data<&Hub>,
        user: User,
        body: FormOrJson<DecideApp>,
    ) -> Result<Decided, ApiError> {
        let FormOrJson { value, is_form } = body;
        let redirect_to = hub.apps().decide(&user.0, Decision::from(value)).await?;
        Ok(if is_form { Decided::Go(redirect_to) } else { Decided::Told(ok(DecidedView { redirect_to })?) })
    }

    /// Exchanges a code for a token of an app
    ///
    /// As in RFC 6749, section 4.1.3, with the verifier of RFC 7636; a form or JSON. A code works once, within 60
    /// seconds; presenting it again revokes the token that it was used for. Errors are those of RFC 6749, section
    /// 5.2: `{error, error_description}` with 400, or 401 for `invalid_client`.
    #[oai(path = "/api/auth/oauth/token", method = "post", operation_id = "exchangeAppCode")]
    async fn token(
        &self,
        hub: Data<&Hub>,
        request: &Request,
        body: FormOrJson<ExchangeCode>,
    ) -> Result<TokenAnswer, ApiError> {
        let request = body.value.into_request(request.headers())?;
        Ok(match hub.apps().exchange(request).await {
            Ok(granted) => TokenAnswer::Granted(granted.into()),
            Err(TokenError::Failed(error)) => return Err(error.into()),
            Err(error) => TokenAnswer::Refused(error),
        })
    }

    /// Shows the authorization page of an app, under the path of the app
    ///
    /// Like the authorization page, for the only registered redirect URI and all scopes that the app requests.
    #[oai(path = "/api/apps/:id/oauth/authorize", method = "get", operation_id = "authorizeAppOlder")]
    #[expect(clippy::too_many_arguments, reason = "each is a parameter of OAuth")]
    async fn authorize_older(
        &self,
        hub: Data<&Hub>,
        person: Person,
        request: &Request,
        id: Path<AppId>,
        /// Id of the bot.
        bot_id: Query<Option<Word>>,
        /// Returned unchanged; at most 512 characters.
        state: Query<Option<Word>>,
        /// SHA-256 of the verifier in base64url.
        code_challenge: Query<Option<Word>>,
    ) -> Result<ConsentAnswer, ApiError> {
        let requested = AuthorizationRequest {
            client_id: id.0.to_string(),
            state: state.0.map(String::from),
            bot_id: bot_id.0.map(String::from),
            code_challenge: code_challenge.0.map(String::from),
            code_challenge_method: Some("S256".to_owned()),
            ..AuthorizationRequest::default()
        };
        consent(hub.0, &person.0, request, requested).await
    }

    /// Exchanges a code for a token of an app, under the path of the app
    ///
    /// For programs without grant types. The fields are at the top level, where published apps read them, and also in
    /// `data`.
    #[oai(path = "/api/apps/:id/oauth/exchange", method = "post", operation_id = "exchangeAppCodeOlder")]
    async fn exchange_older(
        &self,
        hub: Data<&Hub>,
        id: Path<AppId>,
        body: FormOrJson<ExchangeCodeOlder>,
    ) -> Result<Json<Bare<Granted>>, ApiError> {
        let request = TokenRequest {
            client_id: Some(id.0.to_string()),
            code: Some(body.value.code.0),
            code_verifier: Some(body.value.code_verifier.0),
            older: true,
            ..TokenRequest::default()
        };
        match hub.apps().exchange(request).await {
            Ok(granted) => bare(granted),
            Err(error) => Err(refused(error)),
        }
    }

    /// Starts the installation of an app at its setup URL
    ///
    /// Redirects the browser to the app's `setup_url`, with the hub, the app, the bot, a state, and a return URL.
    #[oai(path = "/api/apps/:id/oauth/setup", method = "get", operation_id = "setUpApp")]
    async fn set_up(
        &self,
        hub: Data<&Hub>,
        person: Person,
        id: Path<AppId>,
        /// Id of the bot.
        bot_id: Query<BotId>,
    ) -> Result<SeeOther, ApiError> {
        Ok(SeeOther::to(hub.apps().setup(&person.0, id.0, bot_id.0).await?))
    }
}

async fn consent(
    hub: &Hub,
    actor: &Actor,
    request: &Request,
    requested: AuthorizationRequest,
) -> Result<ConsentAnswer, ApiError> {
    let page = wants_a_page(request.headers());
    let texts = texts::choose(Appearance::of(request.headers()));
    match hub.apps().authorization(actor, &requested).await {
        Ok(authorization) if page => Ok(ConsentAnswer::page(&authorization, texts)),
        Ok(authorization) => Ok(ConsentAnswer::Told(Box::new(ok(authorization.into())?))),
        Err(error) if page && error.code() != ErrorCode::Internal => {
            Ok(ConsentAnswer::problem(&error, texts))
        }
        Err(error) => Err(error.into()),
    }
}

/// An error of the older path, which responds like the rest of the hub: an invalid or expired code is a credential,
/// so 401.
fn refused(error: TokenError) -> ApiError {
    match error {
        TokenError::InvalidRequest(why) => Error::invalid("code_verifier", why).into(),
        TokenError::InvalidClient => Error::not_found("app").into(),
        TokenError::InvalidGrant(why) => ApiError::new(ErrorCode::InvalidToken, why),
        TokenError::UnsupportedGrantType => Error::invalid("grant_type", "is not supported").into(),
        TokenError::Failed(error) => error.into(),
    }
}

/// A signed-in user. A browser without a session is redirected to the sign-in page and back.
#[derive(Debug, Clone, Copy)]
pub struct Person(pub Actor);

impl<'a> ApiExtractor<'a> for Person {
    const TYPES: &'static [ApiExtractorType] = User::TYPES;
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        User::register(registry);
    }

    fn security_schemes() -> Vec<&'static str> {
        User::security_schemes()
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        options: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        match User::from_request(request, body, options).await {
            Ok(User(actor)) => Ok(Self(actor)),
            Err(error) if error.status() == StatusCode::UNAUTHORIZED && wants_a_page(request.headers()) => {
                let back = request.uri().path_and_query().map_or("/", |path| path.as_str());
                let back: String = url::form_urlencoded::byte_serialize(back.as_bytes()).collect();
                let sign_in = SeeOther::to(format!("/login?redirect={back}"));
                Err(poem::Error::from_response(poem::IntoResponse::into_response(sign_in)))
            }
            Err(error) => Err(error),
        }
    }
}
