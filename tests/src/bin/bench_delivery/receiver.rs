//! The other end of every webhook as a process of its own: answers 200 with nothing, or with a reply, and keeps
//! when each message came, how often, and whether each conversation was in order.

use std::{
    collections::HashMap,
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, header, request::Parts};
use hub_core::{
    local_http::{self, Cut, Limits, LocalService},
    tasks::Tasks,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{Result, marker::Marker, moments::Moments};

/// Without an answer to send: 200, empty.
pub const HOOK: &str = "/hook";
/// 200 with a reply to the sender.
pub const REPLY: &str = "/reply";

#[derive(Default)]
struct Receiver {
    arrived: Moments,
    order: Mutex<Order>,
    /// The last request, as a pattern for the bare client.
    sample: Mutex<Option<(http::HeaderMap, Bytes)>>,
}

/// The newest number of each conversation at each path.
#[derive(Default)]
struct Order {
    newest: HashMap<u64, u64>,
    breaks: u64,
}

/// Serves until killed; the address is printed.
pub async fn run() -> Result<()> {
    serve(Arc::new(Receiver::default())).await
}

/// Serves on a port of the system's choice and prints it.
pub async fn serve(service: Arc<dyn LocalService>) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    local_http::serve(listener, service, Limits::default(), Tasks::new()).await;
    Ok(())
}

impl Receiver {
    fn take(&self, request: Request<Bytes>) {
        let (head, body) = request.into_parts();
        if let Some((marker, _)) = Marker::find(&body)
            && self.arrived.note(marker.number)
        {
            let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
            let newest = order.newest.entry(marker.conversation).or_default();
            let late = marker.number < *newest;
            *newest = marker.number.max(*newest);
            order.breaks += u64::from(late);
        }
        *self.sample.lock().unwrap_or_else(PoisonError::into_inner) = Some((head.headers, body));
    }

    fn counts(&self) -> Value {
        let (seen, repeated) = self.arrived.counts();
        let breaks = self.order.lock().unwrap_or_else(PoisonError::into_inner).breaks;
        json!({ "seen": seen, "repeated": repeated, "order_breaks": breaks })
    }

    fn sample(&self) -> Value {
        let sample = self.sample.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((headers, body)) = &*sample else { return Value::Null };
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
        json!({ "headers": headers, "body": String::from_utf8_lossy(body) })
    }

    fn reset(&self) {
        self.arrived.reset();
        *self.order.lock().unwrap_or_else(PoisonError::into_inner) = Order::default();
    }
}

#[async_trait]
impl LocalService for Receiver {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let answer = match request.uri().path() {
            HOOK => {
                self.take(request);
                Bytes::new()
            }
            REPLY => {
                self.take(request);
                let mut answer = Response::new(Bytes::from_static(br#"{"reply":"It is on its way."}"#));
                let json = http::HeaderValue::from_static("application/json");
                answer.headers_mut().insert(header::CONTENT_TYPE, json);
                return Ok(answer);
            }
            "/_bench/moments" => self.arrived.to_bytes().into(),
            "/_bench/counts" => self.counts().to_string().into(),
            "/_bench/sample" => self.sample().to_string().into(),
            "/_bench/reset" => {
                self.reset();
                Bytes::new()
            }
            _ => return Err(Cut),
        };
        Ok(Response::new(answer))
    }

    fn max_body(&self, _head: &Parts) -> usize {
        1 << 20
    }
}
