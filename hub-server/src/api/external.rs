//! Signing in with, and linking, accounts at external providers (spec §4; `contract.md` §3).

use hub_core::{
    ErrorCode, Hub,
    accounts::{self, ExternalReturn, MAX_RETURN_PATH, ReturnError},
    secret,
    time::Timestamp,
};
use poem::{
    IntoResponse,
    http::{HeaderMap, Method, StatusCode, header},
    web::Data,
};
use poem_openapi::{
    ApiResponse, Object, OpenApi,
    param::{Path, Query},
    registry::{MetaHeader, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry},
    types::Example,
};

use super::{Tag, door::Visitor};
use crate::{
    credentials::{User, check_origin},
    envelope::{ApiError, ApiResult, Empty, ok},
    wire::{Cursor, Limit, Page, Text, Time, page_request},
};

/// Accounts at external providers.
#[derive(Debug, Clone, Copy)]
pub struct ExternalApi;

/// A provider to sign in with.
#[derive(Debug, Object)]
#[oai(example)]
pub struct ProviderView {
    /// Its name in paths.
    pub name: String,
    /// Its name on buttons.
    pub display_name: String,
}

/// A linked account of the signed-in user.
#[derive(Debug, Object)]
#[oai(example)]
pub struct ExternalAccountView {
    /// Name of the provider.
    pub provider: String,
    /// The account's id there.
    pub subject: String,
    /// Its name there; empty when unknown.
    pub username: String,
    /// Its picture there; empty when unknown.
    pub avatar_url: String,
    /// When it was linked.
    pub created_at: Time,
}

/// Sends the browser elsewhere.
pub(crate) struct SeeOther {
    to: String,
    cookies: Vec<String>,
}

#[OpenApi]
impl ExternalApi {
    /// Lists the external providers
    ///
    /// Those that this hub is set up with; a sign-in page shows a button for each.
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

    /// Starts signing in with an external provider
    ///
    /// For browsers: sends them to the provider, from where they come back to the callback. With `link`, the
    /// account is linked to the signed-in user instead; that has to be asked for by the hub's own pages, with
    /// a session that was opened within the last 15 minutes.
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
        /// Where to go afterwards: a path of the hub, with its query. Anything else counts as `/`.
        redirect: Query<Option<Text<0, MAX_RETURN_PATH>>>,
        /// Whether to link the account to the signed-in user.
        link: Query<Option<bool>>,
    ) -> Result<SeeOther, ApiError> {
        let Visitor { door, actor } = visitor;
        door.limits.check_auth(door.network)?;
        let actor = if link.0 == Some(true) {
            let missing = || ApiError::new(ErrorCode::Unauthorized, "sign in to link an account");
            let actor = actor.ok_or_else(missing)?;
            // A page of another site could otherwise link an account of its own (reliability L1).
            check_origin(door.settings, &Method::POST, door.headers)?;
            Some(actor)
        } else {
            None
        };
        let accounts = door.hub.accounts();
        let browser = accounts.browser(door.flow.as_deref());
        let redirect = redirect.0.as_deref();
        let start = accounts.begin_external(&provider.0, actor.as_ref(), redirect, &browser).await?;
        Ok(SeeOther { to: start.url.into(), cookies: vec![door.flow_cookie(&browser)] })
    }

    /// Takes the browser back from an external provider
    ///
    /// Signs in by cookie and sends the browser on. What goes wrong at the provider is told by the sign-in
    /// page; an account that was not begun in this browser is refused.
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
        /// The code of the provider.
        code: Query<Option<Text<0, 4096>>>,
        /// What the hub sent along.
        state: Query<Option<Text<0, 512>>>,
        /// Why the provider signed nobody in.
        error: Query<Option<Text<0, 256>>>,
        /// Who the provider says it is.
        iss: Query<Option<Text<0, 2048>>>,
    ) -> Result<SeeOther, ApiError> {
        let Visitor { door, actor } = visitor;
        door.limits.check_auth(door.network)?;
        let back = ExternalReturn {
            state: state.0.map(String::from).unwrap_or_default(),
            code: code.0.map(|code| secret::Secret::new(String::from(code))),
            error: error.0.map(String::from),
            iss: iss.0.map(String::from),
        };
        let (flow, actor) = (door.flow.as_deref(), actor.as_ref());
        let finished =
            door.hub.accounts().finish_external(&provider.0, back, flow, actor, &door.client).await;
        match finished {
            Ok((Some(signed_in), to)) => Ok(SeeOther { to, cookies: door.entry_cookies(&signed_in).await? }),
            Ok((None, to)) => Ok(SeeOther::to(to)),
            Err(error) => failed(error, wants_a_page(door.headers)),
        }
    }

    /// Lists the user's linked accounts
    ///
    /// Accounts of external providers that sign this user in.
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
    ) -> ApiResult<Page<ExternalAccountView>> {
        let list = format!("external:{}", user.0.principal());
        let page = page_request(&list, limit.0, cursor.0.as_ref())?;
        let all = hub.accounts().external_accounts(&user.0).await?;
        ok(hub_core::page::Page::of_all(&list, &page, all, |account| account.provider.clone()).into())
    }

    /// Unlinks an external account
    ///
    /// Needs a session that was opened within the last 15 minutes. The only way to sign in cannot be removed.
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

/// A person sees a page that says what to do, a program the envelope.
fn failed(error: ReturnError, page: bool) -> Result<SeeOther, ApiError> {
    let to_page = |word: &str| Ok(SeeOther::to(format!("/login?error={word}")));
    match error {
        ReturnError::Provider(word) => to_page(word),
        ReturnError::Ceremony(_) if page => to_page("expired"),
        ReturnError::Refused(error) if page => match error.code() {
            ErrorCode::Conflict => to_page("conflict"),
            ErrorCode::Forbidden => to_page("forbidden"),
            _ => Err(error.into()),
        },
        ReturnError::Ceremony(error) | ReturnError::Refused(error) => Err(error.into()),
    }
}

/// Whether a browser asks.
pub(crate) fn wants_a_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

impl SeeOther {
    /// Sends the browser there.
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
            description: Some("Where to go.".to_owned()),
            required: true,
            deprecated: false,
            schema: MetaSchemaRef::Inline(Box::new(MetaSchema::new("string"))),
        };
        MetaResponses {
            responses: vec![MetaResponse {
                description: "The browser goes elsewhere.",
                status: Some(StatusCode::SEE_OTHER.as_u16()),
                status_range: None,
                content: Vec::new(),
                headers: vec![location],
            }],
        }
    }

    fn register(_: &mut Registry) {}
}

impl From<accounts::ExternalAccount> for ExternalAccountView {
    fn from(account: accounts::ExternalAccount) -> Self {
        Self {
            provider: account.provider,
            subject: account.subject,
            username: account.username,
            avatar_url: account.avatar_url,
            created_at: account.created_at.into(),
        }
    }
}

impl Example for ProviderView {
    fn example() -> Self {
        Self { name: "github".to_owned(), display_name: "GitHub".to_owned() }
    }
}

impl Example for ExternalAccountView {
    fn example() -> Self {
        Self {
            provider: "github".to_owned(),
            subject: "583231".to_owned(),
            username: "octocat".to_owned(),
            avatar_url: "https://avatars.githubusercontent.com/u/583231".to_owned(),
            created_at: Timestamp::from_millis(1_795_253_400_000).into(),
        }
    }
}

#[cfg(test)]
#[path = "external_link_tests.rs"]
mod link_tests;
#[cfg(test)]
#[path = "external_tests.rs"]
mod tests;
