//! Checks the head of a request before hyper reads it, with hyper's own parser. hyper accepts heads that two parsers
//! may read differently (a length with `Transfer-Encoding`, two lengths, two hosts, bare line feeds), and rejects
//! others without a body; here both are rejected with a message.

use std::str;

use httparse::{EMPTY_HEADER, Header, Request, Status};
use poem::http::{Method, Uri, uri::Authority};

use super::{ServeLimits, limits::MAX_HEADERS, refusal::Refusal};

/// Body that follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// A body of this length, then the next head.
    Sized(u64),
    /// A chunked body, or another protocol. The rest of the connection belongs to this request, so that only one
    /// parser decides where it ends.
    Open,
}

/// Result of the check of the bytes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The head is incomplete.
    More,
    /// A head of this length.
    Head(usize, Framing),
    /// A head that is rejected.
    Refused(Refusal),
}

const END: &[u8] = b"\r\n\r\n";

/// Checks the received part of a head. The first `seen` bytes were checked before: if a head arrives in small pieces,
/// each byte is checked once, and the head is parsed when it is complete.
pub(super) fn judge(bytes: &[u8], seen: usize, limits: &ServeLimits) -> Verdict {
    let from = seen.saturating_sub(END.len() - 1);
    let end = bytes[from..].windows(END.len()).position(|four| four == END);
    let end = end.map(|place| from + place + END.len());
    let head = &bytes[..end.unwrap_or(bytes.len())];
    let has_bare_line_feed =
        (seen..head.len()).any(|at| head[at] == b'\n' && (at == 0 || head[at - 1] != b'\r'));
    if has_bare_line_feed {
        return bad("a line of the head ends without a carriage return");
    }
    if head.len() > limits.max_head {
        let is_target = !head[..limits.max_target.min(head.len())].contains(&b'\n');
        return Verdict::Refused(if is_target { Refusal::TargetTooLong } else { Refusal::HeadTooLarge });
    }
    if end.is_none() && seen > 0 {
        return Verdict::More;
    }
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(head) {
        Ok(Status::Complete(length)) => match inspect(&request, limits) {
            Ok(framing) => Verdict::Head(length, framing),
            Err(refusal) => Verdict::Refused(refusal),
        },
        Ok(Status::Partial) if end.is_none() => Verdict::More,
        Ok(Status::Partial) => bad("the head is not HTTP/1.1"),
        Err(httparse::Error::TooManyHeaders) => Verdict::Refused(Refusal::HeadTooLarge),
        Err(httparse::Error::HeaderName) => bad("a header's name is not valid"),
        Err(httparse::Error::HeaderValue | httparse::Error::NewLine) => bad("a header's value is not valid"),
        Err(httparse::Error::Version) => bad("the version is not HTTP/1.1"),
        Err(_) => bad("the request line is not valid"),
    }
}

const fn bad(reason: &'static str) -> Verdict {
    Verdict::Refused(Refusal::BadHead(reason))
}

fn inspect(request: &Request<'_, '_>, limits: &ServeLimits) -> Result<Framing, Refusal> {
    let bad = |reason| Err(Refusal::BadHead(reason));
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return bad("the request line is not valid");
    };
    if target.len() > limits.max_target {
        return Err(Refusal::TargetTooLong);
    }
    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return bad("the method is not valid") };
    if matches!(method, Method::CONNECT | Method::TRACE) {
        return Err(Refusal::Method);
    }
    let host = host(request.headers, minor)?;
    check_target(&method, target, host)?;
    framing(request.headers, minor)
}

/// Returns the value of the only `Host` header. It may be empty (RFC 9112, section 3.2), and absent in HTTP/1.0,
/// which health checks of load balancers use.
fn host<'h>(headers: &[Header<'h>], minor: u8) -> Result<&'h str, Refusal> {
    let value = only(headers, "host").map_err(|()| Refusal::BadHead("there are several Host headers"))?;
    let absent = (minor == 0).then_some(b"".as_slice());
    let value = value.or(absent).ok_or(Refusal::BadHead("there is no Host header"))?;
    let text = str::from_utf8(value).ok().filter(|text| text.is_empty() || is_host(text));
    text.ok_or(Refusal::BadHead("the Host header is not a host with an optional port"))
}

