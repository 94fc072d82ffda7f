//! Apps at the command line, on the files of a hub: made, put onto a bot, watched, taken away, and every refusal.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use bytes::Bytes;
use hub_core::{
    Hub,
    access::Actor,
    data_dir,
    demo::{ADA, connector, renew_logins},
    egress::EgressConfig,
    local_http::{Cut, LocalService},
    network::sim::{SimConfig, Simulator},
    random::Random,
    store::StoreConfig,
    time::Clock,
};
use serde_json::{Value, json};

use crate::{
    hubs::hub_at_a_fixed_time,
    program::{command, document, refuses, told},
};

const CREATE_WEATHER: [&str; 14] = [
    "apps",
    "create",
    "Weather",
    "--owner",
    "ada",
    "--event",
    "app.installed",
    "--scope",
    "bot:read",
    "--scope",
    "message:read",
    "--command",
    "/weather",
    "--local",
];

#[test]
fn an_app_is_created_installed_uninstalled_and_deleted() {
    let folder = hub_at_a_fixed_time();
    let path = folder.path();
    let (none, empty) = told(path, &["apps", "list"]);
    assert_eq!((none.as_str(), empty.trim()), ("", "there are no apps yet"));
    let made = document(path, &CREATE_WEATHER);
    assert_eq!((&made["slug"], &made["owner_name"]), (&json!("weather"), &json!("ada")));
    assert_eq!(made["tools"], json!([{ "name": "weather", "description": "", "command": "weather" }]));
    let secrets = ["client_secret", "webhook_secret"].map(|name| made[name].as_str().unwrap().to_owned());
    assert!(secrets.iter().all(|secret| secret.len() > 20));
    let id = made["id"].as_str().unwrap();
    for name in ["weather", "Weather", id] {
        let shown = document(path, &["apps", "show", name]);
        assert_eq!(shown["id"], made["id"]);
        assert!(secrets.iter().all(|secret| !shown.to_string().contains(secret)), "shown once");
    }
    assert!(told(path, &["apps", "show", "weather"]).0.contains("scopes            message:read,bot:read\n"));
    let edit =
        ["apps", "edit", "weather", "--name", "Sky", "--redirect-uri", "http://127.0.0.1:8976/callback"];
    let changed = document(path, &edit);
    assert_eq!((&changed["name"], &changed["scopes"]), (&json!("Sky"), &json!(["message:read", "bot:read"])));
    let listed = document(path, &["apps", "ls", "--view", "own"]);
    assert_eq!(listed["items"][0]["redirect_uris"], json!(["http://127.0.0.1:8976/callback"]), "{listed}");

    let none = told(path, &["apps", "list", "--bot", "demo"]);
    assert_eq!((none.0.as_str(), none.1.trim()), ("", "this bot has no apps"));
    let (token, note) = told(path, &["apps", "install", "weather", "--bot", "demo", "--handle", "sky"]);
    assert!(token.trim().starts_with("huba_") && note.contains("@sky"), "{token} {note}");
    let on_bot = document(path, &["apps", "list", "--bot", "demo"]);
    assert_eq!(
        (&on_bot["items"][0]["handle"], &on_bot["items"][0]["enabled"]),
        (&json!("sky"), &json!(true))
    );
    assert!(!on_bot.to_string().contains(token.trim()));
    let rotated = document(path, &["apps", "rotate-token", "weather", "--bot", "demo", "--grace", "24"]);
    assert_ne!(rotated["app_token"], token.trim());
    assert!(rotated["old_token_expires_at"].is_string());

    let events = document(path, &["apps", "events", "weather", "--bot", "demo"]);
    let event = &events["items"][0];
    assert_eq!((&event["event_type"], &event["status"]), (&json!("app.installed"), &json!("pending")));
    assert_eq!(event["event"]["data"]["handle"], "sky", "{events}");
    let (row, _) = told(path, &["apps", "events", "weather", "--bot", "demo", "--limit", "1"]);
    assert!(row.contains("\tapp.installed\tpending\t0"), "{row}");
    let (calls, none) = told(path, &["apps", "api-logs", "weather", "--bot", "demo"]);
    assert_eq!((calls.as_str(), none.trim()), ("", "no calls yet"));

    refuses(path, &["apps", "uninstall", "weather", "--bot", "demo"], 2, "INVALID_PARAMS");
    let gone = document(path, &["apps", "uninstall", "weather", "--bot", "demo", "--yes"]);
    assert_eq!(gone["uninstalled"], true);
    refuses(path, &["apps", "events", "weather", "--bot", "demo"], 5, "NOT_FOUND");
    refuses(path, &["apps", "delete", "weather"], 2, "INVALID_PARAMS");
    let kept = document(path, &["apps", "delete", "weather", "--dry-run"]);
    assert_eq!((&kept["name"], &kept["deleted"]), (&json!("Sky"), &json!(false)));
    assert_eq!(document(path, &["apps", "delete", id, "--yes"])["deleted"], true);
    refuses(path, &["apps", "show", "weather"], 5, "NOT_FOUND");
    refuses(path, &["apps", "show", id], 5, "NOT_FOUND");
}

