//! Headers of every response, and the id of its request.

use std::sync::Arc;

use hub_core::Error;
use poem::{
    Response,
    http::{HeaderMap, HeaderName, HeaderValue, header},
};

use crate::{envelope::ApiError, paths::is_app_call};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Headers that are read as text. Not among them: `Authorization` and `Cookie`, of which each part counts by itself;
/// `User-Agent` and the headers of proxies, which describe a caller and decide nothing that it asks for.
const TEXT_HEADERS: [&str; 13] = [
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Content-Type",
    "Idempotency-Key",
    "If-None-Match",
    "If-Range",
    "Last-Event-ID",
    "MCP-Protocol-Version",
    "Mcp-Session-Id",
    "Range",
    "X-API-Key",
    "X-Trace-Id",
];

/// Checks the headers that are read as text: one that is not text would count as absent.
///
/// # Errors
/// `INVALID_PARAMS` with the name of the header.
pub(crate) fn check_text(headers: &HeaderMap) -> Result<(), ApiError> {
    let is_text = |name: &&str| headers.get_all(*name).iter().all(|value| value.to_str().is_ok());
    match TEXT_HEADERS.iter().find(|name| !is_text(name)) {
        Some(name) => Err(Error::invalid(*name, "must be visible ASCII characters").into()),
        None => Ok(()),
    }
}

/// Id of a request, as handlers see it: `Data<&RequestId>`.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

/// Headers of every response; a page that needs another policy has set its own.
pub(crate) fn set_headers(response: &mut Response, path: &str, id: &str) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
    let mut default = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    default(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    default(header::REFERRER_POLICY, "no-referrer");
    default(header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    default(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    default(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    if path.starts_with("/api") || is_app_call(path) {
        default(header::CACHE_CONTROL, "no-store");
    }
}
