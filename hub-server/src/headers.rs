//! Headers of every response, and the id of its request.

use std::sync::Arc;

use poem::{
    Response,
    http::{HeaderName, HeaderValue, header},
};

use crate::paths::is_app_call;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

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
