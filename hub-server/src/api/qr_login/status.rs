//! The status of a QR login: one response, or a socket that sends every change.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{SinkExt, StreamExt};
use hub_core::{
    Error, ErrorCode, Hub,
    accounts::{QrPoll, QrStatus},
    secret,
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
    ApiResponse,
    payload::{Json, Payload},
    registry::{MetaMediaType, MetaResponse, MetaResponses, Registry},
    types::Type,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    AppSettings,
    envelope::{ApiError, Envelope, ok},
    serve::websocket,
};

/// The response to a request for the status: one response, or a socket.
pub(crate) enum QrStatusAnswer {
    /// One response.
    Once(Box<Json<Envelope<QrPoll>>>),
    /// The connection becomes a WebSocket.
    Socket(BoxWebSocketUpgraded),
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
            content_type: Json::<Envelope<QrPoll>>::CONTENT_TYPE,
            schema: Envelope::<QrPoll>::schema_ref(),
        };
        MetaResponses {
            responses: vec![
                response(StatusCode::OK, "Status of the login.", vec![json]),
                response(StatusCode::SWITCHING_PROTOCOLS, "A WebSocket.", Vec::new()),
            ],
        }
    }

    fn register(registry: &mut Registry) {
        Envelope::<QrPoll>::register(registry);
    }
}

/// A request for the status: plain, or for a socket.
pub(super) struct Watcher<'a> {
    pub(super) hub: &'a Hub,
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

impl Watcher<'_> {
    /// Responds once, or with a socket.
    pub(super) fn answer(
        self,
        qr_id: String,
        poll_secret: secret::Secret,
        first: QrPoll,
    ) -> Result<QrStatusAnswer, ApiError> {
        let Some(socket) = self.socket else {
            return Ok(QrStatusAnswer::Once(Box::new(ok(first)?)));
        };
        let slot = self.sockets.take(&qr_id)?;
        let (hub, draining) = (self.hub.clone(), self.settings.draining.clone());
        let upgraded = socket.config(websocket::config()).on_upgrade(move |socket| async move {
            let _slot = slot;
            send_statuses(&hub, socket, &qr_id, &poll_secret, first, &draining).await;
        });
        Ok(QrStatusAnswer::Socket(upgraded.boxed()))
    }
}

/// Sends every change until the login, the client or the server ends.
async fn send_statuses(
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
                    // It was collected elsewhere, or deleted.
                    Err(error) if error.code() == ErrorCode::InvalidToken => {
                        break QrPoll { status: QrStatus::Expired, user_name: None, exchange: None };
                    }
                    Err(_) => return,
                },
                // No frame is expected; the library responds to pings, and the end is noticed.
                frame = socket.next() => match frame {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    Some(Ok(_)) => {}
                },
                () = draining.cancelled() => {
                    close = (CloseCode::Away, "the server is shutting down");
                    let _ = socket.send(Message::Close(Some((close.0, close.1.to_owned())))).await;
                    return;
                }
            }
        };
    }
    let _ = socket.send(Message::Close(Some((close.0, close.1.to_owned())))).await;
}

/// The status, followed by the ticket: the status itself contains no secret.
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

/// The sockets of QR logins: 3 per login, 1,000 in total.
#[derive(Debug, Clone, Default)]
pub struct QrSockets(Arc<Mutex<HashMap<String, u8>>>);

const MAX_SOCKETS: usize = 1_000;
const MAX_PER_LOGIN: u8 = 3;

/// The slot of one socket; released when dropped.
struct SocketSlot {
    sockets: QrSockets,
    qr_id: String,
}

impl QrSockets {
    fn take(&self, qr_id: &str) -> Result<SocketSlot, ApiError> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full = || ApiError::new(ErrorCode::RateLimited, "too many sockets watch QR logins");
        if open.values().map(|count| usize::from(*count)).sum::<usize>() >= MAX_SOCKETS {
            return Err(full());
        }
        let count = open.entry(qr_id.to_owned()).or_default();
        if *count >= MAX_PER_LOGIN {
            return Err(full());
        }
        *count += 1;
        Ok(SocketSlot { sockets: self.clone(), qr_id: qr_id.to_owned() })
    }
}

impl Drop for SocketSlot {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_sockets_watch_one_login_and_a_thousand_in_all() {
        let sockets = QrSockets::default();
        let mut slots: Vec<SocketSlot> = (0..3).map(|_| sockets.take("one").ok().unwrap()).collect();
        assert!(sockets.take("one").is_err());
        slots.pop();
        slots.push(sockets.take("one").ok().unwrap());
        slots.extend((3..1_000).map(|n| sockets.take(&n.to_string()).ok().unwrap()));
        assert!(sockets.take("another").is_err());
        drop(slots);
        assert!(sockets.0.lock().unwrap().is_empty());
    }

    #[test]
    fn the_status_carries_no_secret() {
        let exchange = Some(secret::Secret::new("hubx_secret").into());
        let poll = QrPoll { status: QrStatus::Confirmed, user_name: Some("Ada".into()), exchange };
        let frames = frames(&poll);
        assert_eq!(
            frames[0],
            json!({ "type": "qr_status", "data": { "status": "confirmed", "user_name": "Ada" } })
        );
        assert_eq!(frames[1], json!({ "type": "qr_session", "data": { "exchange": "hubx_secret" } }));
    }
}
