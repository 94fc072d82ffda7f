//! Pages, the requests and responses of their handlers, and the endpoint that serves a page.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use data_encoding::HEXLOWER;
use hub_core::{Error, ErrorCode, Hub, access::Actor, accounts::ClientInfo, page::PageRequest};
use maud::Markup;
use poem::{
    Endpoint, IntoResponse, Request, Response, Result,
    http::{Method, StatusCode, header},
};
use poem_openapi::types::ParseFromJSON;

use super::{
    forms::{self, Submitted},
    layout,
    refusals::{self, Unsent},
    words::{self, Words},
};
use crate::{
    AppSettings, Client,
    appearance::Appearance,
    credentials::{Presented, authenticate_user, check_origin, cleared_cookie},
    envelope::ApiError,
    headers::RequestId,
    rate_limit::RateLimits,
    serve::ClientGone,
    wire,
};

/// A page of the console.
pub(crate) struct Page {
    /// Its path, with parameters as `:name`.
    pub(super) path: &'static str,
    /// The operations of the API whose data it shows.
    pub(super) shows: &'static [&'static str],
    /// The command that prints the same; `{name}` is a parameter of the path.
    pub(super) command: &'static str,
    /// Renders it. Changes nothing.
    pub(super) show: Handler,
    pub(super) actions: &'static [Action],
}

/// Action of a form on a page.
pub(crate) struct Action {
    /// The operation of the API that does the same.
    pub(super) operation: &'static str,
    /// The value of the form's button, whose name is `do`.
    pub(super) name: &'static str,
    pub(super) run: Handler,
    /// Notice on the page after success.
    pub(super) done: fn(&Words) -> &'static str,
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.path)
    }
}

type Handler = for<'a> fn(&'a Ask) -> Pin<Box<dyn Future<Output = Result<Answer, ApiError>> + Send + 'a>>;

/// A function of a page as a plain value, so that pages are statics.
macro_rules! handler {
    ($function:path) => {
        |ask| Box::pin($function(ask))
    };
}
pub(super) use handler;

/// An action: the operation of the API that does the same, the function, and the sentence for its success.
macro_rules! does {
    ($operation:literal, $function:ident, $done:expr) => {
        $crate::console::page::Action {
            operation: $operation,
            name: stringify!($function),
            run: $crate::console::page::handler!($function),
            done: $done,
        }
    };
}
pub(super) use does;

/// A request for a page, by a signed-in user.
pub(super) struct Ask {
    pub(super) hub: Hub,
    pub(super) settings: AppSettings,
    pub(super) limits: Arc<RateLimits>,
    pub(super) actor: Actor,
    pub(super) client: ClientInfo,
    pub(super) client_gone: ClientGone,
    pub(super) appearance: Appearance,
    pub(super) words: &'static Words,
    pub(super) page: &'static Page,
    /// The path of this request.
    pub(super) path: String,
    pub(super) request_id: String,
    /// Whether the request is from a script, which replaces regions of the current page.
    pub(super) is_fragment: bool,
    pub(super) accepts_gzip: bool,
    params: HashMap<String, String>,
    query: HashMap<String, String>,
    /// The form, if this is a POST.
    pub(super) submitted: Option<Submitted>,
}

/// Response of a handler.
pub(super) enum Answer {
    Page(Content),
    /// Redirect to another page.
    Goto(String),
    /// Redirect that also sets cookies.
    Leave {
        to: String,
        cookies: Vec<String>,
    },
}

/// Content of a page, inside the layout.
pub(super) struct Content {
    pub(super) title: String,
    /// Links to the pages above, outermost first: address and text.
    pub(super) above: Vec<(String, String)>,
    pub(super) main: Markup,
    /// Whether it shows a secret.
    pub(super) is_secret: bool,
}

impl Answer {
    pub(super) fn page(title: impl Into<String>, above: Vec<(String, String)>, main: Markup) -> Self {
        Self::Page(Content { title: title.into(), above, main, is_secret: false })
    }

    /// A page that shows a secret.
    pub(super) fn secret(title: impl Into<String>, above: Vec<(String, String)>, main: Markup) -> Self {
        Self::Page(Content { title: title.into(), above, main, is_secret: true })
    }
}

impl Ask {
    /// A parameter of the path as an id.
    ///
    /// # Errors
    /// `NOT_FOUND` if it is not one.
    pub(super) fn id<K: hub_core::id::Kind>(&self, name: &str) -> Result<hub_core::id::Id<K>, ApiError> {
        self.param(name).parse().map_err(|_| Error::not_found(name).into())
    }

    /// A parameter of the path.
    pub(super) fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    /// A parameter of the query; empty ones count as absent.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The page of a list that the query asks for.
    pub(super) fn page_request(&self, list: &str) -> Result<PageRequest, ApiError> {
        let limit = self.query("limit").map(str::parse).transpose();
        let limit = limit.map_err(|_| Error::invalid("limit", "must be between 1 and 200"))?;
        Ok(PageRequest::parse(list, limit, self.query("cursor"))?)
    }

