//! Requests that never reach the application, and their responses in the common envelope.

use hub_core::ErrorCode;
use poem::{
    Response,
    http::{HeaderValue, StatusCode, header},
};

use crate::{envelope::ApiError, headers};

/// Reason that a request is not served. Each closes its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The head violates HTTP or a rule of the hub.
    BadHead(&'static str),
    /// The head was not received in time.
    SlowHead,
    /// The body was received too slowly.
    SlowBody,
    /// The target exceeds its limit.
    TargetTooLong,
    /// The head exceeds its limit, or has too many fields.
    HeadTooLarge,
    Method,
    /// The handler's task ended without a response.
    Lost,
}

impl Refusal {
    /// The names under which they are counted.
    pub(super) const REASONS: [&'static str; 7] =
        ["bad_head", "slow_head", "slow_body", "target_too_long", "head_too_large", "method", "lost"];

    /// Index of its name in the list.
    pub(super) const fn place(self) -> usize {
        match self {
            Self::BadHead(_) => 0,
            Self::SlowHead => 1,
            Self::SlowBody => 2,
            Self::TargetTooLong => 3,
            Self::HeadTooLarge => 4,
            Self::Method => 5,
            Self::Lost => 6,
        }
    }

    /// There is no separate code for 408, 414 and 431: the request breaks a rule, as with 400.
    /// `PAYLOAD_TOO_LARGE` is about bodies alone.
    const fn parts(self) -> (StatusCode, ErrorCode, &'static str) {
        match self {
            Self::BadHead(reason) => (StatusCode::BAD_REQUEST, ErrorCode::InvalidParams, reason),
            Self::SlowHead => {
                (StatusCode::REQUEST_TIMEOUT, ErrorCode::InvalidParams, "the request's head came too slowly")
            }
            Self::SlowBody => {
                (StatusCode::REQUEST_TIMEOUT, ErrorCode::InvalidParams, "the request's body came too slowly")
            }
            Self::TargetTooLong => {
                (StatusCode::URI_TOO_LONG, ErrorCode::InvalidParams, "the request's target exceeds its limit")
            }
            Self::HeadTooLarge => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                ErrorCode::InvalidParams,
                "the request's head exceeds its limit",
            ),
            Self::Method => (
                StatusCode::METHOD_NOT_ALLOWED,
                ErrorCode::MethodNotAllowed,
                "TRACE and CONNECT are not served",
            ),
            Self::Lost => (StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, "internal error"),
        }
    }

    pub(crate) fn answer(self, request_id: &str) -> Response {
        let (status, code, message) = self.parts();
        let mut response = ApiError::new(code, message).render(request_id);
        response.set_status(status);
        headers::set_headers(&mut response, "/api", request_id);
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if self == Self::Method {
            headers.insert(header::ALLOW, HeaderValue::from_static("DELETE, GET, HEAD, POST, PUT"));
        }
        response
    }
}

/// Returns the response to a connection over a limit, as bytes: it is not served, so the response has to be cheap.
pub(super) fn busy(request_id: &str) -> String {
    let body = serde_json::json!({
        "success": false,
        "error": {
            "code": ErrorCode::Unavailable.as_str(),
            "message": "too many connections",
            "request_id": request_id,
        },
    })
    .to_string();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json; charset=utf-8\r\n\
         content-length: {}\r\nx-request-id: {request_id}\r\ncache-control: no-store\r\nretry-after: 1\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}
