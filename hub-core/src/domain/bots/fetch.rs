//! Files that are fetched from an address, redirects included.

use std::{ops::ControlFlow, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

use crate::{
    body_text,
    context::Context,
    egress::{Call, CheckedUrl, EgressError, EgressFault, Reader},
    error::{Error, ErrorCode, Result},
    file_name, file_type,
    redact::Redactor,
    time::Stopwatch,
};

/// Longest time of all requests for a file together.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// A file as its server names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) file_name: String,
    /// `None` when the server knows nothing better than that it is a file.
    pub(crate) content_type: Option<String>,
    pub(crate) bytes: Bytes,
}

/// Fetches a file through the guarded client. Up to five redirects are followed; each is held to the same rule as the
/// first URL, and none leads from https to http. No request carries a cookie or a credential.
///
/// # Errors
/// `INVALID_PARAMS` for an address that is not allowed, `PAYLOAD_TOO_LARGE`, `UPSTREAM_ERROR` with what the server
/// responded.
pub(super) async fn fetch<S>(ctx: &Context<S>, url: &str) -> Result<Fetched> {
    let watch = Stopwatch::start();
    let mut url = checked(ctx, url, "")?;
    let mut visited = Vec::new();
    loop {
        let left = TIMEOUT.saturating_sub(watch.elapsed());
        let mut download = Download::default();
        let call = Call {
            method: Method::GET,
            url: url.clone(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            deadline: left,
            max_answer: ctx.config.media.max_outbound,
        };
        let read = ctx.egress.read(call, &mut download).await;
        let at = if visited.is_empty() { String::new() } else { format!(" at {}", shown(url.as_url())) };
        let Some(next) = download.redirect(url.as_url()) else {
            read.map_err(|error| failed(&error, &at))?;
            return download.file(url.as_url(), &at);
        };
        // The body of a redirect does not matter.
        visited.push(url.clone());
        url = followed(ctx, &visited, &next?)?;
    }
}

/// Checks the URL that the caller named, or that a redirect leads to.
fn checked<S>(ctx: &Context<S>, url: &str, redirect: &str) -> Result<CheckedUrl> {
    ctx.egress.check_url(url).map_err(|error| {
        let reason = error.details().first().map(|detail| detail.reason.to_string());
        let reason = reason.unwrap_or_else(|| error.message().to_owned());
        Error::invalid("media.url", format!("{redirect}{reason}")).with_hint_of(&error)
    })
}

/// The URL of a redirect, if it may be followed after these.
fn followed<S>(ctx: &Context<S>, visited: &[CheckedUrl], next: &Url) -> Result<CheckedUrl> {
    let to = shown(next);
    if visited.last().is_some_and(|last| last.as_url().scheme() == "https") && next.scheme() == "http" {
        return Err(upstream(&format!("the redirect to {to} leads from https to http")));
    }
    let next = checked(ctx, next.as_str(), &format!("redirects to {to}, which "))?;
    if visited.contains(&next) {
        return Err(upstream(&format!("the redirects go round in a circle, back to {to}")));
    }
    if visited.len() > MAX_REDIRECTS {
        return Err(upstream(&format!("there are more than {MAX_REDIRECTS} redirects")));
    }
    Ok(next)
}

fn failed(error: &EgressError, at: &str) -> Error {
    match error.fault {
        EgressFault::BlockedAddress => Error::invalid("media.url", format!("{}{at}", error.message)),
        EgressFault::TooLarge => Error::new(ErrorCode::PayloadTooLarge, "the file at the URL is too large"),
        fault => upstream(&format!("{}{at}", fault.as_str())),
    }
}

fn upstream(why: &str) -> Error {
    Error::new(ErrorCode::UpstreamError, format!("the file could not be fetched: {why}"))
}

fn shown(url: &Url) -> String {
    Redactor::default().url(url)
}

/// A response while it comes; the body of a redirect is not read.
#[derive(Debug, Default)]
struct Download {
    status: StatusCode,
    headers: HeaderMap,
    body: BytesMut,
}

impl Reader for Download {
    fn begin(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.status = status;
        self.headers = headers.clone();
    }

    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        if self.status.is_redirection() {
            return ControlFlow::Break(());
        }
        self.body.extend_from_slice(piece);
        ControlFlow::Continue(())
    }
}

