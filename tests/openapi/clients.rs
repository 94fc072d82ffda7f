//! Clients that generators of other authors make of the document: all compile, and one in each language tells the same
//! story to a live server. The story is in `STORY`, once; a client prints each step when it has passed it, and the
//! codes of refusals as it provokes them. `openapi/README.md` names the generators and their commands.

use std::{path::Path, process::Command};

use crate::{
    clients::installed,
    support::hub_process::{HubProcess, NetworkProcess},
};

/// Register and log in, make a key and ask who it is of; bind an account and make a channel on it; send before anyone
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

/// Options of the TypeScript compiler.
const STRICT: [&str; 7] =
    ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable"];

fn here(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/clients").join(name)
}

/// Makes a client in a folder by the command that the guide names.
#[track_caller]
fn generate(mut generator: Command, folder: &Path) {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi");
    let guide = std::fs::read_to_string(documents.join("README.md")).unwrap();
    let program = Path::new(generator.get_program()).file_name().unwrap().to_str().unwrap();
    let (_, arguments) = guide.split_once(&format!("| `{program} ")).expect("the guide names the command");
    let (arguments, _) = arguments.split_once('`').unwrap();
    std::os::unix::fs::symlink(documents, folder.join("openapi")).unwrap();
    make(generator.args(arguments.split(' ')).current_dir(folder));
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
async fn the_typescript_client_is_strict_and_runs_the_story() {
    let package = "openapi-typescript@7.13.0";
    let Some(generator) = installed::npm_of("openapi-typescript-7.13.0", package, "openapi-typescript")
    else {
        return;
    };
    let Some(mut compiler) = installed::npm_of("openapi-typescript-7.13.0", "typescript", "tsc") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    generate(generator, folder.path());
    std::fs::copy(here("story.ts"), folder.path().join("story.ts")).unwrap();
    std::fs::write(folder.path().join("package.json"), r#"{ "type": "module" }"#).unwrap();
    let modules = installed::modules("openapi-typescript-7.13.0");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    make(compiler.args(STRICT).arg("story.ts").current_dir(folder.path()));
    let mut story = Command::new("node");
    story.arg(folder.path().join("story.js"));
    tell(story, folder.path()).await;
}

#[tokio::test]
async fn the_python_client_runs_the_story() {
    let package = "openapi-python-client-0.29.0";
    let Some(generator) = installed::environment(package, "openapi-python-client") else { return };
    let Some(mut story) = installed::environment(package, "python") else { return };
    let folder = tempfile::tempdir().unwrap();
    generate(generator, folder.path());
    story.arg(here("story.py")).env("PYTHONPATH", folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    tell(story, folder.path()).await;
}

#[tokio::test]
async fn the_rust_client_runs_the_story() {
    let Some((mut build, story)) = installed::rust("openapi/clients/rust", "hub-client-story") else {
        return;
    };
    make(&mut build);
    tell(story, tempfile::tempdir().unwrap().path()).await;
}

#[test]
fn the_other_typescript_client_is_strict() {
    let package = "hey-api-openapi-ts-0.95.0";
    let Some(generator) = installed::npm_of(package, "@hey-api/openapi-ts@0.95.0", "openapi-ts") else {
        return;
    };
    let Some(mut compiler) = installed::npm_of(package, "typescript", "tsc") else { return };
    let folder = tempfile::tempdir().unwrap();
    generate(generator, folder.path());
    make(compiler.args(STRICT).args(["--noEmit", "hub/index.ts"]).current_dir(folder.path()));
}

#[test]
fn the_other_python_client_is_whole() {
    let package = "openapi-generator-cli-7.26.0";
    let Some(generator) = installed::environment(package, "openapi-generator-cli") else { return };
    let Some(mut python) = installed::environment(package, "python") else { return };
    let folder = tempfile::tempdir().unwrap();
    generate(generator, folder.path());
    make(python.arg(here("imports.py")).env("PYTHONPATH", folder.path().join("hub")));
}
