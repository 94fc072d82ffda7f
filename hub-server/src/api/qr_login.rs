//! Signing in by QR code (spec §4; `contract.md` §3).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{SinkExt, StreamExt};
use hub_core::{
    Error, ErrorCode, Hub,
    accounts::{QrAsker, QrLogin, QrPoll, QrStatus},
    secret,
    time::Timestamp,
};
use poem::{
    FromRequest, IntoResponse, Request, RequestBody,
    http::{StatusCode, header},
    web::{
        Data,
        websocket::{BoxWebSocketUpgraded, CloseCode, Message, WebSocket, WebSocketStream},
    },
};
use poem_openapi::{
    ApiResponse, Enum, Object, OpenApi, Union,
    param::Query,
    payload::{Json, Payload, Response},
    registry::{MetaMediaType, MetaResponse, MetaResponses, Registry},
    types::{Example, Type},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Tag,
    auth::Me,
    door::{Door, WithCookie},
};
use crate::{
    AppSettings,
    credentials::User,
    envelope::{ApiError, ApiResult, Envelope, ok},
    serve::websocket,
    wire::{Body, Secret, ShownOnce, Text, Time, enumeration},
};

/// Signing in by QR code.
#[derive(Debug, Clone, Copy)]
pub struct QrLoginApi;

/// A fresh QR login.
#[derive(Debug, Object)]
#[oai(example)]
pub struct QrLoginView {
    /// The public id; it stands in the code.
    pub qr_id: String,
    /// What the code says: a link to the hub's page for confirming.
    pub qr_text: String,
    /// The code as an SVG document.
    pub qr_svg: String,
    /// To be shown beside the code; whoever confirms has to type it.
    pub user_code: String,
    /// What sees and collects the outcome; nobody else may know it.
    pub poll_secret: ShownOnce,
    /// Until when the code can be used: two minutes.
    pub expires_at: Time,
}

enumeration! {
    /// Where a QR login stands.
    QrLoginStatus = hub_core::accounts::QrStatus {
        /// Nobody has opened the code.
        Waiting,
        /// Somebody has.
        Scanned,
        /// They have confirmed it: the session can be collected.
        Confirmed,
        /// Too late.
        Expired,
        /// They refused it, or the code was wrong.
        Cancelled,
    }
}

/// Where a QR login stands, for the screen that asked for it.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none, example)]
pub struct QrStatusView {
    /// Where it stands.
    pub status: QrLoginStatus,
    /// Who confirmed it.
    pub user_name: Option<String>,
    /// The ticket for the session, once it is confirmed.
    pub exchange: Option<ShownOnce>,
}

/// A QR login to be looked at.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct OpenQrLogin {
    /// The id in the code.
    pub qr_id: Text<0, 128>,
}

/// Who asks for a session.
#[derive(Debug, Object)]
#[oai(example)]
pub struct QrAskerView {
    /// Their address; empty when unknown.
    pub ip: String,
    /// Their program; empty when unknown.
    pub user_agent: String,
    /// When they asked.
    pub requested_at: Time,
    /// Until when it can be confirmed.
    pub expires_at: Time,
}

/// A decision about a QR login.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct ConfirmQrLogin {
    /// The id in the code.
    pub qr_id: Text<0, 128>,
    /// The code that the asking screen shows; needed to approve. A wrong one ends the login.
    pub user_code: Option<Text<0, 32>>,
    /// Whether to sign that screen in as oneself.
    pub approve: bool,
}

/// Where a QR login stands after a decision.
#[derive(Debug, Object)]
#[oai(example)]
pub struct QrDecision {
    /// `confirmed` or `cancelled`.
    pub status: QrLoginStatus,
}

/// The ticket for a session.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, example)]
pub struct ExchangeQrLogin {
    /// The id of the login.
    pub qr_id: Text<0, 128>,
    /// Its poll secret.
    pub poll_secret: Secret<128>,
    /// The ticket.
    pub exchange: Secret<128>,
}

/// What a ticket is exchanged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum QrExchangeKind {
    /// A session, by cookie.
    Session,
    /// An API key.
    ApiKey,
}

/// What came of a QR login.
#[derive(Debug, Union)]
pub enum QrOutcome {
    /// The user who is signed in now.
    User(Me),
    /// An API key of the user.
    Key(QrKey),
}

/// An API key.
#[derive(Debug, Object)]
#[oai(example)]
pub struct QrKey {
    /// The key; it is shown this once.
    pub api_key: ShownOnce,
}

