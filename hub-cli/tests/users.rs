//! Administration at the command line, on the files of a hub: what is printed, and every refusal.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use hub_core::{
    Hub,
    accounts::{ClientInfo, NewUser},
    data_dir,
    random::Random,
    store::StoreConfig,
};
use serde_json::{Value, json};

fn hub_cli(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hub-cli"));
    command.env_clear().env("LANG", "C.UTF-8").env("HUB_DATA_DIR", folder).stdin(Stdio::null());
    command.args(arguments).output().unwrap()
}

/// The document of a command that works.
#[track_caller]
fn document(folder: &Path, arguments: &[&str]) -> Value {
    let output = hub_cli(folder, &[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn fails(folder: &Path, arguments: &[&str], exit: i32, code: &str) {
    let output = hub_cli(folder, arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(exit), 0), "{arguments:?}: {told}");
    assert!(told.contains(&format!("error[{code}]: ")), "{arguments:?}: {told}");
}

/// A hub with the admin ada and the member bob.
fn hub() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hub-cli"));
    command.env_clear().env("HUB_DATA_DIR", folder.path()).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut made = command.args(["users", "create-admin", "ada", "--password-file", "-"]).spawn().unwrap();
    made.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    assert!(made.wait().unwrap().success());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let key = data_dir::load_key(folder.path(), &Random::system()).unwrap();
        let store = StoreConfig::Sqlite(data_dir::database(folder.path()));
        let hub = Hub::builder().store(store).secret_key(key).open().await.unwrap();
        let bob = NewUser {
            username: "bob".to_owned(),
            password: "battery staple".into(),
            display_name: None,
            email: None,
        };
        hub.accounts().register(bob, None, &ClientInfo::default()).await.unwrap();
        hub.shutdown().await;
    });
    folder
}

#[test]
fn users_are_listed_shown_changed_and_deleted() {
    let folder = hub();
    let path = folder.path();
    let list = document(path, &["users", "list"]);
    let names: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|user| user["username"].as_str().unwrap()).collect();
    assert_eq!(names, ["bob", "ada"]);
    assert_eq!(document(path, &["users", "list", "--role", "admin"])["items"].as_array().unwrap().len(), 1);
    let bob = document(path, &["users", "show", "BOB"]);
    assert_eq!(
        (&bob["role"], &bob["status"], &bob["sessions"]),
        (&json!("member"), &json!("active"), &json!(1))
    );
    let id = bob["id"].as_str().unwrap();
    assert_eq!(document(path, &["users", "show", id]), bob);
    let sessions = document(path, &["users", "sessions", "list", "bob"]);
    let session = &sessions["items"][0];
    assert_eq!((&session["current"], session["id"].is_string()), (&json!(false), true));
    assert_eq!(document(path, &["users", "sessions", "revoke", "bob"])["ended"], 1);
    assert!(document(path, &["users", "sessions", "list", id])["items"].as_array().unwrap().is_empty());
    let off = document(path, &["users", "disable", "bob"]);
    assert_eq!((&off["status"], &off["sessions"]), (&json!("disabled"), &json!(0)));
    assert_eq!(document(path, &["users", "enable", id])["status"], "active");
    let changed = document(path, &["users", "edit", "bob", "--role", "admin", "--display-name", "Bobby"]);
    assert_eq!((&changed["role"], &changed["display_name"]), (&json!("admin"), &json!("Bobby")));
    let kept = document(path, &["users", "delete", "bob", "--dry-run"]);
    assert_eq!((&kept["username"], &kept["deleted"]), (&json!("bob"), &json!(false)));
    assert_eq!(document(path, &["users", "delete", "bob", "--yes"])["deleted"], true);
    fails(path, &["users", "show", "bob"], 5, "NOT_FOUND");
    fails(path, &["users", "show", id], 5, "NOT_FOUND");
    let log = document(path, &["audit", "list", "--actor", "operator"]);
    let done: Vec<_> =
        log["items"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(
        done,
        [
            "user.deleted",
            "user.updated",
            "user.updated",
            "user.updated",
            "user.sessions_ended",
            "user.created"
        ]
    );
    assert_eq!(log["items"][0]["target_name"], "bob");
}

