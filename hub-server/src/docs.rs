//! `/docs`: Swagger UI from inside the binary, without inline script, showing the finished document.

use std::sync::LazyLock;

use bytes::Bytes;
use poem::{Endpoint, IntoResponse, Response, Route, endpoint::make_sync, get, http::header};

use crate::openapi;

/// Swagger UI's style and script. Its page, as poem-openapi builds it, holds both and the document inline; they are taken
/// out of it and served as files, so that the page's policy can forbid inline script.
static STYLE_AND_SCRIPT: LazyLock<[Bytes; 2]> = LazyLock::new(|| {
    let page = openapi::service().swagger_ui_html();
    [("<style charset=\"UTF-8\">", "</style>"), ("<script charset=\"UTF-8\">", "</script>")]
        .map(|(start, end)| Bytes::from(between(&page, start, end)))
});

pub(crate) fn pages() -> Route {
    Route::new()
        .at("/", get(file("text/html; charset=utf-8", || PAGE.into())))
        .at("/style.css", get(file("text/css; charset=utf-8", || STYLE_AND_SCRIPT[0].clone())))
        .at("/swagger-ui.js", get(file("text/javascript; charset=utf-8", || STYLE_AND_SCRIPT[1].clone())))
        .at("/start.js", get(file("text/javascript; charset=utf-8", || START.into())))
}

const PAGE: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Message Hub API</title>
<link rel=\"icon\" href=\"/favicon.svg\" type=\"image/svg+xml\">
<link rel=\"stylesheet\" href=\"/docs/style.css\"></head>
<body><div id=\"ui\"></div><noscript>The document is at <a href=\"/openapi.json\">/openapi.json</a>.</noscript>
<script src=\"/docs/swagger-ui.js\"></script><script src=\"/docs/start.js\"></script></body></html>
";

const START: &str = "SwaggerUIBundle({ dom_id: '#ui', \
                     url: new URL('../openapi.json', document.currentScript.src).href, deepLinking: true });\n";

/// Swagger UI sets style attributes and shows data: images; it runs no script but the two files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn file(content_type: &'static str, bytes: fn() -> Bytes) -> impl Endpoint<Output = Response> {
    make_sync(move |_| {
        bytes()
            .with_content_type(content_type)
            .with_header(header::CONTENT_SECURITY_POLICY, POLICY)
            .with_header(header::CACHE_CONTROL, "max-age=300")
            .into_response()
    })
}

fn between(text: &str, start: &str, end: &str) -> String {
    let inner = text.split_once(start).and_then(|(_, rest)| rest.split_once(end)).map(|(inner, _)| inner);
    inner.unwrap_or_default().to_owned()
}
