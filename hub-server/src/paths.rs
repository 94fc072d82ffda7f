//! Paths that several layers know, and how the path of a request is read.

use std::borrow::Cow;

use poem::http::{Uri, uri::PathAndQuery};

/// Path of the MCP server.
pub(crate) const MCP: &str = "/mcp";

/// Whether a path is one that installed apps call with their token.
pub(crate) fn is_app_call(path: &str) -> bool {
    path.starts_with("/bot/v1") || path == MCP
}

/// A path with one slash where there are several, which programs produce by joining a base address that ends with one.
/// Percent-encoded slashes stay.
pub(crate) fn with_single_slashes(path: &str) -> Cow<'_, str> {
    if !path.contains("//") {
        return Cow::Borrowed(path);
    }
    let mut merged = String::with_capacity(path.len());
    for character in path.chars() {
        if character != '/' || !merged.ends_with('/') {
            merged.push(character);
        }
    }
    Cow::Owned(merged)
}

/// Merges repeated slashes in the path of an address; the query stays as it is.
pub(crate) fn merge_slashes(uri: &mut Uri) {
    let Cow::Owned(path) = with_single_slashes(uri.path()) else { return };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = std::mem::take(uri).into_parts();
    parts.path_and_query = PathAndQuery::try_from(format!("{path}{query}")).ok();
    *uri = Uri::from_parts(parts).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_slashes_are_one_and_nothing_else_changes() {
        for (uri, wanted) in [
            ("//api/bots", "/api/bots"),
            ("/api//v1///channels/send?a=//b&c=%2F%2F", "/api/v1/channels/send?a=//b&c=%2F%2F"),
            ("///", "/"),
            ("/a%2F%2Fb//c", "/a%2F%2Fb/c"),
            ("/api/bots//", "/api/bots/"),
            ("//a/%E5%BC%A0//", "/a/%E5%BC%A0/"),
            ("http://hub.example//api//bots?x=1", "http://hub.example/api/bots?x=1"),
            ("/api/bots?next=//evil.example", "/api/bots?next=//evil.example"),
            ("*", "*"),
            ("/", "/"),
        ] {
            // A request whose target begins with two slashes is a path, not the name of a host.
            let mut uri: Uri = uri.parse().unwrap();
            merge_slashes(&mut uri);
            assert_eq!(uri.to_string(), wanted);
        }
    }
}
