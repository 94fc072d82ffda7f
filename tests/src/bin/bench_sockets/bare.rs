//! The bare server: `GET /ws?channel=N` is a WebSocket, `POST /say?channel=N` writes its body to all of the channel,
//! `GET /poll?channel=N` waits for the next body. What a hub could reach at most.

use std::{convert::Infallible, io::Write, sync::Arc};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hub_core::tasks::Tasks;
use hub_server::serve::websocket;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::broadcast};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, Utf8Bytes, handshake::derive_accept_key, protocol::Role},
};

use crate::Result;

/// Messages that wait for a socket.
const QUEUE: usize = 4_096;
const CHANNELS: usize = 64;

struct Server {
    channels: Vec<broadcast::Sender<Bytes>>,
    tasks: Tasks,
}

/// Serves until killed; the address is printed.
pub async fn run() -> Result<()> {
    let channels = (0..CHANNELS).map(|_| broadcast::channel(QUEUE).0).collect();
    let server = Arc::new(Server { channels, tasks: Tasks::new() });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let served = Arc::clone(&server);
        server.tasks.spawn("connection", async move {
            let answer = service_fn(|request| {
                let served = Arc::clone(&served);
                async move { Ok::<_, Infallible>(served.answer(request).await) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            drop(connection.with_upgrades().await);
        });
    }
}

impl Server {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let query = request.uri().query().unwrap_or_default();
        let number = query.strip_prefix("channel=").and_then(|text| text.parse::<usize>().ok());
        let Some(channel) = number.and_then(|number| self.channels.get(number)) else {
            return plain(StatusCode::NOT_FOUND, Bytes::new());
        };
        match request.uri().path() {
            "/ws" => self.switch(request, channel.subscribe()),
            "/poll" => match channel.subscribe().recv().await {
                Ok(body) => plain(StatusCode::OK, body),
                Err(_) => plain(StatusCode::SERVICE_UNAVAILABLE, Bytes::new()),
            },
            "/say" => {
                let channel = channel.clone();
                let Ok(body) = request.into_body().collect().await else {
                    return plain(StatusCode::BAD_REQUEST, Bytes::new());
                };
                // No one may listen.
                let _ = channel.send(body.to_bytes());
                plain(StatusCode::OK, Bytes::new())
            }
            _ => plain(StatusCode::NOT_FOUND, Bytes::new()),
        }
    }

    fn switch(
        &self,
        mut request: Request<Incoming>,
        messages: broadcast::Receiver<Bytes>,
    ) -> Response<Full<Bytes>> {
        let key =
            request.headers().get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
        let Some(accept) = key.and_then(|accept| HeaderValue::try_from(accept).ok()) else {
            return plain(StatusCode::BAD_REQUEST, Bytes::new());
        };
        let upgrade = hyper::upgrade::on(&mut request);
        self.tasks.spawn("websocket", async move {
            if let Ok(upgraded) = upgrade.await {
                let config = Some(websocket::config());
                let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, config);
                follow(socket.await, messages).await;
            }
        });
        let mut answer = plain(StatusCode::SWITCHING_PROTOCOLS, Bytes::new());
        let headers = answer.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        answer
    }
}

fn plain(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer
}

async fn follow(
    mut socket: WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>,
    mut messages: broadcast::Receiver<Bytes>,
) {
    loop {
        tokio::select! {
            heard = socket.next() => {
                if !matches!(heard, Some(Ok(_))) {
                    return;
                }
            }
            message = messages.recv() => {
                let Ok(body) = message else { return };
                let text = Utf8Bytes::try_from(body).unwrap_or_default();
                if socket.send(Message::Text(text)).await.is_err() {
                    return;
                }
            }
        }
    }
}
