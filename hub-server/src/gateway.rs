//! The paths of the iLink protocol (`/ilink/…`, `/c2c/…`), outside the OpenAPI document: for programs that speak it.
//! Responses and errors are those of the protocol, without the envelope.

use std::sync::Arc;

use hub_core::{
    Hub,
    accounts::ClientInfo,
    gateway::{GatewayCall, Program},
    secret::TokenHash,
};
use poem::{
    Endpoint, Request, Response, Result,
    error::ResponseError,
    http::{self, Method, StatusCode},
};

use crate::{
    AppSettings, Client, body_cap::BodyCap, credentials::Presented, envelope, envelope::ApiError,
    rate_limit::RateLimits, serve::ClientGone,
};

/// The paths with their methods.
pub(crate) const PATHS: [(&str, &[Method]); 12] = [
    (LOGIN, &[Method::GET]),
    (BEGIN_LOGIN, &[Method::GET, Method::POST]),
    ("/ilink/bot/get_qrcode_status", &[Method::GET]),
    ("/ilink/bot/msg/notifystart", &[Method::POST]),
    ("/ilink/bot/msg/notifystop", &[Method::POST]),
    ("/ilink/bot/getupdates", &[Method::POST]),
    ("/ilink/bot/sendmessage", &[Method::POST]),
    ("/ilink/bot/getconfig", &[Method::POST]),
    ("/ilink/bot/sendtyping", &[Method::POST]),
    ("/ilink/bot/getuploadurl", &[Method::POST]),
    (UPLOAD, &[Method::POST]),
    ("/c2c/download", &[Method::GET]),
];
/// The link in a QR code.
const LOGIN: &str = "/ilink/login";
/// The path at which a program begins a login.
const BEGIN_LOGIN: &str = "/ilink/bot/get_bot_qrcode";
/// Where files are uploaded.
pub(crate) const UPLOAD: &str = "/c2c/upload";
/// Calls that count as sends.
const SENDS: [&str; 3] = ["/ilink/bot/sendmessage", "/ilink/bot/sendtyping", "/ilink/bot/getuploadurl"];

/// Whether a path belongs to the protocol.
pub(crate) fn is_call(path: &str) -> bool {
    path.starts_with("/ilink/") || path.starts_with("/c2c/")
}

/// A refusal of the hub for a call as the network would write it; `None` for other refusals.
pub(crate) fn refusal(error: &ApiError) -> Option<Response> {
    match error.status() {
        StatusCode::TOO_MANY_REQUESTS => {
            let mut response = rate_limited();
            if let Some(after) = error.inner().retry_after() {
                response.headers_mut().insert(http::header::RETRY_AFTER, after.as_secs().max(1).into());
            }
            response.set_status(StatusCode::TOO_MANY_REQUESTS);
            Some(response)
        }
        StatusCode::PAYLOAD_TOO_LARGE => Some(too_large()),
        _ => None,
    }
}

fn rate_limited() -> Response {
    Response::builder().content_type("application/json").body(r#"{"ret":-2,"errmsg":"rate limited"}"#)
}

fn too_large() -> Response {
    Response::builder().status(StatusCode::PAYLOAD_TOO_LARGE).body("body too large")
}

/// Responds to the calls.
#[derive(Debug, Clone)]
pub(crate) struct Gateway {
    pub(crate) hub: Hub,
    pub(crate) settings: AppSettings,
    pub(crate) limits: Arc<RateLimits>,
}

impl Endpoint for Gateway {
    type Output = Response;

    async fn call(&self, mut request: Request) -> Result<Response> {
        if request.uri().path() == LOGIN && request.method() == Method::GET {
            return Ok(login_page(request.uri().query().unwrap_or_default()));
        }
        let gateway = self.hub.gateway();
        if !gateway.serves(request.method(), request.uri().path()) {
            return Ok(Response::builder().status(StatusCode::NOT_FOUND).body("404 not found"));
        }
        let program = gateway.authenticate(request.headers()).await.map_err(ApiError::from)?;
        if self.check_rate(&request, program.as_ref()).is_err() {
            return Ok(rate_limited());
        }
        let max_body = gateway.max_body(request.method(), request.uri());
        if let Some(cap) = request.data::<BodyCap>()
            && (program.is_some() || (request.uri().path() == UPLOAD && max_body > 0))
        {
            cap.raise();
        }
        // An upload and its plaintext are in memory at the same time.
        let is_upload = request.uri().path() == UPLOAD;
        let _room = if is_upload { Some(self.hub.media().room(2 * max_body).await) } else { None };
        let body = request.take_body().into_bytes_limit(max_body).await;
        let body = match body {
            Ok(body) => body,
            Err(poem::error::ReadBodyError::Io(error)) if !envelope::is_over_cap(&error) => {
                return Ok(StatusCode::BAD_REQUEST.into());
            }
            Err(_) => return Ok(too_large()),
        };
        // A poll ends with its connection.
        let gone = ClientGone::of(&request).token();
        let stop = self.settings.draining.child_token();
        let client = request.data::<Client>().cloned().map(ClientInfo::from).unwrap_or_default();
        let (mut head, ()) = http::Request::new(()).into_parts();
        head.method = request.method().clone();
        head.uri = request.uri().clone();
        head.headers = request.headers().clone();
        let call = GatewayCall {
            request: http::Request::from_parts(head, body),
            program,
            client,
            stop: stop.clone(),
        };
        let respond = gateway.respond(call);
        let ended = async {
            gone.cancelled().await;
            stop.cancel();
            std::future::pending().await
        };
        let (head, body) = tokio::select! {
            response = respond => response,
            never = ended => never,
        }
        .into_parts();
        let mut response = Response::builder().status(head.status).body(body);
        response.headers_mut().extend(head.headers);
        Ok(response)
    }
}

impl Gateway {
    /// Limits of single calls, after the limit of all requests. A token that is not valid counts as a bad credential
    /// where the response is -14.
    fn check_rate(&self, request: &Request, program: Option<&Program>) -> hub_core::Result<()> {
        let network = request.data::<Client>().map(Client::network);
        let (path, token) = (request.uri().path(), Presented::of(request.headers(), true).explicit);
        if path == BEGIN_LOGIN {
            return network.map_or(Ok(()), |network| self.limits.check_auth(network));
        }
        match (program, token) {
            (Some(program), token) => {
                if let Some(token) = token {
                    self.limits.note_valid(token.expose());
                }
                if SENDS.contains(&path) { self.limits.check_send(&program.actor()) } else { Ok(()) }
            }
            (None, Some(token)) if self.hub.gateway().requires_login(request.method(), path) => {
                self.limits.note_invalid(&TokenHash::of(token.expose()));
                network.map_or(Ok(()), |network| self.limits.check_bad_credential(network))
            }
            (None, _) => Ok(()),
        }
    }
}

/// Leads to the page of the console. Programs fetch the link before they show it as a code, in case it is a picture, and
/// take a redirect for a failure.
fn login_page(query: &str) -> Response {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let login =
        pairs.find(|(name, _)| name == "login").map_or_else(String::new, |(_, value)| value.into_owned());
    let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("login", &login).finish();
    let page = format!("../console/ilink?{query}");
    let markup = maud::html! {
        (maud::DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0; url=" (page) };
                title { "Log a program in" }
            }
            body { p { a href=(page) { "Log a program in" } } }
        }
    };
    Response::builder().content_type("text/html; charset=utf-8").body(markup.into_string())
}
