//! The other end of the webhooks of channels and apps.

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
    id::{AppEventId, ChannelId, DeliveryId, InstallationId},
    local_http::{Cut, LocalService},
    model::sinks::{SinkId, SinkKey, SinkKind},
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
        let to = request.uri().path().trim_start_matches('/');
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let (sink, id, text) = if let Ok(installation) = to.parse::<InstallationId>() {
            let event = body["event"]["id"].as_str().and_then(|id| id.parse::<AppEventId>().ok());
            let id = event.and_then(|event| target.world.lock().tables.delivery_of(event));
            (Some(SinkKey::App(installation)), id, body["event"]["data"]["content"].as_str())
        } else {
            let channel = to.parse::<ChannelId>().ok().map(|id| SinkKey::Channel(id, SinkId::Webhook));
            let id = header("webhook-id").and_then(|id| id.parse::<DeliveryId>().ok());
            (channel, id, body["content"].as_str())
        };
        let (Some(id), Some(sink), Some(text)) = (id, sink, text) else {
            panic!("a request without id, sink or text: {request:?}")
        };
        // An app that answers with 410 waits for its author, who is not part of this world.
        let status = if sink.kind() == SinkKind::App && status == Some(410) { Some(500) } else { status };
        let attempt = header("x-hub-attempt").unwrap_or_default().to_owned();
        target.world.lock().receive(target.node, sink, id, text, status == Some(200));
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
