//! Paths of older channel clients: the same calls as under `/api/v1/channels`, with the key in the
//! query of every one of them, and with the result's fields at the top level next to the envelope.

use poem::{
    Request, Response,
    http::{HeaderName, HeaderValue, Uri, header},
};
use serde_json::{Map, Value};

use crate::credentials::Presented;

/// An older path, and its replacement.
const PATHS: [(&str, &str); 4] = [
    ("/api/ws", "/api/v1/channels/connect"),
    ("/api/channel/messages", "/api/v1/channels/messages"),
    ("/api/channel/send", "/api/v1/channels/send"),
    ("/api/channel/status", "/api/v1/channels/status"),
];
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Rewrites a request for an older path to its replacement. Returns whether it was one.
pub(crate) fn rewrite(request: &mut Request) -> bool {
    let Some((_, path)) = PATHS.iter().find(|(older, _)| *older == request.uri().path()) else {
        return false;
    };
    let query = request.uri().query().unwrap_or_default().to_owned();
    let mut pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let key = pairs.iter().find(|(name, _)| name == "key" || name == "api_key").map(|(_, key)| key.clone());
    pairs.retain(|(name, _)| name != "key" && name != "api_key");
    if path.ends_with("/messages") && !pairs.iter().any(|(name, _)| name == "timeout") {
        // Older clients expect a response at once.
        pairs.push(("timeout".to_owned(), "0".to_owned()));
    }
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let separator = if query.is_empty() { "" } else { "?" };
    let Ok(uri) = format!("{path}{separator}{query}").parse::<Uri>() else { return false };
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    if Presented::of(headers, true).explicit.is_none()
        && let Some(mut value) = key.and_then(|key| HeaderValue::try_from(key).ok())
    {
        value.set_sensitive(true);
        headers.insert(API_KEY, value);
    }
    true
}

/// Copies the fields of `data` to the top level, with the names that older clients read.
pub(crate) async fn add_bare_fields(response: &mut Response) {
    let is_json =
        response.content_type().is_some_and(|content_type| content_type.starts_with("application/json"));
    if !is_json || !response.status().is_success() {
        return;
    }
    let Ok(bytes) = response.take_body().into_bytes().await else { return };
    let body = match serde_json::from_slice(&bytes) {
        Ok(Value::Object(envelope)) => Value::Object(with_bare_fields(envelope)).to_string().into_bytes(),
        _ => bytes.to_vec(),
    };
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response.set_body(body);
}

fn with_bare_fields(mut envelope: Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Object(data)) = envelope.get("data").cloned() else { return envelope };
    if let Some(messages) = data.get("items").cloned() {
        envelope.insert("messages".to_owned(), messages);
    }
    for (name, value) in data {
        envelope.entry(name).or_insert(value);
    }
    envelope.insert("ok".to_owned(), true.into());
    envelope
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(uri: &str) -> Request {
        let mut request = Request::builder().uri(uri.parse().unwrap()).finish();
        assert!(rewrite(&mut request), "{uri}");
        request
    }

    #[test]
    fn an_older_path_is_its_newer_one_with_the_key_in_a_header() {
        let socket = rewritten("/api/ws?key=hubc_1&since=3");
        assert_eq!(socket.uri().to_string(), "/api/v1/channels/connect?since=3");
        assert_eq!(socket.header("x-api-key"), Some("hubc_1"));
        let messages = rewritten("/api/channel/messages?api_key=hubc_1&cursor=c");
        assert_eq!(messages.uri().to_string(), "/api/v1/channels/messages?cursor=c&timeout=0");
        assert_eq!(rewritten("/api/channel/send?key=k").uri().to_string(), "/api/v1/channels/send");
        let mut other = Request::builder().uri("/api/channel/other?key=k".parse().unwrap()).finish();
        assert!(!rewrite(&mut other));
        let mut own = Request::builder().uri("/api/channel/status?key=k".parse().unwrap()).finish();
        own.headers_mut().insert(API_KEY, HeaderValue::from_static("mine"));
        assert!(rewrite(&mut own));
        assert_eq!(own.header("x-api-key"), Some("mine"));
    }
}
