//! The receivers of the load: one takes everything, one refuses some messages once, one answers with a reply, one
//! is a model that answers. What they see goes into the books.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use hub_core::{
    local_http::{self, Cut, Limits, LocalService},
    tasks::Tasks,
    testing::ledger::{Ledger, Receipt, Repeats},
    time::Clock,
};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch};

use super::upstream::Upstream;

/// The channels, and the paths of their webhooks; one has a model instead, and one a program.
pub const SINKS: [&str; 5] = ["plain", "flaky", "answering", MODEL, ILINK];
/// Of these, the ones that send no reply.
pub const SILENT: [&str; 2] = ["plain", "flaky"];
/// The channel with a program that speaks the protocol of the network.
pub const ILINK: &str = "ilink";
/// The channel with a model, and the path of its endpoint.
pub const MODEL: &str = "model";
/// The flaky sink rejects one of this number of messages once.
const EVERY: usize = 6;

/// Both directions of the load.
#[derive(Debug)]
pub struct Books {
    /// From people to webhooks.
    pub inbound: Ledger,
    /// From programs and webhooks to people.
    pub outbound: Ledger,
    /// Number of the network's acknowledgements that are recorded.
    acks: usize,
}

impl Books {
    /// Records what was sent to the network since the last call.
    pub fn note_acks(&mut self, upstream: &Upstream) {
        let new = upstream.acks(self.acks);
        self.acks += new.len();
        for text in new.iter().flat_map(|ack| &ack.texts) {
            self.inbound.acknowledged(text);
        }
    }
}

/// The receivers behind a port.
#[derive(Debug, Clone)]
pub struct Sinks {
    pub address: SocketAddr,
    pub books: Arc<Mutex<Books>>,
    open: Arc<watch::Sender<bool>>,
    held: Arc<watch::Sender<HashSet<String>>>,
    refused: Arc<Mutex<HashSet<String>>>,
}

impl Sinks {
    pub async fn open(origin: &str) -> Self {
        let books = Books { inbound: Ledger::new(origin), outbound: Ledger::new(origin), acks: 0 };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sinks = Self {
            address: listener.local_addr().unwrap(),
            books: Arc::new(Mutex::new(books)),
            open: Arc::new(watch::Sender::new(true)),
            held: Arc::default(),
            refused: Arc::default(),
        };
        let tasks = Tasks::new();
        let limits = Limits { drain: Duration::from_millis(1), ..Limits::default() };
        let service = Arc::new(sinks.clone());
        tasks.spawn("sinks", local_http::serve(listener, service, limits, tasks.clone()));
        sinks
    }

    /// Keeps every request without an answer, until [`release`](Self::release).
    pub fn hold(&self) {
        self.open.send_replace(false);
    }

    /// Cuts the held requests, which do not count as received, and responds to new ones.
    pub fn release(&self) {
        self.open.send_replace(true);
    }

    /// Waits until a request to this sink is held.
    pub async fn wait_held(&self, sink: &str) {
        let mut held = self.held.subscribe();
        let found = held.wait_for(|held| held.iter().any(|path| path.starts_with(sink)));
        tokio::time::timeout(Duration::from_secs(60), found).await.expect("a request is held").unwrap();
    }

    /// Returns the reply of the answering sink, if it replies to this message: once to each person. The ten sends of
    /// a window have to suffice for all replies and sends to a person, and for repeats after crashes.
    pub fn reply_to(payload: &str) -> Option<String> {
        payload.ends_with("-1").then(|| format!("re {payload}"))
    }

    /// Returns the answer of the model, if it answers this message: once to each person.
    pub fn answer_to(payload: &str) -> Option<String> {
        payload.ends_with("-4").then(|| format!("well, {payload}"))
    }

    /// Returns the answer of the program, if it answers this message: once to each person.
    pub fn program_answer_to(payload: &str) -> Option<String> {
        payload.ends_with("-3").then(|| format!("yes, {payload}"))
    }

    /// Returns the response of the model: an answer to some messages, empty for others. It depends on the message
    /// alone, so that a retry after a crash gets the same.
    fn speak(&self, body: &Value) -> (StatusCode, String) {
        let asked = body["messages"].as_array().and_then(|messages| messages.last());
        // Earlier messages of the person without a response precede it.
        let payload = asked.and_then(|asked| asked["content"].as_str()?.lines().last()).unwrap_or_default();
        let answer = Self::answer_to(payload);
        let mut books = self.books.lock().unwrap();
        books.inbound.received(Receipt {
            at: Clock::system().now(),
            sink: MODEL.to_owned(),
            payload: payload.to_owned(),
            id: payload.to_owned(),
            taken: true,
        });
        if let Some(answer) = &answer {
            let person = payload.rsplit_once('-').map_or(payload, |(person, _)| person);
            books.outbound.sent(&format!("{person} answers"), answer, &["people"], Repeats::Never);
        }
        let message = serde_json::json!({ "role": "assistant", "content": answer.unwrap_or_default() });
        let usage = serde_json::json!({ "prompt_tokens": 5, "completion_tokens": 2 });
        let choice = serde_json::json!({ "index": 0, "message": message, "finish_reason": "stop" });
        (StatusCode::OK, serde_json::json!({ "choices": [choice], "usage": usage }).to_string())
    }

    /// Returns the response to a webhook, and records it before it is sent.
    fn judge(&self, sink: &str, id: &str, body: &Value) -> (StatusCode, String) {
        let payload = body["content"].as_str().unwrap_or_default();
        let first = every(payload, 2) && self.refused.lock().unwrap().insert(payload.to_owned());
        let refused = sink == "flaky" && first;
        let reply = (sink == "answering").then(|| Self::reply_to(payload)).flatten();
        let mut books = self.books.lock().unwrap();
        books.inbound.received(Receipt {
            at: Clock::system().now(),
            sink: sink.to_owned(),
            payload: payload.to_owned(),
            id: id.to_owned(),
            taken: !refused,
        });
        if let Some(reply) = &reply {
            let person = body["sender"]["user_id"].as_str().unwrap_or_default();
            books.outbound.sent(&format!("{person} replies"), reply, &["people"], Repeats::Never);
        }
        match (refused, reply) {
            (true, _) => (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
            (false, Some(reply)) => (StatusCode::OK, serde_json::json!({ "reply": reply }).to_string()),
            (false, None) => (StatusCode::OK, "{}".to_owned()),
        }
    }
}

/// One of [`EVERY`] messages, by the number at the end of its payload.
fn every(payload: &str, which: usize) -> bool {
    let number = payload.rsplit('-').next().and_then(|number| number.parse::<usize>().ok());
    number.is_some_and(|number| number % EVERY == which)
}

#[async_trait]
impl LocalService for Sinks {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let sink = request.uri().path().trim_start_matches('/').to_owned();
        if !*self.open.borrow() {
            self.held.send_modify(|held| _ = held.insert(sink));
            let _ = self.open.subscribe().wait_for(|open| *open).await;
            return Err(Cut);
        }
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let (status, text) = if sink.starts_with(MODEL) {
            self.speak(&body)
        } else {
            let id = request.headers()["webhook-id"].to_str().unwrap_or_default();
            self.judge(&sink, id, &body)
        };
        let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
        response.body(Bytes::from(text)).map_err(|_| Cut)
    }
}