    /// The address of this page with one parameter of the query changed.
    pub(super) fn with_query(&self, name: &str, value: &str) -> String {
        self.with_queries(&[(name, value)])
    }

    /// The address of this page with parameters of the query changed; empty ones are left out.
    pub(super) fn with_queries(&self, changes: &[(&str, &str)]) -> String {
        let is_changed = |name: &str| name == "done" || changes.iter().any(|(changed, _)| *changed == name);
        let kept = self.query.iter().filter(|(name, _)| !is_changed(name));
        let mut pairs: Vec<(&str, &str)> =
            kept.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        pairs.sort_unstable();
        let pairs = pairs.into_iter().chain(changes.iter().copied()).filter(|(_, value)| !value.is_empty());
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }

    /// The form as the request type of the operation.
    ///
    /// # Errors
    /// `INVALID_PARAMS` with every field that violates the schema.
    pub(super) fn form<T: ParseFromJSON>(&self) -> Result<T, ApiError> {
        wire::read(&forms::value::<T>(self.submitted.as_ref().map_or(&[], |form| &form.fields)))
    }

    /// A field of the form.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.submitted.as_ref()?.field(name)
    }

    /// The key under which a repeated form has one effect.
    pub(super) fn idempotency_key(&self) -> Option<&str> {
        let once = self.field("once")?;
        Some(once).filter(|once| (1..=255).contains(&once.len()))
    }

    /// This page after a success.
    pub(super) fn done(&self) -> Answer {
        self.done_at(&self.path)
    }

    /// This page after a success that changed cookies.
    pub(super) fn done_with(&self, cookies: Vec<String>) -> Answer {
        match self.done() {
            Answer::Goto(to) => Answer::Leave { to, cookies },
            answer => answer,
        }
    }

    /// Another page after a success.
    pub(super) fn done_at(&self, path: &str) -> Answer {
        let name = self.submitted.as_ref().map_or("", |form| &form.action);
        let action = self.page.actions.iter().find(|action| action.name == name);
        let separator = if path.contains('?') { '&' } else { '?' };
        Answer::Goto(format!("{path}{separator}done={}", action.map_or("", |action| action.operation)))
    }

    /// The value of the hidden field [`PAGE_TOKEN`]: only this page, opened in this session, contains it.
    pub(super) fn page_token(&self) -> String {
        HEXLOWER.encode(&self.hub.context().sealer.derive(PAGE_TOKEN, &self.page_in_session()))
    }

    /// This page in this session; no other session has the same.
    fn page_in_session(&self) -> String {
        let session = self.actor.user().ok().and_then(|user| user.session_id).map(|id| id.to_string());
        format!("{} {}", session.unwrap_or_default(), self.page.path)
    }

    /// Checks that the form was on this page as it was opened in this session.
    ///
    /// # Errors
    /// `FORBIDDEN` otherwise.
    pub(super) fn check_page_token(&self) -> Result<(), ApiError> {
        let sent = self.field(PAGE_TOKEN).and_then(|sent| HEXLOWER.decode(sent.as_bytes()).ok());
        let sealer = &self.hub.context().sealer;
        if sent.is_some_and(|sent| sealer.is_derived(PAGE_TOKEN, &self.page_in_session(), &sent)) {
            return Ok(());
        }
        let message = "the form is not from this page as it was opened in this session; open the page again";
        Err(ApiError::new(ErrorCode::Forbidden, message))
    }

    /// A new key for a form that creates something.
    pub(super) fn new_once(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.hub.context().random.bytes()))
    }
}

/// Hidden field of the forms that grant access to another device or program.
pub(super) const PAGE_TOKEN: &str = "page_token";

