//! The simulated network of a benchmark with many bots, and its bots.

use std::{
    collections::HashSet,
    io::Write,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response, header::AUTHORIZATION, request::Parts};
use hub_core::{
    local_http::{self, Cut, Limits, LocalService},
    network::sim::{SimConfig, Simulator},
    random::Random,
    tasks::Tasks,
    time::{Clock, Stopwatch},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    Result,
    http_caller::{Caller, until},
};

/// Maximum duration of a start, and the interval at which the number of polled bots is read.
const TEST_TIMEOUT: Duration = Duration::from_secs(600);
const INTERVAL: Duration = Duration::from_millis(20);
/// Users who bind their bots at the same time.
const USERS_AT_A_TIME: usize = 8;

/// The simulated network, with the tokens of the bots that polled it.
struct Network {
    simulator: Simulator,
    polled: Mutex<HashSet<Bytes>>,
}

#[async_trait]
impl LocalService for Network {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        let polled = || self.polled.lock().unwrap_or_else(PoisonError::into_inner);
        match request.uri().path() {
            "/_bench/reset" => polled().clear(),
            "/_bench/polled" => {
                return Ok(Response::new(json!({ "data": polled().len() }).to_string().into()));
            }
            path => {
                if let Some(token) =
                    request.headers().get(AUTHORIZATION).filter(|_| path.ends_with("/getupdates"))
                {
                    polled().insert(Bytes::copy_from_slice(token.as_bytes()));
                }
                return self.simulator.call(request).await;
            }
        }
        Ok(Response::new(Bytes::new()))
    }

    fn max_body(&self, head: &Parts) -> usize {
        self.simulator.max_body(head)
    }
}

/// Serves the network until killed; the address is printed.
pub async fn serve() -> Result<()> {
    let simulator = Simulator::new(SimConfig::default(), Clock::system(), Random::system());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    let network = Network { simulator, polled: Mutex::default() };
    let limits = Limits { connections: 100_000, ..Limits::default() };
    local_http::serve(listener, Arc::new(network), limits, Tasks::new()).await;
    Ok(())
}

/// Forgets which bots polled.
pub async fn reset(simulator: &Caller) {
    simulator.call(reqwest::Method::POST, "/_bench/reset", None).await;
}

/// Number of bots that were polled since the last reset.
async fn polled(simulator: &Caller) -> usize {
    let (_, answer, _) = simulator.call(reqwest::Method::GET, "/_bench/polled", None).await;
    answer["data"].as_u64().and_then(|count| count.try_into().ok()).unwrap_or_default()
}

/// Waits until this number of bots were polled since the last reset, and returns the duration.
pub async fn wait_polled(simulator: &Caller, bots: usize) -> Result<Duration> {
    let watch = Stopwatch::start();
    while polled(simulator).await < bots {
        if watch.elapsed() > TEST_TIMEOUT {
            return Err(format!("{} of {bots} bots were polled", polled(simulator).await).into());
        }
        Clock::system().sleep(INTERVAL).await;
    }
    Ok(watch.elapsed())
}

/// A bot: its owner, its id and the account behind it.
pub struct Bound {
    pub owner: Caller,
    pub id: String,
    pub wx_id: String,
}

/// Registers as many users as it takes, and logs the bots in.
pub async fn bind(address: &str, simulator: &Caller, bots: usize, bots_of_user: usize) -> Vec<Bound> {
    let users = stream::iter((0..bots).step_by(bots_of_user));
    let bind_of_user = |first: usize| async move {
        let user = json!({ "username": format!("user{first}"), "password": "correct horse battery staple" });
        let mut owner = Caller::stranger(&format!("http://{address}"));
        owner.sign_in("/api/auth/register", user).await;
        let mut bound = Vec::new();
        for _ in first..bots.min(first + bots_of_user) {
            let bind = owner.post("/api/bots/bind/start", json!({ "network": "sim" })).await;
            let account =
                simulator.control("/_sim/confirm", Some(json!({ "qr_text": bind["qr_text"] }))).await;
            let step = json!({ "bind_id": bind["bind_id"], "wait_ms": 2000 });
            let id = until("the login", async || {
                let step = owner.post("/api/bots/bind/confirm", step.clone()).await;
                (step["status"] == "confirmed").then(|| text(&step["bot"]["id"]))
            })
            .await;
            bound.push(Bound { owner: owner.clone(), id, wx_id: text(&account["wx_id"]) });
        }
        bound
    };
    users.map(bind_of_user).buffer_unordered(USERS_AT_A_TIME).concat().await
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
