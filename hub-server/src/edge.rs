//! The outermost layer: request ids, limits, the envelope on every failure, security headers, the access log.

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use hub_core::{Error, ErrorCode, Hub, secret::TokenHash, spans, time::Stopwatch};
use poem::{
    Endpoint, IntoResponse, Request, Response, Result,
    http::{HeaderValue, Method, StatusCode, header},
};
use poem_openapi::OperationId;
use tracing::{Instrument, field::Empty};

use crate::{
    AppSettings, Client,
    api::external,
    app_calls::CallNote,
    appearance::Appearance,
    body_cap, console,
    credentials::Presented,
    envelope::{ApiError, Refusal},
    files, gateway,
    headers::{REQUEST_ID, RequestId, check_text, set_headers},
    login_page, mcp, metrics, older_paths, parameters,
    paths::{self, is_app_call},
    rate_limit::RateLimits,
    routes::RouteTable,
    serve::ClientGone,
};

/// Additional size of a form around its file.
const FORM_OVERHEAD: usize = 256 * 1024;

/// Paths that monitoring calls frequently.
const PROBES: [&str; 3] = ["/healthz", "/readyz", metrics::PATH];

/// Status of a failed request whose client has disconnected, for the log and the metrics: the one that nginx uses. No one
/// reads the response.
const CLIENT_DISCONNECTED: u16 = 499;

/// Pages outside the console.
const PAGES: [&str; 4] = [login_page::SIGN_IN, "/login/reset", "/docs", "/oauth/complete"];

pub(crate) struct Edge<E> {
    inner: E,
    hub: Hub,
    settings: AppSettings,
    limits: Arc<RateLimits>,
    routes: RouteTable,
    /// The label of paths without a route.
    unknown: Arc<str>,
}

impl<E> Edge<E> {
    /// The layer around `inner`, whose routes are in the table.
    pub(crate) fn new(
        inner: E,
        hub: Hub,
        settings: AppSettings,
        limits: Arc<RateLimits>,
        routes: RouteTable,
    ) -> Self {
        Self { inner, hub, settings, limits, routes, unknown: "-".into() }
    }
}

impl<E: Endpoint> Endpoint for Edge<E> {
    type Output = Response;

    async fn call(&self, mut request: Request) -> Result<Response> {
        let started = Stopwatch::start();
        let id = self.request_id(&request);
        paths::merge_slashes(request.uri_mut());
        let is_older = older_paths::rewrite(&mut request);
        parameters::remove(&mut request);
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        request.set_data(id.clone());
        if method == Method::HEAD {
            // poem answers HEAD without saying how long the answer to GET is; hyper leaves just the body out.
            request.set_method(Method::GET);
        }

        let route = self.routes.template(&path).unwrap_or(&self.unknown);
        let span = tracing::trace_span!(
            target: spans::TARGET,
            "http request",
            otel.kind = "server",
            http.request.method = metrics::method_label(&method),
            http.route = &**route,
            http.response.status_code = Empty,
            hub.request_id = &*id.0,
        );
        let is_page = console::is_page(&path)
            || path == login_page::SIGN_IN
            || (external::is_opened_by_browsers(&path) && external::wants_a_page(request.headers()));
        let appearance = is_page.then(|| Appearance::of(request.headers()));
        let admitted = self.admit(&mut request).and_then(|()| Ok(parameters::check_once(&request)?));
        let network = request.data::<Client>().map(Client::network);
        let client_gone = ClientGone::of(&request);
        let note = CallNote::begin(&mut request);
        let page = self.page_without_slash(&request);
        let answer = match admitted {
            Ok(()) => match page {
                Some(page) => Ok(console::see_other(&page, &[])),
                None => self.guarded(request).instrument(span.clone()).await,
            },
            Err(error) => match gateway::refusal(&error).filter(|_| gateway::is_call(&path)) {
                Some(response) => Ok(response),
                None => Err(error.into()),
            },
        };
        let mut response = match answer {
            Ok(response) => response,
            Err(error) => self.failure(error, &path, &id.0, network, appearance),
        };
        let refuses_method = response.status() == StatusCode::METHOD_NOT_ALLOWED;
        if method == Method::OPTIONS && (refuses_method || path == "*") {
            response = self.options(&path);
        }
        if is_older {
            older_paths::add_bare_fields(&mut response).await;
        }
        if client_gone.is_gone()
            && !response.status().is_success()
            && let Ok(status) = StatusCode::from_u16(CLIENT_DISCONNECTED)
        {
            response.set_status(status);
        }
        if let Some(note) = note {
            note.finish(&self.hub, method.as_str(), &path, &mut response, started.elapsed()).await;
        }
        set_headers(&mut response, &path, &id.0);
        if self.settings.is_https() {
            let year = HeaderValue::from_static("max-age=31536000");
            response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, year);
        }
        let operation = response.data::<OperationId>().map_or("-", |operation| operation.0);
        let (status, took) = (response.status(), started.elapsed());
        span.record("http.response.status_code", status.as_u16());
        self.settings.metrics.count(route, &method, status, took);
        let (status, duration_ms) = (status.as_u16(), u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        // Probes and scrapes come every few seconds.
        if status < 400 && PROBES.contains(&path.as_str()) {
            tracing::debug!(%method, route = &**route, operation, status, duration_ms, request_id = %id.0, "request");
        } else {
            tracing::info!(%method, route = &**route, operation, status, duration_ms, request_id = %id.0, "request");
        }
        Ok(response)
    }
}