/// A page as an endpoint.
pub(super) struct PageEndpoint(pub(super) &'static Page);

impl Endpoint for PageEndpoint {
    type Output = Response;

    async fn call(&self, mut request: Request) -> Result<Response> {
        let method = request.method().clone();
        if !matches!(method, Method::GET | Method::POST) {
            return Err(ApiError::new(ErrorCode::MethodNotAllowed, "the path has no such method").into());
        }
        let appearance = Appearance::of(request.headers());
        let actor = match authenticate(&request).await {
            Ok(actor) => actor,
            Err(error) if is_signed_out(&error) => {
                return signed_out(self.0, &mut request, appearance, &error).await;
            }
            Err(error) => return Err(error.into()),
        };
        let mut ask = self.ask(&request, actor, appearance);
        if method == Method::POST {
            ask.submitted = Some(forms::read(&mut request).await?);
            return self.act(ask).await;
        }
        let answer = (self.0.show)(&ask).await?;
        Ok(layout::response(&ask, answer, StatusCode::OK).await?)
    }
}

impl PageEndpoint {
    fn ask(&self, request: &Request, actor: Actor, appearance: Appearance) -> Ask {
        let query = request.uri().query().unwrap_or_default();
        let settings = request.data::<AppSettings>().expect("every request has the settings").clone();
        Ask {
            hub: request.data::<Hub>().expect("every request has the hub").clone(),
            limits: request.data::<Arc<RateLimits>>().expect("every request has the limits").clone(),
            actor,
            client: request.data::<Client>().cloned().map(ClientInfo::from).unwrap_or_default(),
            client_gone: ClientGone::of(request),
            appearance,
            words: words::of(appearance.language),
            page: self.0,
            path: request.uri().path().to_owned(),
            request_id: request.data::<RequestId>().map_or_else(String::new, |id| id.0.to_string()),
            is_fragment: request.headers().contains_key("x-fragment"),
            // A page below a path is changed on its way out.
            accepts_gzip: settings.path_prefix().is_empty()
                && request.header(header::ACCEPT_ENCODING).is_some_and(|text| text.contains("gzip")),
            settings,
            params: request.path_params().unwrap_or_default(),
            query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            submitted: None,
        }
    }

    /// Runs the action of a form. A rejected form is shown again, with its values and the problem of each field.
    async fn act(&self, mut ask: Ask) -> Result<Response> {
        let name = ask.submitted.as_ref().map_or("", |form| &form.action);
        let error = match name {
            "look" => return Ok(choose_appearance(&ask)),
            "sign_out" => {
                ask.hub.accounts().logout(&ask.actor).await.map_err(ApiError::from)?;
                let cookies = vec![cleared_cookie(&ask.settings)];
                let answer = Answer::Leave { to: "/login".to_owned(), cookies };
                return Ok(layout::response(&ask, answer, StatusCode::OK).await?);
            }
            _ => match self.0.actions.iter().find(|action| action.name == name) {
                Some(action) => match (action.run)(&ask).await {
                    Ok(answer) => return Ok(layout::response(&ask, answer, StatusCode::OK).await?),
                    Err(error) => error,
                },
                None => Error::invalid("do", "is not an action of this page").into(),
            },
        };
        if !refusals::can_be_corrected(error.inner()) {
            return Err(error.into());
        }
        let status = poem::error::ResponseError::status(&error);
        if let Some(form) = &mut ask.submitted {
            form.refused = Some(error.into_inner());
        }
        let answer = (self.0.show)(&ask).await?;
        Ok(layout::response(&ask, answer, status).await?)
    }
}

/// The user of the session. Other credentials are for the API.
///
/// # Errors
/// `FORBIDDEN` for a form that does not report our own origin, also without a session: the page for visitors without one
/// repeats the form. `UNAUTHORIZED` without a session.
async fn authenticate(request: &Request) -> Result<Actor, ApiError> {
    let settings = request.data::<AppSettings>().expect("every request has the settings");
    let hub = request.data::<Hub>().expect("every request has the hub");
    check_origin(settings, request.method(), request.headers())?;
    let presented = Presented { explicit: None, ..Presented::of(request.headers(), settings.is_https()) };
    authenticate_user(hub, settings, &presented, request).await
}

fn is_signed_out(error: &ApiError) -> bool {
    matches!(error.inner().code(), ErrorCode::Unauthorized | ErrorCode::InvalidToken)
}

/// Redirects a visitor without a session to the sign-in page, which leads back. The response to a form contains its
/// values, to be sent again once the visitor has signed in.
async fn signed_out(
    page: &Page,
    request: &mut Request,
    appearance: Appearance,
    error: &ApiError,
) -> Result<Response> {
    if *request.method() == Method::GET {
        let back = request.uri().path_and_query().map_or("/console", |path| path.as_str());
        let query =
            url::form_urlencoded::Serializer::new(String::new()).append_pair("redirect", back).finish();
        return Ok(see_other(&format!("/login?{query}"), &[]));
    }
    // The file of a form is not read for strangers.
    let is_upload = request.header(header::CONTENT_TYPE).is_some_and(|text| text.starts_with("multipart/"));
    let form = match forms::read(request).await {
        Err(_) if is_upload => forms::Submitted::default(),
        form => form?,
    };
    let id = request.data::<RequestId>().map_or_else(String::new, |id| id.0.to_string());
    let unsent = Unsent {
        operation: page
            .actions
            .iter()
            .find(|action| action.name == form.action)
            .map(|action| action.operation),
        form: &form,
        address: request.uri().path(),
    };
    Ok(refusals::signed_out(appearance, error.inner(), &id, &unsent))
}

/// Stores language, theme and switches in a cookie.
fn choose_appearance(ask: &Ask) -> Response {
    let appearance = ask.appearance.with(|name| ask.field(name));
    see_other(&ask.path, &[appearance.cookie()])
}

/// Redirects the browser to another page with `303 See Other`.
pub(crate) fn see_other(to: &str, cookies: &[String]) -> Response {
    let response = StatusCode::SEE_OTHER.with_header(header::LOCATION, to).into_response();
    cookies.iter().fold(response, |mut response, cookie| {
        if let Ok(cookie) = cookie.parse() {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        response
    })
}