fn is_host(text: &str) -> bool {
    let Ok(authority) = text.parse::<Authority>() else { return false };
    let port = text.strip_prefix(authority.host());
    let is_port =
        |port: &str| port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.parse::<u16>().is_ok());
    !authority.host().is_empty() && port.is_some_and(is_port)
}

/// Accepts a path, or a URL with the same host, unless `Host` is empty.
fn check_target(method: &Method, target: &str, host: &str) -> Result<(), Refusal> {
    let bad = Err(Refusal::BadHead("the request's target is not valid"));
    let Ok(uri) = target.parse::<Uri>() else { return bad };
    if target.contains('#') {
        return bad;
    }
    match (uri.scheme_str(), uri.authority()) {
        (None, None) if target.starts_with('/') || (target == "*" && *method == Method::OPTIONS) => Ok(()),
        (Some(scheme @ ("http" | "https")), Some(authority)) => {
            let default = if scheme == "http" { ":80" } else { ":443" };
            let bare = |host: &str| host.strip_suffix(default).unwrap_or(host).to_ascii_lowercase();
            let is_same = host.is_empty() || bare(authority.as_str()) == bare(host);
            if is_same { Ok(()) } else { Err(Refusal::BadHead("the target and Host name two hosts")) }
        }
        _ => bad,
    }
}

fn framing(headers: &[Header<'_>], minor: u8) -> Result<Framing, Refusal> {
    let length = only(headers, "content-length")
        .map_err(|()| Refusal::BadHead("there are several Content-Length headers"))?;
    let coding = only(headers, "transfer-encoding")
        .map_err(|()| Refusal::BadHead("there are several Transfer-Encoding headers"))?;
    match (length, coding) {
        (Some(_), Some(_)) => Err(Refusal::BadHead("Content-Length and Transfer-Encoding are both there")),
        (None, Some(coding)) if minor == 1 && coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Open),
        (None, Some(_)) => Err(Refusal::BadHead("Transfer-Encoding must be chunked, in HTTP/1.1")),
        (length, None) => {
            let length = length.map_or(Some(0), content_length);
            let length = length.ok_or(Refusal::BadHead("Content-Length is not a number of bytes"))?;
            let upgrade = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("upgrade"));
            let is_upgrade =
                upgrade.into_iter().any(|header| header.value.eq_ignore_ascii_case(b"websocket"));
            Ok(if is_upgrade { Framing::Open } else { Framing::Sized(length) })
        }
    }
}

/// Parses digits only: `parse` would accept a sign.
fn content_length(value: &[u8]) -> Option<u64> {
    let text = str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok().filter(|length| i64::try_from(*length).is_ok())
}

