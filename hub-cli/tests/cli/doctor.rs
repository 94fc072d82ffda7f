//! `doctor` and `config`: what is wrong is found and said, and no secret ever is.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::program::{command, fill_hub};

/// Values that must not be seen, whatever is asked.
const PLANTED_SECRETS: [&str; 4] = [
    "sk-planted-endpoint-key",
    "planted-metrics-token-value",
    "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2",
    "planted-admin-password",
];

fn hub_cli(folder: &Path) -> Command {
    let mut command = command(&folder.join("hub"));
    command.current_dir(folder);
    command
}

fn both(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// A hub whose key file and AI endpoint hold planted secrets.
fn hub() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    hub_core::private_files::create_folder(&folder.path().join("hub")).unwrap();
    let key = folder.path().join("hub/secret.key");
    hub_core::private_files::create_new(&key, PLANTED_SECRETS[2].as_bytes()).unwrap();
    fill_hub(&folder.path().join("hub"), PLANTED_SECRETS[0]);
    folder
}

/// The report by the names of its checks.
fn report(command: &mut Command) -> (Option<i32>, std::collections::BTreeMap<String, Value>) {
    let output = command.arg("--json").output().unwrap();
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", both(&output)));
    let items = document["items"].as_array().unwrap().iter();
    (
        output.status.code(),
        items.map(|item| (item["id"].as_str().unwrap().to_owned(), item.clone())).collect(),
    )
}

