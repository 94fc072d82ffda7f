//! Bytes of files, outside the OpenAPI document: download with a signed link, and the PUT of an announced upload. The
//! link is the permission; no other credential is checked.
//!
//! The content of files is untrusted: it is sent as an attachment, never sniffed, and a browser that shows it anyway
//! runs nothing of it.

use std::ops::Range;

use futures_util::StreamExt;
use hub_core::{
    Error, ErrorCode, Hub,
    media::{ReadableFile, UploadRequest},
};
use poem::{
    Body, IntoResponse, Request, Response, Result, Route, get, handler,
    http::{HeaderValue, Method, StatusCode, header},
    put,
    web::{Data, Json, Path},
};
use serde_json::json;

use crate::{body_cap::BodyCap, envelope::ApiError, headers::RequestId};

/// The path of a download.
pub(crate) const READ: &str = "/api/media/{id}";
/// The path of an upload.
pub(crate) const UPLOAD: &str = "/api/uploads/{id}";
/// Policy of a file that is opened as a page: nothing is allowed.
const POLICY: &str = "default-src 'none'; sandbox";
/// The bytes of a link never change.
const CACHING: &str = "private, max-age=3600, immutable";

pub(crate) fn routes(routes: Route) -> Route {
    routes.at("/api/media/:id", get(read_file)).at("/api/uploads/:id", put(upload_file))
}

/// Whether a request contains a file, which may be larger than other bodies.
pub(crate) fn brings_file(method: &Method, path: &str, content_type: Option<&str>) -> bool {
    let upload = *method == Method::PUT && path.starts_with("/api/uploads/");
    let multipart = content_type.is_some_and(|text| text.trim_start().starts_with("multipart/form-data"));
    let sends = ["/api/v1/channels/send", "/bot/v1/messages/send", "/bot/v1/message/send"];
    upload || (*method == Method::POST && multipart && (sends.contains(&path) || is_of_bot(path)))
}

/// Whether a message of a bot is sent at this path: by the API, or by the form on the page of a bot or a contact.
fn is_of_bot(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    matches!(
        parts.as_slice(),
        ["api", "bots", _, "send"] | ["console", "bots", _] | ["console", "bots", _, "contacts", _]
    )
}

#[handler]
async fn read_file(
    request: &Request,
    hub: Data<&Hub>,
    request_id: Data<&RequestId>,
    Path(id): Path<String>,
) -> Result<Response> {
    let (expires, signature) = link(request);
    let file = hub.media().open_link(&id, &expires, &signature).await.map_err(ApiError::from)?;
    let tag = format!("\"{}\"", file.id);
    let named = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if named(header::IF_NONE_MATCH).is_some_and(|tags| tags.trim() == "*" || tags.contains(&tag)) {
        return Ok(with_head(Response::builder().status(StatusCode::NOT_MODIFIED).finish(), &file, &tag));
    }
    let ranged = named(header::RANGE).filter(|_| named(header::IF_RANGE).is_none_or(|known| known == tag));
    let (status, range) = match ranged.map_or(Ranged::Whole, |text| read_range(text, file.size)) {
        Ranged::Whole => (StatusCode::OK, 0..file.size),
        Ranged::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Ranged::Outside => return Ok(outside(file.size, &request_id)),
    };
    let length = range.end - range.start;
    let content_range = format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), file.size);
    let stream = hub.media().stream(file.id, range).await.map_err(ApiError::from)?;
    let body = Body::from_bytes_stream(stream.map(|piece| piece.map_err(std::io::Error::other)));
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_LENGTH, length)
        .header(header::CONTENT_TYPE, &file.content_type)
        .body(body);
    if status == StatusCode::PARTIAL_CONTENT {
        insert(&mut response, header::CONTENT_RANGE, &content_range);
    }
    Ok(with_head(response, &file, &tag))
}

#[handler]
async fn upload_file(
    request: &Request,
    hub: Data<&Hub>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response> {
    let (expires, signature) = link(request);
    if let Some(cap) = request.data::<BodyCap>() {
        // The body is not read before the link was verified.
        cap.raise();
    }
    let named = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let upload = UploadRequest {
        id: &id,
        expires: &expires,
        signature: &signature,
        content_type: named(header::CONTENT_TYPE),
        length: named(header::CONTENT_LENGTH).and_then(|text| text.parse().ok()),
    };
    let stream = body.into_bytes_stream().map(|piece| piece.map_err(|error| unread(&error)));
    let upload_id = hub.media().receive_upload(upload, Box::pin(stream)).await.map_err(ApiError::from)?;
    Ok(Json(json!({ "success": true, "data": { "upload_id": upload_id } })).into_response())
}

fn unread(error: &std::io::Error) -> Error {
    if crate::envelope::is_over_cap(error) {
        return Error::new(ErrorCode::PayloadTooLarge, "the body exceeds its limit");
    }
    Error::new(ErrorCode::InvalidParams, "the body could not be read to its end")
}

/// `expires` and `sig` of the link; empty when they are missing.
fn link(request: &Request) -> (String, String) {
    let query = request.uri().query().unwrap_or_default();
    let value = |wanted: &str| {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    (value("expires"), value("sig"))
}

fn with_head(mut response: Response, file: &ReadableFile, tag: &str) -> Response {
    insert(&mut response, header::ETAG, tag);
    insert(&mut response, header::ACCEPT_RANGES, "bytes");
    insert(&mut response, header::CACHE_CONTROL, CACHING);
    insert(&mut response, header::CONTENT_SECURITY_POLICY, POLICY);
    insert(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    insert(&mut response, header::CONTENT_DISPOSITION, &disposition(&file.file_name));
    response
}

fn insert(response: &mut Response, name: header::HeaderName, value: &str) {
    if let Ok(value) = value.parse() {
        response.headers_mut().insert(name, value);
    }
}

/// The name in two forms: for every client, and for clients that support RFC 5987.
fn disposition(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_graphic() && !"\"\\%;".contains(c) || c == ' ' { c } else { '_' })
        .collect();
    let encoded: String = name
        .bytes()
        .map(|byte| {
            let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            if plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
        })
        .collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

#[derive(Debug, PartialEq, Eq)]
enum Ranged {
    /// Everything: no range, or none that is understood.
    Whole,
    Part(Range<u64>),
    /// No byte that exists.
    Outside,
}

/// Reads `Range`. Several ranges get the whole file, as RFC 9110, section 14.2, permits.
fn read_range(text: &str, size: u64) -> Ranged {
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|spec| spec.trim().split_once('-')) else {
        return Ranged::Whole;
    };
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Ok(first), Err(_)) if last.is_empty() => first..size,
        (Err(_), Ok(last)) if first.is_empty() => size.saturating_sub(last)..size,
        _ => return Ranged::Whole,
    };
    if range.is_empty() { Ranged::Outside } else { Ranged::Part(range) }
}

fn outside(size: u64, request_id: &RequestId) -> Response {
    let error = ApiError::from(Error::invalid("Range", format!("the file has {size} bytes")));
    let mut response = error.render(&request_id.0);
    response.set_status(StatusCode::RANGE_NOT_SATISFIABLE);
    insert(&mut response, header::CONTENT_RANGE, &format!("bytes */{size}"));
    response
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
