//! Sign-in with, and linking of, accounts at external providers.

use hub_core::{
    ErrorCode, Hub,
    accounts::{self, ExternalAccount, ExternalReturn, MAX_RETURN_PATH, ReturnError},
    openapi::Api,
    secret,
};
use poem::{
    IntoResponse,
    http::{HeaderMap, Method, StatusCode, header},
    web::Data,
};
use poem_openapi::{
    ApiResponse, OpenApi,
    param::{Path, Query},
    registry::{MetaHeader, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry},
};

use super::{Tag, sign_in::Visitor};
use crate::{
    credentials::{User, check_origin},
    envelope::{ApiError, ApiResult, Empty, ok},
    wire::{Cursor, Limit, Page, Text, page_request},
};

/// Accounts at external providers.
#[derive(Debug, Clone, Copy)]
pub struct ExternalApi;

/// An external provider for sign-in.
#[derive(Debug, Api)]
#[api(example = {
    "display_name": "GitHub",
    "name": "github"
})]
pub struct ProviderView {
    /// Name in paths.
    pub name: String,
    /// Name on buttons.
    pub display_name: String,
}

/// A redirect of the browser.
pub(crate) struct SeeOther {
    to: String,
    cookies: Vec<String>,
}

#[OpenApi]
impl ExternalApi {
    /// Lists the external providers
    ///
    /// The providers that are configured; a sign-in page shows a button for each.
    #[oai(
        path = "/api/auth/oauth/providers",
        method = "get",
        operation_id = "listProviders",
        tag = "Tag::Auth"
    )]
    #[expect(clippy::unused_async, reason = "poem-openapi takes async methods only")]
    async fn providers(
        &self,
        hub: Data<&Hub>,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<ProviderView>> {
        let view = |provider: &accounts::Provider| ProviderView {
            name: provider.name.clone(),
            display_name: provider.display_name.clone(),
        };
        let list = "providers";
        let page = page_request(list, limit.0, cursor.0.as_ref())?;
        let all: Vec<_> = hub.accounts().providers().iter().map(view).collect();
        ok(hub_core::page::Page::of_all(list, &page, all, |provider| provider.name.clone()).into())
    }

    /// Starts a sign-in with an external provider
    ///
    /// For browsers: redirects to the provider, which redirects back to the callback. With `link`, the account is
    /// linked to the signed-in user instead; this requires a request from the hub's own pages and a session that
    /// began within the last 15 minutes.
    #[oai(
        path = "/api/auth/oauth/:provider",
        method = "get",
        operation_id = "startExternalLogin",
        tag = "Tag::Auth"
    )]
    async fn start(
        &self,
        visitor: Visitor<'_>,
        provider: Path<Text<1, 64>>,
        /// Return address: a path of the hub with its query. Anything else counts as `/`.
        redirect: Query<Option<Text<0, MAX_RETURN_PATH>>>,
        /// Whether to link the account to the signed-in user.
        link: Query<Option<bool>>,
    ) -> Result<SeeOther, ApiError> {
        let (headers, redirect) = (visitor.sign_in.headers, redirect.0.as_deref());
        match begin(&visitor, &provider.0, link.0 == Some(true), redirect).await {
            Err(error) if wants_a_page(headers) => on_sign_in_page(error, redirect),
            begun => begun,
        }
    }

    /// Callback of an external provider
    ///
    /// Signs in by cookie and redirects. Errors at the provider are shown on the sign-in page. A sign-in that began
    /// in another browser is rejected.
    #[oai(
        path = "/api/auth/callback/:provider",
        method = "get",
        operation_id = "finishExternalLogin",
        tag = "Tag::Auth"
    )]
    async fn finish(
        &self,
        visitor: Visitor<'_>,
        provider: Path<Text<1, 64>>,
        /// Authorization code of the provider.
        code: Query<Option<Text<0, 4096>>>,
        /// State that the hub sent.
        state: Query<Option<Text<0, 512>>>,
        /// Error of the provider.
        error: Query<Option<Text<0, 256>>>,
        /// Issuer, as the provider reports it.
        iss: Query<Option<Text<0, 2048>>>,
    ) -> Result<SeeOther, ApiError> {
        let Visitor { sign_in, actor } = visitor;
        let is_browser = wants_a_page(sign_in.headers);
        if let Err(error) = sign_in.limits.check_auth(sign_in.network) {
            return if is_browser { on_sign_in_page(error.into(), None) } else { Err(error.into()) };
        }
        let back = ExternalReturn {
            state: state.0.map(String::from).unwrap_or_default(),
            code: code.0.map(|code| secret::Secret::new(String::from(code))),
            error: error.0.map(String::from),
            iss: iss.0.map(String::from),
        };
        let (flow, actor) = (sign_in.flow.as_deref(), actor.as_ref());
        let finished =
            sign_in.hub.accounts().finish_external(&provider.0, back, flow, actor, &sign_in.client).await;
        match finished {
            Ok((Some(signed_in), to)) => {
                Ok(SeeOther { to, cookies: sign_in.session_cookies(&signed_in).await? })
            }
            Ok((None, to)) => Ok(SeeOther::to(to)),
            Err(error) => failed(error, is_browser),
        }
    }

    /// Lists the user's linked accounts
    ///
    /// Accounts of external providers with which the user can sign in.
    #[oai(
        path = "/api/user/oauth-accounts",
        method = "get",
        operation_id = "listLinkedAccounts",
        tag = "Tag::User"
    )]
    async fn list(
        &self,
        hub: Data<&Hub>,
        user: User,
        limit: Query<Option<Limit>>,
        cursor: Query<Option<Cursor>>,
    ) -> ApiResult<Page<ExternalAccount>> {
        let list = format!("external:{}", user.0.principal());
        let page = page_request(&list, limit.0, cursor.0.as_ref())?;
        let all = hub.accounts().external_accounts(&user.0).await?;
        ok(hub_core::page::Page::of_all(&list, &page, all, |account| account.provider.clone()).into())
    }

    /// Unlinks an external account
    ///
    /// Requires a session that began within the last 15 minutes. The last sign-in method cannot be removed.
    #[oai(
        path = "/api/user/oauth-accounts/:provider",
        method = "delete",
        operation_id = "unlinkAccount",
        tag = "Tag::User"
    )]
    async fn unlink(&self, hub: Data<&Hub>, user: User, provider: Path<Text<1, 64>>) -> ApiResult<Empty> {
        hub.accounts().unlink_external(&user.0, &provider.0).await?;
        ok(Empty {})
    }
}

