//! The protocol's HTTP surface: endpoints, one parsed request, one response.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use crate::secret::authorization::bearer_token;

/// Largest body of an API call in bytes.
pub(crate) const MAX_API_BODY: usize = 1 << 20;

/// A call of the protocol; spelled in faults as written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// `get_bot_qrcode`
    GetBotQrcode,
    /// `get_qrcode_status`
    GetQrcodeStatus,
    /// `notifystart`
    #[serde(rename = "notifystart")]
    NotifyStart,
    /// `notifystop`
    #[serde(rename = "notifystop")]
    NotifyStop,
    /// `getupdates`
    #[serde(rename = "getupdates")]
    GetUpdates,
    /// `sendmessage`
    #[serde(rename = "sendmessage")]
    SendMessage,
    /// `getconfig`
    #[serde(rename = "getconfig")]
    GetConfig,
    /// `sendtyping`
    #[serde(rename = "sendtyping")]
    SendTyping,
    /// `getuploadurl`
    #[serde(rename = "getuploadurl")]
    GetUploadUrl,
    /// `cdn_upload`
    CdnUpload,
    /// `cdn_download`
    CdnDownload,
}

impl Endpoint {
    /// The endpoint behind a method and a path. A wrong method is an unknown path: the CDN answers 404 to PUT.
    pub(crate) fn find(method: &Method, path: &str) -> Option<Self> {
        let endpoint = match path {
            "/ilink/bot/get_bot_qrcode" => Self::GetBotQrcode,
            "/ilink/bot/get_qrcode_status" => Self::GetQrcodeStatus,
            "/ilink/bot/msg/notifystart" => Self::NotifyStart,
            "/ilink/bot/msg/notifystop" => Self::NotifyStop,
            "/ilink/bot/getupdates" => Self::GetUpdates,
            "/ilink/bot/sendmessage" => Self::SendMessage,
            "/ilink/bot/getconfig" => Self::GetConfig,
            "/ilink/bot/sendtyping" => Self::SendTyping,
            "/ilink/bot/getuploadurl" => Self::GetUploadUrl,
            "/c2c/upload" => Self::CdnUpload,
            "/c2c/download" => Self::CdnDownload,
            _ => return None,
        };
        let fits = match endpoint {
            Self::GetBotQrcode => method == Method::GET || method == Method::POST,
            Self::GetQrcodeStatus | Self::CdnDownload => method == Method::GET,
            _ => method == Method::POST,
        };
        fits.then_some(endpoint)
    }

    /// Whether a call without a valid token gets -14.
    pub(crate) const fn requires_login(self) -> bool {
        !matches!(self, Self::GetBotQrcode | Self::GetQrcodeStatus | Self::CdnUpload | Self::CdnDownload)
    }
}

/// One request of the protocol, parsed as far as that needs no state.
pub(crate) struct Call {
    pub endpoint: Endpoint,
    /// Scheme, host, port and path under which the server is reached; every URL in a response starts with it.
    pub base: String,
    pub headers: HeaderMap,
    /// The JSON body; empty for GET, for uploads and for an absent body.
    pub json: Map<String, Value>,
    /// The raw body.
    pub body: Bytes,
    query: Vec<(String, String)>,
}

impl Call {
    /// Parses a request. A body of more than `max_body` bytes is refused.
    ///
    /// # Errors
    /// The response: 404 for an unknown path, 413 for a body over its cap, 400 for a body that is not a JSON object.
    pub(crate) fn parse(request: Request<Bytes>, base: String, max_body: usize) -> Result<Self, Reply> {
        let endpoint = Endpoint::find(request.method(), request.uri().path())
            .ok_or_else(|| Reply::text(StatusCode::NOT_FOUND, "404 not found"))?;
        let query = parse_query(request.uri().query());
        let (head, body) = request.into_parts();
        if body.len() > max_body {
            return Err(Reply::text(StatusCode::PAYLOAD_TOO_LARGE, "body too large"));
        }
        let is_json = head.method == Method::POST && endpoint != Endpoint::CdnUpload;
        let may_be_absent = endpoint == Endpoint::GetBotQrcode;
        let json = if !is_json || (body.is_empty() && may_be_absent) {
            Map::new()
        } else {
            serde_json::from_slice(&body)
                .map_err(|_| Reply::text(StatusCode::BAD_REQUEST, "body is not a JSON object"))?
        };
        Ok(Self { endpoint, base, headers: head.headers, json, body, query })
    }

    /// The first value of a query parameter, percent-decoded.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A header's value as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The token of a call that has the literal `AuthorizationType`; without it the token does not count.
    pub(crate) fn token(&self) -> Option<&str> {
        token_of(&self.headers)
    }

    /// A string field of the body; absent and other types read as empty.
    pub(crate) fn text(&self, name: &str) -> &str {
        text_of(&self.json, name)
    }
}

/// A string field of an object; absent and other types read as empty.
pub(crate) fn text_of<'a>(object: &'a Map<String, Value>, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Parameters of a query string, percent-decoded. A bare `+` is a blank, as everywhere: clients that do not encode it
/// fail here as they fail against the real CDN.
pub(crate) fn parse_query(query: Option<&str>) -> Vec<(String, String)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect()
}

/// The token in headers that contain the literal `AuthorizationType`.
pub(crate) fn token_of(headers: &HeaderMap) -> Option<&str> {
    let mut kinds = headers.get_all("authorizationtype").iter();
    bearer_token(headers).filter(|_| kinds.any(|kind| kind == "ilink_bot_token"))
}

pub(crate) struct Reply {
    pub status: StatusCode,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
}

impl Reply {
    fn new(status: StatusCode, content_type: &'static str, body: Bytes) -> Self {
        let content_type = (header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        Self { status, headers: vec![content_type], body }
    }

    /// HTTP 200 with JSON that is already written.
    pub(crate) fn raw_json(body: String) -> Self {
        Self::new(StatusCode::OK, "application/json", body.into())
    }

    /// HTTP 200 with JSON.
    pub(crate) fn json(value: &Value) -> Self {
        Self::raw_json(value.to_string())
    }

    /// `ret` 0 and nothing else.
    pub(crate) fn done() -> Self {
        Self::json(&json!({"ret": 0}))
    }

    /// A business error; those come with HTTP 200.
    pub(crate) fn refuse(ret: i64, errmsg: &str) -> Self {
        Self::json(&json!({"ret": ret, "errmsg": errmsg}))
    }

    /// The token is not, or no longer, valid.
    pub(crate) fn expired() -> Self {
        Self::json(&json!({"errcode": -14, "errmsg": "session timeout"}))
    }

    /// An HTTP error with a line of text.
    pub(crate) fn text(status: StatusCode, text: &'static str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
    }

    pub(crate) fn html(status: StatusCode, page: &'static str) -> Self {
        Self::new(status, "text/html; charset=utf-8", Bytes::from_static(page.as_bytes()))
    }

    /// HTTP 200 with bytes.
    pub(crate) fn bytes(body: Bytes) -> Self {
        Self::new(StatusCode::OK, "application/octet-stream", body)
    }

    /// The same answer with one more header; without it where the value cannot be one.
    pub(crate) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).ok();
        self.headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
        self
    }
}

impl From<Reply> for Response<Bytes> {
    fn from(reply: Reply) -> Self {
        let mut response = Response::new(reply.body);
        *response.status_mut() = reply.status;
        response.headers_mut().extend(reply.headers);
        response
    }
}
