//! Redaction of requests and responses for [traces](crate::traces).

use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::{
    body_text,
    egress::{BodyEnd, Receipt},
    secret::Secret,
};

pub use crate::secret::MASK;

/// Maximum size of a recorded body, in bytes.
pub const MAX_BODY: usize = 64 * 1024;
/// Maximum size of a recorded header value, in bytes.
const MAX_HEADER: usize = 1024;
/// Maximum size of all recorded headers, in bytes: names and values.
const MAX_HEADERS: usize = 32 * 1024;
/// Shorter texts are not searched for in bodies: they would match everywhere and protect nothing.
const MIN_SECRET: usize = 4;

/// Headers whose values are recorded. Those that start with `x-` are recorded too unless their name contains a word
/// of [`CREDENTIAL_WORDS`]; of all others only the name is recorded.
const SHOWN: [&str; 29] = [
    "accept",
    "accept-language",
    "age",
    "allow",
    "cache-control",
    "connection",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "date",
    "etag",
    "expires",
    "host",
    "keep-alive",
    "last-modified",
    "location",
    "origin",
    "pragma",
    "referer",
    "retry-after",
    "server",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "webhook-id",
    "webhook-timestamp",
];

/// Parts of names of headers and query parameters that carry credentials.
const CREDENTIAL_WORDS: [&str; 12] =
    ["auth", "token", "secret", "key", "sig", "cookie", "pass", "pwd", "session", "cred", "jwt", "code"];

/// Masks secrets in the records of a delivery.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Longest first: a secret may be part of another one.
    needles: Vec<Arc<Needle>>,
    custom_header: Option<HeaderName>,
}

#[derive(Debug)]
struct Needle {
    secret: Secret,
    /// Built for the first text that is long enough: most texts of an attempt are headers and shorter than a token.
    spellings: OnceLock<Vec<Secret>>,
}

impl Needle {
    fn new(secret: &Secret) -> Self {
        Self { secret: secret.clone(), spellings: OnceLock::new() }
    }

    /// Returns the forms of the secret to search for, longest first; none if the text is too short.
    fn spellings(&self, text: &str) -> &[Secret] {
        // No form is shorter than the secret itself.
        if text.len() < self.secret.expose().len() {
            return &[];
        }
        self.spellings.get_or_init(|| spellings(&self.secret))
    }
}

