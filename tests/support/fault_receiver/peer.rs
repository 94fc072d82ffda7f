//! The receiver's side of one connection: raw bytes, and a record of them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hub_core::time::{Clock, Timestamp};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::Exchange;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its head: lines as they came, without the empty one.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

impl Request {
    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// One connection.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    number: usize,
    clock: Clock,
    since: Timestamp,
}

impl Peer {
    pub(super) fn new(
        stream: TcpStream,
        exchanges: Arc<Mutex<Vec<Exchange>>>,
        number: usize,
        clock: Clock,
    ) -> Self {
        let _ = stream.set_nodelay(true);
        let since = clock.now();
        Self { stream, exchanges, number, clock, since }
    }

    fn note(&self, change: impl FnOnce(&mut Exchange)) {
        change(&mut self.exchanges.lock().unwrap()[self.number]);
    }

    /// Reads one request; `None` when the connection ends first.
    pub async fn read_request(&mut self) -> Option<Request> {
        let mut bytes = Vec::new();
        let head_length = loop {
            if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            self.read_some(&mut bytes).await?;
        };
        let head = String::from_utf8_lossy(&bytes[..head_length]).into_owned();
        let mut request = Request { head, body: bytes.split_off(head_length + 4) };
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        while request.body.len() < length {
            self.read_some(&mut request.body).await?;
        }
        self.note(|exchange| exchange.requests.push(request.clone()));
        Some(request)
    }

    /// Reads what there is, at least one byte; `None` at the end.
    pub async fn read_some(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        (self.stream.read_buf(bytes).await.ok()? > 0).then_some(())
    }

    /// Reads exactly so many bytes.
    pub async fn read_bytes(&mut self, length: usize) {
        let _ = self.stream.read_exact(&mut vec![0; length]).await;
    }

    /// Writes; `false` when no one takes it.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        for piece in bytes.as_ref().chunks(16 * 1024) {
            if self.stream.write_all(piece).await.is_err() {
                return false;
            }
            self.note(|exchange| exchange.written += piece.len() as u64);
        }
        true
    }

    /// Writes the same again and again, as long as someone takes it.
    pub async fn send_endlessly(&mut self, bytes: impl AsRef<[u8]>) {
        while self.send(&bytes).await {}
    }

    /// Writes the same every second, as long as someone takes it.
    pub async fn drip(&mut self, bytes: impl AsRef<[u8]>) {
        while self.send(&bytes).await {
            let wait = self.clock.clone();
            tokio::select! {
                () = wait.sleep(Duration::from_secs(1)) => {}
                () = self.hold() => return,
            }
        }
    }

    /// Waits, silently, until the other side ends the connection.
    pub async fn hold(&mut self) {
        let mut rest = [0; 1024];
        while self.stream.read(&mut rest).await.is_ok_and(|length| length > 0) {}
    }

    /// Cuts the connection with RST.
    pub fn reset(self) {
        let _ = self.stream.set_zero_linger();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let lasted = self.clock.now().since(self.since);
        self.note(|exchange| exchange.lasted = Some(lasted));
    }
}
