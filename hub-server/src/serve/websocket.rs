//! Buffers of WebSocket connections. With the library's defaults an idle one costs 134 KiB, with these 6 KiB,
//! and a client that does not read costs one megabyte at most instead of everything (reliability §0.4, W3,
//! P12). Every endpoint that upgrades passes this to `WebSocket::config`.

use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// Largest frame a client may send, in bytes (`contract.md` §1).
pub const MAX_FRAME: usize = 64 * 1024;
/// Largest message a client may send in several frames, in bytes (reliability W3).
pub const MAX_MESSAGE: usize = 1024 * 1024;
/// Most that waits for a client that does not read, in bytes (reliability P12).
pub const MAX_UNSENT: usize = 1024 * 1024;

/// The configuration of every WebSocket.
pub fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(4096)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_UNSENT)
        .max_frame_size(Some(MAX_FRAME))
        .max_message_size(Some(MAX_MESSAGE))
}
