//! The other end of the webhooks.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;

use super::world::Shared;
use crate::{
    id::{ChannelId, DeliveryId},
    local_http::{Cut, LocalService},
    time::Clock,
};

/// Destination of one node's requests. It outlives the runs, since a client takes long to create; its target
/// changes with each run.
#[derive(Debug, Default)]
pub struct Endpoint(Mutex<Option<Target>>);

#[derive(Debug, Clone)]
pub struct Target {
    pub world: Shared,
    pub clock: Clock,
    pub node: usize,
}

impl Endpoint {
    pub fn set(&self, target: Option<Target>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }
}

/// Delay and response of the receiver for one request.
struct Reaction {
    delay: Duration,
    /// `None` cuts the connection.
    status: Option<u16>,
    retry_after: Option<u64>,
    reply: bool,
}

impl Reaction {
    fn of(target: &Target) -> Self {
        let world = target.world.lock();
        let faults = world.faults;
        let kind = if faults.receiver { world.below(20) } else { 0 };
        let status = match kind {
            13 if faults.gone => Some(410),
            14 => Some(500),
            15 => Some(429),
            16 => Some(503),
            17 => None,
            _ => Some(200),
        };
        let delay = match kind {
            0..10 => world.below(30),
            10..17 => world.below(1_500),
            _ => world.below(9_000),
        };
        let retry_after = matches!(kind, 15 | 16).then(|| world.below(20));
        Self { delay: Duration::from_millis(delay), status, retry_after, reply: world.chance(4) }
    }
}

#[async_trait]
impl LocalService for Endpoint {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let target = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(Cut)?;
        let Reaction { delay, status, retry_after, reply } = Reaction::of(&target);
        // Half of the delay passes before the request counts, half before the response.
        target.clock.sleep(delay / 2).await;
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let id = header("webhook-id").and_then(|id| id.parse::<DeliveryId>().ok());
        let channel = request.uri().path().trim_start_matches('/').parse::<ChannelId>().ok();
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let (Some(id), Some(channel), Some(text)) = (id, channel, body["content"].as_str()) else {
            panic!("a request without id, channel or text: {request:?}")
        };
        let attempt = header("x-hub-attempt").unwrap_or_default().to_owned();
        target.world.lock().receive(target.node, channel, id, text, status == Some(200));
        target.clock.sleep(delay / 2).await;
        let mut response = Response::builder().status(status.ok_or(Cut)?);
        if let Some(after) = retry_after {
            response = response.header("retry-after", after);
        }
        let body = if reply { format!(r#"{{"reply":"re {id} {attempt}"}}"#) } else { String::new() };
        let response = response.header("content-type", "application/json").body(body.into());
        Ok(response.expect("a response of constants"))
    }
}
