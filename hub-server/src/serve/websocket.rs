//! WebSocket connections: the switch from HTTP, and their buffers. With the library's defaults an idle one costs 134
//! KiB, with these 6 KiB, and a client that does not read costs one megabyte at most instead of everything.

use hub_core::{ErrorCode, tasks::Tasks};
use poem::{
    IntoResponse, OnUpgrade, Request, Response, Upgraded,
    http::{Method, StatusCode, header},
};
use poem_openapi::{
    ApiResponse,
    registry::{MetaResponse, MetaResponses, Registry},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};

use crate::envelope::ApiError;

/// Largest frame a client may send, in bytes.
pub const MAX_FRAME: usize = 64 * 1024;
/// Largest message a client may send in several frames, in bytes.
pub const MAX_MESSAGE: usize = 1024 * 1024;
/// Most that waits for a client that does not read, in bytes.
pub const MAX_UNSENT: usize = 1024 * 1024;

/// The configuration of every WebSocket.
pub fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(4096)
        .write_buffer_size(4096)
        .max_write_buffer_size(MAX_UNSENT)
        .max_frame_size(Some(MAX_FRAME))
        .max_message_size(Some(MAX_MESSAGE))
}

/// An open WebSocket.
pub type Socket = WebSocketStream<Upgraded>;

/// A request to switch, found to be one.
pub struct Upgrade {
    accept: String,
    on_upgrade: OnUpgrade,
}

impl std::fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upgrade").finish_non_exhaustive()
    }
}

impl Upgrade {
    /// Checks the request (RFC 6455 §4.2.1).
    ///
    /// # Errors
    /// `INVALID_PARAMS` for a request that does not ask for a WebSocket.
    pub fn of(request: &Request) -> Result<Self, ApiError> {
        let text = |name: header::HeaderName| request.header(name).unwrap_or_default();
        let lists =
            |value: &str, word: &str| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word));
        let asks = *request.method() == Method::GET
            && lists(text(header::UPGRADE), "websocket")
            && lists(text(header::CONNECTION), "upgrade")
            && text(header::SEC_WEBSOCKET_VERSION).trim() == "13";
        let key = text(header::SEC_WEBSOCKET_KEY);
        let refused = || {
            let message =
                "open a WebSocket here: Upgrade: websocket, Connection: Upgrade, version 13, and a key";
            ApiError::new(ErrorCode::InvalidParams, message)
        };
        if !asks || key.is_empty() {
            return Err(refused());
        }
        let on_upgrade = request.take_upgrade().map_err(|_| refused())?;
        Ok(Self { accept: derive_accept_key(key.as_bytes()), on_upgrade })
    }

    /// Answers 101 and serves the socket as a task of `tasks`.
    pub fn switch<F>(self, tasks: &Tasks, serve: impl FnOnce(Socket) -> F + Send + 'static) -> Switched
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let on_upgrade = self.on_upgrade;
        tasks.spawn("websocket", async move {
            // The client may disconnect before it has the response.
            if let Ok(upgraded) = on_upgrade.await {
                serve(WebSocketStream::from_raw_socket(upgraded, Role::Server, Some(config())).await).await;
            }
        });
        Switched { accept: self.accept }
    }
}

/// The response 101.
#[derive(Debug)]
pub struct Switched {
    accept: String,
}

impl IntoResponse for Switched {
    fn into_response(self) -> Response {
        Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_ACCEPT, self.accept)
            .finish()
    }
}

impl ApiResponse for Switched {
    fn meta() -> MetaResponses {
        let description = "The connection is a WebSocket from here on; every frame is a JSON object.";
        MetaResponses {
            responses: vec![MetaResponse {
                description,
                status: Some(101),
                status_range: None,
                content: Vec::new(),
                headers: Vec::new(),
            }],
        }
    }

    fn register(_: &mut Registry) {}
}
