//! Credentials: what a request presents, and whose it is.
//!
//! [`User`], [`Administrator`], [`ChannelClient`], [`AppClient`] and similar types are arguments of handlers and come
//! first. Such an argument proves the check: it ran before anything else of the request was read, and refusals are
//! typed errors. They are written by hand because the derived scheme enumerations keep only the last error of their
//! alternatives, so that a failing database would look like a missing cookie.

use std::sync::Arc;

use hub_core::{
    ErrorCode, Hub,
    access::Actor,
    local_http::cannot_be_rebound,
    secret::{Secret, TokenHash, authorization::bearer_token},
};
use poem::{
    Request, RequestBody, Result,
    http::{HeaderMap, Method, header, uri::Authority},
};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaSecurityScheme, Registry},
};

use crate::{AppSettings, body_cap::BodyCap, envelope::ApiError, rate_limit::RateLimits};

mod app;
mod cookies;
mod long_requests;

pub(crate) use cookies::{cookies, devices, entry_cookies, flow_cookie, flow_of};
pub(crate) use long_requests::Held;

pub use app::{AppClient, AppOwner, AppSocketClient};
use cookies::sessions;
pub use cookies::{PLAIN_COOKIE, SECURE_COOKIE, cleared_cookie, session_cookie};

/// The credentials in a request, not validated.
#[derive(Debug, Clone, Default)]
pub struct Presented {
    /// From `Authorization: Bearer`, `X-API-Key` or the query. It has priority, even if it is invalid.
    pub explicit: Option<Secret>,
    /// From cookies with the name of the session cookie. Other programs of the host may have set some of them: each is
    /// tried.
    pub cookies: Vec<Secret>,
}

impl Presented {
    /// Reads headers and cookie.
    pub fn of(headers: &HeaderMap, https: bool) -> Self {
        let key = || headers.get("x-api-key").map(|value| value.to_str().unwrap_or_default());
        Self {
            explicit: bearer_token(headers).or_else(key).map(Secret::new),
            cookies: sessions(headers, https),
        }
    }

    fn with_query(mut self, query: Option<&str>) -> Self {
        self.explicit = self.explicit.or_else(|| {
            let mut pairs = url::form_urlencoded::parse(query?.as_bytes());
            pairs.find(|(name, _)| name == "api_key" || name == "key").map(|(_, key)| Secret::new(key))
        });
        self
    }

    /// The credentials that are tried: the explicit one alone if there is one. They identify the caller for a rate limit.
    pub(crate) fn tried(&self) -> &[Secret] {
        self.explicit.as_ref().map_or(self.cookies.as_slice(), std::slice::from_ref)
    }
}

/// The caller of a request from the same process. It is in the extensions of the request, which no byte of an HTTP
/// request reaches; only [`InProcess`](crate::InProcess) sets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InProcessCaller(pub(crate) Actor);

/// The caller that a program of the same process names. No HTTP request has one.
fn in_process_caller(request: &Request) -> Option<Actor> {
    request.data::<InProcessCaller>().map(|caller| caller.0)
}

/// Finds the user of a request. An explicit credential has priority and never falls back to the cookie; a cookie
/// counts for changes only if the browser reports that the request comes from our own page. A page of another site is
/// refused before the session is looked up: the cookie may be absent because of that page.
///
/// # Errors
/// `INVALID_TOKEN` for an invalid explicit credential, `FORBIDDEN` for a change from another site, `UNAUTHORIZED`
/// without a credential or with an expired session.
pub async fn authenticate_user(
    hub: &Hub,
    settings: &AppSettings,
    presented: &Presented,
    request: &Request,
) -> std::result::Result<Actor, ApiError> {
    if let Some(actor) = in_process_caller(request) {
        return judged(request, &[], Ok(actor));
    }
    let by_cookie = presented.explicit.is_none();
    if by_cookie && reports_origin(request.headers()) {
        check_origin(settings, request.method(), request.headers())?;
    }
    let (actor, credential) = match authenticate_presented(hub, presented).await {
        Ok((actor, credential)) => (Ok(actor), std::slice::from_ref(credential)),
        Err(error) => (Err(error), presented.tried()),
    };
    let actor = judged(request, credential, actor)?;
    // A request that reports no origin is refused, too, if it has a session.
    if by_cookie {
        check_origin(settings, request.method(), request.headers())?;
    }
    Ok(actor)
}

/// Whether the request reports where it comes from. Browsers do with every change, programs do not.
pub(crate) fn reports_origin(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site")
}

/// The user of the credential that is valid, and the credential.
async fn authenticate_presented<'p>(
    hub: &Hub,
    presented: &'p Presented,
) -> std::result::Result<(Actor, &'p Secret), ApiError> {
    if let Some(key) = &presented.explicit {
        return Ok((hub.accounts().authenticate_api_key(key.expose()).await?, key));
    }
    let mut refused = ApiError::new(ErrorCode::Unauthorized, "sign in or send an API key");
    for cookie in &presented.cookies {
        match hub.accounts().authenticate_session(cookie.expose()).await {
            Ok(actor) => return Ok((actor, cookie)),
            Err(error) if is_bad_credential(&error) => refused = error.into(),
            Err(error) => return Err(error.into()),
        }
    }
    Err(refused)
}

