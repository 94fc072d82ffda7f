//! Headers that someone else chose, and what of requests and answers goes into traces.

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use hub_core::{
    delivery::{
        redact::{MAX_BODY, Redactor},
        signing::{self, Method, Signing},
    },
    egress::{CheckedHeaders, headers::check_name},
    secret::Secret,
    time::Timestamp,
};

/// Headers that the hub or the connection sets.
const RESERVED: [&str; 14] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "expect",
    "proxy-authorization",
    "x-forwarded-for",
    "x-signature",
    "webhook-signature",
    "x-hub-attempt",
];

/// One `name: value` per NUL-terminated line, so that line breaks can stand in names and values.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('\0').map(|line| line.split_once(": ").unwrap_or((line, "")))
}

/// A set of headers, and a secret that is to stand in one: nothing that is accepted can end a line, frame the
/// message or speak for the hub.
pub fn headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(checked) = CheckedHeaders::parse(lines(&text)) {
        let map = checked.as_map();
        assert!(map.len() <= 32);
        for (name, value) in map {
            assert!(!RESERVED.contains(&name.as_str()), "{name} was accepted");
            assert_one_line(name.as_str().as_bytes());
            assert_one_line(value.as_bytes());
        }
        let written: Vec<_> =
            map.iter().map(|(n, v)| (n.as_str(), v.to_str().expect("visible ASCII"))).collect();
        assert_eq!(CheckedHeaders::parse(written).ok().as_ref(), Some(&checked));
    }
    let (name, secret) = lines(&text).next().unwrap_or_default();
    let custom = check_name(name).map(|name| Method::Header { name });
    for method in [Ok(Method::None), Ok(Method::Bearer), Ok(Method::Hmac), custom].into_iter().flatten() {
        let secret = Secret::new(secret).into();
        let signing = Signing {
            method: &method,
            secret: Some(&secret),
            previous: Some(&secret),
            id: "dlv_1",
            at: Timestamp::from_millis(1_790_000_000_000),
            attempt: 1,
            body: data,
        };
        let Ok(signed) = signing::headers(&signing) else { continue };
        for (name, value) in &signed {
            assert_one_line(value.as_bytes());
            let open = ["webhook-id", "webhook-timestamp", "x-hub-attempt"].contains(&name.as_str());
            assert!(open || value.is_sensitive(), "{name} may be logged");
        }
    }
}

fn assert_one_line(text: &[u8]) {
    assert!(!text.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{text:?}");
}

/// A secret, and behind a NUL the headers and the body it may occur in: what a trace keeps of them does not
/// hold it.
pub fn trace(data: &[u8]) {
    let (secret, rest) = super::halves(data, 0);
    let Ok(secret) = std::str::from_utf8(secret) else { return };
    // Shorter ones are not looked for; one of stars is what is in place of secrets.
    if secret.len() < 4 || secret.contains('*') || secret.contains('\u{fffd}') {
        return;
    }
    let needle = Secret::new(secret);
    let redactor = Redactor::new([&needle], Some(HeaderName::from_static("x-custom-auth")));
    let body = redactor.body(rest);
    assert!(rest.len() > MAX_BODY || !body.contains(secret), "{body:?}");
    assert!(!body.contains('\0') && body.len() <= MAX_BODY + 64);
    let text = String::from_utf8_lossy(rest);
    let mut map = HeaderMap::new();
    for (name, value) in lines(&text).take(64) {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
            map.append(name, value);
        }
    }
    let shown = redactor.headers(&map);
    assert_eq!(shown.len(), map.len());
    let hidden: HashSet<&str> = HashSet::from(["authorization", "cookie", "set-cookie", "x-custom-auth"]);
    for (name, value) in shown {
        assert!(value.len() > 1024 || !value.contains(secret), "{name}: {value}");
        assert!(!hidden.contains(name.as_str()) || value == "***", "{name} is shown");
    }
}
