//! Checks that need a connection: the running server, and the receivers of webhooks.

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

use super::{Outcome, Subject};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a response: that of the description of the API.
const MAX_ANSWER: usize = 8 << 20;
/// Maximum number of receivers to try.
const MAX_HOSTS: usize = 50;
/// Difference of clocks for a warning, and one with which signatures and logins fail.
const WARN_SKEW: Duration = Duration::from_secs(5);
const FAIL_SKEW: Duration = Duration::from_secs(60);

const OF_SERVER: [&str; 3] = ["public-url.matches-origin", "clock.skew", "version.skew"];

pub async fn check(subject: &Subject<'_>) -> Vec<Outcome> {
    if subject.args.offline {
        let ids = [&OF_SERVER[..], &["sinks.reachable"]].concat();
        return skipped(&ids, "it needs a connection, and --offline is set");
    }
    let mut outcomes = Vec::new();
    if OF_SERVER.iter().any(|id| subject.wants(id)) {
        outcomes.extend(server(subject).await);
    }
    if subject.wants("sinks.reachable") {
        outcomes.push(receivers(subject).await);
    }
    outcomes
}

fn skipped(ids: &[&str], reason: &str) -> Vec<Outcome> {
    ids.iter().map(|id| Outcome::skipped(*id, reason)).collect()
}

async fn server(subject: &Subject<'_>) -> Vec<Outcome> {
    let Some(base) = address(subject) else {
        return skipped(&OF_SERVER, "the address of the server is not known");
    };
    let shown = base.origin().ascii_serialization();
    let asked_at = Clock::system().now();
    let answer = match ask(&base).await {
        Ok(answer) => answer,
        Err(reason) if subject.args.server.is_some() => {
            let mut outcomes = skipped(&OF_SERVER, "the hub is unreachable");
            outcomes[0] = Outcome::failed(OF_SERVER[0], format!("no hub at {shown}: {reason}"));
            return outcomes;
        }
        Err(_) => return skipped(&OF_SERVER, &format!("no hub at {shown}")),
    };
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    vec![origin(subject, &document, &shown), clock(&answer, asked_at), version(&document)]
}

/// The address of the server: as named, the public URL, or the listen address.
fn address(subject: &Subject<'_>) -> Option<Url> {
    let config = subject.config;
    let named = subject.args.server.clone().or_else(|| config.public_url.clone());
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
    // The operator named the address, so private addresses are allowed.
    let egress = Egress::new(EgressConfig::default()).map(|egress| egress.trusted());
    let egress = egress.map_err(|error| error.to_string())?;
    let mut url = base.clone();
    url.set_path(&format!("{}/openapi.json", base.path().trim_end_matches('/')));
    url.set_query(None);
    let url = egress.check_url(url.as_str()).map_err(|error| error.to_string())?;
    let (method, headers, body) = (http::Method::GET, http::HeaderMap::new(), Bytes::new());
    let call = Call { method, url, headers, body, deadline: RESPONSE_TIMEOUT, max_answer: MAX_ANSWER };
    let answer = egress.send(call).await.map_err(|error| error.message)?;
    if answer.status.is_success() {
        Ok(answer)
    } else {
        Err(format!("it responded {}", answer.status.as_u16()))
    }
}

/// Compares the server's public URL with the settings on this machine.
fn origin(subject: &Subject<'_>, document: &Value, shown: &str) -> Outcome {
    let id = OF_SERVER[0];
    let says = document["servers"][0]["url"].as_str().and_then(|url| Url::parse(url).ok());
    let base = |url: &Url| url.as_str().trim_end_matches('/').to_owned();
    let Some(says) = says.as_ref().map(base) else {
        return Outcome::failed(id, format!("the server at {shown} is not a hub"));
    };
    let wanted = match &subject.config.public_url {
        Some(url) => base(url),
        None => shown.to_owned(),
    };
    // All names of this machine are equivalent.
    let is_here =
        |origin: &str| ["://localhost", "://127.", "://[::1]"].iter().any(|here| origin.contains(here));
    if says == wanted || (subject.config.public_url.is_none() && is_here(&says) && is_here(&wanted)) {
        return Outcome::ok(id, format!("the public URL of the server is {says}"));
    }
    Outcome::failed(
        id,
        format!("the public URL of the server is {says}, but in the settings of this machine {wanted}"),
    )
    .advise("set public_url to the scheme, host, port and path that users type; then restart the server")
}