/// Redirects to the provider, to sign in or to link an account.
async fn begin(
    visitor: &Visitor<'_>,
    provider: &str,
    link: bool,
    redirect: Option<&str>,
) -> Result<SeeOther, ApiError> {
    let Visitor { sign_in, actor } = visitor;
    sign_in.limits.check_auth(sign_in.network)?;
    let actor = if link {
        let missing = || ApiError::new(ErrorCode::Unauthorized, "sign in to link an account");
        let actor = actor.as_ref().ok_or_else(missing)?;
        // A page of another site could otherwise link an account of its own.
        check_origin(sign_in.settings, &Method::POST, sign_in.headers)?;
        Some(actor)
    } else {
        None
    };
    let accounts = sign_in.hub.accounts();
    let browser = accounts.browser(sign_in.flow.as_deref());
    let start = accounts.begin_external(provider, actor, redirect, &browser).await?;
    Ok(SeeOther { to: start.url.into(), cookies: vec![sign_in.flow_cookie(&browser)] })
}

/// Responds to a browser with a page that explains what to do, to a program with the envelope.
fn failed(error: ReturnError, page: bool) -> Result<SeeOther, ApiError> {
    match error {
        ReturnError::Provider(word) => Ok(SeeOther::to(format!("/login?error={word}"))),
        ReturnError::Ceremony(_) if page => Ok(SeeOther::to("/login?error=expired".to_owned())),
        ReturnError::Refused(error) if page => on_sign_in_page(error.into(), None),
        ReturnError::Ceremony(error) | ReturnError::Refused(error) => Err(error.into()),
    }
}

/// Redirects to the sign-in page, which explains the error in the language of the visitor; from there they go on to
/// `redirect`. The page knows no sentence for other errors: they have a page of their own.
fn on_sign_in_page(error: ApiError, redirect: Option<&str>) -> Result<SeeOther, ApiError> {
    let word = match error.inner().code() {
        ErrorCode::UpstreamError => "provider_failed",
        ErrorCode::RateLimited => "too_many",
        ErrorCode::NotFound => "no_provider",
        ErrorCode::Unauthorized | ErrorCode::InvalidToken => "expired",
        ErrorCode::Conflict => "conflict",
        ErrorCode::Forbidden => "forbidden",
        _ => return Err(error),
    };
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("error", word);
    if let Some(path) = redirect.filter(|path| accounts::is_safe_path(path)) {
        query.append_pair("redirect", path);
    }
    Ok(SeeOther::to(format!("/login?{}", query.finish())))
}

/// Whether a browser opens this path itself, so that its user sees the response.
pub(crate) fn is_opened_by_browsers(path: &str) -> bool {
    let is_of_apps = path.strip_prefix("/api/apps/").is_some_and(|rest| rest.contains("/oauth/"));
    is_of_apps || ["/api/auth/oauth/", "/api/auth/callback/"].iter().any(|start| path.starts_with(start))
}

/// Whether the request comes from a browser.
pub(crate) fn wants_a_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

impl SeeOther {
    pub(crate) fn to(to: String) -> Self {
        Self { to, cookies: Vec::new() }
    }
}

impl IntoResponse for SeeOther {
    fn into_response(self) -> poem::Response {
        let response =
            poem::Response::builder().status(StatusCode::SEE_OTHER).header(header::LOCATION, self.to);
        let response = self
            .cookies
            .into_iter()
            .fold(response, |response, cookie| response.header(header::SET_COOKIE, cookie));
        response.finish()
    }
}

impl ApiResponse for SeeOther {
    fn meta() -> MetaResponses {
        let location = MetaHeader {
            name: "Location".to_owned(),
            description: Some("Target of the redirect.".to_owned()),
            required: true,
            deprecated: false,
            schema: MetaSchemaRef::Inline(Box::new(MetaSchema::new("string"))),
        };
        MetaResponses {
            responses: vec![MetaResponse {
                description: "Redirect of the browser.",
                status: Some(StatusCode::SEE_OTHER.as_u16()),
                status_range: None,
                content: Vec::new(),
                headers: vec![location],
            }],
        }
    }

    fn register(_: &mut Registry) {}
}

#[cfg(test)]
#[path = "external_link_tests.rs"]
mod link_tests;
#[cfg(test)]
#[path = "external_tests.rs"]
mod tests;
