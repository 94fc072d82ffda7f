//! The protocol's HTTP surface as the simulator reads and writes it: endpoints, one parsed request, one answer.
//!
//! It shares no code with the connector, which has its own types, so that a mistake in one of the two is found.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::form_urlencoded;

/// The host an in-process simulator is reached under.
pub const SIM_HOST: &str = "sim.local";

/// Largest body of an API call in bytes.
pub(super) const MAX_API_BODY: usize = 1 << 20;
/// Largest upload in bytes.
pub(super) const MAX_UPLOAD: usize = 200 << 20;
/// Largest body of a control call: bulk injection serves load tests.
pub(super) const MAX_CONTROL_BODY: usize = 16 << 20;
/// Where the control API lives.
pub(super) const CONTROL: &str = "/_sim/";

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
    fn find(method: &Method, path: &str) -> Option<Self> {
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
}

/// One request of the protocol, parsed as far as that needs no state.
pub(super) struct Call {
    pub endpoint: Endpoint,
    /// Scheme, host and port under which the request came in; every URL handed out starts with it.
    pub base: String,
    pub headers: HeaderMap,
    /// The JSON body; empty for GET, for uploads and for an absent body.
    pub json: Map<String, Value>,
    /// The raw body.
    pub body: Bytes,
    query: Vec<(String, String)>,
}

impl Call {
    /// Parses a request.
    ///
    /// # Errors
    /// The answer: 404 for an unknown path, 413 for a body over its cap, 400 for a body that is not a JSON object.
    pub(super) fn parse(request: Request<Bytes>, public_url: Option<&str>) -> Result<Self, Reply> {
        let endpoint = Endpoint::find(request.method(), request.uri().path())
            .ok_or_else(|| Reply::text(StatusCode::NOT_FOUND, "404 not found"))?;
        let base = base_url(&request, public_url);
        let query = parse_query(request.uri().query());
        let (head, body) = request.into_parts();
        let cap = if endpoint == Endpoint::CdnUpload { MAX_UPLOAD } else { MAX_API_BODY };
        if body.len() > cap {
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
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A header's value as text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The token behind `Authorization: Bearer`.
    pub(super) fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// A string field of the body; absent and other types read as empty.
    pub(super) fn text(&self, name: &str) -> &str {
        text_of(&self.json, name)
    }

    /// The person a call is about, for the match of faults.
    pub(super) fn user(&self) -> Option<&str> {
        let in_message = self.json.get("msg").and_then(|msg| msg.get("to_user_id"));
        ["ilink_user_id", "to_user_id"]
            .iter()
            .find_map(|name| self.json.get(*name))
            .or(in_message)
            .and_then(Value::as_str)
    }
}

/// A string field of an object; absent and other types read as empty.
pub(super) fn text_of<'a>(object: &'a Map<String, Value>, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Parameters of a query string, percent-decoded. A bare `+` is a blank, as everywhere: clients that do not encode it
/// fail here as they fail against the real CDN.
pub(super) fn parse_query(query: Option<&str>) -> Vec<(String, String)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect()
}

/// The address a request came in on, or the configured one.
pub(super) fn base_url<B>(request: &Request<B>, public_url: Option<&str>) -> String {
    if let Some(url) = public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let uri = request.uri();
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = uri.authority().map(http::uri::Authority::as_str).or(host).unwrap_or(SIM_HOST);
    format!("{}://{host}", uri.scheme_str().unwrap_or("http"))
}

/// One answer.
pub(super) struct Reply {
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
    pub(super) fn raw_json(body: String) -> Self {
        Self::new(StatusCode::OK, "application/json", body.into())
    }

    /// HTTP 200 with JSON.
    pub(super) fn json(value: &Value) -> Self {
        Self::raw_json(value.to_string())
    }

    /// `ret` 0 and nothing else.
    pub(super) fn done() -> Self {
        Self::json(&json!({"ret": 0}))
    }

    /// A business error; those come with HTTP 200.
    pub(super) fn refuse(ret: i64, errmsg: &str) -> Self {
        Self::json(&json!({"ret": ret, "errmsg": errmsg}))
    }