/// The rule against cross-site request forgery. It applies to requests that a browser authenticates with its cookie,
/// to signing in, which sets one, and to every form of a page.
///
/// # Errors
/// `FORBIDDEN` unless the browser reports our own origin.
pub fn check_origin(
    settings: &AppSettings,
    method: &Method,
    headers: &HeaderMap,
) -> std::result::Result<(), ApiError> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let origin = text("origin");
    let allowed = match text("sec-fetch-site") {
        // No page can forge it, so it decides: `none` is an address that the user typed. A page under a name that leads
        // here although it is not ours (DNS rebinding) has our origin for the browser, too.
        Some("same-origin" | "none") => origin.is_none_or(|origin| {
            origin == HIDDEN_ORIGIN || settings.is_own_origin(origin) || is_fixed_host(origin)
        }),
        Some(_) => false,
        None => origin.is_some_and(|origin| settings.is_own_origin(origin)),
    };
    if allowed {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::Forbidden,
        "a change by a browser must come from the hub's own pages (Origin or Sec-Fetch-Site)",
    ))
}

/// The origin that browsers report for forms of pages with `Referrer-Policy: no-referrer`.
const HIDDEN_ORIGIN: &str = "null";

/// Whether the origin is that of an address or of a local name, which cannot be rebound.
fn is_fixed_host(origin: &str) -> bool {
    let authority = origin.split_once("://").and_then(|(_, host)| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| cannot_be_rebound(authority.host()))
}

/// A signed-in user.
#[derive(Debug, Clone, Copy)]
pub struct User(pub Actor);

/// A signed-in user who administers the hub.
#[derive(Debug, Clone, Copy)]
pub struct Administrator(pub Actor);

/// A program with the API key of a channel. In GET requests the key may also be in the query.
#[derive(Debug, Clone, Copy)]
pub struct ChannelClient(pub Actor);

impl<'a> ApiExtractor<'a> for User {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        let cookie = |name, description| api_key("cookie", name, description);
        for (name, scheme) in [
            ("session", cookie(SECURE_COOKIE, "The session of a signed-in user.")),
            (
                "plainSession",
                cookie(PLAIN_COOKIE, "The session cookie on plain http, which is for loopback."),
            ),
            ("userKey", bearer("A user's API key `hubu_…`.")),
            ("userKeyHeader", api_key("header", "X-API-Key", "A user's API key in `X-API-Key`.")),
        ] {
            registry.create_security_scheme(name, scheme);
        }
    }

    fn security_schemes() -> Vec<&'static str> {
        vec!["session", "plainSession", "userKey", "userKeyHeader"]
    }

    async fn from_request(
        request: &'a Request,
        _: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> Result<Self> {
        let (hub, settings) = (data::<Hub>(request), data::<AppSettings>(request));
        let presented = Presented::of(request.headers(), settings.is_https());
        Ok(Self(authenticate_user(hub, settings, &presented, request).await?))
    }
}

impl<'a> ApiExtractor<'a> for Administrator {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
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
    ) -> Result<Self> {
        let User(actor) = User::from_request(request, body, options).await?;
        actor.admin().map_err(ApiError::from)?;
        Ok(Self(actor))
    }
}

impl<'a> ApiExtractor<'a> for ChannelClient {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        for (name, scheme) in [
            ("channelKey", api_key("header", "X-API-Key", "A channel's API key `hubc_…`.")),
            ("channelKeyBearer", bearer("A channel's API key as a bearer token.")),
            ("channelKeyQuery", api_key("query", "api_key", "A channel's API key; GET requests only.")),
            ("channelKeyShortQuery", api_key("query", "key", "A channel's API key; GET requests only.")),
        ] {
            registry.create_security_scheme(name, scheme);
        }
    }

    fn security_schemes() -> Vec<&'static str> {
        vec!["channelKey", "channelKeyBearer", "channelKeyQuery", "channelKeyShortQuery"]
    }

    async fn from_request(
        request: &'a Request,
        _: &mut RequestBody,
        _: ExtractParamOptions<()>,
    ) -> Result<Self> {
        let key = Self::presented(request).explicit.ok_or_else(|| {
            ApiError::new(ErrorCode::Unauthorized, "send the channel's API key in X-API-Key")
        })?;
        let actor = data::<Hub>(request).channels().authenticate_key(key.expose()).await;
        Ok(Self(judged(request, std::slice::from_ref(&key), actor.map_err(ApiError::from))?))
    }
}