#[test]
fn app_errors_have_their_exit_codes() {
    let folder = hub_at_a_fixed_time();
    let path = folder.path();
    refuses(path, &["apps", "create", "Weather"], 2, "INVALID_PARAMS");
    refuses(path, &["apps", "create", "Weather", "--owner", "nobody"], 5, "NOT_FOUND");
    let owned = ["apps", "create", "Weather", "--owner", "ada"];
    for bad in
        [["--scope", "everything"], ["--event", "message.sticker"], ["--slug", "A b"], ["--webhook-url", "x"]]
    {
        refuses(path, &[&owned[..], &bad].concat(), 2, "INVALID_PARAMS");
    }
    let tools = path.join("tools.json");
    refuses(path, &[&owned[..], &["--tools", tools.to_str().unwrap()]].concat(), 6, "INVALID_PARAMS");
    std::fs::write(&tools, "{}").unwrap();
    refuses(path, &[&owned[..], &["--tools", tools.to_str().unwrap()]].concat(), 6, "INVALID_PARAMS");
    std::fs::write(&tools, r#"[{"name":"t","command":"/t","parameters":{"type":"object"}}]"#).unwrap();
    let made = document(path, &[&owned[..], &["--tools", tools.to_str().unwrap()]].concat());
    assert_eq!(made["tools"][0]["parameters"], json!({ "type": "object" }));
    refuses(path, &[&owned[..], &["--slug", "weather"]].concat(), 6, "CONFLICT");
    document(path, &owned);
    refuses(path, &["apps", "show", "Weather"], 2, "INVALID_PARAMS");
    refuses(path, &["apps", "edit", "weather"], 2, "INVALID_PARAMS");
    refuses(path, &["apps", "verify", "weather"], 6, "CONFLICT");
    refuses(path, &["apps", "install", "weather", "--bot", "nobody"], 5, "NOT_FOUND");
    refuses(
        path,
        &["apps", "install", "weather", "--bot", "demo", "--scope", "bot:read"],
        2,
        "INVALID_PARAMS",
    );
    document(path, &["apps", "install", "weather", "--bot", "demo"]);
    refuses(path, &["apps", "install", "weather", "--bot", "demo"], 6, "CONFLICT");
    refuses(
        path,
        &["apps", "rotate-token", "weather", "--bot", "demo", "--grace", "73"],
        2,
        "INVALID_PARAMS",
    );
    refuses(path, &["apps", "events", "weather", "--bot", "demo", "--cursor", "x"], 2, "INVALID_PARAMS");
    // The dance of OAuth is a server's.
    refuses(path, &["apps", "authorize", "weather"], 2, "INVALID_PARAMS");
    // One that begins its installation itself says where.
    document(path, &["apps", "edit", "weather", "--setup-url", "http://127.0.0.1:3000/setup"]);
    let id = made["id"].as_str().unwrap();
    document(path, &["apps", "uninstall", id, "--bot", "demo", "--yes"]);
    let (place, note) = told(path, &["apps", "install", id, "--bot", "demo"]);
    assert!(
        place.starts_with("http://localhost:9800/api/apps/") && note.contains("browser"),
        "{place} {note}"
    );
}

/// An app's URL that echoes challenges, and has nothing to say.
struct Url;

#[async_trait::async_trait]
impl LocalService for Url {
    async fn call(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, Cut> {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        Ok(http::Response::new(json!({ "challenge": body["challenge"] }).to_string().into()))
    }
}

#[test]
fn apps_events_follow_shows_new_events() {
    let folder = hub_at_a_fixed_time();
    let path = folder.path();
    // No one answers there yet: the app is not told of messages.
    let made = document(path, &[&CREATE_WEATHER[..], &["--webhook-url", "http://app.example/hook"]].concat());
    assert_eq!(made["webhook_verified"], false);
    document(path, &["apps", "install", "weather", "--bot", "demo"]);
    let mut command = command(path);
    command.args(["apps", "events", "weather", "--bot", "demo", "--follow", "--json=event_type,status"]);
    let mut follower = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(follower.stderr.take().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    // What was there is not shown; what comes is.
    let out = follower.stdout.take().unwrap();
    let shown = std::thread::spawn(move || {
        let lines =
            BufReader::new(out).lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        lines.take_while(|line| line["event_type"] != "command").count()
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (clock, random) = (Clock::system(), Random::system());
        let simulator = Simulator::new(SimConfig::quick(), clock.clone(), random.clone());
        let mut egress = EgressConfig::default();
        egress.in_process.insert("app.example".to_owned(), std::sync::Arc::new(Url));
        let hub = Hub::builder()
            .store(StoreConfig::Sqlite(data_dir::database(path)))
            .secret_key(data_dir::load_key(path, &random).unwrap())
            .network(connector(&simulator, clock.clone(), random).unwrap())
            .egress(egress);
        let hub = hub.open().await.unwrap();
        let app = made["id"].as_str().unwrap().parse().unwrap();
        assert!(hub.apps().verify_url(&Actor::Operator, app).await.unwrap().webhook_verified);
        renew_logins(&hub, &simulator).await.unwrap();
        hub.start().await.unwrap();
        simulator.say(&simulator.accounts()[0].account.wx_id, Some(ADA), "/weather").unwrap();
        for _ in 0..600 {
            if shown.is_finished() {
                break;
            }
            clock.sleep(std::time::Duration::from_millis(50)).await;
        }
        assert!(shown.is_finished(), "the command is not shown");
        hub.shutdown().await;
    });
    Command::new("kill").args(["-INT", &follower.id().to_string()]).status().unwrap();
    assert_eq!(follower.wait().unwrap().code(), Some(130));
}
