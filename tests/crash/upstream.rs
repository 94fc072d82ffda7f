//! The chat network as a witness: it notes which messages a poll acknowledged, and when.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, request::Parts};
use hub_core::{
    local_http::{self, Cut, Limits, LocalService},
    network::sim::{SimConfig, Simulator},
    random::Random,
    tasks::Tasks,
    time::{Clock, Timestamp},
};
use serde_json::Value;
use tokio::net::TcpListener;

/// The simulator behind a port.
#[derive(Debug, Clone)]
pub struct Upstream {
    pub sim: Simulator,
    pub address: SocketAddr,
    books: Arc<Mutex<Books>>,
    _server: Tasks,
}

/// A batch of messages that a later cursor acknowledged.
#[derive(Debug, Clone)]
pub struct Ack {
    /// Time of the poll that returned the messages.
    pub answered_at: Timestamp,
    /// Time of the poll whose cursor is after the messages.
    pub at: Timestamp,
    /// Their texts.
    pub texts: Vec<String>,
}

#[derive(Debug, Default)]
struct Books {
    /// Time and texts of the batch of each cursor that was returned.
    handed: HashMap<String, (Timestamp, Vec<String>)>,
    acks: Vec<Ack>,
}

struct Witness {
    sim: Simulator,
    books: Arc<Mutex<Books>>,
}

impl Upstream {
    pub async fn open(seed: u64) -> Self {
        let sim = Simulator::new(SimConfig::default(), Clock::system(), Random::seeded(seed));
        let books = Arc::<Mutex<Books>>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Tasks::new();
        let limits = Limits { drain: Duration::from_millis(1), ..Limits::default() };
        let witness = Arc::new(Witness { sim: sim.clone(), books: Arc::clone(&books) });
        server.spawn("upstream", local_http::serve(listener, witness, limits, server.clone()));
        Self { sim, address, books, _server: server }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Acknowledgements after the first `seen`.
    pub fn acks(&self, seen: usize) -> Vec<Ack> {
        self.books.lock().unwrap().acks[seen..].to_vec()
    }

    /// Messages that no cursor has acknowledged.
    pub fn pending(&self) -> usize {
        self.sim.accounts().iter().map(|account| account.pending).sum()
    }
}

#[async_trait]
impl LocalService for Witness {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        if !request.uri().path().ends_with("/getupdates") {
            return self.sim.call(request).await;
        }
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        self.acknowledge(asked["get_updates_buf"].as_str().unwrap_or_default());
        let response = self.sim.call(request).await?;
        let answer: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        self.hand_out(&answer);
        Ok(response)
    }

    fn max_body(&self, head: &Parts) -> usize {
        self.sim.max_body(head)
    }
}

impl Witness {
    fn acknowledge(&self, cursor: &str) {
        let at = Clock::system().now();
        let mut books = self.books.lock().unwrap();
        if let Some((answered_at, texts)) = books.handed.remove(cursor) {
            books.acks.push(Ack { answered_at, at, texts });
        }
    }

    fn hand_out(&self, answer: &Value) {
        let Some(messages) = answer["msgs"].as_array().filter(|messages| !messages.is_empty()) else {
            return;
        };
        let text = |message: &Value| message["item_list"][0]["text_item"]["text"].as_str().map(str::to_owned);
        let texts = messages.iter().filter_map(text).collect();
        let cursor = answer["get_updates_buf"].as_str().unwrap_or_default().to_owned();
        let at = Clock::system().now();
        // A batch may be answered twice, under the same cursor: the first time counts.
        self.books.lock().unwrap().handed.entry(cursor).or_insert((at, texts));
    }
}
