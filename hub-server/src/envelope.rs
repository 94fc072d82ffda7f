//! The envelope of every response: `{success:true,data}` or `{success:false,error}`.
//!
//! Handlers return [`ApiResult`] and use `?` on `hub_core` results. An [`ApiError`] is passed as a typed error to the
//! [edge](crate::edge), which alone converts errors, including those of the framework, to bytes.

use std::{
    error::Error as StdError,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hub_core::{
    Error, ErrorCode,
    error::{FieldError, Reason},
    openapi::Api,
};
use poem::{
    IntoResponse, Response,
    error::{MethodNotAllowedError, NotFoundError, ReadBodyError, ResponseError},
    http::{StatusCode, header},
};
use poem_openapi::{
    ApiResponse, Enum, Object,
    error::{AuthorizationError, ContentTypeError, ParseParamError, ParsePathError},
    payload::Json,
    registry::{MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry},
    types::{ParseFromJSON, ToJSON, Type},
};
use serde_json::Value;

use crate::advice;

/// The result of every handler.
pub type ApiResult<T> = Result<Json<Envelope<T>>, ApiError>;

/// A successful response.
#[derive(Debug, Object)]
pub struct Envelope<T: ParseFromJSON + ToJSON> {
    /// Always `true`.
    pub success: Always<true>,
    /// The result.
    pub data: T,
}

/// Wraps a result.
pub fn ok<T: ParseFromJSON + ToJSON>(data: T) -> ApiResult<T> {
    Ok(Json(Envelope { success: Always, data }))
}

/// A successful response whose fields are also at the top level, for published clients that read no envelope.
#[derive(Debug, Object)]
pub struct Bare<T: ParseFromJSON + ToJSON + Clone> {
    /// Always `true`.
    pub success: Always<true>,
    /// The result.
    pub data: T,
    /// The fields of the result, at the top level.
    #[oai(flatten)]
    pub bare: T,
}

/// Wraps a result for clients that read the envelope and for those that read bare fields.
pub fn bare<T: ParseFromJSON + ToJSON + Clone>(data: T) -> Result<Json<Bare<T>>, ApiError> {
    Ok(Json(Bare { success: Always, bare: data.clone(), data }))
}

/// The body exceeds its cap.
#[derive(Debug, thiserror::Error)]
#[error("the body exceeds its limit")]
pub(crate) struct OverCap;

/// The data of a response without a result: `{}`.
#[derive(Debug, Default, Api)]
pub struct Empty {}

/// A boolean with one possible value, so that typed clients can tell success from failure.
#[derive(Debug, Clone, Copy)]
pub struct Always<const B: bool>;

impl<const B: bool> Type for Always<B> {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> std::borrow::Cow<'static, str> {
        if B { "true".into() } else { "false".into() }
    }

    fn schema_ref() -> MetaSchemaRef {
        let schema = MetaSchema { enum_items: vec![Value::Bool(B)], ..MetaSchema::new("boolean") };
        MetaSchemaRef::Inline(Box::new(schema))
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::once(self))
    }
}

impl<const B: bool> ParseFromJSON for Always<B> {
    fn parse_from_json(value: Option<Value>) -> poem_openapi::types::ParseResult<Self> {
        match value {
            Some(Value::Bool(found)) if found == B => Ok(Self),
            other => Err(poem_openapi::types::ParseError::expected_type(other.unwrap_or_default())),
        }
    }
}

impl<const B: bool> ToJSON for Always<B> {
    fn to_json(&self) -> Option<Value> {
        Some(Value::Bool(B))
    }
}

/// An error response.
#[derive(Debug, Api)]
pub struct ErrorResponse {
    /// Always `false`.
    pub success: Always<false>,
    /// Always `false`; only under `/bot/v1`, for older clients.
    pub ok: Option<Always<false>>,
    /// The error.
    pub error: ErrorBody,
}

/// An error.
#[derive(Debug, Api)]
pub struct ErrorBody {
    /// Stable error code.
    pub code: Code,
    /// Message for a person.
    pub message: String,
    /// Id of the request, also in the `X-Request-Id` header and in the log.
    pub request_id: String,
    /// The invalid fields; only with `INVALID_PARAMS`.
    pub details: Option<Vec<ErrorDetail>>,
    /// How to fix it, if known.
    pub hint: Option<String>,
    /// Reason that a program can act on, in addition to the code.
    pub reason: Option<ErrorReason>,
}

/// Why an operation is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum ErrorReason {
    /// The session was opened too long ago to change the ways to sign in or to let another device in; `fresh_until` of
    /// the user has passed.
    SessionTooOld,
    /// Only a session can do this, not an API key.
    SessionRequired,
}

impl From<Reason> for ErrorReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::SessionTooOld => Self::SessionTooOld,
            Reason::SessionRequired => Self::SessionRequired,
        }
    }
}

