//! Validators and linters of other authors find nothing: no error, no warning, and there is no list of exceptions.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use hub_server::openapi::Rendering;
use tempfile::TempDir;

use crate::clients::installed;

/// Folder of the linters' rules.
fn rules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi")
}

/// The document in both versions, as files.
fn documents(folder: &TempDir) -> [PathBuf; 2] {
    [("hub.json", Rendering::Json), ("hub.v3_1.json", Rendering::JsonV3_1)].map(|(name, rendering)| {
        let path = folder.path().join(name);
        std::fs::write(&path, rendering.text()).unwrap();
        path
    })
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.current_dir(rules()).output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(output.status.success(), "{command:?}: {told}");
    told
}

#[test]
fn openapi_spec_validator_finds_nothing() {
    let Some(mut command) = installed::environment("openapi-spec-validator-0.9.0", "openapi-spec-validator")
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    run(command.args(documents(&folder)));
}

#[test]
fn redocly_finds_nothing() {
    let Some(mut command) = installed::npm("@redocly/cli@2.77.0", "redocly") else { return };
    command.args(["lint", "--config", "redocly.yaml", "--format", "json"]);
    command.env("CI", "true").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    let folder = tempfile::tempdir().unwrap();
    let told = run(command.args(documents(&folder)));
    for kind in ["errors", "warnings", "ignored"] {
        assert!(told.contains(&format!("\"{kind}\": 0")), "{told}");
    }
    assert!(!rules().join(".redocly.lint-ignore.yaml").exists(), "a list of exceptions");
}

#[test]
fn spectral_finds_nothing() {
    let Some(mut command) = installed::npm("@stoplight/spectral-cli@6.16.0", "spectral") else { return };
    command.args(["lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint"]);
    let folder = tempfile::tempdir().unwrap();
    run(command.args(documents(&folder)));
}

/// A rule that finds nothing here finds something where it is broken.
#[test]
fn our_own_rules_find_what_breaks_them() {
    let Some(mut command) = installed::npm("@stoplight/spectral-cli@6.16.0", "spectral") else { return };
    command.args(["lint", "--ruleset", "spectral.yaml", "broken.json"]).current_dir(rules());
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let own = std::fs::read_to_string(rules().join("spectral.yaml")).unwrap();
    let own = own.lines().filter_map(|line| line.strip_prefix("  hub-")?.strip_suffix(':'));
    let silent: Vec<_> = own.filter(|rule| !told.contains(&format!("hub-{rule} "))).collect();
    assert!(silent.is_empty(), "{silent:?} found nothing in broken.json: {told}");
}
