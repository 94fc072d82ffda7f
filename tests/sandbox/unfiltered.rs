//! Programs where the filter of system calls cannot be installed, as under a strict container profile.
#![cfg(target_os = "linux")]

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::support::{
    binaries,
    http::{Caller, until},
    process::Process,
};

/// Runs a program under a filter that denies the system call `seccomp`.
const DENIED: [&str; 2] = [env!("CARGO_BIN_EXE_sandbox-worker"), "without-filter"];

/// Ports that are free, and the simulated network.
const FREE: [(&str, &str); 3] =
    [("HUB_SIM_LISTEN", "127.0.0.1:0"), ("HUB_NETWORK", "sim"), ("HUB_LOG_FORMAT", "json")];

/// Reads what `/readyz` of a server reports about plugins, and its log.
async fn server(settings: &[(&str, &str)]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let settings = [&[("HUB_DATA_DIR", data.as_str())], &FREE[..], settings].concat();
    let program = binaries::program("hub-server").display().to_string();
    let mut server = Process::start(Path::new(DENIED[0]), &[DENIED[1], &program], &settings);
    let caller = Caller::stranger(&server.wait_url().await);
    let plugins = until("the detail of plugins", async || {
        let (status, body, _) = caller.call(reqwest::Method::GET, "/readyz", None).await;
        assert!(status.is_success() && body["data"]["status"] == "ok", "{body}");
        Some(body["data"]["plugins"].clone()).filter(|plugins| !plugins.is_null())
    })
    .await;
    let (_, log) = server.terminate().await;
    (plugins, log)
}

/// Lines of a log with this text.
fn count(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

#[tokio::test]
async fn a_server_runs_plugins_without_the_filter_only_in_development_or_when_a_setting_says_so() {
    let (production, development) = (("HUB_LISTEN", "0.0.0.0:0"), ("HUB_LISTEN", "127.0.0.1:0"));
    let refused = "sandbox_filter = \\\"optional\\\" runs them without the filter";
    let unfiltered = "plugins run without a filter of system calls";
    for (settings, plugins, text) in [
        (&[production][..], "refused", refused),
        (&[production, ("HUB_SANDBOX_FILTER", "optional")], "unfiltered", unfiltered),
        (&[development], "unfiltered", unfiltered),
        (&[development, ("HUB_SANDBOX_FILTER", "required")], "refused", refused),
    ] {
        let (reported, log) = server(settings).await;
        assert_eq!(reported, plugins, "{settings:?}: {log}");
        assert_eq!(count(&log, text), 1, "{settings:?}: {log}");
    }
}

/// Runs the command line where the filter cannot be installed.
fn hub_cli(folder: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(DENIED[0]);
    command.arg(DENIED[1]).arg(binaries::program("hub-cli")).args(arguments).current_dir(folder);
    command.env_clear().env("HOME", folder).env("HUB_DATA_DIR", folder);
    command.envs(settings.iter().copied()).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn an_author_runs_plugins_without_the_filter_and_is_notified_once() {
    let folder = tempfile::tempdir().unwrap();
    let new = hub_cli(folder.path(), &[], &["plugins", "new", "tagger"]);
    assert!(new.status.success(), "{new:?}");
    for arguments in [
        &["plugins", "test", "tagger"][..],
        &["plugins", "lint", "tagger/tagger.js"],
        &["debug", "request", "tagger/tagger.js", "--text", "hello"],
    ] {
        let output = hub_cli(folder.path(), &[], arguments);
        let notes = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {notes}");
        assert_eq!(count(&notes, "without a filter of system calls"), 1, "{arguments:?}: {notes}");
    }
}

#[test]
fn doctor_reports_plugins_that_do_not_run_or_run_without_the_filter() {
    let folder = tempfile::tempdir().unwrap();
    let production = ("HUB_PUBLIC_URL", "https://hub.example");
    for (settings, exit, status, text) in [
        (&[production][..], 9, "failed", "sandbox_filter = \"optional\""),
        (&[production, ("HUB_SANDBOX_FILTER", "optional")], 0, "warning", "without a filter"),
        (&[], 0, "warning", "without a filter"),
    ] {
        let arguments = ["doctor", "--json", "--offline", "--only", "sandbox"];
        let output = hub_cli(folder.path(), settings, &arguments);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let check = &report["items"][0];
        assert_eq!((check["id"].as_str(), check["status"].as_str()), (Some("sandbox.limits"), Some(status)));
        assert!(check["message"].as_str().unwrap().contains(text), "{check}");
        assert_eq!(output.status.code(), Some(exit), "{settings:?}: {check}");
    }
}