impl Download {
    /// The target of a redirect; `None` for other responses.
    fn redirect(&self, from: &Url) -> Option<Result<Url>> {
        let location = match self.status.as_u16() {
            301 | 302 | 303 | 307 | 308 => self.headers.get(header::LOCATION)?,
            _ => return None,
        };
        // Bytes that are no ASCII keep their value, whatever their charset is.
        let location = percent_encoding::percent_encode(location.as_bytes(), percent_encoding::CONTROLS);
        let next = from.join(&location.to_string());
        Some(
            next.map_err(|_| {
                upstream(&format!("status {} with an unreadable Location", self.status.as_u16()))
            }),
        )
    }

    fn file(self, url: &Url, at: &str) -> Result<Fetched> {
        if !matches!(self.status, StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION) {
            return Err(upstream(&format!("status {}{at}", self.status.as_u16())));
        }
        let disposition = self.headers.get(header::CONTENT_DISPOSITION);
        let name = disposition.and_then(|value| file_name::of_disposition(value.as_bytes()));
        let bytes = self.body.freeze();
        Ok(Fetched {
            file_name: name.unwrap_or_else(|| file_name::of_url(url)),
            content_type: content_type(&self.headers, &bytes),
            bytes,
        })
    }
}

/// The type that a server gives, unless servers give it to whatever they do not know.
fn content_type(headers: &HeaderMap, bytes: &[u8]) -> Option<String> {
    let media_type = body_text::media_type(headers);
    let is_generic = match &*media_type {
        "application/octet-stream"
        | "binary/octet-stream"
        | "application/x-download"
        | "application/download"
        | "application/force-download"
        | "application/x-msdownload"
        | "application/unknown"
        | "unknown/unknown"
        | "application/binary"
        | "image/jpg"
        | "image/pjpeg"
        | "image/x-png" => true,
        "text/plain" | "text/html" => {
            file_type::of_bytes(bytes).is_some() && std::str::from_utf8(bytes).is_err()
        }
        other => !other.contains('/') || other.contains('*'),
    };
    (!is_generic).then_some(media_type)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use http::{HeaderName, HeaderValue, Request, Response};

    use super::{content_type as content_type_of, *};
    use crate::{
        local_http::{Cut, LocalService},
        testing::TestHub,
    };

    /// A server of files and redirects.
    struct Server;

    #[async_trait]
    impl LocalService for Server {
        async fn call(&self, request: Request<Bytes>) -> std::result::Result<Response<Bytes>, Cut> {
            assert!(request.headers().get(header::COOKIE).is_none(), "no cookie is kept");
            let path = request.uri().path();
            let (status, headers, body): (u16, Vec<(HeaderName, HeaderValue)>, &[u8]) = match path {
                "/file.txt" | "/b/file.txt" | "/%E4%BD%A0.txt" => (200, vec![], b"hello"),
                "/named" => (
                    200,
                    vec![(
                        header::CONTENT_DISPOSITION,
                        HeaderValue::from_bytes("attachment; filename=\"你.csv\"".as_bytes()).unwrap(),
                    )],
                    b"a,b",
                ),
                "/raw" => (
                    302,
                    vec![(header::LOCATION, HeaderValue::from_bytes("/你.txt".as_bytes()).unwrap())],
                    b"",
                ),
                "/lost" => (302, vec![], b""),
                "/loop" | "/back" => (302, vec![(header::LOCATION, HeaderValue::from_static("there"))], b""),
                "/there" => {
                    (307, vec![(header::LOCATION, HeaderValue::from_static("http://files.test/back"))], b"")
                }
                path => {
                    // `/307/path`, `/302/http://other/path`.
                    let (status, to) = path[1..].split_once('/').unwrap();
                    let status = status.parse().unwrap();
                    let to = if to.contains("//") { to.to_owned() } else { format!("/{to}#fragment") };
                    let cookie = (header::SET_COOKIE, HeaderValue::from_static("a=b"));
                    (status, vec![(header::LOCATION, to.parse().unwrap()), cookie], b"<html>moved")
                }
            };
            let mut response = Response::new(Bytes::copy_from_slice(body));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            response.headers_mut().extend(headers);
            Ok(response)
        }
    }

    async fn hub() -> TestHub {
        let server: Arc<dyn LocalService> = Arc::new(Server);
        let services = ["files.test", "other.test"].map(|host| (host.to_owned(), Arc::clone(&server)));
        TestHub::builder().egress(|egress| egress.in_process.extend(services)).start().await
    }

    #[tokio::test]
    async fn redirects_lead_to_the_file_and_its_name() {
        let hub = hub().await;
        let context = hub.hub().context();
        for (path, name) in [
            ("/file.txt", "file.txt"),
            ("/301/file.txt", "file.txt"),
            ("/302/b/file.txt", "file.txt"),
            ("/303/307/308/file.txt", "file.txt"),
            ("/301/301/301/301/301/file.txt", "file.txt"),
            ("/302/http://other.test/file.txt", "file.txt"),
            ("/302//other.test/named", "你.csv"),
            ("/named", "你.csv"),
            ("/raw", "你.txt"),
        ] {
            let fetched = fetch(context, &format!("http://files.test{path}")).await;
            assert_eq!(fetched.unwrap().file_name, name, "{path}");
        }
    }

    #[tokio::test]
    async fn redirects_that_are_not_followed_are_named() {
        let hub = hub().await;
        let context = hub.hub().context();
        for (path, code, reason) in [
            ("/301/301/301/301/301/301/file.txt", ErrorCode::UpstreamError, "more than 5 redirects"),
            ("/loop", ErrorCode::UpstreamError, "go round in a circle, back to http://files.test/there"),
            ("/404/x", ErrorCode::UpstreamError, "status 404"),
            ("/301/404/x", ErrorCode::UpstreamError, "status 404 at http://files.test/404/x"),
            ("/300/file.txt", ErrorCode::UpstreamError, "status 300"),
            ("/304/file.txt", ErrorCode::UpstreamError, "status 304"),
            ("/lost", ErrorCode::UpstreamError, "status 302"),
            (
                "/302/http://127.0.0.1:9800/x",
                ErrorCode::InvalidParams,
                "redirects to http://127.0.0.1:9800/x, which must be a public address",
            ),
            ("/302/http://169.254.169.254/x", ErrorCode::InvalidParams, "which must be a public address"),
            ("/302/ftp://files.test/x", ErrorCode::InvalidParams, "must start with http:// or https://"),
            ("/302/http://user:pass@other.test/x", ErrorCode::InvalidParams, "must not contain a user name"),
        ] {
            let error = fetch(context, &format!("http://files.test{path}")).await.unwrap_err();
            let message = error
                .details()
                .first()
                .map_or(error.message().to_owned(), |detail| detail.reason.to_string());
            assert!(error.code() == code && message.contains(reason), "{path}: {:?} {message}", error.code());
            assert!(!message.contains("pass@"), "{message}");
        }
        let down = fetch(context, "https://files.test/302/http://other.test/file.txt").await.unwrap_err();
        assert!(down.message().contains("leads from https to http"), "{}", down.message());
    }

    #[test]
    fn types_that_say_nothing_are_left_out() {
        let of = |content_type: &'static str, bytes: &[u8]| {
            let headers =
                HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))]);
            content_type_of(&headers, bytes)
        };
        let png = b"\x89PNG\r\n\x1a\n";
        for (content_type, bytes, expected) in [
            ("image/png", &png[..], Some("image/png")),
            ("Text/CSV; charset=utf-8", b"a,b", Some("text/csv")),
            ("application/octet-stream", png, None),
            ("binary/octet-stream", png, None),
            ("text/plain", png, None),
            ("text/plain", b"BM is a text", Some("text/plain")),
            ("image/jpg", b"\xff\xd8\xff", None),
            ("file", b"x", None),
            ("*/*", b"x", None),
        ] {
            assert_eq!(of(content_type, bytes).as_deref(), expected, "{content_type}");
        }
    }
}
