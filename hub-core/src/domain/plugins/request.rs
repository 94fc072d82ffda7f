//! A webhook request as plugins see it, and what they may leave of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use url::Url;

use super::connect::{self, Cover};
use crate::{
    body_text,
    egress::CheckedHeaders,
    sandbox::{Body, PluginRequest, PluginResponse},
};

/// Methods a plugin may choose.
const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
/// Most bytes of an answer's text that a plugin is shown.
const MAX_SHOWN: usize = 256 * 1024;

/// A violation by a plugin, as shown in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// `blocked_url` or `output`.
    pub kind: &'static str,
    /// A sentence.
    pub message: String,
}

impl Violation {
    fn output(message: impl Into<String>) -> Self {
        Self { kind: "output", message: message.into() }
    }

    pub(crate) fn blocked(message: impl Into<String>) -> Self {
        Self { kind: "blocked_url", message: message.into() }
    }
}

/// Allowed targets of one plugin's requests: the configured origin, and the hosts of its `@connect`.
#[derive(Debug, Clone, Copy)]
pub struct Reach<'a> {
    /// The channel's webhook; with `None` only `connects` are allowed.
    pub configured: Option<&'a Url>,
    /// Entries of `@connect`. A host name includes its sub-domains, an address or a name of one label does not. An
    /// entry without a port covers the default port.
    pub connects: &'a [String],
    /// Whether public names among them may also be reached without TLS, as the webhook itself is.
    pub plain_http: bool,
}

impl Reach<'_> {
    /// Checks a URL that a plugin wrote.
    ///
    /// # Errors
    /// The rule that forbids a request to the URL.
    pub fn check(&self, text: &str) -> Result<Url, Violation> {
        // The parser would remove these, and return the same URL as without them.
        if text.is_empty() || text.len() > 2048 || text.chars().any(|c| c.is_control() || c == ' ') {
            return Err(Violation::blocked("the URL must be 1 to 2048 characters without spaces"));
        }
        let url = Url::parse(text).map_err(|_| Violation::blocked("the URL must be absolute"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Violation::blocked("the URL must be http or https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Violation::blocked("the URL must not have a user part"));
        }
        if self.configured.is_some_and(|configured| configured.origin() == url.origin()) {
            return Ok(url);
        }
        let covers = self.connects.iter().map(|entry| connect::cover(entry, &url, self.plain_http));
        match covers.max().unwrap_or(Cover::OtherHost) {
            Cover::Covers => Ok(url),
            Cover::OtherHost => {
                let host: String = url.host_str().unwrap_or_default().chars().take(100).collect();
                Err(Violation::blocked(format!("{host} is not the webhook's host and not in @connect")))
            }
            Cover::OtherPort => Err(Violation::blocked(
                "a host of @connect is reached at its usual port, or at the port that @connect names",
            )),
            Cover::NeedsTls => Err(Violation::blocked("a host of @connect is reached by https")),
        }
    }
}

/// A request after a plugin's changes, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftRequest {
    /// Method.
    pub method: Method,
    /// Target.
    pub url: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Exact bytes of the body.
    pub body: Bytes,
}

/// A request as a plugin is shown it. Header names are written as people write them: `Content-Type`.
pub fn shown(method: &Method, url: &str, headers: &HeaderMap, body: &Bytes) -> PluginRequest {
    let text = String::from_utf8_lossy(body).into_owned();
    let body = match serde_json::from_str::<Box<RawValue>>(&text) {
        _ if text.is_empty() => Body::Empty,
        Ok(json) if json.get().starts_with(['{', '[']) => Body::Json(json),
        _ => Body::Text(text),
    };
    let headers = headers.keys().map(|name| (title(name), joined(headers, name))).collect();
    PluginRequest { url: url.to_owned(), method: method.as_str().to_owned(), headers, body }
}

/// An answer as a plugin is shown it: its body is `null` when it is binary. Header names are written as in requests.
pub fn shown_answer(status: StatusCode, headers: &HeaderMap, body: &Bytes) -> PluginResponse {
    let pairs = headers.keys().map(|name| (title(name), joined(headers, name))).collect();
    let body = is_text(headers, body).then(|| {
        let mut text = body_text::decode(headers, body).into_owned();
        text.truncate(text.floor_char_boundary(MAX_SHOWN));
        text
    });
    PluginResponse { status: status.as_u16(), headers: pairs, body }
}