/// An invalid field.
#[derive(Debug, Api)]
pub struct ErrorDetail {
    /// Path of the field as the caller wrote it, for example `webhook.url`.
    pub field: String,
    /// The rule that is violated, as half a sentence.
    pub reason: String,
}

impl From<&FieldError> for ErrorDetail {
    fn from(error: &FieldError) -> Self {
        Self { field: error.field.to_string(), reason: error.reason.to_string() }
    }
}

/// [`ErrorCode`] as a named enumeration of the OpenAPI document.
#[derive(Debug, Clone, Copy)]
pub struct Code(pub ErrorCode);

impl Type for Code {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> std::borrow::Cow<'static, str> {
        "ErrorCode".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Reference("ErrorCode".to_owned())
    }

    fn register(registry: &mut Registry) {
        registry.create_schema::<Self, _>("ErrorCode".to_owned(), |_| MetaSchema {
            description: Some("Stable error code; each has one HTTP status."),
            enum_items: ErrorCode::ALL.iter().map(|code| code.as_str().into()).collect(),
            ..MetaSchema::new("string")
        });
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::once(self))
    }
}

impl ParseFromJSON for Code {
    fn parse_from_json(value: Option<Value>) -> poem_openapi::types::ParseResult<Self> {
        let value = value.unwrap_or_default();
        let known = ErrorCode::ALL.into_iter().find(|code| value == code.as_str());
        known.map(Self).ok_or_else(|| poem_openapi::types::ParseError::expected_type(value))
    }
}

impl ToJSON for Code {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.as_str().into())
    }
}

/// The HTTP status of a code; each code has exactly one.
pub const fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidParams => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthorized | ErrorCode::InvalidToken => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::Conflict | ErrorCode::WindowClosed => StatusCode::CONFLICT,
        ErrorCode::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::UpstreamError => StatusCode::BAD_GATEWAY,
        ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The error of a failed response, with the causes that the envelope leaves out: for callers in the same process.
#[derive(Debug, Clone)]
pub(crate) struct Refusal(Arc<Mutex<Option<Error>>>);

impl Refusal {
    pub(crate) fn new(error: Error) -> Self {
        Self(Arc::new(Mutex::new(Some(error))))
    }

    pub(crate) fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An error of an operation. Created from [`hub_core::Error`] by `?`.
#[derive(Debug)]
pub struct ApiError(Error);

impl ApiError {
    /// An error with a code and a message.
    pub fn new(code: ErrorCode, message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self(Error::new(code, message))
    }

    /// The underlying error.
    pub fn inner(&self) -> &Error {
        &self.0
    }

    /// The underlying error, for messages that are not HTTP responses.
    pub(crate) fn into_inner(self) -> Error {
        self.0
    }

    /// The meaning of an error of the framework. `None` if it carries a finished response.
    pub(crate) fn from_framework(error: poem::Error) -> Result<Self, Box<Response>> {
        if error.is_from_response() {
            return Err(Box::new(error.into_response()));
        }
        let error = match error.downcast::<Self>() {
            Ok(ours) => return Ok(ours),
            Err(error) => error,
        };
        let code = if error.is::<NotFoundError>() {
            return Ok(Self::new(ErrorCode::NotFound, "there is no such path"));
        } else if error.is::<AuthorizationError>() {
            return Ok(Self::new(ErrorCode::Unauthorized, "sign in or send an API key"));
        } else if let Some(path) = error.downcast_ref::<ParsePathError>() {
            return Ok(Self::new(ErrorCode::NotFound, rule(&path.reason).to_owned()));
        } else if let Some(parameter) = error.downcast_ref::<ParseParamError>() {
            let rule = rule(&parameter.reason);
            let is_sentence = ["must ", "is "].iter().any(|start| rule.starts_with(start));
            let reason = if is_sentence { rule.to_owned() } else { format!("is not valid: {rule}") };
            return Ok(Self(Error::invalid(parameter.name, reason)));
        } else if is_over_cap(&error) {
            return Ok(Self(too_large()));
        } else if error.is::<MethodNotAllowedError>() {
            ErrorCode::MethodNotAllowed
        } else if error.is::<ContentTypeError>() {
            ErrorCode::UnsupportedMediaType
        } else {
            match error.status() {
                StatusCode::NOT_FOUND => ErrorCode::NotFound,
                StatusCode::METHOD_NOT_ALLOWED => ErrorCode::MethodNotAllowed,
                StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::PayloadTooLarge,
                StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorCode::UnsupportedMediaType,
                StatusCode::UNAUTHORIZED => ErrorCode::Unauthorized,
                StatusCode::FORBIDDEN => ErrorCode::Forbidden,
                status if status.is_client_error() => ErrorCode::InvalidParams,
                _ => return Ok(Self(Error::internal(error.to_string()))),
            }
        };
        Ok(Self::new(code, error.to_string()))
    }

