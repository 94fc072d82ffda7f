//! The listeners from outside, over real sockets. Deadlines run on a clock that the tests move.

use std::time::Duration;

use hub_core::time::{ManualClock, Timestamp};
use poem::{EndpointExt, Request, endpoint::make};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::{app, testing::App};

mod caps;
mod conduct;
mod deadlines;
mod descriptors;
mod malformed;
mod upgrades;

/// Time limit of real I/O in a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A server on its own port.
struct Stage {
    address: SocketAddr,
    server: Server,
    clock: ManualClock,
    tasks: Tasks,
}

impl Stage {
    async fn open<E>(endpoint: E, limits: ServeLimits) -> Self
    where
        E: Endpoint<Output = Response> + 'static,
    {
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let (listener, tasks) = (bind("127.0.0.1:0".parse().unwrap()).await.unwrap(), Tasks::new());
        let address = listener.local_addr().unwrap();
        let server = Server::new(limits, tasks.clone(), clock.clone().into(), Random::seeded(1));
        server.serve(vec![listener], endpoint);
        Self { address, server, clock, tasks }
    }

    /// Returns a stage that responds to everything at once, without reading bodies.
    async fn ok() -> Self {
        Self::open(make(|_: Request| async { "ok" }).map_to_response(), ServeLimits::default()).await
    }

    /// Returns a stage that reads every body to its end and returns its length.
    async fn reading() -> Self {
        let endpoint = make(|mut request: Request| async move {
            request.take_body().into_vec().await.map(|body| format!("read {}", body.len()))
        });
        Self::open(endpoint.map_to_response(), ServeLimits::default()).await
    }

    /// Returns a stage with the whole application.
    async fn application(hub: &App, limits: ServeLimits) -> Self {
        Self::open(app(hub.hub.clone(), hub.settings.clone()), limits).await
    }

    async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// Waits until the server waits for this time of its clock, then moves the clock there.
    async fn pass(&self, duration: Duration) {
        let at = self.clock.now() + duration;
        until(|| self.clock.waits().contains(&at)).await;
        self.clock.advance(duration);
    }

    fn closed(&self, reason: &str) -> u64 {
        self.server.stats().ended_early().find(|(found, _)| *found == reason).unwrap().1
    }

    fn turned_away(&self, reason: &str) -> u64 {
        self.server.stats().turned_away().find(|(found, _)| *found == reason).unwrap().1
    }
}

async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, wait).await.expect("it comes to hold");
}

/// A client that sends exactly the given bytes.
struct Client(TcpStream);

impl Client {
    async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until the server closes the connection.
    async fn read_to_end(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(TEST_TIMEOUT, self.0.read_to_end(&mut bytes)).await;
        // A reset after the response is accepted as a close, too.
        let _ = read.expect("the server ends the connection");
        String::from_utf8(bytes).unwrap()
    }

    /// Reads until the text contains `end`.
    async fn read_until(&mut self, end: &str) -> String {
        let mut text = String::new();
        let mut buffer = [0; 4096];
        while !text.contains(end) {
            let read = tokio::time::timeout(TEST_TIMEOUT, self.0.read(&mut buffer)).await;
            match read.expect("the server answers").unwrap() {
                0 => panic!("closed after {text:?}"),
                count => text.push_str(std::str::from_utf8(&buffer[..count]).unwrap()),
            }
        }
        text
    }
}

/// One answer with this status, with the envelope around the code, and nothing behind it.
#[track_caller]
fn assert_refused(answer: &str, status: u16, code: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer:?}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "one answer: {answer:?}");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.to_ascii_lowercase().contains("\r\nconnection: close"), "{answer:?}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer:?}"));
    assert_eq!((&body["success"], &body["error"]["code"]), (&false.into(), &code.into()), "{answer:?}");
    let id = body["error"]["request_id"].as_str().unwrap();
    assert!(head.contains(&format!("x-request-id: {id}")), "{answer:?}");
}

const GET: &str = "GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n";