/// Checks a request after a plugin's changes; `before` is the request that the plugin was given.
///
/// # Errors
/// The first violation.
pub fn checked(
    left: PluginRequest,
    before: &PluginRequest,
    reach: &Reach<'_>,
) -> Result<LeftRequest, Violation> {
    // Unchanged parts were allowed before.
    let url = if left.url == before.url { left.url } else { reach.check(&left.url)?.into() };
    let wanted = left.method.to_ascii_uppercase();
    let method = METHODS.into_iter().find(|method| method.as_str() == wanted);
    let method =
        method.ok_or_else(|| Violation::output("ctx.req.method must be GET, POST, PUT, PATCH or DELETE"))?;
    let headers = checked_headers(&left.headers, &before.headers)?;
    let body = Bytes::from(left.body.text().to_owned());
    Ok(LeftRequest { method, url, headers, body })
}

/// Two spellings of one name are one header, also in an object that replaced ours: that of the plugin is the one that
/// was not there before.
fn checked_headers(
    left: &BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) -> Result<HeaderMap, Violation> {
    let is_ours = |name: &str, value: &str| before.get(name).is_some_and(|ours| ours == value);
    let hidden = |name: &str, value: &str| {
        is_ours(name, value)
            && left.iter().any(|(other, _)| other != name && other.eq_ignore_ascii_case(name))
    };
    let pairs = left.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let pairs = pairs.filter(|(name, value)| !hidden(name, value));
    let checked = CheckedHeaders::parse(pairs).map_err(|error| {
        let reasons = error.details().iter().map(|detail| format!("{} {}", detail.field, detail.reason));
        Violation::output(format!("ctx.req.{}", reasons.collect::<Vec<_>>().join("; ")))
    })?;
    Ok(checked.into_map())
}