/// Returns the only value of a header; `Err` if it occurs more than once.
fn only<'h>(headers: &[Header<'h>], name: &str) -> Result<Option<&'h [u8]>, ()> {
    let mut values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    let first = values.next().map(|header| header.value);
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Verdict {
        judge(text.as_bytes(), 0, &ServeLimits::default())
    }

    fn reason(verdict: Verdict) -> &'static str {
        match verdict {
            Verdict::Refused(Refusal::BadHead(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn good_heads_say_what_follows_them() {
        for (text, framing) in [
            ("GET / HTTP/1.1\r\nHost: hub\r\n\r\n", Framing::Sized(0)),
            ("GET /a?b=c HTTP/1.0\r\nhost: [::1]:9800\r\n\r\n", Framing::Sized(0)),
            ("OPTIONS * HTTP/1.1\r\nHost: hub\r\n\r\n", Framing::Sized(0)),
            ("GET /healthz HTTP/1.0\r\n\r\n", Framing::Sized(0)),
            ("HEAD /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Framing::Sized(0)),
            ("OPTIONS / HTTP/1.0\r\n\r\n", Framing::Sized(0)),
            ("OPTIONS * HTTP/1.0\r\n\r\n", Framing::Sized(0)),
            ("GET /healthz HTTP/1.1\r\nHost:\r\n\r\n", Framing::Sized(0)),
            ("GET http://hub/healthz HTTP/1.0\r\n\r\n", Framing::Sized(0)),
            ("GET http://hub/healthz HTTP/1.1\r\nHost:\r\n\r\n", Framing::Sized(0)),
            ("GET http://hub/ HTTP/1.1\r\nHost: hub:80\r\n\r\n", Framing::Sized(0)),
            ("GET https://hub:443/ HTTP/1.1\r\nHost: HUB\r\n\r\n", Framing::Sized(0)),
            ("GET http://HUB:80/ HTTP/1.1\r\nHost: hub:80\r\n\r\n", Framing::Sized(0)),
            ("POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 12\r\n\r\n", Framing::Sized(12)),
            ("POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: Chunked\r\n\r\n", Framing::Open),
            ("GET / HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\n\r\n", Framing::Open),
        ] {
            assert_eq!(whole(text), Verdict::Head(text.len(), framing), "{text:?}");
            assert_eq!(whole(&format!("{text}rest")), Verdict::Head(text.len(), framing), "{text:?}");
        }
    }

    #[test]
    fn a_head_in_drops_is_the_same_head() {
        let text = b"POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 3\r\n\r\nabc";
        let limits = ServeLimits::default();
        let end = text.len() - 3;
        for seen in 1..end - 1 {
            assert_eq!(judge(&text[..=seen], seen, &limits), Verdict::More, "{seen}");
        }
        assert_eq!(judge(&text[..end], end - 1, &limits), Verdict::Head(end, Framing::Sized(3)));
    }

    #[test]
    fn hosts_and_targets_must_agree() {
        for (line, host) in [
            ("GET / HTTP/1.1", ""),
            ("GET / HTTP/1.0", "Host: a b\r\n"),
            ("GET / HTTP/1.0", "Host: a\r\nHost: b\r\n"),
            ("GET http://user@b/ HTTP/1.1", "Host: b\r\n"),
            ("GET http://b:443/ HTTP/1.1", "Host: b\r\n"),
            ("GET * HTTP/1.0", ""),
            ("GET / HTTP/1.1", "Host: a b\r\n"),
            ("GET / HTTP/1.1", "Host: a\r\nHost: a\r\n"),
            ("GET / HTTP/1.1", "Host: user@a\r\n"),
            ("GET / HTTP/1.1", "Host: a:99999\r\n"),
            ("GET / HTTP/1.1", "Host: a/b\r\n"),
            ("GET / HTTP/1.1", "Host: [::1\r\n"),
            ("GET http://b/ HTTP/1.1", "Host: a\r\n"),
            ("GET ftp://a/ HTTP/1.1", "Host: a\r\n"),
            ("GET a:80 HTTP/1.1", "Host: a:80\r\n"),
            ("GET * HTTP/1.1", "Host: a\r\n"),
            ("GET /#x HTTP/1.1", "Host: a\r\n"),
        ] {
            reason(whole(&format!("{line}\r\n{host}\r\n")));
        }
    }

    #[test]
    fn caps_have_their_own_answers() {
        let long = "a".repeat(9_000);
        let refused = |text: &str| match whole(text) {
            Verdict::Refused(refusal) => refusal,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n")), Refusal::TargetTooLong);
        assert_eq!(refused(&format!("GET /{}", "a".repeat(40_000))), Refusal::TargetTooLong);
        let many = "x: y\r\n".repeat(MAX_HEADERS);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n")), Refusal::HeadTooLarge);
        let big = format!("x: {long}\r\n").repeat(4);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\nHost: a\r\n{big}\r\n")), Refusal::HeadTooLarge);
        assert_eq!(refused("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"), Refusal::Method);
        assert_eq!(refused("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"), Refusal::Method);
    }
}
