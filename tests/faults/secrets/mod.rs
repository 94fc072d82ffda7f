//! Secrets do not leak. They are put wherever a caller, an operator or a receiver can put one, through flows that
//! succeed and flows that fail, against the shipped server with its most verbose log. Then the database, the log, the
//! traces and every response are searched for them.

mod accounts;
mod administration;
mod caller;
mod channels;
mod doors;
mod plants;

use std::fs;

use data_encoding::HEXLOWER;
use hub_core::{random::Random, secret::Secret, store::StoreConfig};
use reqwest::Method;

use accounts::{change_credentials, show_bad_credentials, sign_in};
use administration::administer;
use caller::Caller;
use channels::{break_channels, deliver, make_channels, send};
use doors::ways_in;
use plants::{Plants, search_folder, search_postgres};

use crate::support::{
    hub_process::{HubProcess, NetworkProcess},
    port::ReceiverPort,
    postgres,
};

/// Text of a message to the bot. It is not a secret, so the search must find it.
const WITNESS: &str = "where is order 42?";

#[tokio::test]
async fn no_secret_is_left_anywhere_with_sqlite() {
    sweep(None).await;
}

#[tokio::test]
async fn no_secret_is_left_anywhere_with_postgres() {
    let Some(server) = postgres::server() else { return };
    let config = server.create_database().await;
    let StoreConfig::Postgres(url) = &config else { panic!("a PostgreSQL server makes such databases") };
    sweep(Some(url)).await;
    server.drop_database(&config).await;
}

async fn sweep(database: Option<&Secret>) {
    let mut plants = Plants::default();
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let mut port = ReceiverPort::open().await;

    let key = HEXLOWER.encode(&Random::system().bytes::<32>());
    plants.keep("the secret key", &key);
    let admin = plants.plant("the admin's password in the environment");
    let metrics = plants.plant("the metrics token");
    // The server trusts every connection to its socket; it accepts a password and does not require one.
    let database_password = plants.plant("the database's password");
    let url = database.map(|url| url.expose().replacen("hub@", &format!("hub:{database_password}@"), 1));
    let allow = port.address.to_string();
    let mut settings = vec![
        ("HUB_SECRET_KEY", key.as_str()),
        ("HUB_ADMIN_USERNAME", "root"),
        ("HUB_ADMIN_PASSWORD", admin.as_str()),
        ("HUB_EGRESS_ALLOW", allow.as_str()),
        ("HUB_LOG", "trace"),
        ("HUB_METRICS_TOKEN", metrics.as_str()),
        ("HUB_RATE_AUTH_PER_IP", "1000"),
        ("HUB_RATE_AUTH_PER_ACCOUNT", "1000"),
        ("HUB_RATE_BAD_CREDENTIALS", "1000"),
    ];
    let provider = doors::provider(&mut plants, &port);
    settings.extend(provider.iter().map(|(name, value)| (*name, value.as_str())));
    settings.extend(url.as_deref().map(|url| ("HUB_DATABASE_URL", url)));
    let hub = HubProcess::start(folder.path(), &network, &settings).await;
    let mut caller = Caller::new(&hub.url);

    sign_in(&mut caller, &mut plants).await;
    change_credentials(&mut caller, &mut plants).await;
    show_bad_credentials(&mut caller, &mut plants).await;
    let support =
        crate::support::http::Caller::stranger(&hub.url).with_cookie(caller.cookie.clone().unwrap());
    let (bot, wx_id) = network.bind(&support).await;
    let channels = make_channels(&mut caller, &mut plants, &bot, &port).await;
    break_channels(&mut caller, &mut plants, &bot, &channels, &port).await;
    deliver(&mut caller, &mut plants, &network, (&bot, &wx_id), &channels, &mut port).await;
    send(&mut caller, &mut plants, &bot).await;
    port.reopen().await;
    ways_in(&mut caller, &mut plants, &port).await;
    read_everything(&mut caller, &bot, &metrics).await;
    administer(&mut caller, &mut plants, &admin, &port).await;
    assert!(caller.devices.len() >= 5);
    for device in &caller.devices {
        plants.keep("the cookie of a browser that is known", device);
        // What it is known by to the limits.
        plants.keep("the nonce of it", device.split('.').nth(3).unwrap());
    }
    assert!(plants.0.len() >= 100, "{} secrets", plants.0.len());

    // Who finds nothing has to be able to find something.
    let mut witness = Plants::default();
    witness.keep("a message", WITNESS);
    assert_eq!(witness.found_in("an answer", caller.heard.as_bytes()).len(), 1);
    let stored = match database {
        Some(url) => search_postgres(&witness, url).await,
        None => search_folder(&witness, folder.path()),
    };
    assert!(!stored.is_empty());

    let mut found = plants.found_in("an answer", caller.heard.as_bytes());
    // While it runs, for the write-ahead log, and after it ended.
    found.extend(search_folder(&plants, folder.path()));
    if let Some(url) = database {
        found.extend(search_postgres(&plants, url).await);
    }
    let command = fs::read(format!("/proc/{}/cmdline", hub.process.id())).unwrap();
    found.extend(plants.found_in("the command line", &command));
    let (ended, log) = hub.process.terminate().await;
    assert!(ended.success(), "{ended}:\n{log}");
    assert!(log.contains("TRACE"), "the log is not as talkative as it has to be");
    found.extend(plants.found_in("the log", log.as_bytes()));
    found.extend(search_folder(&plants, folder.path()));
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Reads everything that can be requested.
async fn read_everything(caller: &mut Caller, bot: &str, metrics: &str) {
    let bearer = format!("Bearer {metrics}");
    let cookie = caller.cookie.take();
    let headers = [("authorization", bearer.as_str())];
    let (status, ..) = caller.call(Method::GET, "/metrics", &headers, None, false).await;
    assert_eq!(status, 200, "the metrics can be read");
    caller.cookie = cookie;
    for path in [
        "/",
        "/openapi.json",
        "/docs",
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/auth/me",
        "/api/auth/sessions",
        "/api/auth/passkey/list",
        "/api/auth/oauth/providers",
        "/api/user/api-keys",
        "/api/user/activity?limit=200",
        "/api/user/oauth-accounts",
        "/login",
        "/login/reset",
        "/api/bots",
    ] {
        caller.call(Method::GET, path, &[], None, false).await;
    }
    for part in ["", "/status", "/contacts", "/messages?limit=200", "/channels"] {
        caller.done(Method::GET, &format!("/api/bots/{bot}{part}"), None).await;
    }
    let listed = caller.done(Method::GET, &format!("/api/bots/{bot}/traces?limit=200"), None).await;
    let traces = listed["items"].as_array().unwrap().clone();
    assert!(traces.len() >= 8);
    for trace in traces {
        let id = trace["trace_id"].as_str().unwrap();
        caller.done(Method::GET, &format!("/api/bots/{bot}/traces/{id}"), None).await;
    }
    caller.done(Method::POST, "/api/auth/logout", None).await;
    caller.refused(Method::GET, "/api/bots", &[], None).await;
}