#[test]
fn a_link_sets_a_password_and_is_drawn() {
    let folder = hub();
    let path = folder.path();
    let made = document(path, &["users", "reset-link", "bob"]);
    let link = made["reset_link"].as_str().unwrap();
    assert!(link.starts_with("http://localhost:9800/login/reset#hubr_"), "{link}");
    assert!(made["expires_at"].is_string());
    let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_hub-cli"));
    elsewhere.env_clear().env("LANG", "C.UTF-8").env("HUB_DATA_DIR", path);
    elsewhere.env("HUB_PUBLIC_URL", "https://hub.example.com").args(["users", "reset-link", "bob", "--qr"]);
    let drawn = elsewhere.output().unwrap();
    let (out, err) = (String::from_utf8(drawn.stdout).unwrap(), String::from_utf8(drawn.stderr).unwrap());
    assert!(
        out.starts_with("https://hub.example.com/login/reset#hubr_") && out.lines().count() == 1,
        "{out}"
    );
    assert!(err.contains('█') && err.contains("sets the password of bob, once, until"), "{err}");
    assert!(!err.contains("hubr_"), "what is shown beside the data is no secret in letters: {err}");
    let token = |link: &str| link.trim().split_once('#').unwrap().1.to_owned();
    let (first, second) = (token(link), token(&out));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let key = data_dir::load_key(path, &Random::system()).unwrap();
        let store = StoreConfig::Sqlite(data_dir::database(path));
        let hub = Hub::builder().store(store).secret_key(key).open().await.unwrap();
        let (accounts, client) = (hub.accounts(), ClientInfo::default());
        let set = async |token: String| {
            accounts.reset_password(&token.into(), "tr0mbone solo".into(), &client).await
        };
        set(first).await.expect_err("a later link ends it");
        assert_eq!(set(second).await.unwrap().username, "bob");
        accounts.login("bob", "tr0mbone solo".into(), &client).await.unwrap();
        hub.shutdown().await;
    });
    let log = document(path, &["audit", "list", "--action", "reset_link.created"]);
    assert_eq!(log["items"][0]["actor"], "operator");
    fails(path, &["users", "reset-link", "nobody"], 5, "NOT_FOUND");
}

#[test]
fn refusals_have_their_exit_codes() {
    let folder = hub();
    let path = folder.path();
    fails(path, &["users", "update", "ada"], 2, "INVALID_PARAMS");
    fails(path, &["users", "update", "ada", "--display-name", ""], 2, "INVALID_PARAMS");
    fails(path, &["users", "update", "ada", "--role", "member"], 6, "CONFLICT");
    fails(path, &["users", "disable", "ada"], 6, "CONFLICT");
    fails(path, &["users", "delete", "ada", "--yes"], 6, "CONFLICT");
    fails(path, &["users", "delete", "ada"], 2, "INVALID_PARAMS");
    fails(path, &["users", "show", "nobody"], 5, "NOT_FOUND");
    fails(path, &["users", "list", "--cursor", "x"], 2, "INVALID_PARAMS");
    fails(path, &["users", "list", "--limit", "0"], 2, "INVALID_PARAMS");
    fails(path, &["users", "invite", "--days", "0"], 2, "INVALID_PARAMS");
    // A server is asked with a key, and never over plain http beyond this machine.
    fails(path, &["stats", "--server", "http://127.0.0.1:9"], 4, "UNAUTHORIZED");
    let elsewhere = tempfile::tempdir().unwrap();
    fails(elsewhere.path(), &["users", "list"], 5, "NOT_FOUND");
    assert_eq!(hub_cli(path, &["users", "delete", "ada", "--yes", "--dry-run"]).status.code(), Some(2));
    let asked = |server: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hub-cli"));
        command.env_clear().env("HUB_TOKEN", "hubu_x").args(["stats", "--server", server]);
        command.output().unwrap().status.code()
    };
    assert_eq!(asked("http://hub.example.com"), Some(2));
    assert_eq!(asked("http://127.0.0.1:9"), Some(7));
}

#[test]
fn statistics_and_the_log_read_well() {
    let folder = hub();
    let path = folder.path();
    let stats = document(path, &["stats"]);
    assert_eq!(stats["users"], json!({ "total": 2, "active": 2, "disabled": 0, "admins": 1 }));
    assert_eq!(stats["series"].as_array().unwrap().len(), 60);
    let text = hub_cli(path, &["stats"]).stdout;
    assert!(String::from_utf8(text).unwrap().contains("users total             2"));
    // In a pipe: rows of tabs, no header.
    let rows =
        String::from_utf8(hub_cli(path, &["audit", "list", "--action", "user.registered"]).stdout).unwrap();
    let cells: Vec<&str> = rows.trim_end_matches('\n').split('\t').collect();
    assert_eq!((cells.len(), &cells[1..4]), (6, &["bob", "user.registered", "bob"][..]), "{rows}");
    let first = document(path, &["audit", "list", "--limit", "1"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = document(path, &["audit", "list", "--limit", "1", "--cursor", cursor]);
    assert_ne!(first["items"][0]["id"], second["items"][0]["id"]);
    let invite = document(path, &["users", "invite", "--days", "3"]);
    assert!(invite["invite"].as_str().unwrap().starts_with("hubi_"));
}
