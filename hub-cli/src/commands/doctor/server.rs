//! What needs a connection: the running server, and the receivers of webhooks.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use bytes::Bytes;
use hub_core::{
    demo::RECEIVER_HOST,
    egress::{Answer, Call, Egress, EgressConfig},
    store::{StoreConfig, Upkeep},
    time::{Clock, Timestamp},
};
use serde_json::Value;
use tokio::net::TcpStream;
use url::Url;

use super::{Outcome, Patient};

/// How long somebody may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The description of the API is the largest of the answers.
const MAX_ANSWER: usize = 8 << 20;
/// Receivers that are tried.
const MAX_HOSTS: usize = 50;
/// Difference of clocks that is worth a look, and one with which signatures and logins fail.
const SKEW: Duration = Duration::from_secs(5);
const BAD_SKEW: Duration = Duration::from_secs(60);

const OF_SERVER: [&str; 3] = ["public-url.matches-origin", "clock.skew", "version.skew"];

pub async fn look(patient: &Patient<'_>) -> Vec<Outcome> {
    if patient.args.offline {
        let ids = OF_SERVER.iter().chain(&["sinks.reachable"]);
        return ids
            .map(|id| Outcome::skipped(*id, "it needs a connection, and --offline was said"))
            .collect();
    }
    let mut outcomes = Vec::new();
    if OF_SERVER.iter().any(|id| patient.wants(id)) {
        outcomes.extend(server(patient).await);
    }
    if patient.wants("sinks.reachable") {
        outcomes.push(receivers(patient).await);
    }
    outcomes
}

async fn server(patient: &Patient<'_>) -> Vec<Outcome> {
    let Some(base) = address(patient) else {
        return OF_SERVER
            .iter()
            .map(|id| Outcome::skipped(*id, "nothing says where the server is"))
            .collect();
    };
    let shown = base.origin().ascii_serialization();
    let asked_at = Clock::system().now();
    let answer = match ask(&base).await {
        Ok(answer) => answer,
        Err(reason) if patient.args.server.is_some() => {
            let failed = Outcome::failed(OF_SERVER[0], format!("no hub answers at {shown}: {reason}"));
            let rest = OF_SERVER[1..].iter().map(|id| Outcome::skipped(*id, "no hub answers"));
            return std::iter::once(failed).chain(rest).collect();
        }
        Err(_) => {
            let told = format!("no hub answers at {shown}");
            return OF_SERVER.iter().map(|id| Outcome::skipped(*id, told.clone())).collect();
        }
    };
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    vec![origin(patient, &document, &shown), clock(&answer, asked_at), version(&document)]
}

/// Where the server is: as it was named, as people reach it, or where it listens.
fn address(patient: &Patient<'_>) -> Option<Url> {
    let config = patient.config;
    let named = patient.args.server.clone().or_else(|| config.public_url.clone());
    named.or_else(|| {
        let listen = config.listen.first().filter(|address| address.port() != 0)?;
        let ip = match listen.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
            IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        Url::parse(&format!("http://{ip}:{}", listen.port())).ok()
    })
}

async fn ask(base: &Url) -> Result<Answer, String> {
    // The operator named the address: the rule against private addresses is not for it.
    let egress = Egress::new(EgressConfig::default()).and_then(|egress| egress.trusted());
    let egress = egress.map_err(|error| error.to_string())?;
    let mut url = base.clone();
    url.set_path(&format!("{}/openapi.json", base.path().trim_end_matches('/')));
    url.set_query(None);
    let url = egress.check_url(url.as_str()).map_err(|error| error.to_string())?;
    let (method, headers, body) = (http::Method::GET, http::HeaderMap::new(), Bytes::new());
    let call = Call { method, url, headers, body, deadline: PATIENCE, max_answer: MAX_ANSWER };
    let answer = egress.send(call).await.map_err(|error| error.message)?;
    if answer.status.is_success() {
        Ok(answer)
    } else {
        Err(format!("it answered {}", answer.status.as_u16()))
    }
}