/// Notes the outcome of an authentication: the caller of a valid credential may send larger bodies, and its requests
/// count for the credential rather than for its address.
fn judged<T>(
    request: &Request,
    credentials: &[Secret],
    outcome: std::result::Result<T, ApiError>,
) -> std::result::Result<T, ApiError> {
    let limits = data::<Arc<RateLimits>>(request);
    match &outcome {
        Ok(_) => {
            if let Some(cap) = request.data::<BodyCap>() {
                cap.raise();
            }
            for credential in credentials {
                limits.note_valid(credential.expose());
            }
        }
        Err(error) if is_bad_credential(error.inner()) => {
            for credential in credentials {
                limits.note_invalid(&TokenHash::of(credential.expose()));
            }
        }
        Err(_) => {}
    }
    outcome
}

fn is_bad_credential(error: &hub_core::Error) -> bool {
    matches!(error.code(), ErrorCode::InvalidToken | ErrorCode::Unauthorized)
}

fn data<T: Send + Sync + 'static>(request: &Request) -> &T {
    request.data().expect("app() puts the hub and its settings into every request")
}

fn api_key(place: &'static str, name: &'static str, description: &'static str) -> MetaSecurityScheme {
    MetaSecurityScheme { ty: "apiKey", name: Some(name), key_in: Some(place), ..scheme(description) }
}

fn bearer(description: &'static str) -> MetaSecurityScheme {
    MetaSecurityScheme { ty: "http", scheme: Some("bearer"), ..scheme(description) }
}

fn scheme(description: &'static str) -> MetaSecurityScheme {
    MetaSecurityScheme {
        ty: "",
        description: Some(description),
        name: None,
        key_in: None,
        scheme: None,
        bearer_format: None,
        flows: None,
        openid_connect_url: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Values;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_change_with_a_cookie_needs_our_own_origin() {
        let mut values = Values::new("https://hub.example".parse().unwrap());
        values.other_origins.push("http://localhost:9800".to_owned());
        let settings = AppSettings::from(values);
        let own = "https://hub.example";
        for (allowed, site, origin) in [
            (true, Some("same-origin"), None),
            (true, Some("same-origin"), Some(own)),
            (true, Some("same-origin"), Some("null")),
            (true, Some("same-origin"), Some("http://127.0.0.1:9800")),
            (true, Some("same-origin"), Some("http://[::1]:9800")),
            (false, Some("same-origin"), Some("https://evil.example")),
            (false, Some("same-origin"), Some("")),
            (true, Some("none"), Some("null")),
            (true, Some("none"), None),
            (true, Some("none"), Some(own)),
            (false, Some("none"), Some("https://evil.example")),
            (false, Some("same-site"), None),
            (false, Some("same-site"), Some("null")),
            (false, Some("cross-site"), Some("null")),
            (false, Some("cross-site"), Some(own)),
            (false, Some(""), Some(own)),
            (false, Some("cross-site"), Some("https://evil.example")),
            (true, None, Some(own)),
            (true, None, Some("http://localhost:9800")),
            (false, None, Some("https://hub.example.evil.example")),
            (false, None, Some("null")),
            (false, None, None),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in [("sec-fetch-site", site), ("origin", origin)] {
                if let Some(value) = value {
                    map.insert(name, value.parse().unwrap());
                }
            }
            for method in [Method::POST, Method::PUT, Method::DELETE] {
                let verdict = check_origin(&settings, &method, &map);
                assert_eq!(verdict.is_ok(), allowed, "{method} {site:?} {origin:?}");
            }
            assert!(check_origin(&settings, &Method::GET, &map).is_ok());
        }
    }

    #[test]
    fn an_explicit_credential_is_found_in_every_carrier() {
        let explicit = |pairs: &[(&'static str, &str)]| {
            Presented::of(&headers(pairs), false).explicit.map(|secret| secret.expose().to_owned())
        };
        assert_eq!(explicit(&[("authorization", "Bearer abc")]).as_deref(), Some("abc"));
        assert_eq!(explicit(&[("authorization", "bearer  abc ")]).as_deref(), Some("abc"));
        assert_eq!(explicit(&[("x-api-key", "abc")]).as_deref(), Some("abc"));
        assert_eq!(explicit(&[("authorization", "Basic abc"), ("x-api-key", "k")]).as_deref(), Some("k"));
        assert_eq!(explicit(&[("authorization", "Basic abc")]), None, "it is that of a proxy");
        assert_eq!(explicit(&[("authorization", "Bearer"), ("x-api-key", "k")]).as_deref(), Some(""));
        let mut unreadable = headers(&[("x-api-key", "k")]);
        let value = poem::http::HeaderValue::from_bytes(b"Bearer \xe9").unwrap();
        unreadable.insert("authorization", value);
        assert_eq!(Presented::of(&unreadable, false).explicit.unwrap().expose(), "");
        assert_eq!(explicit(&[("cookie", "session=abc")]), None);
        let query = |query| {
            let presented = Presented::default().with_query(Some(query));
            presented.explicit.map(|secret| secret.expose().to_owned())
        };
        assert_eq!(query("a=b&api_key=x%2By").as_deref(), Some("x+y"));
        assert_eq!(query("key=z").as_deref(), Some("z"));
        assert_eq!(query("monkey=z"), None);
    }
}
