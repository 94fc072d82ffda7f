//! Query parameters without a value: generated clients send `cursor=` and `limit=` for what their caller left out.

use poem::{Request, http::Uri};

use crate::paths::is_app_call;

/// Parameters with a credential: an empty one is a wrong one, and not as if none were presented.
pub(crate) const CREDENTIALS: [&str; 4] = ["key", "api_key", "token", "access_token"];

/// Removes the parameters without a value from the query of an API call. A required one is missing then, and an
/// optional one has its default.
pub(crate) fn remove(request: &mut Request) {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    if query.is_empty() || !(path.starts_with("/api/") || is_app_call(path)) {
        return;
    }
    let is_kept = |pair: &&str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        !value.is_empty() || CREDENTIALS.contains(&name)
    };
    let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
    let kept = kept.join("&");
    if kept.len() == query.len() {
        return;
    }
    let separator = if kept.is_empty() { "" } else { "?" };
    if let Ok(uri) = format!("{path}{separator}{kept}").parse::<Uri>() {
        *request.uri_mut() = uri;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_without_a_value_are_as_if_they_were_not_sent() {
        for (uri, left) in [
            ("/api/bots?cursor=", "/api/bots"),
            ("/api/bots?cursor=&limit=2&q", "/api/bots?limit=2"),
            (
                "/api/traces?since=&until=2026-01-01T00:00:00%2B01:00&&status=",
                "/api/traces?until=2026-01-01T00:00:00%2B01:00",
            ),
            ("/bot/v1/installations?limit=", "/bot/v1/installations"),
            ("/api/ws?key=&timeout=", "/api/ws?key="),
            ("/api/bots?q=a+b&cursor=x==", "/api/bots?q=a+b&cursor=x=="),
            ("/console/traces?q=", "/console/traces?q="),
            ("/api/bots?", "/api/bots?"),
        ] {
            let mut request = Request::builder().uri(uri.parse().unwrap()).finish();
            remove(&mut request);
            assert_eq!(request.uri().to_string(), left, "{uri}");
        }
    }
}