fn clock(answer: &Answer, asked_at: Timestamp) -> Outcome {
    let id = OF_SERVER[1];
    let date = answer.headers.get(http::header::DATE).and_then(|value| value.to_str().ok());
    let Some(theirs) = date.and_then(Timestamp::from_http_date) else {
        return Outcome::skipped(id, "the server does not report its time");
    };
    let difference = Duration::from_millis(theirs.as_millis().abs_diff(asked_at.as_millis()));
    let message = format!("the server's clock differs from this machine's by {} s", difference.as_secs());
    if difference > FAIL_SKEW {
        Outcome::failed(id, message).advise("timedatectl set-ntp true, on the one that is wrong")
    } else if difference > WARN_SKEW {
        Outcome::warning(id, message).advise("timedatectl set-ntp true, on the one that is wrong")
    } else {
        Outcome::ok(id, message)
    }
}

fn version(document: &Value) -> Outcome {
    let (id, own) = (OF_SERVER[2], env!("CARGO_PKG_VERSION"));
    match document["info"]["version"].as_str() {
        Some(theirs) if theirs == own => {
            Outcome::ok(id, format!("server and command line have version {own}"))
        }
        Some(theirs) => {
            Outcome::warning(id, format!("the server has version {theirs}, this command line {own}"))
                .advise("use the command line of the server's version")
        }
        None => Outcome::skipped(id, "the server does not report its version"),
    }
}

/// Whether the receivers of webhooks accept connections; nothing is sent.
async fn receivers(subject: &Subject<'_>) -> Outcome {
    let id = "sinks.reachable";
    if matches!(&subject.config.store, StoreConfig::Sqlite(path) if !path.exists()) {
        return Outcome::skipped(id, "there is no database");
    }
    let found = async {
        let mut database = Upkeep::open(&subject.config.store).await?;
        let webhooks = database.webhooks().await?;
        database.close().await?;
        Ok::<_, hub_core::Error>(webhooks)
    };
    let webhooks = match found.await {
        Ok(webhooks) => webhooks,
        Err(error) => return Outcome::skipped(id, format!("channels cannot be read: {}", error.message())),
    };
    let simulates = subject.config.networks.sim && subject.config.sim_url.is_none();
    let mut hosts: BTreeMap<(String, u16), String> = BTreeMap::new();
    for (channel, settings) in &webhooks {
        let settings: Value = serde_json::from_str(settings).unwrap_or_default();
        let url = settings["url"].as_str().filter(|_| settings["enabled"] == true);
        let url = url.and_then(|url| Url::parse(url).ok());
        let place = url.and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?)));
        // The receiver of the demo is part of the server with the simulated network.
        let place = place.filter(|(host, _)| !(simulates && host == RECEIVER_HOST));
        hosts.extend(place.map(|place| (place, channel.clone())));
    }
    let total = hosts.len();
    let mut silent = Vec::new();
    for ((host, port), channel) in hosts.into_iter().take(MAX_HOSTS) {
        let dialled = TcpStream::connect((host.trim_matches(['[', ']']), port));
        if !matches!(Clock::system().timeout(RESPONSE_TIMEOUT, dialled).await, Some(Ok(_))) {
            silent.push(format!("{host}:{port} (channel {channel})"));
        }
    }
    if silent.is_empty() {
        return Outcome::ok(id, format!("{} receivers of webhooks accept connections", total.min(MAX_HOSTS)));
    }
    Outcome::warning(id, format!("no connection from this machine to {}", silent.join(", ")))
        .advise("hub-cli channels set-webhook CHANNEL --test sends a signed ping and shows the response")
}
