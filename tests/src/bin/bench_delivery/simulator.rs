//! The chat network as a process of its own: the simulator, with the moments at which it answered polls, and a
//! gate in front of polls, behind which messages can pile up.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, request::Parts};
use hub_core::{
    local_http::{Cut, LocalService},
    network::sim::{SimCaps, SimConfig, Simulator},
    random::Random,
    time::Clock,
};
use serde_json::json;
use tokio::sync::watch;

use crate::{Result, marker::Marker, moments::Moments, receiver};

/// Undelivered messages per bot.
const PENDING: usize = 2_000_000;

struct Network {
    simulator: Simulator,
    answered: Moments,
    open: watch::Sender<bool>,
}

/// Serves until killed; the address is printed.
pub async fn run() -> Result<()> {
    let caps = SimCaps { pending: PENDING, ..SimCaps::default() };
    let config = SimConfig { caps, ..SimConfig::default() };
    let simulator = Simulator::new(config, Clock::system(), Random::system());
    let network = Network { simulator, answered: Moments::default(), open: watch::Sender::new(true) };
    receiver::serve(Arc::new(network)).await
}

#[async_trait]
impl LocalService for Network {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        match request.uri().path() {
            "/_bench/moments" => return Ok(Response::new(self.answered.to_bytes().into())),
            "/_bench/counts" => {
                let seen = self.answered.counts().0;
                return Ok(Response::new(json!({ "seen": seen }).to_string().into()));
            }
            "/_bench/reset" => self.answered.reset(),
            "/_bench/gate" => drop(self.open.send_replace(request.body() == "open")),
            path => {
                let is_poll = path.ends_with("/getupdates");
                if is_poll {
                    // The sender lives as long as this service.
                    let _ = self.open.subscribe().wait_for(|open| *open).await;
                }
                let answer = self.simulator.call(request).await?;
                if is_poll {
                    for marker in Marker::find_all(answer.body()) {
                        self.answered.note(marker.number);
                    }
                }
                return Ok(answer);
            }
        }
        Ok(Response::new(Bytes::new()))
    }

    fn max_body(&self, head: &Parts) -> usize {
        self.simulator.max_body(head)
    }
}
