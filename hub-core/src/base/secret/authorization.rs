//! `Authorization` headers. A proxy before the hub may have a credential of its own in them, in another scheme; several
//! are in several headers, or in one, separated by commas.

use http::{
    HeaderMap,
    header::{self, HeaderValue},
};

/// Credentials of a scheme, without the scheme and the spaces around them, in their order.
pub fn authorizations<'h>(headers: &'h HeaderMap, scheme: &str) -> impl Iterator<Item = &'h [u8]> {
    let values = headers.get_all(header::AUTHORIZATION).iter().map(HeaderValue::as_bytes);
    let parts = values.flat_map(|value| value.split(|byte| *byte == b','));
    parts.filter_map(move |part| {
        let (found, credential) = part.trim_ascii().split_at_checked(scheme.len())?;
        let is_whole_word = credential.first().is_none_or(u8::is_ascii_whitespace);
        (found.eq_ignore_ascii_case(scheme.as_bytes()) && is_whole_word).then(|| credential.trim_ascii())
    })
}

/// The first bearer token; empty if it is not text. Other schemes are passed over.
pub fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    authorizations(headers, "Bearer").next().map(|token| str::from_utf8(token).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[&[u8]]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        bearer_token(&headers).map(str::to_owned)
    }

    #[test]
    fn a_bearer_token_is_found_among_credentials_of_other_schemes() {
        for values in [
            &[b"Bearer abc".as_slice()] as &[&[u8]],
            &[b"bearer abc"],
            &[b"BEARER   abc  "],
            &[b"Bearer\tabc"],
            &[b"Basic dTpw", b"Bearer abc"],
            &[b"Bearer abc", b"Basic dTpw"],
            &[b"Basic dTpw, Bearer abc"],
            &[b"Basic dTpw,bearer abc"],
            &[b"Bearer abc, Basic dTpw"],
            &[b"Digest username=\"u\", realm=\"r\"", b"Bearer abc"],
            &[b"Negotiate \xff\xfe", b"Bearer abc"],
            &[b"", b"Bearer abc"],
        ] {
            assert_eq!(found(values).as_deref(), Some("abc"), "{values:?}");
        }
        for values in [
            &[] as &[&[u8]],
            &[b"Basic dTpw"],
            &[b"Bearers abc"],
            &[b"Token abc"],
            &[b"abc"],
            &[b"Digest realm=\"Bearer abc\""],
            &[b"Bear\xe9 abc"],
        ] {
            assert_eq!(found(values), None, "{values:?}");
        }
        for values in [&[b"Bearer".as_slice()] as &[&[u8]], &[b"Bearer "], &[b"Bearer \xe9", b"Basic dTpw"]] {
            assert_eq!(found(values).as_deref(), Some(""), "{values:?}");
        }
    }
}
