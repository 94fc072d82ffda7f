//! Requests that browsers send. A service on loopback asks for no credential, and any page that its developer visits can
//! send requests to it: directly, or under a name that is bound to loopback after the page was loaded (DNS rebinding).

use std::net::IpAddr;

use http::{HeaderMap, header, uri::Authority};
use url::Url;

use crate::error::{Error, ErrorCode, Result};

/// Refuses requests that a page of another origin sends. Programs send neither `Origin` nor `Sec-Fetch-Site`. `public_url`
/// adds a name to those that [cannot be rebound](cannot_be_rebound).
///
/// # Errors
/// `FORBIDDEN` for another `Origin` than that of the service, for a page of another site, and for a `Host` that may be
/// a rebound name.
pub(crate) fn refuse_other_pages(headers: &HeaderMap, public_url: Option<&str>) -> Result<()> {
    let refused = |message: &'static str| Err(Error::new(ErrorCode::Forbidden, message));
    let host = text(headers, header::HOST).map(str::parse::<Authority>);
    let is_own_name = match &host {
        Some(Ok(host)) => cannot_be_rebound(host.host()) || is_host_of(public_url, host.host()),
        Some(Err(_)) => false,
        None => true,
    };
    if !is_own_name {
        return refused("this Host is not a name of the service; use its address, or a name without a dot");
    }
    let is_own_origin = |origin: &str| match (&host, origin.split_once("://")) {
        (Some(Ok(host)), Some((_, authority))) => host.as_str().eq_ignore_ascii_case(authority),
        _ => false,
    };
    if text(headers, header::ORIGIN).is_some_and(|origin| !is_own_origin(origin)) {
        return refused("pages of other origins are not allowed");
    }
    match text(headers, "sec-fetch-site") {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => refused("pages of other sites are not allowed"),
    }
}

/// Requires JSON where there is a body. A browser sends JSON to another origin only with permission.
///
/// # Errors
/// `UNSUPPORTED_MEDIA_TYPE`.
pub(crate) fn require_json(headers: &HeaderMap, body: &[u8]) -> Result<()> {
    let content_type = text(headers, header::CONTENT_TYPE).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if body.is_empty() || essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Error::new(ErrorCode::UnsupportedMediaType, "the body must be application/json"))
}

/// Whether a host name cannot be bound to another address from outside: addresses, and names without a dot.
pub fn cannot_be_rebound(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok() || !bare.contains('.')
}

fn is_host_of(url: Option<&str>, host: &str) -> bool {
    let url = url.and_then(|url| Url::parse(url).ok());
    url.is_some_and(|url| url.host_str().is_some_and(|own| own.eq_ignore_ascii_case(host)))
}

/// The value of a header; empty if it is not text or there are several.
fn text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    let is_only = values.next().is_none();
    Some(first.to_str().ok().filter(|_| is_only).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = &'static [(&'static str, &'static str)];

    fn headers(pairs: Pairs) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn programs_and_pages_of_the_service_are_allowed() {
        let allowed: [Pairs; 9] = [
            &[],
            &[("host", "127.0.0.1:9801")],
            &[("host", "[::1]:9801")],
            &[("host", "localhost:9801")],
            &[("host", "sim:9801")],
            &[("host", "SIM.example:9801")],
            &[("host", "localhost:9801"), ("sec-fetch-site", "none")],
            &[("host", "localhost:9801"), ("origin", "http://localhost:9801")],
            &[
                ("host", "localhost:9801"),
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://localhost:9801"),
            ],
        ];
        for pairs in allowed {
            let verdict = refuse_other_pages(&headers(pairs), Some("https://sim.example/"));
            assert!(verdict.is_ok(), "{pairs:?} {verdict:?}");
        }
    }

    #[test]
    fn pages_of_others_and_rebound_names_are_refused() {
        let refused: [Pairs; 13] = [
            &[("host", "rebound.example:9801")],
            &[("host", "127.0.0.1.evil.example")],
            &[("host", "localhost.evil.example:9801"), ("origin", "http://localhost.evil.example:9801")],
            &[("host", "a b")],
            &[("host", "localhost:9801"), ("host", "evil.example")],
            &[("host", "localhost:9801"), ("origin", "https://evil.example")],
            &[("host", "localhost:9801"), ("origin", "http://localhost:3000")],
            &[("host", "localhost:9801"), ("origin", "null")],
            &[("host", "localhost:9801"), ("origin", "http://localhost:9801"), ("origin", "null")],
            &[("origin", "http://localhost:9801")],
            &[("host", "localhost:9801"), ("sec-fetch-site", "cross-site")],
            &[("host", "localhost:9801"), ("sec-fetch-site", "same-site")],
            &[
                ("host", "localhost:9801"),
                ("origin", "http://localhost:9801"),
                ("sec-fetch-site", "cross-site"),
            ],
        ];
        for pairs in refused {
            let error = refuse_other_pages(&headers(pairs), None).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Forbidden, "{pairs:?}");
        }
    }

    #[test]
    fn a_body_is_json() {
        let bodies: [(bool, Pairs, &str); 7] = [
            (true, &[], ""),
            (true, &[("content-type", "application/json")], "{}"),
            (true, &[("content-type", "Application/JSON; charset=utf-8")], "{}"),
            (false, &[], "{}"),
            (false, &[("content-type", "text/plain")], "{}"),
            (false, &[("content-type", "application/x-www-form-urlencoded")], "{}="),
            (false, &[("content-type", "multipart/form-data; boundary=application/json")], "{}"),
        ];
        for (allowed, pairs, body) in bodies {
            assert_eq!(require_json(&headers(pairs), body.as_bytes()).is_ok(), allowed, "{pairs:?}");
        }
    }
}
