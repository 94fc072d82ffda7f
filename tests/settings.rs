//! The settings: `config check` accepts what the start of the server accepts, and nothing else; a new server is clean.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use hub_server::config::SETTINGS;
use serde_json::{Value, json};

use crate::support::{
    binaries,
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
    process::Process,
};

/// Values that are accepted one by one and are wrong together, or wrong for a reason that is not their form.
const WRONG: [&[(&str, &str)]; 10] = [
    &[("HUB_LOG", "hub=verbose")],
    &[("HUB_ADMIN_USERNAME", "ada"), ("HUB_ADMIN_PASSWORD", "admin")],
    &[("HUB_ADMIN_USERNAME", "ada"), ("HUB_ADMIN_PASSWORD", "password1")],
    &[("HUB_ADMIN_USERNAME", "a da"), ("HUB_ADMIN_PASSWORD", "correct horse battery")],
    &[("HUB_ADMIN_USERNAME", "ada")],
    &[("HUB_PUBLIC_URL", "https://hub.example/hub?x=1")],
    &[("HUB_PUBLIC_URL", "https://ada@hub.example")],
    &[("HUB_MEDIA_URL", "s3://bucket/prefix")],
    &[("HUB_GITHUB_CLIENT_ID", "x")],
    &[("HUB_BACKUP_TO", "/nights"), ("HUB_DATABASE_URL", "postgres://localhost/hub")],
];

/// Settings of every start: free ports, and no demo.
const FREE: [(&str, &str); 3] =
    [("HUB_LISTEN", "127.0.0.1:0"), ("HUB_SIM_LISTEN", "127.0.0.1:0"), ("HUB_DEMO", "false")];

fn check(program: &str, folder: &Path, settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(binaries::program(program));
    command.env_clear().envs(settings.iter().copied()).current_dir(folder).stdin(Stdio::null());
    command.args(["config", "check"]).output().unwrap()
}

/// Lines with what is wrong.
fn errors(output: &str) -> Vec<&str> {
    output.lines().filter(|line| line.starts_with("error: ")).collect()
}

/// Starts a server: nothing when it runs, else what it refuses.
async fn start(settings: &[(&str, &str)]) -> Option<Vec<String>> {
    let mut process = Process::start(&binaries::program("hub-server"), &[], settings);
    let runs = until("the server runs or has ended", async || {
        let runs = process.log().contains("\"message\":\"hub-server started\"");
        (runs || process.has_ended()).then_some(runs)
    })
    .await;
    if runs {
        process.kill().await;
        return None;
    }
    let (status, log) = process.wait().await;
    assert_eq!(status.code(), Some(2), "{settings:?}: {log}");
    Some(errors(&log).into_iter().map(str::to_owned).collect())
}

/// The start and both checks agree; whether the hub starts.
async fn agree(changed: &[(&str, &str)]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let mut settings = vec![("HUB_DATA_DIR", data.as_str())];
    settings.extend(FREE);
    settings.retain(|(name, _)| changed.iter().all(|(other, _)| name != other));
    settings.extend(changed);
    let refused = start(&settings).await;
    for program in ["hub-server", "hub-cli"] {
        let output = check(program, folder.path(), &settings);
        let text = String::from_utf8(output.stdout).unwrap();
        let expected = refused.as_deref().unwrap_or_default();
        assert_eq!(errors(&text), expected, "{program}, {changed:?}: {text}");
        assert_eq!(output.status.code(), Some(if refused.is_some() { 9 } else { 0 }), "{changed:?}: {text}");
        let verdict = text.lines().last().unwrap();
        assert_eq!(verdict.starts_with("ok, "), refused.is_none(), "{changed:?}: {text}");
        assert!(refused.is_none() || !expected.is_empty(), "{changed:?} is refused without a reason");
    }
    refused.is_none()
}

#[tokio::test]
async fn config_check_refuses_what_the_start_refuses() {
    let mut refused = 0;
    for setting in SETTINGS {
        let variable = setting.variable();
        // Settings of text take it; all others have a form that it does not have.
        let changed = [(variable.as_str(), "-nonsense-")];
        // A relative folder would be made where the tests run.
        if !["data_dir", "backup_to"].contains(&setting.name) && !agree(&changed).await {
            refused += 1;
        }
    }
    assert!(refused > 40, "only {refused} settings have a form");
    for settings in WRONG {
        assert!(!agree(settings).await, "the start accepts {settings:?}");
    }
}