    /// The token is not, or no longer, valid.
    pub(super) fn expired() -> Self {
        Self::json(&json!({"errcode": -14, "errmsg": "session timeout"}))
    }

    /// An HTTP error with a line of text.
    pub(super) fn text(status: StatusCode, text: &'static str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
    }

    /// A page.
    pub(super) fn html(status: StatusCode, page: &'static str) -> Self {
        Self::new(status, "text/html; charset=utf-8", Bytes::from_static(page.as_bytes()))
    }

    /// HTTP 200 with bytes.
    pub(super) fn bytes(body: Bytes) -> Self {
        Self::new(StatusCode::OK, "application/octet-stream", body)
    }

    /// The same answer with one more header; without it where the value cannot be one.
    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::network::sim::{SimConfig, testing::Rig};

    #[tokio::test]
    async fn unknown_paths_and_methods_bad_json_and_large_bodies_have_their_status() {
        let rig = Rig::new(SimConfig::default());
        let bot = rig.login(None).await;
        let large = vec![b' '; MAX_API_BODY + 1];
        for (method, path, body, status) in [
            ("GET", "/ilink/bot/unknown", "".into(), 404),
            ("GET", "/", "".into(), 404),
            ("GET", "/ilink/bot/getupdates", "".into(), 404),
            ("PUT", "/c2c/upload?encrypted_query_param=x", "".into(), 404),
            ("POST", "/ilink/bot/getupdates", "{".into(), 400),
            ("POST", "/ilink/bot/getupdates", "[]".into(), 400),
            ("POST", "/ilink/bot/getupdates", "".into(), 400),
            ("POST", "/ilink/bot/get_bot_qrcode?bot_type=3", "x".into(), 400),
            ("POST", "/ilink/bot/get_bot_qrcode?bot_type=3", "".into(), 200),
            ("GET", "/ilink/bot/get_bot_qrcode?bot_type=3", "".into(), 200),
            ("POST", "/ilink/bot/sendmessage", Bytes::from(large), 413),
        ] {
            let response = rig.http(rig.request(method, path, &bot.token, body)).await.unwrap();
            assert_eq!(response.status().as_u16(), status, "{method} {path}");
        }
    }

    #[tokio::test]
    async fn urls_start_with_the_address_of_the_request_or_the_configured_one() {
        let rig = Rig::new(SimConfig::default());
        assert!(rig.new_qr(&[]).await.1.starts_with("http://sim.test:9801/q/"));
        let absolute = Request::post("http://sim.local/ilink/bot/get_bot_qrcode?bot_type=3");
        let response = rig.http(absolute.body(Bytes::new()).unwrap()).await.unwrap();
        assert!(String::from_utf8_lossy(response.body()).contains("http://sim.local/q/"));
        let public = Some("https://sim.example/".to_owned());
        let rig = Rig::new(SimConfig { public_url: public, ..SimConfig::default() });
        assert!(rig.new_qr(&[]).await.1.starts_with("https://sim.example/q/"));
    }

    #[tokio::test]
    async fn a_call_without_the_literal_or_a_valid_token_is_an_expired_session() {
        let rig = Rig::new(SimConfig::default());
        let bot = rig.login(None).await;
        let body = || Bytes::from_static(b"{\"base_info\":{}}");
        let request = |token: &str| rig.request("POST", "/ilink/bot/msg/notifystart", token, body());
        let mut no_literal = request(&bot.token);
        no_literal.headers_mut().remove("authorizationtype");
        let mut no_token = request(&bot.token);
        no_token.headers_mut().remove("authorization");
        for request in [no_literal, no_token, request("wrong")] {
            let response = rig.http(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(
                serde_json::from_slice::<Value>(response.body()).unwrap(),
                json!({"errcode": -14, "errmsg": "session timeout"})
            );
        }
        let response = rig.http(request(&bot.token)).await.unwrap();
        assert_eq!(response.body(), r#"{"ret":0}"#);
    }
}
