//! WebSocket client, and timestamps inside messages.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{Role, WebSocketConfig},
    },
};

use crate::{Result, moments::now_us};

/// Maximum wait for a message; after that it counts as lost.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const DIGITS: usize = 17;

/// An open WebSocket.
pub struct Socket(WebSocketStream<TcpStream>);

/// Returns a text that contains the current time.
pub fn stamp() -> String {
    format!("[@{:0DIGITS$}]", now_us())
}

/// Returns the age of a text in microseconds; `None` if it contains no timestamp.
pub fn age(text: &str) -> Option<u64> {
    let digits = text.split_once("[@")?.1.get(..DIGITS)?;
    Some(now_us().saturating_sub(digits.parse().ok()?))
}

impl Socket {
    pub async fn open(address: &str, target: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let head = format!(
            "GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        // Byte by byte: what follows the head is the library's.
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await?);
        }
        if !answer.starts_with(b"HTTP/1.1 101 ") {
            return Err(String::from_utf8_lossy(&answer).into_owned().into());
        }
        let config = WebSocketConfig::default().read_buffer_size(4096).write_buffer_size(4096);
        Ok(Self(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await))
    }

    /// The next text.
    pub async fn text(&mut self) -> Result<String> {
        let next = async {
            loop {
                match self.0.next().await {
                    Some(Ok(Message::Text(text))) => return Ok(text.to_string()),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(other)) => return Err(format!("the server said {other:?}").into()),
                    Some(Err(error)) => return Err(error.into()),
                    None => return Err("the server closed".into()),
                }
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, next).await.map_err(|_| "a message did not come")?
    }

    /// Returns the ages of the next `count` texts with a timestamp, in microseconds.
    pub async fn ages(mut self, count: usize) -> Result<Vec<u64>> {
        let mut ages = Vec::with_capacity(count);
        while ages.len() < count {
            ages.extend(age(&self.text().await?));
        }
        Ok(ages)
    }
}