impl Redactor {
    /// A redactor that knows the secrets in play and the header that carries one of them.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>, custom_header: Option<HeaderName>) -> Self {
        Self { needles: Vec::new(), custom_header }.with(secrets)
    }

    /// A redactor that knows these secrets too.
    pub(crate) fn with<'a>(&self, secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut needles = self.needles.clone();
        let long = secrets.into_iter().filter(|secret| secret.expose().len() >= MIN_SECRET);
        needles.extend(long.map(|secret| Arc::new(Needle::new(secret))));
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.secret.expose().len()));
        Self { needles, custom_header: self.custom_header.clone() }
    }

    /// A text with every known secret masked.
    pub fn text(&self, text: &str) -> String {
        self.masked(text.to_owned())
    }

    /// Whether a body has nothing to mask.
    pub(crate) fn is_clean(&self, body: &[u8]) -> bool {
        std::str::from_utf8(body).is_ok_and(|text| {
            let mut spellings = self.needles.iter().flat_map(|needle| needle.spellings(text));
            !spellings.any(|spelling| text.contains(spelling.expose()))
        })
    }

    fn masked(&self, mut text: String) -> String {
        for needle in &self.needles {
            for spelling in needle.spellings(&text) {
                if text.contains(spelling.expose()) {
                    text = text.replace(spelling.expose(), MASK);
                }
            }
        }
        text
    }

    /// Returns names and values of headers, in order, up to 32 KiB. Of values that are not text, the text parts are
    /// shown.
    pub fn headers(&self, headers: &HeaderMap) -> Vec<(String, String)> {
        let shown = |name: &HeaderName| self.custom_header.as_ref() != Some(name) && is_shown(name.as_str());
        let mut kept = Vec::with_capacity(headers.len());
        let mut bytes = 0;
        for (name, value) in headers {
            let is_masked = value.is_sensitive() || !shown(name);
            let value = if is_masked { MASK.to_owned() } else { self.header(value) };
            bytes += name.as_str().len() + value.len();
            if bytes > MAX_HEADERS {
                kept.push(("…".to_owned(), format!("(cut, {} headers)", headers.len())));
                break;
            }
            kept.push((name.as_str().to_owned(), value));
        }
        kept
    }

    /// The value of a header that is shown.
    pub(crate) fn header(&self, value: &HeaderValue) -> String {
        let text = String::from_utf8_lossy(value.as_bytes());
        // Only these parts of a URL are masked.
        let url = text.contains(['?', '@']).then(|| Url::parse(&text).ok()).flatten();
        cut(url.map_or_else(|| self.masked(text.into_owned()), |url| self.url(&url)), MAX_HEADER, "")
    }

    /// Returns a URL without its user part, and with the values of query parameters masked whose names indicate a
    /// credential.
    pub fn url(&self, url: &Url) -> String {
        let mut url = url.clone();
        // Both fail for URLs that have no host, and so no user part.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        if let Some(query) = url.query() {
            let masked: Vec<_> = query.split('&').map(mask_parameter).collect();
            let masked = masked.join("&");
            url.set_query(Some(&masked));
        }
        self.masked(url.into())
    }

    /// A body as text, at most [`MAX_BODY`] bytes of it, with every known secret masked. Bytes that are not
    /// UTF-8 are replaced, and so is NUL, which not every database takes; all other control characters stay.
    pub fn body(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body).replace('\0', "\u{fffd}");
        cut(self.masked(text), MAX_BODY, "")
    }

    /// The body of a response as [`body`](Self::body) keeps it, decoded by its charset.
    pub(crate) fn response(&self, receipt: &Receipt) -> String {
        let text = body_text::decode(&receipt.headers, &receipt.body).replace('\0', "\u{fffd}");
        let more = if matches!(receipt.end, BodyEnd::Cut { .. }) { "more than " } else { "" };
        cut(self.masked(text), MAX_BODY, more)
    }
}

/// Returns a secret as it is, and as it is escaped in JSON and in a URL, longest first.
fn spellings(secret: &Secret) -> Vec<Secret> {
    let text = secret.expose();
    let mut spellings = vec![text.to_owned()];
    if let Ok(quoted) = serde_json::to_string(text) {
        spellings.push(quoted[1..quoted.len() - 1].to_owned());
    }
    spellings.push(url::form_urlencoded::byte_serialize(text.as_bytes()).collect());
    spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
    spellings.dedup();
    spellings.into_iter().map(Secret::new).collect()
}

fn is_shown(name: &str) -> bool {
    SHOWN.contains(&name) || (name.starts_with("x-") && !names_credential(name))
}

pub(crate) fn names_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    CREDENTIAL_WORDS.iter().any(|word| name.contains(word))
}

fn mask_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if names_credential(name) => format!("{name}={MASK}"),
        _ => parameter.to_owned(),
    }
}

/// Whether a recorded body was cut: the note at its end makes it longer than any body that is recorded whole.
pub const fn is_cut(body: &str) -> bool {
    body.len() > MAX_BODY
}