/// The answer to a question for the status: once, or as often as it changes.
pub(crate) enum QrStatusAnswer {
    /// Once.
    Once(Box<Json<Envelope<QrStatusView>>>),
    /// The connection becomes a WebSocket.
    Socket(BoxWebSocketUpgraded),
}

#[OpenApi(tag = "Tag::Auth")]
impl QrLoginApi {
    /// Makes a QR code to sign in with
    ///
    /// The code is opened and confirmed by somebody who is signed in elsewhere; the poll secret then collects
    /// a session of theirs.
    #[oai(path = "/api/auth/qr/generate", method = "post", operation_id = "generateQrLogin")]
    async fn generate(&self, door: Door<'_>) -> ApiResult<QrLoginView> {
        ok(door.hub.accounts().begin_qr_login(&door.client).await?.into())
    }

    /// Shows where a QR login stands
    ///
    /// As a WebSocket it sends `{"type":"qr_status","data":{"status":…,"user_name":…}}` at once and at every
    /// change, at the end `{"type":"qr_session","data":{"exchange":…}}`, and closes. Asked plainly it answers
    /// once. Three sockets per login.
    #[oai(path = "/api/auth/qr/status", method = "get", operation_id = "getQrLoginStatus")]
    async fn status(
        &self,
        watcher: Watcher<'_>,
        /// The public id.
        qr_id: Query<Text<0, 128>>,
        /// The poll secret.
        poll_secret: Query<Text<0, 128>>,
    ) -> Result<QrStatusAnswer, ApiError> {
        let (qr_id, poll_secret) = (qr_id.0.0, secret::Secret::new(poll_secret.0.0));
        let first = watcher.hub.accounts().poll_qr_login(&qr_id, &poll_secret).await?;
        let Some(socket) = watcher.socket else {
            return Ok(QrStatusAnswer::Once(Box::new(ok(first.into())?)));
        };
        let seat = watcher.sockets.take(&qr_id)?;
        let (hub, draining) = (watcher.hub.clone(), watcher.settings.draining.clone());
        let upgraded = socket.config(websocket::config()).on_upgrade(move |socket| async move {
            let _seat = seat;
            tell(&hub, socket, &qr_id, &poll_secret, first, &draining).await;
        });
        Ok(QrStatusAnswer::Socket(upgraded.boxed()))
    }

    /// Opens a QR login to decide about it
    ///
    /// Says who asks, and tells their screen that somebody looks.
    #[oai(path = "/api/auth/qr/open", method = "post", operation_id = "openQrLogin")]
    async fn open(&self, hub: Data<&Hub>, user: User, body: Body<OpenQrLogin>) -> ApiResult<QrAskerView> {
        ok(hub.accounts().open_qr_login(&user.0, &body.0.qr_id).await?.into())
    }

    /// Confirms or refuses a QR login
    ///
    /// Confirming signs the asking screen in as the user of the request, so it needs the code that is shown
    /// there; a wrong one ends the login.
    #[oai(path = "/api/auth/qr/confirm", method = "post", operation_id = "confirmQrLogin")]
    async fn confirm(
        &self,
        hub: Data<&Hub>,
        user: User,
        body: Body<ConfirmQrLogin>,
    ) -> ApiResult<QrDecision> {
        let ConfirmQrLogin { qr_id, user_code, approve } = body.0;
        let code = match &user_code {
            Some(code) => code,
            None if approve => return Err(Error::invalid("user_code", "must be given to approve").into()),
            None => "",
        };
        let status = hub.accounts().confirm_qr_login(&user.0, &qr_id, code, approve).await?;
        ok(QrDecision { status: status.into() })
    }