    /// The response, with the id of the request.
    pub(crate) fn render(&self, request_id: &str) -> Response {
        self.render_at("", request_id)
    }

    /// Renders the error in the format of this path.
    pub(crate) fn render_at(&self, path: &str, request_id: &str) -> Response {
        let Self(error) = self;
        let details = error.details();
        let body = ErrorResponse {
            success: Always,
            ok: path.starts_with("/bot/v1/").then_some(Always),
            error: ErrorBody {
                code: Code(error.code()),
                message: error.message().to_owned(),
                request_id: request_id.to_owned(),
                details: (!details.is_empty()).then(|| details.iter().map(ErrorDetail::from).collect()),
                // An internal error is for the operator, who reads the log.
                hint: advice::hint(error).filter(|_| error.code() != ErrorCode::Internal),
                reason: error.reason().map(Into::into),
            },
        };
        let mut response = Json(body).into_response();
        response.set_status(status(error.code()));
        if matches!(error.code(), ErrorCode::RateLimited | ErrorCode::Unavailable) {
            let after = error.retry_after().unwrap_or(Duration::from_secs(1));
            // Rounded up: a client that returns on time must not be rejected again for a fraction.
            let seconds = after.as_millis().div_ceil(1000).max(1);
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.to_string().parse().expect("digits are a header value"));
        }
        response
    }
}

/// Returns `PAYLOAD_TOO_LARGE` with the message that every limit uses.
pub(crate) fn too_large() -> Error {
    Error::new(ErrorCode::PayloadTooLarge, "the body exceeds its limit")
}

/// Whether reading the body stopped at its limit: the cause is below two layers of I/O errors.
pub(crate) fn is_over_cap(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if current.is::<OverCap>() || matches!(current.downcast_ref(), Some(ReadBodyError::PayloadTooLarge)) {
            return true;
        }
        // `io::Error::source` skips the error it wraps, so that one is checked explicitly.
        let wrapped = current
            .downcast_ref::<std::io::Error>()
            .or_else(|| match current.downcast_ref::<ReadBodyError>() {
                Some(ReadBodyError::Io(io)) => Some(io),
                _ => None,
            })
            .and_then(std::io::Error::get_ref);
        cause = match wrapped {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => current.source(),
        };
    }
    false
}

/// Extracts the rule from a parse message of the framework, which names Rust types at both ends.
pub(crate) fn rule(message: &str) -> &str {
    let message = message.split(" (occurred while parsing ").next().unwrap_or(message);
    match message.strip_prefix("failed to parse ").and_then(|rest| rest.split_once("\": ")) {
        Some((_, rule)) => rule,
        None => message,
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for ApiError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl ResponseError for ApiError {
    fn status(&self) -> StatusCode {
        status(self.0.code())
    }
}

/// Every error that an operation may return, one per status, for the OpenAPI document.
pub(crate) const FAILURES: [(StatusCode, &str); 12] = [
    (StatusCode::BAD_REQUEST, "A parameter or the body is invalid: `INVALID_PARAMS`."),
    (StatusCode::UNAUTHORIZED, "No valid credential: `UNAUTHORIZED`, `INVALID_TOKEN`."),
    (StatusCode::FORBIDDEN, "The caller is authenticated and may not do this: `FORBIDDEN`."),
    (StatusCode::NOT_FOUND, "It does not exist or belongs to another user: `NOT_FOUND`."),
    (StatusCode::METHOD_NOT_ALLOWED, "The path has no such method: `METHOD_NOT_ALLOWED`."),
    (StatusCode::CONFLICT, "Its state forbids this now: `CONFLICT`, `WINDOW_CLOSED`."),
    (StatusCode::PAYLOAD_TOO_LARGE, "The body exceeds its limit: `PAYLOAD_TOO_LARGE`."),
    (
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "The content type of the body is not supported: `UNSUPPORTED_MEDIA_TYPE`.",
    ),
    (StatusCode::TOO_MANY_REQUESTS, "Too many requests: `RATE_LIMITED`."),
    (StatusCode::INTERNAL_SERVER_ERROR, "Internal error; see the log for the request id: `INTERNAL_ERROR`."),
    (StatusCode::BAD_GATEWAY, "The chat network or another service failed: `UPSTREAM_ERROR`."),
    (StatusCode::SERVICE_UNAVAILABLE, "Temporarily not available: `UNAVAILABLE`."),
];

impl ApiResponse for ApiError {
    fn meta() -> MetaResponses {
        let response = |(status, description): (StatusCode, &'static str)| MetaResponse {
            description,
            status: Some(status.as_u16()),
            status_range: None,
            content: vec![MetaMediaType {
                content_type: "application/json",
                schema: ErrorResponse::schema_ref(),
            }],
            headers: Vec::new(),
        };
        MetaResponses { responses: FAILURES.map(response).into() }
    }

    fn register(registry: &mut Registry) {
        ErrorResponse::register(registry);
    }
}
