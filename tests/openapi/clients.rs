//! Clients that generators of other authors make of the document: they compile, and each tells the same story to a
//! live server. The story stands in `STORY`, once; a client prints each step when it has passed it, and the codes of
//! refusals as it provokes them.

use std::{path::Path, process::Command};

use crate::{
    clients::installed,
    support::hub_process::{HubProcess, NetworkProcess},
};

/// Register and log in, make a key and ask who it is of; bind an account and make a channel on it; send before anybody
/// wrote; get 250 messages and page through them, 100 at a time; send, read a trace; then be refused in every way that
/// a typed client can be.
const STORY: [&str; 20] = [
    "registered",
    "logged in",
    "key created",
    "me",
    "bind started",
    "bind confirmed",
    "channel created",
    "WINDOW_CLOSED",
    "messages received",
    "paged",
    "sent",
    "trace read",
    "INVALID_PARAMS",
    "UNAUTHORIZED",
    "INVALID_TOKEN",
    "FORBIDDEN",
    "NOT_FOUND",
    "CONFLICT",
    "PAYLOAD_TOO_LARGE",
    "RATE_LIMITED",
];

fn here(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/clients").join(name)
}

fn document() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi/hub.json")
}

/// Runs a step of making a client, which has to succeed.
#[track_caller]
fn make(command: &mut Command) {
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {told}");
    // The Python generator leaves out what it does not understand, and says so in a sentence.
    assert!(!told.contains("Unable to"), "{told}");
}

async fn tell(mut command: Command, folder: &Path) {
    let network = NetworkProcess::start().await;
    let hub = HubProcess::start(&folder.join("hub"), &network, &[]).await;
    command.arg(&hub.url).arg(&network.url).env("NO_PROXY", "localhost,127.0.0.1");
    let mut command = tokio::process::Command::from(command);
    let output = command.kill_on_drop(true).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let steps: Vec<&str> = told.lines().collect();
    assert_eq!(steps, STORY, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
}

#[tokio::test]
async fn the_typescript_client_is_strict_and_tells_the_story() {
    let package = "openapi-typescript@7.13.0";
    let Some(mut generator) = installed::npm_of("openapi-typescript-7.13.0", package, "openapi-typescript")
    else {
        return;
    };
    let Some(mut compiler) = installed::npm_of("openapi-typescript-7.13.0", "typescript", "tsc") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    make(generator.arg(document()).arg("--output").arg(folder.path().join("hub.d.ts")));
    std::fs::copy(here("story.ts"), folder.path().join("story.ts")).unwrap();
    std::fs::write(folder.path().join("package.json"), r#"{ "type": "module" }"#).unwrap();
    let modules = installed::modules("openapi-typescript-7.13.0");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    compiler.args([
        "--strict",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--lib",
        "es2022,dom",
        "story.ts",
    ]);
    make(compiler.current_dir(folder.path()));
    let mut story = Command::new("node");
    story.arg(folder.path().join("story.js"));
    tell(story, folder.path()).await;
}

#[tokio::test]
async fn the_python_client_tells_the_story() {
    let package = "openapi-python-client-0.29.0";
    let Some(mut generator) = installed::environment(package, "openapi-python-client") else { return };
    let Some(mut story) = installed::environment(package, "python") else { return };
    let folder = tempfile::tempdir().unwrap();
    generator.args(["generate", "--meta", "none", "--path"]).arg(document());
    make(generator.arg("--output-path").arg(folder.path().join("hub_client")).current_dir(folder.path()));
    story.arg(here("story.py")).env("PYTHONPATH", folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    tell(story, folder.path()).await;
}
