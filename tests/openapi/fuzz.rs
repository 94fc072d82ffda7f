//! Schemathesis sends what the document allows and what it forbids, as a stranger, as a user and as an administrator.
//!
//! All of its checks and phases are on, no operation is left out, and the seed is fixed. Each caller has a server of
//! their own, so that nothing that one breaks is missing for the next. Rate limits are out of the way.
//! `HUB_FUZZ_EXAMPLES` is the number of generated cases per operation and phase for a long run, and
//! `HUB_FUZZ_REPORT` a folder for the reports.

use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    clients::installed,
    support::{
        http::Caller,
        hub_process::{HubProcess, NetworkProcess},
    },
};

/// Password that is in no example of the document, so that no generated request signs in as the caller.
const PASSWORD: &str = "fuzzed with a phrase of its own";

/// Generated cases per operation, next to those that the bounds of the document give.
const EXAMPLES: &str = "4";

/// Phases of a run, in this order.
const PHASES: [&str; 4] = ["examples", "coverage", "fuzzing", "stateful"];

/// Settings of every run.
///
/// 400 is an expected response to valid input: a schema cannot express that a script has to be a plugin, that one of
/// two fields excludes the other, or that a code has to be one that the hub issued. The response names the field and
/// the rule, which `bad_bodies_are_refused_with_the_field_that_is_wrong` tests.
const SETTINGS: &str = r#"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 409, 413, 414, 429, 502, 503]

[checks.negative_data_rejection]
# Too large and too long are refusals, too.
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 414, 415, 422, 428, 429, "5xx"]

[[operations]]
include-operation-id = "pollChannelMessages"
parameters = { "query.timeout" = 0 }

[[operations]]
include-operation-id = "streamEvents"
parameters = { "query.timeout" = 0 }
# The schema is that of the `data` of an event, not of the event with its fields.
checks.response_schema_conformance.enabled = false
"#;

const LIMITS: [&str; 6] = [
    "HUB_RATE_DEFAULT",
    "HUB_RATE_SENDS",
    "HUB_RATE_AUTH_PER_IP",
    "HUB_RATE_AUTH_PER_ACCOUNT",
    "HUB_RATE_DEBUG",
    "HUB_RATE_BAD_CREDENTIALS",
];

/// Caller of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    Stranger,
    User,
    Admin,
}

/// The user's key, and the credential of the identity for each scheme of the document: that key, one of a channel and
/// those of an app. Channel and app are another user's, so that nothing the user does ends their credentials.
async fn credentials(hub: &HubProcess, network: &NetworkProcess, identity: Identity) -> (String, String) {
    let person = async |name: &str| {
        let mut caller = Caller::stranger(&hub.url);
        caller.sign_in("/api/auth/register", json!({ "username": name, "password": PASSWORD })).await;
        let (bot, _) = network.bind(&caller).await;
        (caller, bot)
    };
    let (mut caller, _) = person("ada").await;
    let (owner, bot) = person("bob").await;
    if identity == Identity::User {
        (caller, _) = person("carol").await;
    }
    let text = |value: &Value, name: &str| value[name].as_str().unwrap().to_owned();
    let key = text(&caller.post("/api/user/api-keys", json!({ "name": "fuzz" })).await, "key");
    let channel = owner.post(&format!("/api/bots/{bot}/channels"), json!({ "name": "fuzz" })).await;
    let scopes = ["message:read", "message:write", "contact:read", "bot:read", "tools:write", "config:read"];
    let app = owner.post("/api/apps", json!({ "name": "Fuzz", "scopes": scopes })).await;
    let install = format!("/api/bots/{bot}/apps/install");
    let installed = owner.post(&install, json!({ "app_id": app["id"] })).await;
    let keys = [
        ("userKey", key.clone()),
        ("channelKeyBearer", text(&channel, "api_key")),
        ("appToken", text(&installed, "app_token")),
        ("appSecret", text(&app, "webhook_secret")),
    ];
    let mut settings = String::new();
    for (scheme, key) in keys {
        let _ = writeln!(settings, "[auth.openapi.{scheme}]\nbearer = \"{key}\"");
    }
    (key, settings)
}

