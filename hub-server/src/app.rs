//! The application: routes and layers. The server runs it on sockets, tests call it directly.

use std::sync::{Arc, LazyLock};

use hub_core::{Hub, secret::Secret};
use poem::{
    Endpoint, EndpointExt, IntoEndpoint, IntoResponse, Response, Route, endpoint::make_sync, get,
    http::Method, post,
};

use crate::{
    AppSettings,
    api::{Api, qr_login::QrSockets},
    console, docs,
    edge::Edge,
    files,
    gateway::{self, Gateway},
    login_page,
    mcp::Mcp,
    metrics,
    metrics_page::MetricsPage,
    oauth_complete, openapi,
    path_prefix::PathPrefix,
    paths,
    rate_limit::RateLimits,
    routes::RouteTable,
};

/// Pages that are not part of the API; all are GET.
const PAGES: [&str; 8] = [
    "/",
    "/favicon.ico",
    "/favicon.svg",
    "/openapi.json",
    "/docs",
    "/docs/style.css",
    "/docs/swagger-ui.js",
    "/docs/start.js",
];

/// The paths of all pages with their methods.
fn page_paths() -> Vec<(&'static str, Vec<Method>)> {
    let files = PAGES.iter().chain(&login_page::PATHS).chain(&oauth_complete::PATHS);
    let files = files.filter(|path| **path != login_page::SIGN_IN).map(|path| (*path, vec![Method::GET]));
    let forms = [(login_page::SIGN_IN, vec![Method::GET, Method::POST])];
    let ilink = gateway::PATHS.iter().map(|(path, methods)| (*path, methods.to_vec()));
    files.chain(forms).chain(console::paths()).chain(ilink).collect()
}

/// All routes, inside the [edge](crate::edge).
pub fn app(hub: Hub, settings: AppSettings) -> impl Endpoint<Output = Response> + 'static {
    let service = openapi::service();
    let public_url = settings.public_url.clone();
    // Made for its first reader: it takes longer than the rest of the start.
    let document =
        LazyLock::new(move || bytes::Bytes::from(openapi::document(public_url.as_str()).to_string()));
    let openapi_json =
        make_sync(move |_| document.clone().with_content_type("application/json").into_response());
    let limits = Arc::new(RateLimits::new(&settings.rate_limits, &hub.context().clock));
    let pages = files::routes(Route::new())
        .at(paths::MCP, post(Mcp::new(hub.clone(), Arc::clone(&limits))))
        .at("/", get(make_sync(|_| console::see_other(console::HOME, &[]))))
        .at("/favicon.ico", get(console::icon))
        .at("/favicon.svg", get(console::icon))
        .at("/openapi.json", get(openapi_json))
        .nest("/docs", docs::pages())
        .nest("/login", login_page::pages())
        .nest("/oauth", oauth_complete::pages());
    let ilink = Gateway { hub: hub.clone(), settings: settings.clone(), limits: Arc::clone(&limits) };
    let pages = console::routes(pages).at("/ilink/*path", ilink.clone()).at("/c2c/*path", ilink);
    // By name, since a wildcard at the root would swallow the pages.
    let api = Arc::new(service.into_endpoint());
    let routes = ["/api/*path", "/bot/*path", "/healthz", "/readyz"]
        .into_iter()
        .fold(pages, |routes, path| routes.at(path, Arc::clone(&api)));
    let (routes, table) = match &settings.metrics_token {
        Some(token) => {
            let page = metrics_page(&hub, &settings, Some(token.clone()));
            (
                routes.at(metrics::PATH, get(page)),
                RouteTable::new::<Api>(&[page_paths(), vec![(metrics::PATH, vec![Method::GET])]].concat()),
            )
        }
        None => (routes, RouteTable::new::<Api>(&page_paths())),
    };
    let inner =
        routes.data(hub.clone()).data(settings.clone()).data(Arc::clone(&limits)).data(QrSockets::default());
    let prefix = settings.path_prefix().to_owned();
    PathPrefix::new(Edge::new(inner, hub, settings, limits, table), prefix)
}

/// The paths of the API alone, behind the [edge](crate::edge).
pub(crate) fn api(hub: Hub, settings: AppSettings) -> impl Endpoint<Output = Response> + 'static {
    let limits = Arc::new(RateLimits::new(&settings.rate_limits, &hub.context().clock));
    let inner = openapi::service()
        .into_endpoint()
        .data(hub.clone())
        .data(settings.clone())
        .data(Arc::clone(&limits))
        .data(QrSockets::default());
    Edge::new(inner, hub, settings, limits, RouteTable::new::<Api>(&[]))
}

/// `/metrics` alone, for a separate listener. Requires the token if there is one.
pub fn metrics_app(
    hub: Hub,
    settings: AppSettings,
    token: Option<Secret>,
) -> impl Endpoint<Output = Response> + 'static {
    let limits = Arc::new(RateLimits::new(&settings.rate_limits, &hub.context().clock));
    let page = Route::new().at(metrics::PATH, get(metrics_page(&hub, &settings, token)));
    Edge::new(page, hub, settings, limits, RouteTable::new::<()>(&[(metrics::PATH, vec![Method::GET])]))
}

fn metrics_page(hub: &Hub, settings: &AppSettings, token: Option<Secret>) -> MetricsPage {
    MetricsPage { hub: hub.clone(), metrics: settings.metrics.clone(), token }
}
