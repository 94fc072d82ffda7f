//! Responses of the authorization page and the token endpoint.

use hub_core::{
    Error,
    apps::{App, AppScopes, Authorization, Granted, TokenError},
    bots::Bot,
    id::{BotId, InstallationId},
    openapi::Api,
    secret::ShownOnce,
};
use maud::Markup;
use poem::{
    IntoResponse, Response,
    http::{StatusCode, header},
};
use poem_openapi::{
    ApiResponse,
    payload::Json,
    registry::{MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};

use super::{page, texts::Texts};
use crate::{
    api::external::SeeOther,
    envelope::{Envelope, status},
    wire::view,
};

/// A scope.
#[derive(Debug, Api)]
pub struct AbilityView {
    /// Name of the scope.
    pub scope: String,
    /// Description of the scope.
    pub words: String,
}

view! {
    /// An authorization request, as shown to the owner of the bot.
    #[derive(Debug, Api)]
    pub struct AuthorizationView from authorization: Authorization {
        /// The app.
        pub app: App,
        /// Target of the redirect.
        pub redirect_uri: String,
        /// Requested scopes.
        pub abilities: Vec<AbilityView> = abilities(authorization.scopes),
        /// Returned unchanged.
        pub state: Option<String>,
        /// The bot in the request.
        pub bot: Option<Bot>,
        /// The bots to choose from, if the request contains none.
        pub bots: Vec<Bot>,
        /// To be sent back with the decision.
        pub consent: String,
    }
}

/// The redirect after a decision.
#[derive(Debug, Api)]
pub struct DecidedView {
    /// The redirect URI of the app, with a code or an error in its query.
    pub redirect_to: String,
}

view! {
    /// A token, as in RFC 6749, section 5.1.
    #[derive(Debug, Api)]
    pub struct GrantedView from granted: Granted {
        /// Token of the app on the bot.
        pub access_token: ShownOnce = granted.app_token,
        /// Always `bearer`.
        pub token_type: String = "bearer".to_owned(),
        /// Granted scopes.
        pub scope: String = granted.scopes.to_string(),
        /// Id of the installation.
        pub installation_id: InstallationId,
        /// Id of the bot.
        pub bot_id: BotId,
        /// Secret that signs events.
        pub webhook_secret: ShownOnce,
    }
}

/// An error, as in RFC 6749, section 5.2.
#[derive(Debug, Api)]
pub struct OauthErrorView {
    /// Error code: `invalid_request`, `invalid_client`, `invalid_grant` or `unsupported_grant_type`.
    pub error: String,
    /// Description of the error.
    pub error_description: String,
}

fn abilities(scopes: AppScopes) -> Vec<AbilityView> {
    let view = |scope: hub_core::apps::AppScope| AbilityView {
        scope: scope.as_str().to_owned(),
        words: scope.in_words().to_owned(),
    };
    scopes.iter().map(view).collect()
}

/// The authorization request: a page, or JSON.
pub(crate) enum ConsentAnswer {
    /// For a browser.
    Page { status: StatusCode, html: Markup, policy: String },
    /// For a program.
    Told(Box<Json<Envelope<AuthorizationView>>>),
}

impl ConsentAnswer {
    /// The page of an authorization request.
    pub(super) fn page(authorization: &Authorization, texts: &Texts) -> Self {
        let (html, policy) = (page::consent(authorization, texts), page::policy(Some(authorization)));
        Self::Page { status: StatusCode::OK, html, policy }
    }

    /// The page of an invalid authorization request.
    pub(super) fn problem(error: &Error, texts: &Texts) -> Self {
        let (status, html) = (status(error.code()), page::problem(error, texts));
        Self::Page { status, html, policy: page::policy(None) }
    }
}

impl IntoResponse for ConsentAnswer {
    fn into_response(self) -> Response {
        match self {
            Self::Page { status, html, policy } => html
                .into_string()
                .with_content_type("text/html; charset=utf-8")
                .with_header(header::CONTENT_SECURITY_POLICY, policy)
                // Without an origin the form could not prove that it comes from here.
                .with_header(header::REFERRER_POLICY, "same-origin")
                .with_header(header::VARY, "Accept-Language")
                .with_status(status)
                .into_response(),
            Self::Told(json) => json.into_response(),
        }
    }
}

impl ApiResponse for ConsentAnswer {
    fn meta() -> MetaResponses {
        let html = MetaSchemaRef::Inline(Box::new(MetaSchema::new("string")));
        let content = vec![
            MetaMediaType {
                content_type: "application/json",
                schema: Envelope::<AuthorizationView>::schema_ref(),
            },
            MetaMediaType { content_type: "text/html", schema: html },
        ];
        let mut all = responses(StatusCode::OK, "The authorization request.", content);
        // A browser without a session is redirected to the sign-in page first.
        all.responses.extend(SeeOther::meta().responses);
        all
    }

    fn register(registry: &mut Registry) {
        Envelope::<AuthorizationView>::register(registry);
    }
}

/// The response to a decision.
pub(crate) enum Decided {
    /// A browser is redirected to the app.
    Go(String),
    /// A program gets the URL.
    Told(Json<Envelope<DecidedView>>),
}

impl IntoResponse for Decided {
    fn into_response(self) -> Response {
        match self {
            Self::Go(to) => SeeOther::to(to).into_response(),
            Self::Told(json) => json.into_response(),
        }
    }
}

impl ApiResponse for Decided {
    fn meta() -> MetaResponses {
        let schema = Envelope::<DecidedView>::schema_ref();
        let content = vec![MetaMediaType { content_type: "application/json", schema }];
        let mut all = responses(StatusCode::OK, "Target of the redirect.", content);
        all.responses.extend(SeeOther::meta().responses);
        all
    }

    fn register(registry: &mut Registry) {
        Envelope::<DecidedView>::register(registry);
    }
}

/// The response of the token endpoint.
pub(crate) enum TokenAnswer {
    /// A token.
    Granted(GrantedView),
    /// An error.
    Refused(TokenError),
}

impl IntoResponse for TokenAnswer {
    fn into_response(self) -> Response {
        let error = match self {
            Self::Granted(view) => return Json(view).into_response(),
            Self::Refused(error) => error,
        };
        let (status, word, why) = match error {
            TokenError::InvalidRequest(why) => (StatusCode::BAD_REQUEST, "invalid_request", why),
            TokenError::InvalidClient => {
                (StatusCode::UNAUTHORIZED, "invalid_client", "the app is unknown, or its secret is wrong")
            }
            // Also for a code that was used before, whose token has ended by now: RFC 6749, section 5.2, reserves 401
            // for an unknown client.
            TokenError::InvalidGrant(why) => (StatusCode::BAD_REQUEST, "invalid_grant", why),
            TokenError::UnsupportedGrantType => {
                (StatusCode::BAD_REQUEST, "unsupported_grant_type", "only authorization_code is supported")
            }
            TokenError::Failed(_) => (StatusCode::INTERNAL_SERVER_ERROR, "server_error", "internal error"),
        };
        let body = OauthErrorView { error: word.to_owned(), error_description: why.to_owned() };
        let response = Json(body).with_status(status);
        match word {
            "invalid_client" => response.with_header(header::WWW_AUTHENTICATE, "Basic").into_response(),
            _ => response.into_response(),
        }
    }
}

impl ApiResponse for TokenAnswer {
    fn meta() -> MetaResponses {
        let content =
            vec![MetaMediaType { content_type: "application/json", schema: GrantedView::schema_ref() }];
        let mut all = responses(StatusCode::OK, "A token.", content);
        // In the document its errors replace those of the hub: `openapi::finish`.
        let schema = OauthErrorView::schema_ref();
        let refusal = vec![MetaMediaType { content_type: "application/json", schema }];
        all.responses.extend(responses(StatusCode::UNAUTHORIZED, "No token.", refusal).responses);
        all
    }

    fn register(registry: &mut Registry) {
        GrantedView::register(registry);
        OauthErrorView::register(registry);
    }
}

fn responses(status: StatusCode, description: &'static str, content: Vec<MetaMediaType>) -> MetaResponses {
    let status = Some(status.as_u16());
    let response = MetaResponse { description, status, status_range: None, content, headers: Vec::new() };
    MetaResponses { responses: vec![response] }
}