fn title(name: &HeaderName) -> String {
    let parts = name.as_str().split('-').map(|part| {
        let (first, rest) = part.split_at(part.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    parts.collect::<Vec<_>>().join("-")
}

fn joined(headers: &HeaderMap, name: &HeaderName) -> String {
    let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.collect::<Vec<_>>().join(", ")
}

/// Whether a body is text: by its content type, or by its bytes if it has none. A JSON object or array is text
/// whatever its content type.
pub(crate) fn is_text(headers: &HeaderMap, body: &Bytes) -> bool {
    let media_type = body_text::media_type(headers);
    let (kind, sub) = media_type.split_once('/').unwrap_or((&media_type, ""));
    let known = ["json", "xml", "javascript", "x-www-form-urlencoded", "yaml", "graphql"];
    if kind == "text"
        || known.iter().any(|known| sub.split(['+', '.', '-']).any(|part| part == *known) || sub == *known)
    {
        return true;
    }
    let Some(text) = body_text::decode_strictly(headers, body) else { return false };
    // A type without a slash says nothing.
    sub.is_empty()
        || (text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(&text).is_ok())
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header};

    use super::*;

    fn hosts() -> Vec<String> {
        vec!["good.example".to_owned(), "xn--e1afmkfd.example".to_owned()]
    }

    #[test]
    fn a_url_is_on_the_configured_origin_or_on_a_host_of_connect() {
        let (configured, connects) = (Url::parse("https://hook.example:8443/a").unwrap(), hosts());
        let reach = Reach { configured: Some(&configured), connects: &connects, plain_http: false };
        for good in [
            "https://hook.example:8443/other?x=1",
            "https://HOOK.example:8443/",
            "https://good.example/",
            "https://api.good.example/x",
            "https://GOOD.example./",
            "https://good.example:443/",
            "https://ｇood.example/",
            "https://good\u{3002}example/",
            "https://пример.example/",
        ] {
            assert!(reach.check(good).is_ok(), "{good}");
        }
        for bad in [
            "https://hook.example/",
            "http://hook.example:8443/",
            "http://good.example/",
            "https://good.example:22/",
            "https://evil-good.example/",
            "https://xgood.example/",
            "https://good.example.evil.test/",
            "https://gооd.example/",
            "https://good.example@evil.test/",
            "https://u:p@good.example/",
            "https://good.example%40evil.test/",
            "https://evil.test#@good.example/",
            "https://evil.test\\@good.example/",
            "http://127.0.0.1:8080/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://localhost/",
            "file:///etc/passwd",
            "gopher://good.example/",
            "data:text/plain,x",
            "javascript:1",
            "//good.example/",
            "/relative",
            "",
            "null",
            "https://good.example/\r\nX: y",
            "https://good.example/ x",
            "\thttps://good.example/",
        ] {
            assert_eq!(reach.check(bad).map_err(|violation| violation.kind), Err("blocked_url"), "{bad}");
        }
        assert!(reach.check(&format!("https://good.example/{}", "x".repeat(100_000))).is_err());
        let plain = Reach { plain_http: true, ..reach };
        assert!(plain.check("http://good.example/").is_ok());
        let nothing = Reach { configured: None, ..reach };
        assert!(nothing.check("https://hook.example:8443/").is_err());
    }

    fn before() -> PluginRequest {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        shown(&Method::POST, "https://hook.example/a", &headers, &Bytes::from_static(b"{\"n\":1}"))
    }

    fn check(change: impl FnOnce(&mut PluginRequest)) -> Result<LeftRequest, Violation> {
        let configured = Url::parse("https://hook.example/").unwrap();
        let mut left = before();
        change(&mut left);
        checked(
            left,
            &before(),
            &Reach { configured: Some(&configured), connects: &hosts(), plain_http: false },
        )
    }

    #[test]
    fn a_request_changed_by_a_plugin_is_validated() {
        let same = check(|_| {}).unwrap();
        assert_eq!((same.method, &*same.body), (Method::POST, &b"{\"n\":1}"[..]));
        assert_eq!(same.headers["content-type"], "application/json");
        let changed = check(|left| {
            left.method = "put".into();
            left.url = "https://api.good.example/x".into();
            left.headers.insert("content-type".into(), "text/plain".into());
            left.headers.insert("X-Kind".into(), "order".into());
            left.body = Body::Text("plain".into());
        })
        .unwrap();
        assert_eq!((changed.method, changed.url.as_str()), (Method::PUT, "https://api.good.example/x"));
        assert_eq!(changed.headers.get_all("content-type").iter().count(), 1);
        assert_eq!(changed.headers["content-type"], "text/plain");
        assert_eq!(
            (&changed.headers["x-kind"], &*changed.body),
            (&HeaderValue::from_static("order"), &b"plain"[..])
        );
        for name in
            ["Host", "Content-Length", "X-Signature", "webhook-signature", "Proxy-Authorization", "a b", ""]
        {
            let refused = check(|left| drop(left.headers.insert(name.into(), "x".into()))).unwrap_err();
            assert!(refused.kind == "output" && refused.message.contains(name), "{name}: {refused:?}");
        }
        assert!(check(|left| drop(left.headers.insert("X-A".into(), "1\r\nX: y".into()))).is_err());
        for method in ["CONNECT", "TRACE", "GET\r\nX", ""] {
            assert_eq!(check(|left| left.method = method.into()).unwrap_err().kind, "output", "{method}");
        }
        assert_eq!(check(|left| left.url = "https://evil.test/".into()).unwrap_err().kind, "blocked_url");
    }

    #[test]
    fn binary_answers_have_no_text() {
        let of = |kind: &'static str, body: &'static [u8]| {
            let mut headers = HeaderMap::new();
            if !kind.is_empty() {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            shown_answer(StatusCode::OK, &headers, &Bytes::from_static(body))
        };
        for (kind, body, text) in [
            ("application/json; charset=utf-8", &b"{}"[..], Some("{}")),
            ("text/html", b"<p>", Some("<p>")),
            ("application/problem+json", b"{}", Some("{}")),
            ("", b"plain", Some("plain")),
            ("", b"\xff\xfd", None),
            ("image/png", b"png", None),
            ("application/octet-stream", b"abc", None),
            ("application/octet-stream", b"{\"a\":1}", Some("{\"a\":1}")),
            ("application/octet-stream", b"{\"a\":1", None),
            ("application/x-json", b"1", Some("1")),
            ("application/vnd.api+json", b"1", Some("1")),
            ("application/atom+xml", b"<a/>", Some("<a/>")),
            ("json", b"{}", Some("{}")),
            ("text/plain; charset=gbk", b"\xc4\xe3\xba\xc3", Some("你好")),
            ("application/json", b"\xff\xfe{\0}\0", Some("{}")),
            ("application/pdf", b"%PDF-1.7", None),
        ] {
            assert_eq!(of(kind, body).body.as_deref(), text, "{kind}");
        }
        let shown = of("text/plain", b"x");
        let names: Vec<&str> = shown.headers.keys().map(String::as_str).collect();
        assert_eq!((names, shown.headers["Content-Type"].as_str()), (vec!["Content-Type"], "text/plain"));
    }
}