/// The limits of the domain, each with a value that is not its default.
const LIMITS: [(&str, &str); 14] = [
    ("HUB_MESSAGE_RETENTION", "3d"),
    ("HUB_TRACE_RETENTION", "1d"),
    ("HUB_AUDIT_RETENTION", "30d"),
    ("HUB_IDEMPOTENCY_LIFETIME", "2h"),
    ("HUB_OUTBOX_LIFETIME", "2h"),
    ("HUB_DISABLE_FAILING_AFTER", "1d"),
    ("HUB_WEBHOOK_WAIT", "1s"),
    ("HUB_POLL_GRACE", "1s"),
    ("HUB_DRAIN", "5s"),
    ("HUB_MAX_TEXT", "1000"),
    ("HUB_MAX_OUTBOX_PER_PEER", "10"),
    ("HUB_MAX_JOBS", "1000"),
    ("HUB_MAX_IN_FLIGHT", "64"),
    ("HUB_MAX_AI_IN_FLIGHT", "8"),
];

#[tokio::test]
async fn a_server_starts_with_its_limits_set_and_keeps_them() {
    assert!(agree(&LIMITS).await);
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let hub = HubProcess::start(folder.path(), &network, &LIMITS).await;
    let mut ada = Caller::stranger(&hub.url);
    ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
    let (bot, account) = network.bind(&ada).await;
    network.say(&account, "hello").await;
    let path = format!("/api/bots/{bot}/send");
    until("a message of the person", async || {
        let messages = ada.get(&format!("/api/bots/{bot}/messages")).await;
        (messages["items"].as_array()?.len() == 1).then_some(())
    })
    .await;
    ada.post(&path, json!({ "content": "x".repeat(1000) })).await;
    ada.refused(&path, json!({ "content": "x".repeat(1001) }), 400, "INVALID_PARAMS").await;
    hub.process.terminate().await;
}

#[tokio::test]
async fn a_new_server_with_its_demo_has_nothing_to_warn_of() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    // The doctor asks the server where the settings say it is: a port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let settings =
        [("HUB_DATA_DIR", data.as_str()), ("HUB_LISTEN", &port), ("HUB_SIM_LISTEN", "127.0.0.1:0")];
    let mut server = Process::start(&binaries::program("hub-server"), &[], &settings);
    server.wait_url().await;
    let report = || {
        let mut doctor = Command::new(binaries::program("hub-cli"));
        doctor.env_clear().envs(settings).current_dir(folder.path()).stdin(Stdio::null());
        let output = doctor.args(["doctor", "--json"]).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document["items"].as_array().unwrap().clone())
    };
    // The demo's bot is online a moment after the start.
    let (exit, items) = until("the bot is online", async || {
        let (exit, items) = report();
        let online = items.iter().any(|item| item["id"] == "network.demo" && item["status"] == "ok");
        online.then_some((exit, items))
    })
    .await;
    // How full the disk is, and whether this is a container, is not the hub's doing.
    let of_machine = ["store.disk-space", "data-dir.is-mount"];
    let bad: Vec<_> = items
        .iter()
        .filter(|item| !of_machine.iter().any(|id| item["id"] == *id))
        .filter(|item| !["ok", "skipped"].iter().any(|status| item["status"] == *status))
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert_eq!(exit, Some(0));
    assert!(items.iter().any(|item| item["id"] == "sinks.reachable" && item["status"] == "ok"), "{items:#?}");
    server.terminate().await;
}

#[tokio::test]
async fn every_line_of_a_json_log_is_json_and_bots_come_after_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let settings = [
        ("HUB_DATA_DIR", data.as_str()),
        ("HUB_LISTEN", "127.0.0.1:0"),
        ("HUB_SIM_LISTEN", "127.0.0.1:0"),
        ("HUB_METRICS_TOKEN", "0123456789abcdef"),
        ("HUB_TRUSTED_PROXIES", "0.0.0.0/0"),
    ];
    let mut server = Process::start(&binaries::program("hub-server"), &[], &settings);
    let stranger = Caller::stranger(&server.wait_url().await);
    server.wait_line("\"status\":\"online\"").await;
    // The last of them fails for want of the token, which is worth a line.
    for path in ["/healthz", "/readyz", "/login", "/metrics"] {
        stranger.call(reqwest::Method::GET, path, None).await;
    }
    let (_, log) = server.terminate().await;
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let index =
        |what: &dyn Fn(&Value) -> bool| lines.iter().position(what).unwrap_or_else(|| panic!("{log}"));
    let started = index(&|line| line["message"] == "hub-server started");
    assert!(started < index(&|line| line["message"] == "bot status"), "{log}");
    assert!(
        index(&|line| line["level"] == "WARN" && line["check"] == "proxy.forwarded-headers") < started,
        "{log}"
    );
    let requests: Vec<(&Value, &Value)> = lines
        .iter()
        .filter(|line| line["message"] == "request")
        .map(|line| (&line["route"], &line["status"]))
        .collect();
    assert_eq!(requests, [(&"/login".into(), &200.into()), (&"/metrics".into(), &401.into())], "{log}");
}