/// Returns the text, or its beginning and a note with its length; `more` is added before the length if the text was
/// cut before.
fn cut(mut text: String, limit: usize, more: &str) -> String {
    let whole = text.len();
    if whole > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push_str("… (cut, ");
        text.push_str(more);
        text.push_str(&whole.to_string());
        text.push_str(" bytes)");
    }
    text
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header};

    use super::*;

    fn redactor() -> Redactor {
        let secrets = [Secret::from("s3cr\"t/ü"), Secret::from("s3cr\"t/ü-longer"), Secret::from("abc")];
        Redactor::new(&secrets, Some(HeaderName::from_static("x-mine")))
    }

    #[test]
    fn known_secrets_are_masked_in_every_spelling() {
        let r = redactor();
        for (text, masked) in [
            ("a s3cr\"t/ü b", "a *** b"),
            ("s3cr\"t/ü-longer", "***"),
            (r#"{"k":"s3cr\"t/ü"}"#, r#"{"k":"***"}"#),
            ("?q=s3cr%22t%2F%C3%BC&x", "?q=***&x"),
            ("abc stays: too short to look for", "abc stays: too short to look for"),
        ] {
            assert_eq!(r.text(text), masked);
            assert_eq!(r.body(text.as_bytes()), masked);
        }
        assert!(!format!("{r:?}").contains("s3cr"));
    }

    #[test]
    fn headers_with_credentials_keep_their_names_only() {
        let mut headers = HeaderMap::new();
        let mut sensitive = HeaderValue::from_static("text/plain");
        sensitive.set_sensitive(true);
        for (name, value) in [
            ("authorization", HeaderValue::from_static("Bearer x")),
            ("cookie", HeaderValue::from_static("a=b")),
            ("set-cookie", HeaderValue::from_static("a=b")),
            ("x-mine", HeaderValue::from_static("v")),
            ("x-signature", HeaderValue::from_static("sha256=1")),
            ("webhook-signature", HeaderValue::from_static("v1,x")),
            ("x-api-key", HeaderValue::from_static("v")),
            ("unheard-of", HeaderValue::from_static("v")),
            ("content-type", HeaderValue::from_static("text/html")),
            ("content-type", sensitive),
            ("x-request-id", HeaderValue::from_static("r 1")),
            ("location", HeaderValue::from_static("https://u:p@a.example/?token=1&b=2")),
            ("server", HeaderValue::from_bytes(b"\xffa").unwrap()),
        ] {
            headers.append(name, value);
        }
        headers.insert(header::DATE, HeaderValue::from_str(&"d".repeat(2000)).unwrap());
        let shown = redactor().headers(&headers);
        let values = |wanted: &str| -> Vec<&str> {
            shown.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).collect()
        };
        for name in [
            "authorization",
            "cookie",
            "set-cookie",
            "x-mine",
            "x-signature",
            "webhook-signature",
            "x-api-key",
            "unheard-of",
        ] {
            assert_eq!(values(name), [MASK], "{name}");
        }
        assert_eq!(values("content-type"), ["text/html", MASK]);
        assert_eq!(values("x-request-id"), ["r 1"]);
        assert_eq!(values("location"), ["https://a.example/?token=***&b=2"]);
        assert_eq!(values("server"), ["\u{fffd}a"]);
        assert_eq!(values("date"), [format!("{}… (cut, 2000 bytes)", "d".repeat(1024))]);
    }

    #[test]
    fn urls_lose_user_and_keys() {
        let url = Url::parse(
            "https://u:p@a.example/s3cr%22/p?api_key=1&KEY=2&q=key&access_token&x=s3cr%22t%2F%C3%BC",
        );
        let shown = redactor().url(&url.unwrap());
        assert_eq!(shown, "https://a.example/s3cr%22/p?api_key=***&KEY=***&q=key&access_token&x=***");
    }

    #[test]
    fn bodies_are_cut_between_characters() {
        let r = redactor();
        let long = format!("a{}", "ü".repeat(MAX_BODY));
        let kept = r.body(long.as_bytes());
        assert!(kept.starts_with("aü") && kept.ends_with("ü… (cut, 131073 bytes)"));
        assert!(kept.len() <= MAX_BODY + 32 && is_cut(&kept));
        assert!(is_cut(&r.body("ü".repeat(MAX_BODY / 2 + 1).as_bytes())));
        assert!(!is_cut(&r.body("a".repeat(MAX_BODY).as_bytes())));
        // Masked before the cut, so that no half of a secret is left at the end.
        let edge = format!("{}s3cr\"t/ü", "a".repeat(MAX_BODY - 4));
        assert!(!r.body(edge.as_bytes()).contains("s3cr"));
        assert_eq!(r.body(b"a\0b\x1b[2J\xff"), "a\u{fffd}b\u{1b}[2J\u{fffd}");
    }
}