impl<E: Endpoint> Edge<E> {
    /// The caller's id if it is valid, otherwise a new one.
    fn request_id(&self, request: &Request) -> RequestId {
        let is_sane = |text: &&str| {
            (1..=64).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        let fresh = || format!("{:032x}", u128::from_be_bytes(self.hub.context().random.bytes()));
        let id = request.header(REQUEST_ID).filter(is_sane).map_or_else(fresh, str::to_owned);
        RequestId(id.into())
    }

    /// The address of a page that was asked for with a slash at its end.
    fn page_without_slash(&self, request: &Request) -> Option<String> {
        let path = request.uri().path().strip_suffix('/').filter(|_| request.method() == Method::GET)?;
        let is_page = console::is_page(path) || PAGES.contains(&path);
        self.routes.template(path).filter(|_| is_page)?;
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        Some(format!("{path}{query}"))
    }

    /// The methods of a path, which load balancers ask for to see whether the hub is there.
    fn options(&self, path: &str) -> Response {
        let allow = [self.routes.allow(path), "OPTIONS".to_owned()].join(", ");
        let allow = allow.trim_start_matches(", ");
        Response::builder().status(StatusCode::NO_CONTENT).header(header::ALLOW, allow).finish()
    }

    /// Checks of the head: texts, size, then rate.
    fn admit(&self, request: &mut Request) -> Result<(), ApiError> {
        if !gateway::is_call(request.uri().path()) {
            check_text(request.headers())?;
        }
        let content_type = request.header(header::CONTENT_TYPE);
        let path = request.uri().path();
        let brings_file = files::brings_file(request.method(), path, content_type) || path == gateway::UPLOAD;
        let max = if brings_file {
            self.hub.context().config.media.max_outbound + FORM_OVERHEAD
        } else {
            self.settings.max_body
        };
        let cap = self.routes.body_cap(request.method(), request.uri().path(), max);
        body_cap::limit(request, cap)?;
        let client = Client::of(request, &self.settings.trusted_proxies, self.settings.proxy_header);
        let path = request.uri().path();
        // Forms in which a password can be guessed.
        let is_sign_in_form =
            [login_page::SIGN_IN, console::CONFIRM].contains(&path) && request.method() == Method::POST;
        let is_call = path.starts_with("/api") || is_app_call(path) || gateway::is_call(path);
        if is_call || console::is_page(path) || is_sign_in_form {
            let network = client.network();
            let presented = Presented::of(request.headers(), self.settings.is_https());
            let credentials = presented.tried().iter().map(|credential| TokenHash::of(credential.expose()));
            self.limits.check_default(credentials, network)?;
            let is_sign_in = path.starts_with("/api/auth/") && path != "/api/auth/logout";
            if is_sign_in_form || (is_sign_in && request.method() == Method::POST) {
                self.limits.check_auth(network)?;
            }
        }
        request.set_data(client);
        Ok(())
    }

    /// The application, with a panic turned into an ordinary error.
    async fn guarded(&self, request: Request) -> Result<Response> {
        let call = AssertUnwindSafe(self.inner.call(request)).catch_unwind();
        match call.await {
            Ok(answer) => answer.map(IntoResponse::into_response),
            Err(panic) => {
                self.settings.metrics.count_panic();
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
                Err(ApiError::from(Error::internal(format!("panic: {text}"))).into())
            }
        }
    }

    /// The only place that turns an error into a response; internal errors are logged here with their cause.
    /// Failures of the console and of the form to sign in are pages.
    fn failure(
        &self,
        error: poem::Error,
        path: &str,
        id: &str,
        network: Option<IpAddr>,
        appearance: Option<Appearance>,
    ) -> Response {
        let operation = error.data::<OperationId>().copied();
        let error = match ApiError::from_framework(error) {
            Ok(error) => error,
            Err(finished) => return *finished,
        };
        let error = match network.filter(|_| error.inner().code() == ErrorCode::InvalidToken) {
            Some(network) => {
                self.limits.check_bad_credential(network).map_or_else(ApiError::from, |()| error)
            }
            None => error,
        };
        let inner = error.inner();
        if inner.code() == ErrorCode::Internal {
            let operation = operation.map_or("-", |operation| operation.0);
            tracing::error!(operation, request_id = id, cause = %inner.chain(), "internal error");
        }
        let mut response = match appearance {
            Some(appearance) => {
                console::refusals::page(appearance, inner, id, self.routes.template(path).is_some())
            }
            None => error.render_at(path, id),
        };
        if inner.code() == ErrorCode::MethodNotAllowed
            && let Ok(allow) = self.routes.allow(path).parse()
        {
            response.headers_mut().insert(header::ALLOW, allow);
        }
        if path == paths::MCP
            && let Some(challenge) = mcp::challenge(inner.code())
        {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(operation) = operation {
            response.set_data(operation);
        }
        response.set_data(Refusal::new(error.into_inner()));
        response
    }
}
