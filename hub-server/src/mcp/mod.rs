//! `/mcp`: the Bot API for programs that have models, by the Model Context Protocol over streamable HTTP.
//!
//! The protocol is implemented by the SDK, in all of its versions. It runs without sessions: every POST is a complete
//! request with the token of the app, with a JSON response, so that any node can serve it. Authentication, rate
//! limits and the effects of tools are ours, as for the Bot API.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hub_core::{ErrorCode, Hub};
use poem::{
    Endpoint, FromRequest, IntoResponse, Request, Response, Result,
    http::{self, HeaderMap, HeaderValue, Method, StatusCode, header},
    web::Data,
};
use poem_openapi::{ApiExtractor, ExtractParamOptions};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use self::tools::{BotTools, Caller};
use crate::{
    AppSettings, credentials::AppClient, envelope::ApiError, headers::RequestId, rate_limit::RateLimits,
    serve::ClientGone, wire::is_json,
};

mod definitions;
mod origin;
#[cfg(test)]
mod tests;
mod tools;

/// JSON-RPC codes for invalid requests.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// The endpoint, for POST.
pub(crate) struct Mcp {
    protocol: StreamableHttpService<BotTools, NeverSessionManager>,
}

impl Mcp {
    /// The endpoint of a hub.
    pub(crate) fn new(hub: Hub, limits: Arc<RateLimits>) -> Self {
        let tools = BotTools { hub, limits };
        // `Host` and `Origin` are checked before the token, by our own settings.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let sessions = Arc::new(NeverSessionManager::default());
        Self { protocol: StreamableHttpService::new(move || Ok(tools.clone()), sessions, config) }
    }

    /// Passes one message to the protocol. The response is complete: no tool here reports progress.
    async fn answer(&self, headers: &HeaderMap, caller: Caller, message: Bytes) -> Result<Response> {
        let mut question = http::Request::new(Full::new(message));
        *question.method_mut() = Method::POST;
        let of_protocol = headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-"));
        question.headers_mut().extend(of_protocol.map(|(name, value)| (name.clone(), value.clone())));
        // Negotiation is done: every caller can read JSON.
        for (name, value) in [
            (header::ACCEPT, "application/json, text/event-stream"),
            (header::CONTENT_TYPE, "application/json"),
            (header::HOST, "localhost"),
        ] {
            question.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        question.extensions_mut().insert(caller);
        let (head, body) = self.protocol.handle(question).await.into_parts();
        let body = body.collect().await.unwrap_or_else(|never| match never {}).to_bytes();
        let content_type = head.headers.get(header::CONTENT_TYPE);
        if !head.status.is_success() && content_type.is_none_or(|kind| kind != "application/json") {
            // The message is JSON and was declared so: it is no question of this protocol.
            let is_strange = head.status == StatusCode::UNSUPPORTED_MEDIA_TYPE;
            let status = if is_strange { StatusCode::BAD_REQUEST } else { head.status };
            return Ok(refusal(status, INVALID_REQUEST, &String::from_utf8_lossy(&body)));
        }
        let mut response = Response::builder().status(head.status).body(body);
        if let Some(content_type) = content_type {
            response.headers_mut().insert(header::CONTENT_TYPE, content_type.clone());
        }
        Ok(response)
    }
}

impl Endpoint for Mcp {
    type Output = Response;

    async fn call(&self, request: Request) -> Result<Response> {
        let (request, mut body) = request.split();
        let settings = <Data<&AppSettings> as FromRequest>::from_request(&request, &mut body).await?;
        origin::check(settings.0, request.headers())?;
        let app = AppClient::from_request(&request, &mut body, ExtractParamOptions::default()).await?;
        if !request.header(header::CONTENT_TYPE).is_some_and(is_json) {
            let message = "the body must be application/json";
            return Err(ApiError::new(ErrorCode::UnsupportedMediaType, message).into());
        }
        let request_id = <Data<&RequestId> as FromRequest>::from_request(&request, &mut body).await?;
        let caller = Caller { app, request_id: request_id.0.clone(), client_gone: ClientGone::of(&request) };
        let message = Bytes::from(<Vec<u8> as FromRequest>::from_request(&request, &mut body).await?);
        if let Err((code, what)) = check_message(&message) {
            return Ok(refusal(StatusCode::BAD_REQUEST, code, what));
        }
        self.answer(request.headers(), caller, message).await
    }
}

/// Whether a body is one JSON value that may be a message. Several in one body were part of the protocol in its version
/// 2025-03-26 alone, which its clients did not use, and are refused since.
fn check_message(body: &[u8]) -> Result<(), (i32, &'static str)> {
    if serde_json::from_slice::<IgnoredAny>(body).is_err() {
        return Err((PARSE_ERROR, "the body is not valid JSON"));
    }
    match body.trim_ascii_start().first() {
        Some(b'{') => Ok(()),
        Some(b'[') => Err((INVALID_REQUEST, "one message at a time: batches are not supported")),
        _ => Err((INVALID_REQUEST, "the body must be a JSON-RPC message")),
    }
}

/// An error in the form of JSON-RPC, without a request id.
fn refusal(status: StatusCode, code: i32, message: &str) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": Value::Null, "error": { "code": code, "message": message } });
    poem::web::Json(body).with_status(status).into_response()
}

/// `WWW-Authenticate` of a response to a missing or invalid token (RFC 6750, section 3).
pub(crate) fn challenge(code: ErrorCode) -> Option<HeaderValue> {
    match code {
        ErrorCode::Unauthorized => Some(HeaderValue::from_static("Bearer")),
        ErrorCode::InvalidToken => Some(HeaderValue::from_static("Bearer error=\"invalid_token\"")),
        _ => None,
    }
}