/// What the server says its address is, against what the settings here say.
fn origin(patient: &Patient<'_>, document: &Value, shown: &str) -> Outcome {
    let id = OF_SERVER[0];
    let says = document["servers"][0]["url"].as_str().and_then(|url| Url::parse(url).ok());
    let Some(says) = says.map(|url| url.origin().ascii_serialization()) else {
        return Outcome::failed(id, format!("what answers at {shown} is no hub"));
    };
    let wanted = match &patient.config.public_url {
        Some(url) => url.origin().ascii_serialization(),
        None => shown.to_owned(),
    };
    // On this machine, all names of it are as good.
    let is_here =
        |origin: &str| ["://localhost", "://127.", "://[::1]"].iter().any(|here| origin.contains(here));
    if says == wanted || (patient.config.public_url.is_none() && is_here(&says) && is_here(&wanted)) {
        return Outcome::ok(id, format!("the server calls itself {says}"));
    }
    Outcome::failed(id, format!("the server calls itself {says}, and the settings here say {wanted}"))
        .advise("scheme, host and port of public_url are those that people type; then restart the server")
}

fn clock(answer: &Answer, asked_at: Timestamp) -> Outcome {
    let id = OF_SERVER[1];
    let date = answer.headers.get(http::header::DATE).and_then(|value| value.to_str().ok());
    let Some(theirs) = date.and_then(Timestamp::from_http_date) else {
        return Outcome::skipped(id, "the server does not say what time it is");
    };
    let difference = Duration::from_millis(theirs.as_millis().abs_diff(asked_at.as_millis()));
    let told = format!("the server's clock differs from this machine's by {} s", difference.as_secs());
    if difference > BAD_SKEW {
        Outcome::failed(id, told).advise("timedatectl set-ntp true, on the one that is wrong")
    } else if difference > SKEW {
        Outcome::warning(id, told).advise("timedatectl set-ntp true, on the one that is wrong")
    } else {
        Outcome::ok(id, told)
    }
}

fn version(document: &Value) -> Outcome {
    let (id, own) = (OF_SERVER[2], env!("CARGO_PKG_VERSION"));
    match document["info"]["version"].as_str() {
        Some(theirs) if theirs == own => Outcome::ok(id, format!("server and command line are {own}")),
        Some(theirs) => Outcome::warning(id, format!("the server is {theirs}, this command line {own}"))
            .advise("use the one that was built with the server"),
        None => Outcome::skipped(id, "the server does not say which version it is"),
    }
}

/// Whether somebody listens where webhooks go; nothing is sent.
async fn receivers(patient: &Patient<'_>) -> Outcome {
    let id = "sinks.reachable";
    if matches!(&patient.config.store, StoreConfig::Sqlite(path) if !path.exists()) {
        return Outcome::skipped(id, "there is no database");
    }
    let found = async {
        let mut database = Upkeep::open(&patient.config.store).await?;
        let webhooks = database.webhooks().await?;
        database.close().await?;
        Ok::<_, hub_core::Error>(webhooks)
    };
    let webhooks = match found.await {
        Ok(webhooks) => webhooks,
        Err(error) => return Outcome::skipped(id, format!("channels cannot be read: {}", error.message())),
    };
    let simulates = patient.config.networks.sim && patient.config.sim_url.is_none();
    let mut hosts: BTreeMap<(String, u16), String> = BTreeMap::new();
    for (channel, settings) in &webhooks {
        let settings: Value = serde_json::from_str(settings).unwrap_or_default();
        let url = settings["url"].as_str().filter(|_| settings["enabled"] == true);
        let url = url.and_then(|url| Url::parse(url).ok());
        let place = url.and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?)));
        // The receiver of the demo is part of the server that runs the simulated network.
        let place = place.filter(|(host, _)| !(simulates && host == RECEIVER_HOST));
        hosts.extend(place.map(|place| (place, channel.clone())));
    }
    let total = hosts.len();
    let mut silent = Vec::new();
    for ((host, port), channel) in hosts.into_iter().take(MAX_HOSTS) {
        let dialled = TcpStream::connect((host.trim_matches(['[', ']']), port));
        if !matches!(Clock::system().timeout(PATIENCE, dialled).await, Some(Ok(_))) {
            silent.push(format!("{host}:{port} (channel {channel})"));
        }
    }
    if silent.is_empty() {
        return Outcome::ok(id, format!("{} receivers of webhooks take connections", total.min(MAX_HOSTS)));
    }
    Outcome::warning(id, format!("nobody takes connections from this machine at {}", silent.join(", ")))
        .advise("hub-cli channels set-webhook CHANNEL --test sends one signed ping and shows what came back")
}