async fn fuzz(identity: Identity) {
    let Some(command) = installed::environment("schemathesis-4.32.0", "schemathesis") else { return };
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let many = LIMITS.map(|name| (name, "4000000000"));
    let hub = HubProcess::start(&folder.path().join("hub"), &network, &many).await;
    let mut settings = SETTINGS.to_owned();
    let mut key = None;
    if identity != Identity::Stranger {
        let (own, schemes) = credentials(&hub, &network, identity).await;
        settings.insert_str(0, &schemes);
        key = Some(own);
    }
    let file = folder.path().join("schemathesis.toml");
    std::fs::write(&file, settings).unwrap();
    let report = run(command, &file, &hub.url, folder.path(), identity).await;
    hold(identity, &report);
    if let Some(key) = key {
        // The caller still exists and is unchanged.
        let me = Caller::stranger(&hub.url).with_bearer(&key).get("/api/auth/me").await;
        let role = if identity == Identity::Admin { "admin" } else { "member" };
        assert_eq!((&me["role"], &me["status"]), (&json!(role), &json!("active")), "{me}");
    }
}

/// Checks that a run tested every operation in every phase, and prints the accepted cases of each.
fn hold(identity: Identity, report: &Value) {
    let operations = &report["operations"];
    assert_eq!(operations["tested"], operations["total"], "{operations}");
    for phase in PHASES {
        assert_eq!(report["phases"][phase]["status"], "success", "{phase}: {}", report["phases"]);
    }
    let count = |rates: &Value, names: &[&str]| -> u64 {
        let phases = rates.as_object().unwrap().values();
        phases.flat_map(|rate| names.iter().filter_map(|name| rate[name].as_u64())).sum()
    };
    let (mut told, mut refused, mut least) = (String::new(), Vec::new(), u64::MAX);
    for (operation, rates) in report["valid_rates"].as_object().unwrap() {
        let accepted = count(rates, &["accepted"]);
        let cases = count(rates, &["accepted", "unreachable", "conflicts", "rejected"]);
        least = least.min(cases);
        if accepted == 0 {
            refused.push(operation.as_str());
        }
        let _ = writeln!(told, "  {operation}: {accepted} of {cases} accepted");
    }
    let cases = report["test_cases"]["generated"].as_u64().unwrap();
    let total = operations["total"].as_u64().unwrap();
    let _ = writeln!(
        std::io::stderr(),
        "{identity:?}: {cases} cases on {total} operations, valid ones:\n{told}  at least {least}; only ever refused: {refused:?}"
    );
    assert!(cases > 10 * total, "{cases} cases on {total} operations");
}

async fn run(
    command: std::process::Command,
    settings: &Path,
    url: &str,
    folder: &Path,
    identity: Identity,
) -> Value {
    let mut command = tokio::process::Command::from(command);
    let examples = std::env::var("HUB_FUZZ_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    let reports = std::env::var_os("HUB_FUZZ_REPORT").map_or_else(|| folder.to_owned(), PathBuf::from);
    let report = reports.join(format!("{identity:?}.json"));
    command.arg("--config-file").arg(settings).arg("run").arg(format!("{url}/openapi.json"));
    // All checks are on by default; named here, they would also be on where the settings turn one off.
    command.args(["--seed", "42", "--generation-database", "none", "--no-color"]);
    command.args(["--phases", &PHASES.join(","), "--max-examples", &examples, "--workers", "1"]);
    // A step of a bind waits for up to 30 seconds.
    command.args(["--max-response-time", "32"]);
    command.args(["--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"]);
    command.args(["--report", "json", "--report-json-path"]).arg(&report);
    // The server is on this machine: no proxy that the environment may name.
    command.current_dir(folder).env("NO_PROXY", "localhost,127.0.0.1").kill_on_drop(true);
    let output = command.output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}");
    serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap()
}

#[tokio::test]
async fn a_stranger_finds_no_fault() {
    fuzz(Identity::Stranger).await;
}

#[tokio::test]
async fn a_user_finds_no_fault() {
    fuzz(Identity::User).await;
}

#[tokio::test]
async fn an_administrator_finds_no_fault() {
    fuzz(Identity::Admin).await;
}
