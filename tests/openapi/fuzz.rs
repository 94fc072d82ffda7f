//! Schemathesis sends what the document allows and what it forbids, as a stranger, as a user and as an administrator.
//!
//! Each of them has a server of its own, so that nothing that one breaks is missing for the next. Rate limits are
//! out of the way. The seed is fixed; `HUB_FUZZ_EXAMPLES` is the number of generated cases per operation and phase
//! for a long run.

use std::{fmt::Write as _, io::Write as _, path::Path};

use serde_json::{Value, json};

use crate::{
    clients::installed,
    support::{
        http::Caller,
        hub_process::{HubProcess, NetworkProcess},
    },
};

/// Generated cases per operation, beside those that the bounds of the document give.
const EXAMPLES: &str = "4";

/// What every run has in common.
///
/// 400 counts as an answer to what the document allows: a schema cannot say that a script has to be a plugin, that
/// one of two fields excludes the other, or that a code has to be one that was handed out. Which fields broke which
/// rule is in the answer, and `bad_bodies_are_refused_with_the_field_that_is_wrong` holds the hub to it.
const SETTINGS: &str = r#"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 409, 413, 414, 429, 502, 503]

[checks.negative_data_rejection]
# Too large and too long are refusals, too.
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 414, 415, 422, 428, 429, "5xx"]

[[operations]]
include-operation-id = "pollChannelMessages"
parameters = { "query.timeout" = 0 }
"#;

const LIMITS: [&str; 6] = [
    "HUB_RATE_DEFAULT",
    "HUB_RATE_SENDS",
    "HUB_RATE_AUTH_PER_IP",
    "HUB_RATE_AUTH_PER_ACCOUNT",
    "HUB_RATE_DEBUG",
    "HUB_RATE_BAD_CREDENTIALS",
];

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    Stranger,
    User,
    Admin,
}

/// The credential of the identity for each scheme of the document: a key of the user, of a channel, of an app.
async fn credentials(hub: &HubProcess, network: &NetworkProcess, identity: Identity) -> String {
    let mut caller = Caller::stranger(&hub.url);
    let named = |name: &str| json!({ "username": name, "password": "correct horse battery" });
    caller.sign_in("/api/auth/register", named("ada")).await;
    if identity == Identity::User {
        caller = Caller::stranger(&hub.url);
        caller.sign_in("/api/auth/register", named("bob")).await;
    }
    let (bot, _) = network.bind(&caller).await;
    let text = |value: &Value, name: &str| value[name].as_str().unwrap().to_owned();
    let key = text(&caller.post("/api/user/api-keys", json!({ "name": "fuzz" })).await, "key");
    let channel = caller.post(&format!("/api/bots/{bot}/channels"), json!({ "name": "fuzz" })).await;
    let scopes = ["message:read", "message:write", "contact:read", "bot:read", "tools:write"];
    let app = caller.post("/api/apps", json!({ "name": "Fuzz", "scopes": scopes })).await;
    let install = format!("/api/bots/{bot}/apps/install");
    let installed = caller.post(&install, json!({ "app_id": app["id"] })).await;
    let keys = [
        ("userKey", key),
        ("channelKeyBearer", text(&channel, "api_key")),
        ("appToken", text(&installed, "app_token")),
    ];
    let mut settings = String::new();
    for (scheme, key) in keys {
        let _ = writeln!(settings, "[auth.openapi.{scheme}]\nbearer = \"{key}\"");
    }
    settings
}

async fn fuzz(identity: Identity) {
    let Some(command) = installed::environment("schemathesis-4.32.0", "schemathesis") else { return };
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let many = LIMITS.map(|name| (name, "4000000000"));
    let hub = HubProcess::start(&folder.path().join("hub"), &network, &many).await;
    let mut settings = SETTINGS.to_owned();
    if identity != Identity::Stranger {
        settings.insert_str(0, &credentials(&hub, &network, identity).await);
    }
    let file = folder.path().join("schemathesis.toml");
    std::fs::write(&file, settings).unwrap();
    let told = run(command, &file, &hub.url, folder.path()).await;
    let operations = number(&told, "Selected: ", "/");
    assert_eq!(number(&told, &format!("Selected: {operations}/"), "\n"), operations, "{told}");
    assert!(told.contains(&format!("Tested: {operations}")), "{told}");
    let cases = number(&told, "Test cases:\n  ", " generated");
    assert!(cases > 10 * operations, "{told}");
    let mean = cases / operations;
    let _ = writeln!(
        std::io::stderr(),
        "{identity:?}: {cases} cases on {operations} operations, {mean} on each in the mean"
    );
}

/// The number between two texts of the report.
#[track_caller]
fn number(told: &str, before: &str, after: &str) -> u64 {
    let found = told.split_once(before).and_then(|(_, rest)| rest.split_once(after));
    found.and_then(|(number, _)| number.trim().parse().ok()).unwrap_or_else(|| panic!("{before}: {told}"))
}

async fn run(command: std::process::Command, settings: &Path, url: &str, folder: &Path) -> String {
    let mut command = tokio::process::Command::from(command);
    let examples = std::env::var("HUB_FUZZ_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    command.arg("--config-file").arg(settings).arg("run").arg(format!("{url}/openapi.json"));
    command.args(["--checks", "all", "--seed", "42", "--generation-database", "none", "--no-color"]);
    command.args(["--phases", "examples,coverage,fuzzing", "--max-examples", &examples, "--workers", "1"]);
    command.args(["--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"]);
    // The server is on this machine: no proxy that the environment may name.
    command.current_dir(folder).env("NO_PROXY", "localhost,127.0.0.1").kill_on_drop(true);
    let output = command.output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}");
    told
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
