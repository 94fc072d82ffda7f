//! Parsers of values.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hub_server::config::{is_this_machine, parse_duration};
use url::Url;

/// Parses the words of a closed set of the hub.
pub fn closed<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let find = move |text: String| all.into_iter().find(|one| word(*one) == text).ok_or("unknown");
    PossibleValuesParser::new(all.map(word)).try_map(find)
}

/// The URL of a server.
pub fn http_url(text: &str) -> Result<Url, String> {
    let parsed = Url::parse(text);
    if let Ok(url) = &parsed
        && matches!(url.scheme(), "http" | "https")
    {
        return Ok(url.clone());
    }
    // `localhost:9800` is a URL whose scheme is `localhost`, and `127.0.0.1:9800` is none.
    if !text.contains("://")
        && let Ok(url) = Url::parse(&format!("https://{text}"))
    {
        let scheme = if is_this_machine(&url) { "http" } else { "https" };
        return Err(format!("the scheme is missing; use {scheme}://{text}"));
    }
    Err(match parsed {
        Ok(url) => format!("{}:// is not supported; use https:// or http://", url.scheme()),
        Err(_) => "must be a URL like https://hub.example".to_owned(),
    })
}

/// A number of hours: `24`, `24h`.
pub fn hours(text: &str) -> Result<u32, String> {
    text.trim_end_matches('h').parse().map_err(|_| "must be a number of hours like 24h".to_owned())
}

/// A length of time: `90s`, `3m`, `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "must be a number with a unit: 90s, 3m, 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_its_scheme_is_refused_with_the_one_that_is_meant() {
        for url in ["https://hub.example/below", "http://localhost:9800", "http://127.0.0.1:9800"] {
            assert!(http_url(url).is_ok(), "{url}");
        }
        for (text, reason) in [
            ("localhost:19700", "the scheme is missing; use http://localhost:19700"),
            ("127.0.0.1:9800", "the scheme is missing; use http://127.0.0.1:9800"),
            ("[::1]:9800", "the scheme is missing; use http://[::1]:9800"),
            ("hub.example", "the scheme is missing; use https://hub.example"),
            ("hub.example:9800/below", "the scheme is missing; use https://hub.example:9800/below"),
            ("ftp://hub.example", "ftp:// is not supported; use https:// or http://"),
            ("my hub", "must be a URL like https://hub.example"),
            ("", "must be a URL like https://hub.example"),
        ] {
            assert_eq!(http_url(text).unwrap_err(), reason, "{text}");
        }
    }
}
