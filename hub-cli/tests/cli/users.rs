//! Administration at the command line, on the files of a hub: what is printed, and every refusal.

use hub_core::{Hub, accounts::ClientInfo, data_dir, random::Random, store::StoreConfig};
use serde_json::{Value, json};

use crate::{
    hubs::{hub, temp, user},
    program::{command, document, ends, fails, refuses, run, run_with_input, stderr, stdout},
    stage::Stage,
};

/// A hub with the admin ada and the member bob.
fn hub_with_bob() -> tempfile::TempDir {
    let folder = hub();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let key = data_dir::load_key(folder.path(), &Random::system()).unwrap();
        let store = StoreConfig::Sqlite(data_dir::database(folder.path()));
        let hub = Hub::builder().store(store).secret_key(key).open().await.unwrap();
        hub.accounts().register(user("bob"), None, &ClientInfo::default()).await.unwrap();
        hub.shutdown().await;
    });
    folder
}

#[test]
fn users_are_listed_shown_changed_and_deleted() {
    let folder = hub_with_bob();
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
    assert_eq!(document(path, &["users", "sessions", "revoke", "bob", "--yes"])["ended"], 1);
    assert!(document(path, &["users", "sessions", "list", id])["items"].as_array().unwrap().is_empty());
    let off = document(path, &["users", "disable", "bob"]);
    assert_eq!((&off["status"], &off["sessions"]), (&json!("disabled"), &json!(0)));
    assert_eq!(document(path, &["users", "enable", id])["status"], "active");
    let changed = document(path, &["users", "edit", "bob", "--role", "admin", "--display-name", "Bobby"]);
    assert_eq!((&changed["role"], &changed["display_name"]), (&json!("admin"), &json!("Bobby")));
    let kept = document(path, &["users", "delete", "bob", "--dry-run"]);
    assert_eq!((&kept["username"], &kept["deleted"]), (&json!("bob"), &json!(false)));
    assert_eq!(document(path, &["users", "delete", "bob", "--yes"])["deleted"], true);
    refuses(path, &["users", "show", "bob"], 5, "NOT_FOUND");
    refuses(path, &["users", "show", id], 5, "NOT_FOUND");
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
fn users_create_prints_a_link_that_sets_the_password() {
    let stage = Stage::new();
    let made = document(stage.path(), &["users", "create", "bob", "--display-name", "Bob B."]);
    assert_eq!(
        (&made["username"], &made["role"], &made["sessions"]),
        (&json!("bob"), &json!("member"), &json!(0))
    );
    let eve = stage.document(&["users", "create", "eve", "--role", "admin"]);
    assert_eq!((&eve["role"], &eve["sessions"]), (&json!("admin"), &json!(0)), "no one is signed in as her");
    for link in [&made, &eve] {
        let link = link["reset_link"].as_str().unwrap();
        assert!(link.starts_with("http://localhost:9800/login/reset#hubr_"), "{link}");
    }
    let (out, err) = ends(&stage.server(&["users", "create", "mia", "--qr"]), 0);
    assert!(out.starts_with("http://localhost:9800/login/reset#") && out.lines().count() == 1, "{out}");
    assert!(err.contains('▀') && err.contains("sets the password of mia, once"), "{err}");
    refuses(stage.path(), &["users", "create", "bob"], 6, "CONFLICT");
    fails(&stage.server(&["users", "create", "bob"]), 6, "CONFLICT");
    refuses(stage.path(), &["users", "create", "No Name"], 2, "INVALID_PARAMS");
    refuses(stage.path(), &["users", "edit", "bob"], 2, "INVALID_PARAMS");
    let mut stranger = stage.signed_in();
    stranger.env("HUB_TOKEN", "hubu_no").args(["users", "create", "joe"]);
    fails(&stranger.output().unwrap(), 4, "INVALID_TOKEN");
}

#[test]
fn a_reset_link_sets_a_password_and_is_drawn_as_a_qr_code() {
    let folder = hub_with_bob();
    let path = folder.path();
    let made = document(path, &["users", "reset-link", "bob"]);
    let link = made["reset_link"].as_str().unwrap();
    assert!(link.starts_with("http://localhost:9800/login/reset#hubr_"), "{link}");
    assert!(made["expires_at"].is_string());
    let mut elsewhere = command(path);
    elsewhere.env("HUB_PUBLIC_URL", "https://hub.example.com").args(["users", "reset-link", "bob", "--qr"]);
    let (out, err) = ends(&elsewhere.output().unwrap(), 0);
    assert!(
        out.starts_with("https://hub.example.com/login/reset#hubr_") && out.lines().count() == 1,
        "{out}"
    );
    assert!(err.contains('█') && err.contains("sets the password of bob, once, until"), "{err}");
    assert!(!err.contains("hubr_"), "what is shown next to the data is no secret in letters: {err}");
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
    refuses(path, &["users", "reset-link", "nobody"], 5, "NOT_FOUND");
}

#[test]
fn user_errors_have_their_exit_codes() {
    let folder = hub_with_bob();
    let path = folder.path();
    refuses(path, &["users", "edit", "ada"], 2, "INVALID_PARAMS");
    refuses(path, &["users", "edit", "ada", "--display-name", ""], 2, "INVALID_PARAMS");
    refuses(path, &["users", "edit", "ada", "--role", "member"], 6, "CONFLICT");
    refuses(path, &["users", "disable", "ada"], 6, "CONFLICT");
    refuses(path, &["users", "delete", "ada", "--yes"], 6, "CONFLICT");
    refuses(path, &["users", "delete", "ada"], 2, "INVALID_PARAMS");
    refuses(path, &["users", "show", "nobody"], 5, "NOT_FOUND");
    refuses(path, &["users", "list", "--cursor", "x"], 2, "INVALID_PARAMS");
    refuses(path, &["users", "list", "--limit", "0"], 2, "INVALID_PARAMS");
    refuses(path, &["users", "invite", "--days", "0"], 2, "INVALID_PARAMS");
    // A server is asked with a key, and never over plain http beyond this machine.
    refuses(path, &["stats", "--server", "http://127.0.0.1:9"], 4, "UNAUTHORIZED");
    let elsewhere = temp();
    refuses(elsewhere.path(), &["users", "list"], 5, "NOT_FOUND");
    assert_eq!(run(path, &["users", "delete", "ada", "--yes", "--dry-run"]).status.code(), Some(2));
    let asked = |server: &str| {
        let mut command = command(path);
        command.env_remove("HUB_DATA_DIR").env("HUB_TOKEN", "hubu_x").args(["stats", "--server", server]);
        command.output().unwrap().status.code()
    };
    assert_eq!(asked("http://hub.example.com"), Some(2));
    assert_eq!(asked("http://127.0.0.1:9"), Some(7));
}

#[test]
fn statistics_and_the_audit_log_are_listed() {
    let folder = hub_with_bob();
    let path = folder.path();
    let stats = document(path, &["stats"]);
    assert_eq!(stats["users"], json!({ "total": 2, "active": 2, "disabled": 0, "admins": 1 }));
    assert_eq!(stats["series"].as_array().unwrap().len(), 60);
    assert!(stdout(&run(path, &["stats"])).contains("users total             2"));
    // In a pipe: rows of tabs, no header.
    let rows = stdout(&run(path, &["audit", "list", "--action", "user.registered"]));
    let cells: Vec<&str> = rows.trim_end_matches('\n').split('\t').collect();
    assert_eq!((cells.len(), &cells[1..4]), (6, &["bob", "user.registered", "bob"][..]), "{rows}");
    let first = document(path, &["audit", "list", "--limit", "1"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = document(path, &["audit", "list", "--limit", "1", "--cursor", cursor]);
    assert_ne!(first["items"][0]["id"], second["items"][0]["id"]);
    let invite = document(path, &["users", "invite", "--days", "3"]);
    let token = invite["invite"].as_str().unwrap();
    assert!(token.starts_with("hubi_"), "{invite}");
    let link = invite["invite_link"].as_str().unwrap();
    assert!(link.starts_with("http") && link.ends_with(&format!("/login#invite={token}")), "{link}");
}

#[test]
fn create_admin_prints_the_administrator_as_json() {
    let folder = temp();
    let made = run_with_input(
        folder.path(),
        &["users", "create-admin", "Ada", "--password-file", "-", "--json"],
        "correct horse\nsecond line\n",
    );
    let document: Value = serde_json::from_str(&stdout(&made)).unwrap();
    assert_eq!((&document["username"], &document["role"]), (&"ada".into(), &"admin".into()));
    assert!(document["id"].as_str().unwrap().starts_with("usr_"));
    assert!(!stdout(&made).contains("correct horse") && !stderr(&made).contains("correct horse"));
}
