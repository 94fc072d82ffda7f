//! Query parameters of API calls. One without a value counts as absent: generated clients send `cursor=` and `limit=` for
//! what their caller left out. One with two values is an error, unless it is a list.

use std::collections::HashSet;

use hub_core::Error;
use poem::{Request, http::Uri};

use crate::paths::is_app_call;

/// Parameters that are lists.
pub(crate) const LISTS: [&str; 4] = ["bot_id", "expand", "kinds", "trace_ids"];

/// Longest name that an error repeats, in bytes.
const MAX_NAME: usize = 64;

/// Parameters with a credential: an empty one is a wrong one, and not as if none were presented.
pub(crate) const CREDENTIALS: [&str; 4] = ["key", "api_key", "token", "access_token"];

/// Removes the parameters without a value from the query of an API call. A required one is missing then, and an
/// optional one has its default.
pub(crate) fn remove(request: &mut Request) {
    let Some(query) = query_of_call(request) else { return };
    let path = request.uri().path();
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

/// Refuses a call whose query has a parameter twice.
///
/// # Errors
/// `INVALID_PARAMS` on the parameter.
pub(crate) fn check_once(request: &Request) -> Result<(), Error> {
    let mut seen = HashSet::new();
    for (name, _) in url::form_urlencoded::parse(query_of_call(request).unwrap_or_default().as_bytes()) {
        if !LISTS.contains(&&*name) && !seen.insert(name.clone()) {
            let field = if name.len() <= MAX_NAME { name.into_owned() } else { "query".to_owned() };
            return Err(Error::invalid(field, "appears more than once"));
        }
    }
    Ok(())
}

fn query_of_call(request: &Request) -> Option<&str> {
    let path = request.uri().path();
    let is_call = path.starts_with("/api/") || is_app_call(path);
    request.uri().query().filter(|query| is_call && !query.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_has_one_value() {
        for (uri, field) in [
            ("/api/bots", None),
            ("/api/bots?q=a&limit=2", None),
            ("/api/bots?kinds=a&kinds=b&bot_id=1&bot_id=2", None),
            ("/console/traces?q=a&q=b", None),
            ("/api/bots?q=a&limit=2&q=a", Some("q")),
            ("/api/bots?%71=a&q=b", Some("q")),
            ("/bot/v1/installations?limit=1&limit=2", Some("limit")),
        ] {
            let request = Request::builder().uri(uri.parse().unwrap()).finish();
            let refused = check_once(&request).err().map(|error| error.details()[0].field.to_string());
            assert_eq!(refused.as_deref(), field, "{uri}");
        }
        let long = format!("/api/bots?{0}=1&{0}=2", "n".repeat(65));
        let request = Request::builder().uri(long.parse().unwrap()).finish();
        assert_eq!(check_once(&request).unwrap_err().details()[0].field, "query");
    }

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
