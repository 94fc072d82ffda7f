//! The origins from which `/mcp` may be called. A browser that another site, or a rebound name, directed here reports
//! that in `Origin` and `Host`; the protocol requires both to be checked.

use hub_core::{ErrorCode, local_http::cannot_be_rebound};
use poem::http::{HeaderMap, header, uri::Authority};
use url::Url;

use crate::{AppSettings, envelope::ApiError};

/// Accepts the hub's own pages, and programs, which send no `Origin`; both under a valid name of the hub.
///
/// # Errors
/// `FORBIDDEN`.
pub(super) fn check(settings: &AppSettings, headers: &HeaderMap) -> Result<(), ApiError> {
    let refused = |message: &'static str| Err(ApiError::new(ErrorCode::Forbidden, message));
    let mut origins = headers.get_all(header::ORIGIN).iter();
    if let Some(origin) = origins.next() {
        let origin = origin.to_str().ok().filter(|_| origins.next().is_none());
        if !origin.is_some_and(|origin| settings.is_own_origin(origin)) {
            return refused("pages of this origin are not allowed");
        }
    }
    let Some(host) = headers.get(header::HOST) else { return Ok(()) };
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    if host.is_some_and(|host| leads_here(settings, host.host())) {
        return Ok(());
    }
    refused("this Host is not a name of the hub; set public_url to the name that users use")
}

/// Whether the hub may have this name: its own names, and those that cannot be rebound from outside.
fn leads_here(settings: &AppSettings, host: &str) -> bool {
    if cannot_be_rebound(host) {
        return true;
    }
    let others = settings.other_origins.iter().filter_map(|origin| Url::parse(origin).ok());
    let own = std::iter::once(settings.public_url.clone()).chain(others);
    own.into_iter().any(|url| url.host_str().is_some_and(|name| name.eq_ignore_ascii_case(host)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Values;

    #[test]
    fn strangers_pages_and_names_are_refused() {
        let mut values = Values::new("https://hub.example".parse().unwrap());
        values.other_origins.push("http://localhost:9800".to_owned());
        let settings = AppSettings::from(values);
        let allowed = |host: &[&str], origin: &[&str]| {
            let mut headers = HeaderMap::new();
            for (name, values) in [(header::HOST, host), (header::ORIGIN, origin)] {
                for value in values {
                    headers.append(name.clone(), value.parse().unwrap());
                }
            }
            check(&settings, &headers).is_ok()
        };
        for host in
            ["hub.example", "HUB.example:443", "localhost:9800", "127.0.0.1:9800", "[::1]:9800", "hub"]
        {
            assert!(allowed(&[host], &[]), "{host}");
        }
        for host in ["evil.example", "hub.example.evil.example", "127.0.0.1.evil.example:9800", "a b"] {
            assert!(!allowed(&[host], &[]), "{host}");
        }
        assert!(allowed(&[], &[]) && allowed(&["hub.example"], &["https://hub.example"]));
        for origin in ["https://evil.example", "null", "http://hub.example", "https://hub.example:8443"] {
            assert!(!allowed(&["hub.example"], &[origin]), "{origin}");
        }
        assert!(!allowed(&["hub.example"], &["https://hub.example", "https://evil.example"]));
    }
}