    /// Collects the session of a confirmed QR login
    ///
    /// Once. Answers with the user and sets the session cookie, or with `kind=api_key` with an API key of the
    /// user, for programs.
    #[oai(path = "/api/auth/qr/exchange", method = "post", operation_id = "exchangeQrLogin")]
    async fn exchange(
        &self,
        door: Door<'_>,
        /// What to give: `session` or `api_key`.
        kind: Query<Option<QrExchangeKind>>,
        body: Body<ExchangeQrLogin>,
    ) -> WithCookie<QrOutcome> {
        let ExchangeQrLogin { qr_id, poll_secret, exchange } = body.0;
        let accounts = door.hub.accounts();
        let (poll_secret, exchange, client) = (&poll_secret.0, &exchange.0, &door.client);
        if kind.0 == Some(QrExchangeKind::ApiKey) {
            let created = accounts.exchange_qr_login_for_key(&qr_id, poll_secret, exchange, client).await?;
            let key = QrKey { api_key: ShownOnce(created.secret) };
            return Ok(Response::new(ok(QrOutcome::Key(key))?));
        }
        let signed_in = accounts.exchange_qr_login(&qr_id, poll_secret, exchange, client).await?;
        let cookie = door.session_cookie(&signed_in).await?;
        let me = QrOutcome::User(signed_in.me.into());
        Ok(Response::new(ok(me)?).header(header::SET_COOKIE, cookie))
    }
}

/// Who asks for the status: once, or on a socket.
struct Watcher<'a> {
    hub: &'a Hub,
    settings: &'a AppSettings,
    sockets: &'a QrSockets,
    socket: Option<WebSocket>,
}

impl<'a> FromRequest<'a> for Watcher<'a> {
    async fn from_request(request: &'a Request, body: &mut RequestBody) -> poem::Result<Self> {
        let Data(hub) = Data::<&Hub>::from_request(request, body).await?;
        let Data(settings) = Data::<&AppSettings>::from_request(request, body).await?;
        let Data(sockets) = Data::<&QrSockets>::from_request(request, body).await?;
        let socket = if request.headers().contains_key(header::UPGRADE) {
            let bad = |_| ApiError::from(Error::invalid("Upgrade", "must be a WebSocket handshake"));
            Some(WebSocket::from_request(request, body).await.map_err(bad)?)
        } else {
            None
        };
        Ok(Self { hub, settings, sockets, socket })
    }
}

/// Sends every change until the end, or until the client or the server goes.
async fn tell(
    hub: &Hub,
    mut socket: WebSocketStream,
    qr_id: &str,
    poll_secret: &secret::Secret,
    mut poll: QrPoll,
    draining: &CancellationToken,
) {
    let mut close = (CloseCode::Normal, "");
    loop {
        for frame in frames(&poll) {
            if socket.send(Message::text(frame.to_string())).await.is_err() {
                return;
            }
        }
        if poll.status.is_final() {
            break;
        }
        let accounts = hub.accounts();
        let next = accounts.next_qr_status(qr_id, poll_secret, poll.status);
        tokio::pin!(next);
        poll = loop {
            tokio::select! {
                next = &mut next => match next {
                    Ok(poll) => break poll,
                    // It was collected elsewhere, or forgotten.
                    Err(error) if error.code() == ErrorCode::InvalidToken => {
                        break QrPoll { status: QrStatus::Expired, user_name: None, exchange: None };
                    }
                    Err(_) => return,
                },
                // Nothing is expected; pings are answered by the library, and an end is noticed.
                frame = socket.next() => match frame {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    Some(Ok(_)) => {}
                },
                () = draining.cancelled() => {
                    close = (CloseCode::Away, "the server stops");
                    let _ = socket.send(Message::Close(Some((close.0, close.1.to_owned())))).await;
                    return;
                }
            }
        };
    }
    let _ = socket.send(Message::Close(Some((close.0, close.1.to_owned())))).await;
}

/// The status, and behind it the ticket: the status itself carries no secret (reliability Q5).
fn frames(poll: &QrPoll) -> Vec<Value> {
    let mut data = json!({ "status": poll.status.as_str() });
    if let Some(name) = &poll.user_name {
        data["user_name"] = name.as_str().into();
    }
    let mut frames = vec![json!({ "type": "qr_status", "data": data })];
    if let Some(exchange) = &poll.exchange {
        frames.push(json!({ "type": "qr_session", "data": { "exchange": exchange.expose() } }));
    }
    frames
}

/// The sockets of QR logins: three per login, a thousand in all (reliability Q6).
#[derive(Debug, Clone, Default)]
pub struct QrSockets(Arc<Mutex<HashMap<String, u8>>>);

const MOST_SOCKETS: usize = 1_000;
const MOST_PER_LOGIN: u8 = 3;

/// One socket's place; free when dropped.
struct Seat {
    sockets: QrSockets,
    qr_id: String,
}

