//! A client that sends exactly the given frames.

use std::{net::SocketAddr, time::Duration};

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};

/// Real I/O ends within this, or something hangs.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// An open WebSocket.
pub struct Client(pub WebSocketStream<TcpStream>);

/// HTTP response that rejects a WebSocket.
pub struct Refused {
    pub status: u16,
    pub json: Value,
}

/// Requests the upgrade, with these header lines in addition to the required ones.
pub async fn open(address: SocketAddr, target: &str, lines: &[&str]) -> Result<Client, Refused> {
    open_on(TcpStream::connect(address).await.unwrap(), target, lines).await
}

/// As [`open`], on a machine that takes next to nothing off the wire for a program that does not read: elsewhere tens
/// of megabytes can be on their way.
pub async fn open_narrow(address: SocketAddr, target: &str) -> Result<Client, Refused> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    open_on(socket.connect(address).await.unwrap(), target, &[]).await
}

async fn open_on(mut stream: TcpStream, target: &str, lines: &[&str]) -> Result<Client, Refused> {
    let head = format!(
        "GET {target} HTTP/1.1\r\nHost: hub\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{}\r\n",
        lines.iter().flat_map(|line| [*line, "\r\n"]).collect::<String>()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        match timeout(TEST_TIMEOUT, stream.read_u8()).await.expect("the hub answers") {
            Ok(byte) => answer.push(byte),
            Err(_) => break,
        }
    }
    let head = String::from_utf8(answer).unwrap();
    if head.starts_with("HTTP/1.1 101 ") {
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "the sample of RFC 6455 §1.3: {head}");
        return Ok(Client(WebSocketStream::from_raw_socket(stream, Role::Client, None).await));
    }
    let mut body = Vec::new();
    let _ = timeout(TEST_TIMEOUT, stream.read_to_end(&mut body)).await.expect("the hub closes");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Err(Refused { status, json: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}

impl Client {
    pub async fn say(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// The next message, whatever it is; `None` when the connection is gone.
    pub async fn next(&mut self) -> Option<Message> {
        timeout(TEST_TIMEOUT, self.0.next()).await.expect("the hub says something")?.ok()
    }

    /// The next frame, which has to be of this type.
    pub async fn hear(&mut self, kind: &str) -> Value {
        loop {
            match self.next().await {
                Some(Message::Text(text)) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(frame["type"], kind, "{frame}");
                    return frame;
                }
                Some(Message::Ping(_) | Message::Pong(_)) => {}
                other => panic!("waited for {kind} and got {other:?}"),
            }
        }
    }

    /// The number and the text of the next message.
    pub async fn message(&mut self) -> (i64, String) {
        let frame = self.hear("message").await;
        let data = &frame["data"];
        (data["seq"].as_i64().unwrap(), data["content"].as_str().unwrap().to_owned())
    }

    /// Reads to the end: what the hub still said, and with which code it closed; 0 without one.
    pub async fn rest(&mut self) -> (Vec<Value>, u16) {
        let (mut said, mut code) = (Vec::new(), 0);
        while let Some(message) = self.next().await {
            match message {
                Message::Text(text) => said.push(serde_json::from_str(&text).unwrap()),
                Message::Close(Some(frame)) => code = frame.code.into(),
                _ => {}
            }
        }
        (said, code)
    }

    /// Reads to the end, and says with which code the hub closed; 0 without one.
    pub async fn closed(&mut self) -> (u16, String) {
        let mut said = (0, String::new());
        while let Some(message) = self.next().await {
            if let Message::Close(Some(frame)) = message {
                said = (frame.code.into(), frame.reason.to_string());
            }
        }
        said
    }
}
