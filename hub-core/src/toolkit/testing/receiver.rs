//! The other end of a webhook.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use serde_json::Value;
use tokio::sync::watch;

use crate::local_http::{Cut, LocalService};

/// Keeps every request and answers from a script; 200 with `{}` when it is used up.
pub struct Receiver {
    script: Mutex<VecDeque<(u16, String)>>,
    seen: Mutex<Vec<Request<Bytes>>>,
    open: watch::Sender<bool>,
}

impl Receiver {
    /// A receiver that takes everything.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { script: Mutex::default(), seen: Mutex::default(), open: watch::Sender::new(true) })
    }

    /// Adds an answer to the script: a status and a JSON text.
    pub fn answer(&self, status: u16, body: &str) {
        lock(&self.script).push_back((status, body.to_owned()));
    }

    /// Requests are kept, and answered only after [`release`](Self::release).
    pub fn hold(&self) {
        self.open.send_replace(false);
    }

    /// Answers the requests that are held.
    pub fn release(&self) {
        self.open.send_replace(true);
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request<Bytes>> {
        lock(&self.seen).clone()
    }

    /// The bodies of these requests.
    pub fn bodies(&self) -> Vec<Value> {
        let seen = lock(&self.seen);
        seen.iter().map(|request| serde_json::from_slice(request.body()).unwrap_or_default()).collect()
    }

    /// The texts of the messages in them.
    pub fn texts(&self) -> Vec<String> {
        let text = |body: &Value| body["content"].as_str().unwrap_or_default().to_owned();
        self.bodies().iter().map(text).collect()
    }
}

#[async_trait]
impl LocalService for Receiver {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        lock(&self.seen).push(request);
        // The sender lives in `self`.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
        let (status, body) = lock(&self.script).pop_front().unwrap_or((200, "{}".to_owned()));
        let mut answer = Response::new(Bytes::from(body));
        *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        answer
            .headers_mut()
            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        Ok(answer)
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("requests", &lock(&self.seen).len()).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
