//! Headers from untrusted sources: the settings of a channel, or a plugin.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::error::{Error, Problems, Result};

/// Maximum number of headers in one set.
pub const MAX_HEADERS: usize = 32;
/// Longest name in bytes.
pub const MAX_NAME: usize = 128;
/// Longest value, in bytes.
pub const MAX_VALUE: usize = 4 * 1024;
/// All names and values of one set together, in bytes.
pub const MAX_TOTAL: usize = 16 * 1024;

/// Names that are refused: they frame the message, carry data of a proxy, or identify the sender.
const FORBIDDEN: [&str; 14] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "expect",
    "via",
    "forwarded",
    "x-real-ip",
    "x-signature",
    "x-hub-attempt",
];
const FORBIDDEN_PREFIXES: [&str; 3] = ["proxy-", "x-forwarded-", "webhook-"];

/// Validated headers. `Authorization` may be among them: the hub's own authentication, where a sink has one, is set
/// afterwards and overrides it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedHeaders(HeaderMap);

impl CheckedHeaders {
    /// Checks a set of headers; the same name may occur more than once.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on `headers`, or on `headers.<name>` for each bad one.
    pub fn parse<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let mut problems = Problems::default();
        let mut checked = HeaderMap::new();
        let mut total = 0;
        for (count, (name, value)) in headers.into_iter().enumerate() {
            total += name.len() + value.len();
            if count == MAX_HEADERS || total > MAX_TOTAL {
                return Err(Error::invalid("headers", "must be at most 32, and 16 KiB together"));
            }
            match check_name(name).and_then(|name| Ok((name, check_value(value)?))) {
                Ok((name, value)) => _ = checked.append(name, value),
                Err(reason) => {
                    let shown: String = name.chars().take(MAX_NAME).collect();
                    problems.add(format!("headers.{shown}"), reason);
                }
            }
        }
        problems.finish()?;
        Ok(Self(checked))
    }

    /// The headers.
    pub fn as_map(&self) -> &HeaderMap {
        &self.0
    }

    /// The headers.
    pub fn into_map(self) -> HeaderMap {
        self.0
    }
}

/// Checks one header name: a token of at most 128 bytes that is not on the list of names the hub or the
/// connection sets.
///
/// # Errors
/// The reason, as it follows the name of a field.
pub fn check_name(name: &str) -> Result<HeaderName, &'static str> {
    let token = if name.len() <= MAX_NAME { HeaderName::from_bytes(name.as_bytes()).ok() } else { None };
    let token = token.ok_or("must be a header name of at most 128 letters, digits and hyphens")?;
    let lower = token.as_str();
    if FORBIDDEN.contains(&lower) || FORBIDDEN_PREFIXES.iter().any(|prefix| lower.starts_with(prefix)) {
        return Err("is a header that cannot be set");
    }
    Ok(token)
}

/// Checks one header value: visible ASCII, spaces and tabs, at most 4 KiB.
///
/// # Errors
/// The reason, as it follows the name of a field.
pub fn check_value(value: &str) -> Result<HeaderValue, &'static str> {
    const REASON: &str = "must be visible ASCII, spaces and tabs, at most 4096 bytes";
    let visible = value.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~'));
    if !visible || value.len() > MAX_VALUE {
        return Err(REASON);
    }
    HeaderValue::from_str(value).map_err(|_| REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_hub_or_the_connection_sets_are_refused() {
        for name in FORBIDDEN.into_iter().chain([
            "HOST",
            "Content-Length",
            "Proxy-Authorization",
            "X-Forwarded-For",
            "x-forwarded-anything",
            "Webhook-Id",
            "webhook-signature",
            "X-SIGNATURE",
        ]) {
            assert_eq!(check_name(name), Err("is a header that cannot be set"), "{name}");
        }
        for name in ["", "a b", "a:b", "a\r\nb", "ä", "a\0", &"a".repeat(129)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["X-Custom-Auth", "Authorization", "content-type", "x-webhook-id", "forwarded-x"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn values_are_plain_lines() {
        for value in ["", "a b\tc~!", &"v".repeat(4096)] {
            assert!(check_value(value).is_ok(), "{value:?}");
        }
        for value in ["a\r\nX: y", "a\n", "a\0", "é", "\x7f", &"v".repeat(4097)] {
            assert!(check_value(value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn sets_are_bounded_and_every_bad_name_is_reported() {
        let error = CheckedHeaders::parse([("Host", "x"), ("ok", "y"), ("b", "\r\n")]).unwrap_err();
        let fields: Vec<_> = error.details().iter().map(|d| d.field.as_ref()).collect();
        assert_eq!(fields, ["headers.Host", "headers.b"]);
        let many = vec![("a", "b"); MAX_HEADERS];
        assert_eq!(CheckedHeaders::parse(many.clone()).unwrap().as_map().len(), MAX_HEADERS);
        assert!(CheckedHeaders::parse([many, vec![("a", "b")]].concat()).is_err());
        let long = "v".repeat(4096);
        assert!(CheckedHeaders::parse(vec![("a", long.as_str()); 4]).is_err());
    }
}