impl QrSockets {
    fn take(&self, qr_id: &str) -> Result<Seat, ApiError> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full = || ApiError::new(ErrorCode::RateLimited, "too many sockets watch QR logins");
        if open.values().map(|count| usize::from(*count)).sum::<usize>() >= MOST_SOCKETS {
            return Err(full());
        }
        let count = open.entry(qr_id.to_owned()).or_default();
        if *count >= MOST_PER_LOGIN {
            return Err(full());
        }
        *count += 1;
        Ok(Seat { sockets: self.clone(), qr_id: qr_id.to_owned() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.sockets.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.qr_id) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.qr_id);
            }
        }
    }
}

impl IntoResponse for QrStatusAnswer {
    fn into_response(self) -> poem::Response {
        match self {
            Self::Once(json) => json.into_response(),
            Self::Socket(upgraded) => upgraded.into_response(),
        }
    }
}

impl ApiResponse for QrStatusAnswer {
    fn meta() -> MetaResponses {
        let response = |status: StatusCode, description, content| MetaResponse {
            description,
            status: Some(status.as_u16()),
            status_range: None,
            content,
            headers: Vec::new(),
        };
        let json = MetaMediaType {
            content_type: Json::<Envelope<QrStatusView>>::CONTENT_TYPE,
            schema: Envelope::<QrStatusView>::schema_ref(),
        };
        MetaResponses {
            responses: vec![
                response(StatusCode::OK, "Where it stands.", vec![json]),
                response(StatusCode::SWITCHING_PROTOCOLS, "A WebSocket.", Vec::new()),
            ],
        }
    }

    fn register(registry: &mut Registry) {
        Envelope::<QrStatusView>::register(registry);
    }
}

impl From<QrLogin> for QrLoginView {
    fn from(login: QrLogin) -> Self {
        Self {
            qr_id: login.qr_id,
            qr_text: login.qr_text,
            qr_svg: login.qr_svg,
            user_code: login.user_code,
            poll_secret: ShownOnce(login.poll_secret),
            expires_at: login.expires_at.into(),
        }
    }
}

impl From<QrPoll> for QrStatusView {
    fn from(poll: QrPoll) -> Self {
        Self { status: poll.status.into(), user_name: poll.user_name, exchange: poll.exchange.map(ShownOnce) }
    }
}

impl From<QrAsker> for QrAskerView {
    fn from(asker: QrAsker) -> Self {
        Self {
            ip: asker.ip,
            user_agent: asker.user_agent,
            requested_at: asker.requested_at.into(),
            expires_at: asker.expires_at.into(),
        }
    }
}

const EXAMPLE_TIME: Time = Time(Timestamp::from_millis(1_795_253_400_000));

fn example_id() -> String {
    "hubq_…".to_owned()
}

impl Example for QrLoginView {
    fn example() -> Self {
        Self {
            qr_id: example_id(),
            qr_text: "https://hub.example/login?qr=hubq_…".to_owned(),
            qr_svg: "<svg …>".to_owned(),
            user_code: "BCDF-GHJK".to_owned(),
            poll_secret: ShownOnce("hubp_…".into()),
            expires_at: EXAMPLE_TIME,
        }
    }
}

impl Example for QrStatusView {
    fn example() -> Self {
        Self { status: QrLoginStatus::Waiting, user_name: None, exchange: None }
    }
}

impl Example for OpenQrLogin {
    fn example() -> Self {
        Self { qr_id: Text(example_id()) }
    }
}

impl Example for QrAskerView {
    fn example() -> Self {
        Self {
            ip: "192.0.2.7".to_owned(),
            user_agent: "hub-cli/0.1.0".to_owned(),
            requested_at: EXAMPLE_TIME,
            expires_at: EXAMPLE_TIME,
        }
    }
}

impl Example for ConfirmQrLogin {
    fn example() -> Self {
        Self { qr_id: Text(example_id()), user_code: Some(Text("BCDF-GHJK".to_owned())), approve: true }
    }
}

impl Example for QrDecision {
    fn example() -> Self {
        Self { status: QrLoginStatus::Confirmed }
    }
}

impl Example for QrKey {
    fn example() -> Self {
        Self { api_key: ShownOnce("hubu_…".into()) }
    }
}

impl Example for ExchangeQrLogin {
    fn example() -> Self {
        let (poll_secret, exchange) = (Secret("hubp_…".into()), Secret("hubx_…".into()));
        Self { qr_id: Text(example_id()), poll_secret, exchange }
    }
}

#[cfg(test)]
#[path = "qr_login_tests.rs"]
mod tests;