#[test]
fn doctor_reports_no_problem_for_a_working_hub() {
    let folder = hub();
    // Whether the test runs in a container, and how full its disk is, is not the hub's doing.
    let only = "store.open,store.commit-log,store.integrity,store.migrations,store.backup-age,keys,public-url,clock,version,sinks,plugins,sandbox";
    let (exit, found) = report(hub_cli(folder.path()).args(["doctor", "--offline", "--only", only]));
    assert_eq!(exit, Some(0), "{found:#?}");
    for id in [
        "store.open",
        "store.commit-log",
        "store.integrity",
        "store.migrations",
        "keys.permissions",
        "sandbox.limits",
        "plugins.compile",
        "keys.rotation",
    ] {
        assert_eq!(found[id]["status"], "ok", "{id}: {}", found[id]);
    }
    for id in ["clock.skew", "version.skew", "sinks.reachable", "public-url.matches-origin"] {
        assert_eq!(found[id]["status"], "skipped", "{id}");
    }
    assert_eq!(found["store.backup-age"]["status"], "ok", "a new database needs no backup yet");
    let ascii = hub_cli(folder.path())
        .env("LANG", "C")
        .args(["doctor", "--offline", "--only", "store.open"])
        .output();
    let ascii = ascii.unwrap();
    assert!(String::from_utf8_lossy(&ascii.stdout).starts_with("ok store.open"), "{}", both(&ascii));
    let signs =
        hub_cli(folder.path()).args(["doctor", "--offline", "--only", "store.open"]).output().unwrap();
    assert!(String::from_utf8_lossy(&signs.stdout).starts_with("✓  store.open"), "{}", both(&signs));
    let unknown = hub_cli(folder.path()).args(["doctor", "--only", "store.opem"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn doctor_reports_a_lost_or_replaced_key_and_an_empty_database() {
    let folder = hub();
    let key = folder.path().join("hub/secret.key");
    let check = |id: &str| {
        let (exit, found) = report(hub_cli(folder.path()).args(["doctor", "--offline", "--only", id]));
        assert_eq!((exit, found[id]["status"].as_str()), (Some(9), Some("failed")), "{found:#?}");
        found[id].to_string()
    };
    std::fs::remove_file(&key).unwrap();
    let told = check("keys.rotation");
    assert!(told.contains("is encrypted with the key") && told.contains("db restore"), "{told}");
    assert!(!key.exists(), "doctor creates no key");
    hub_core::private_files::create_new(&key, PLANTED_SECRETS[2].replace('5', "6").as_bytes()).unwrap();
    let told = check("keys.rotation");
    assert!(told.contains("is encrypted with the key") && told.contains("the available key is"), "{told}");
    std::fs::write(folder.path().join("hub/hub.db"), "").unwrap();
    let told = check("store.open");
    assert!(told.contains("0 bytes") && told.contains("db restore"), "{told}");
}

#[test]
fn doctor_looks_for_nightly_backups_in_their_folder() {
    let folder = hub();
    let nights = folder.path().join("nights");
    let look = |more: &[&str]| {
        let mut command = hub_cli(folder.path());
        command.env("HUB_BACKUP_TO", &nights).args(["doctor", "--only", "store.backup-age"]).args(more);
        let (exit, found) = report(&mut command);
        (exit, found["store.backup-age"].clone())
    };
    // One that was made elsewhere is none of them.
    assert!(hub_cli(folder.path()).args(["db", "backup"]).output().unwrap().status.success());
    let (exit, found) = look(&["--offline"]);
    assert_eq!((exit, &found["status"]), (Some(0), &"warning".into()), "{found}");
    std::fs::create_dir(&nights).unwrap();
    std::fs::write(nights.join("hub-nightly-20260101T030000Z.tar"), "").unwrap();
    let (_, found) = look(&[]);
    assert_eq!(found["status"], "warning", "{found}");
    assert!(found["message"].as_str().unwrap().contains("2026-01-01T03:00:00.000Z"), "{found}");
    let now = hub_core::time::Clock::system().now();
    let name = hub_core::backup::default_name(now, true).replace("hub-", "hub-nightly-");
    std::fs::write(nights.join(name), "").unwrap();
    assert_eq!(look(&[]).1["status"], "ok");
    std::fs::remove_dir_all(&nights).unwrap();
    std::fs::write(&nights, "in the way").unwrap();
    let (exit, found) = look(&[]);
    assert_eq!((exit, &found["status"]), (Some(9), &"failed".into()), "{found}");
}

#[cfg(unix)]
#[test]
fn doctor_fixes_permissions_only_with_fix() {
    use std::os::unix::fs::PermissionsExt;
    let folder = hub();
    let key = folder.path().join("hub/secret.key");
    let mode = || std::fs::metadata(&key).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let keys = ["doctor", "--offline", "--only", "keys.permissions"];
    let (exit, found) = report(hub_cli(folder.path()).args(keys));
    assert_eq!((exit, mode()), (Some(9), 0o644));
    assert!(found["keys.permissions"]["advice"].as_str().unwrap().contains("chmod 600"), "{found:?}");
    let (exit, found) = report(hub_cli(folder.path()).args(keys).arg("--fix"));
    assert_eq!((exit, mode()), (Some(0), 0o600));
    assert_eq!(found["keys.permissions"]["fixed"], true);
    let (_, found) = report(hub_cli(folder.path()).args(keys).arg("--fix"));
    assert_eq!(found["keys.permissions"]["fixed"], false, "nothing is left to mend");
}

#[test]
fn doctor_finds_inconsistent_settings() {
    let folder = hub();
    let mut command = hub_cli(folder.path());
    command.env("HUB_LISTEN", "0.0.0.0:9800").env("HUB_PUBLIC_URL", "http://203.0.113.7:9800");
    command.env("HUB_LISTN", "x").args([
        "doctor",
        "--offline",
        "--only",
        "bind,public-url.https,webauthn,env",
    ]);
    let (exit, found) = report(&mut command);
    assert_eq!(exit, Some(9));
    assert_eq!(found["bind.exposed"]["status"], "warning");
    assert_eq!(found["public-url.https"]["status"], "failed");
    assert_eq!(found["webauthn.rp-id"]["status"], "failed");
    assert!(found["env.unknown"]["message"].as_str().unwrap().contains("HUB_LISTEN"));
    let mut command = hub_cli(folder.path());
    command.env("HUB_PUBLIC_URL", "https://hub.example").env("HUB_GITHUB_CLIENT_ID", "x");
    command.env("HUB_GITHUB_CLIENT_SECRET", "y").args([
        "doctor",
        "--offline",
        "--only",
        "oauth.callback,proxy",
    ]);
    let (exit, found) = report(&mut command);
    assert_eq!(exit, Some(0));
    let callback = &found["oauth.callback.github"];
    assert_eq!(callback["advice"], "https://hub.example/api/auth/callback/github");
    assert_eq!(found["proxy.forwarded-headers"]["status"], "warning");
    let mut command = hub_cli(folder.path());
    command.args(["doctor", "--only", "version.skew,public-url", "--server", "http://127.0.0.1:1"]);
    let (exit, found) = report(&mut command);
    assert_eq!((exit, &found["public-url.matches-origin"]["status"]), (Some(9), &"failed".into()));
}

#[test]
fn no_secret_is_ever_shown() {
    let folder = hub();
    let file = folder.path().join("hub.toml");
    std::fs::write(&file, format!("metrics_token = {:?}\nregistration = \"open\"\n", PLANTED_SECRETS[1]))
        .unwrap();
    for arguments in [
        &["doctor"][..],
        &["doctor", "--json"],
        &["doctor", "--offline", "--fix"],
        &["config", "check"],
        &["config", "list", "--origin"],
        &["config", "list", "--json"],
        &["db", "status", "--json"],
        &["db", "check"],
        &["db", "backup", "--json"],
        &["db", "encrypt", "rotate-key", "--json"],
    ] {
        let mut command = hub_cli(folder.path());
        command
            .env("HUB_CONFIG", &file)
            .env("HUB_ADMIN_USERNAME", "root")
            .env("HUB_ADMIN_PASSWORD", PLANTED_SECRETS[3]);
        command.env("HUB_SIM_LISTEN", "127.0.0.1:1").env("HUB_LISTEN", "127.0.0.1:1");
        let output = command.args(arguments).output().unwrap();
        let told = both(&output);
        assert!(matches!(output.status.code(), Some(0 | 9)), "{arguments:?}: {told}");
        for secret in PLANTED_SECRETS {
            assert!(!told.contains(secret), "{arguments:?} shows a secret: {told}");
        }
    }
}

#[test]
fn settings_are_written_checked_listed_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        |arguments: &[&str]| hub_cli(folder.path()).env("HUB_LOG", "warn").args(arguments).output().unwrap();
    let file = folder.path().join("hub.toml");
    assert_eq!(run(&["config", "init"]).status.code(), Some(0));
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.lines().all(|line| line.is_empty() || line.starts_with('#')));
    assert_eq!(run(&["config", "init"]).status.code(), Some(6), "one that is there stays");
    assert_eq!(run(&["config", "check"]).status.code(), Some(0));
    let listed = run(&["config", "list", "--origin"]);
    let listed = String::from_utf8_lossy(&listed.stdout);
    assert!(
        listed.contains("log\twarn\tHUB_LOG\n") && listed.contains("max_body\t1048576\tdefault\n"),
        "{listed}"
    );

    std::fs::write(&file, "# first\nlog = \"info\"\nlisten_onn = 1\nregistration = \"maybe\"\n").unwrap();
    let wrong = run(&["config", "check"]);
    let told = String::from_utf8_lossy(&wrong.stdout).into_owned();
    assert_eq!(wrong.status.code(), Some(9));
    assert!(told.contains("hub.toml:3: listen_onn is not a setting; did you mean listen?"), "{told}");
    assert!(told.contains("registration in line 4 of the configuration file"), "{told}");
    assert_eq!(run(&["config", "list"]).status.code(), Some(2));
    let schema: Value = serde_json::from_slice(&run(&["config", "schema"]).stdout).unwrap();
    assert_eq!(schema["properties"]["demo"]["type"], "boolean");
}
