//! Shared behaviour of WebSocket connections: pings, write timeouts, limits on invalid frames, and closing.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hub_core::{
    Error, ErrorCode,
    time::{Clock, Instant},
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::{
    self, Message, Utf8Bytes,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use super::websocket::Socket;

/// Time without frames after which a client is pinged, and time between pings.
const PING: Duration = Duration::from_secs(30);
/// Time without frames after which a client is disconnected.
const SILENCE: Duration = Duration::from_secs(60);
/// Time limit of a write, after which the connection is closed.
const STALL: Duration = Duration::from_secs(10);
/// Time limit for the client to close its end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of invalid frames, after which the connection is closed.
const MAX_BAD: u32 = 50;
/// Maximum number of bytes that are read and discarded after the close frame, so that unread bytes do not cause a
/// reset.
const MAX_DISCARD: usize = 1024 * 1024;

/// Delay before the store is queried again.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);

pub(crate) const RESTART: u16 = 1001;
/// The credential was revoked.
pub(crate) const REVOKED: u16 = 4401;
/// The channel or app of the client was disabled.
pub(crate) const OFF: u16 = 4403;
/// The client does not read, or is silent.
const TIMEOUT: u16 = 4408;

/// Reason that the hub ends a connection.
pub(crate) enum End {
    /// The hub sends a close frame.
    Close(u16, String),
    /// The client closed the connection, or disconnected.
    Gone,
}

/// Result of a step; an error ends the connection.
pub(crate) type Flow = Result<(), End>;

impl From<tungstenite::Error> for End {
    fn from(error: tungstenite::Error) -> Self {
        use tungstenite::error::{CapacityError, Error as Failure, ProtocolError};
        match error {
            Failure::Utf8(_) => Self::Close(1007, "a text frame is not UTF-8".to_owned()),
            Failure::Capacity(CapacityError::MessageTooLong { max_size, .. }) => {
                Self::Close(1009, format!("a frame or message is over {max_size} bytes"))
            }
            Failure::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Gone,
            Failure::Protocol(error) => Self::Close(1002, error.to_string()),
            _ => Self::Gone,
        }
    }
}

/// Socket of one connection, with the times of its frames.
pub(crate) struct Line {
    socket: Socket,
    clock: Clock,
    last_received_at: Instant,
    ping_at: Instant,
    bad_frames: u32,
}

impl Line {
    pub(crate) fn new(socket: Socket, clock: &Clock) -> Self {
        let now = clock.instant();
        Self { socket, clock: clock.clone(), last_received_at: now, ping_at: now + PING, bad_frames: 0 }
    }

    /// Returns the next frame of the client. Sends pings and checks timeouts meanwhile. Cancel safe.
    pub(crate) async fn receive(&mut self) -> Result<Message, End> {
        loop {
            let wake_at = self.ping_at.min(self.last_received_at + SILENCE);
            tokio::select! {
                biased;
                () = self.clock.sleep_until(wake_at) => self.check_clock().await?,
                frame = self.socket.next() => {
                    let frame = frame.ok_or(End::Gone)??;
                    self.last_received_at = self.clock.instant();
                    return Ok(frame);
                }
            }
        }
    }

    async fn check_clock(&mut self) -> Flow {
        let now = self.clock.instant();
        if now >= self.last_received_at + SILENCE {
            return Err(End::Close(TIMEOUT, "nothing was heard for 60 seconds".to_owned()));
        }
        if now >= self.ping_at {
            // If the write is cancelled, the ping stays due.
            self.write(vec![Message::Ping(bytes::Bytes::new())]).await?;
            self.ping_at = now + PING;
        }
        Ok(())
    }

    /// Counts an invalid frame.
    pub(crate) fn count_bad(&mut self) -> Flow {
        self.bad_frames += 1;
        if self.bad_frames >= MAX_BAD {
            return Err(End::Close(1008, "too many invalid frames".to_owned()));
        }
        Ok(())
    }

    pub(crate) async fn send(&mut self, frames: &[Value]) -> Flow {
        self.write(frames.iter().map(|frame| text(frame.to_string())).collect()).await
    }

    /// Writes frames, each within the time limit.
    pub(crate) async fn write(&mut self, messages: Vec<Message>) -> Flow {
        let stalled = || End::Close(TIMEOUT, "the client does not read".to_owned());
        for message in messages {
            self.clock.timeout(STALL, self.socket.feed(message)).await.ok_or_else(stalled)??;
        }
        self.clock.timeout(STALL, self.socket.flush()).await.ok_or_else(stalled)??;
        Ok(())
    }

    /// Sends a close frame, closes this half, and reads until the client has closed the other. The bytes read are
    /// discarded: closing with unread bytes resets the connection, and a reset may overtake the close frame.
    pub(crate) async fn goodbye(mut self, code: u16, reason: String) {
        // A control frame takes 125 bytes, two of which are the code.
        let reason = reason.get(..reason.floor_char_boundary(120)).unwrap_or_default().to_owned();
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
        let socket = &mut self.socket;
        let farewell = async {
            if socket.close(Some(frame)).await.is_err() || socket.get_mut().shutdown().await.is_err() {
                return;
            }
            let (mut buffer, mut read) = ([0; 512], 0);
            while read < MAX_DISCARD {
                match socket.get_mut().read(&mut buffer).await {
                    Ok(0) | Err(_) => return,
                    Ok(count) => read += count,
                }
            }
        };
        let _ = self.clock.timeout(CLOSE_TIMEOUT, farewell).await;
    }
}

/// The part of an error that a client may see; internal causes are logged.
pub(crate) fn public_error(error: &Error) -> Error {
    if error.code() != ErrorCode::Internal {
        return match error.details().first() {
            Some(detail) => Error::invalid(detail.field.clone(), detail.reason.clone()),
            None => Error::new(error.code(), error.message().to_owned()),
        };
    }
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(cause, "internal error on a WebSocket");
    Error::new(ErrorCode::Internal, "something went wrong in the hub")
}

/// A text frame. Bytes that are not UTF-8 make it empty.
pub(crate) fn text(text: impl Into<bytes::Bytes>) -> Message {
    Message::Text(Utf8Bytes::try_from(text.into()).unwrap_or_default())
}
