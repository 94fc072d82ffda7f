//! The restore drill of `hub-cli db backup`: what a hub had acknowledged when it was backed up under load is there
//! after its machine was lost, and the hub goes on.

use std::{path::Path, process::Output, sync::Arc};

use hub_core::{
    local_http::{self, Limits},
    tasks::Tasks,
    time::Clock,
};
use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::net::TcpListener;

use crate::support::{
    binaries,
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
    receiver::{Receiver, Reply},
};

const SECRET: &str = "a-secret-of-some-length";
const PICTURE: &str = "not really a picture";

/// Runs the shipped command line on a data folder.
pub(super) fn hub_cli(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = std::process::Command::new(binaries::program("hub-cli"));
    command.env_clear().env("HUB_DATA_DIR", folder).args(arguments).output().unwrap()
}

pub(super) fn succeed(folder: &Path, arguments: &[&str]) -> Value {
    let output = hub_cli(folder, &[arguments, &["--json"]].concat());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Texts of all messages of a bot, in both directions.
pub(super) async fn contents(caller: &Caller, bot: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = caller.get(&format!("/api/bots/{bot}/messages?limit=200{cursor}")).await;
        let items = page["items"].as_array().unwrap();
        found.extend(items.iter().map(|message| message["content"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[tokio::test]
async fn a_hub_that_was_backed_up_under_load_comes_back_on_another_machine() {
    let folder = tempfile::tempdir().unwrap();
    let (lost, found) = (folder.path().join("lost"), folder.path().join("found"));
    let (network, tasks) = (NetworkProcess::start().await, Tasks::new());
    let receiver = Arc::new(Receiver::new(Clock::system()));
    receiver.always("/picture.png", Reply::text("image/png", PICTURE));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = local_http::serve(listener, receiver.clone(), Limits::default(), tasks.clone());
    tasks.spawn("receiver", served);
    let settings = [("HUB_EGRESS_ALLOW", address.as_str())];
    let hub = HubProcess::start(&lost, &network, &settings).await;
    let mut ada = Caller::stranger(&hub.url);
    ada.sign_in("/api/auth/register", json!({ "username": "ada", "password": "tr0mbone solo" })).await;
    let (bot, wx_id) = network.bind(&ada).await;
    let webhook = json!({
        "enabled": true,
        "url": format!("http://{address}/hook"),
        "auth": { "method": "hmac", "secret": SECRET },
    });
    ada.post(&format!("/api/bots/{bot}/channels"), json!({ "name": "orders", "webhook": webhook })).await;
    network.say(&wx_id, "the first").await;
    until("the first message", async || (receiver.received_at("/hook").len() == 1).then_some(())).await;
    let picture = json!({ "media": { "url": format!("http://{address}/picture.png") } });
    ada.post(&format!("/api/bots/{bot}/send"), picture).await;

    // People go on writing while the backup is made; what the hub shows before it begins has to be in it.
    let texts: Vec<Value> =
        (0..600).map(|n| json!({ "wx_id": wx_id, "text": format!("message {n}") })).collect();
    for batch in texts.chunks(200) {
        network.control.control("/_sim/messages", Some(json!({ "messages": batch }))).await;
    }
    until("some messages", async || (contents(&ada, &bot).await.len() > 100).then_some(())).await;
    let acknowledged = contents(&ada, &bot).await;
    std::fs::write(folder.path().join("passphrase"), "open sesame\n").unwrap();
    let (file, passphrase) = (folder.path().join("hub.tar.sealed"), folder.path().join("passphrase"));
    let (file, passphrase) = (file.to_str().unwrap(), passphrase.to_str().unwrap());
    let made = succeed(&lost, &["db", "backup", "--to", file, "--passphrase-file", passphrase]);
    assert_eq!((&made["files"], &made["missing_files"]), (&json!(1), &json!(0)), "{made}");

    // Neither a restore nor a rotation goes on under a server.
    for refused in [
        &["db", "restore", file, "--passphrase-file", passphrase, "--yes"][..],
        &["db", "encrypt", "rotate-key"],
    ] {
        let output = hub_cli(&lost, refused);
        assert_eq!(output.status.code(), Some(7), "{refused:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("another process works on this database"));
    }
    assert_eq!(succeed(&lost, &["db", "status"])["running"], true);
    hub.process.kill().await;
    std::fs::remove_dir_all(&lost).unwrap();
    let before = receiver.received_at("/hook").len();

    let restored = succeed(&found, &["db", "restore", file, "--passphrase-file", passphrase]);
    assert_eq!((&restored["restored"], &restored["files"]), (&json!(true), &json!(1)));
    assert_eq!(succeed(&found, &["db", "check"])["items"], json!([]));
    // A new key on the way: everything has to work with that one, too.
    let rotated = succeed(&found, &["db", "encrypt", "rotate-key"]);
    assert!(
        rotated["sealed"].as_u64().unwrap() > 100 && rotated["key_id"] != restored["key_id"],
        "{rotated}"
    );

    let hub = HubProcess::start(&found, &network, &settings).await;
    let ada = ada.at(&hub.url);
    let there = contents(&ada, &bot).await;
    let lost: Vec<&String> = acknowledged.iter().filter(|text| !there.contains(text)).collect();
    assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), acknowledged.len());
    network.say(&wx_id, "after the loss").await;
    let signed = until("the message after the loss", async || {
        let got = receiver.received_at("/hook");
        got.into_iter().skip(before).find(|one| one.json()["content"] == "after the loss")
    })
    .await;
    assert!(signed.is_signed_with(SECRET), "the channel signs with its secret from before");
    let stored = walk(&found.join("media"));
    assert_eq!(stored, [PICTURE]);
    hub.process.terminate().await;
    tasks.stop();
}

#[tokio::test]
async fn a_database_is_copied_before_it_is_migrated_and_only_when_it_may_be() {
    let folder = tempfile::tempdir().unwrap();
    succeed(folder.path(), &["db", "migrate"]);
    let newest = succeed(folder.path(), &["db", "status"])["newest"].as_i64().unwrap();
    // What the newest migration made is taken back: a database of the release before.
    let options = SqliteConnectOptions::new().filename(folder.path().join("hub.db"));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let taken_back = "DELETE FROM _sqlx_migrations WHERE version = 31;
        DROP INDEX app_events_pending;
        ALTER TABLE app_events ADD COLUMN due_at INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE app_events ADD COLUMN claimed_until INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX app_events_due ON app_events (due_at)";
    sqlx::raw_sql(taken_back).execute(&mut connection).await.unwrap();
    let before: i64 = sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    assert_eq!(newest, 31, "take back what the new migration made instead");

    let pending = succeed(folder.path(), &["db", "migrate", "--dry-run"]);
    assert_eq!(pending["items"][0]["version"], newest);
    let mut server = std::process::Command::new(binaries::program("hub-server"));
    let refused = server
        .args(["--no-migrate", "--listen", "127.0.0.1:0", "--sim-listen", "127.0.0.1:0"])
        .env_clear()
        .env("HUB_DATA_DIR", folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("hub-cli db migrate"), "{told}");
    let copy = folder.path().join(format!("hub.db.schema-{before}"));
    assert!(!copy.exists(), "who only looks copies nothing");

    for older in [3, 5] {
        std::fs::write(folder.path().join(format!("hub.db.schema-{older}")), "of an earlier migration")
            .unwrap();
    }
    succeed(folder.path(), &["db", "migrate"]);
    assert_eq!(succeed(folder.path(), &["db", "status"])["pending"], json!([]));
    let url = format!("sqlite://{}", copy.display());
    let status = succeed(folder.path(), &["db", "status", "--database-url", &url]);
    assert_eq!(status["schema"], before, "the copy is the database from before");
    assert!(
        !folder.path().join("hub.db.schema-3").exists() && folder.path().join("hub.db.schema-5").exists()
    );
}

/// A hub of one administrator with a sealed secret, in a folder of its own.
fn make_hub(folder: &Path, name: &str) -> std::path::PathBuf {
    let (home, secret) = (folder.join(name), folder.join("secret"));
    std::fs::write(&secret, "correct-horse-battery\n").unwrap();
    let secret = secret.to_str().unwrap();
    succeed(&home, &["users", "create-admin", name, "--password-file", secret]);
    succeed(
        &home,
        &[
            "ai-config",
            "set",
            "--base-url",
            "https://ai.example/v1",
            "--model",
            "m",
            "--api-key-file",
            secret,
        ],
    );
    home
}

fn copy_hub(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    hub_core::private_files::create_folder(to).unwrap();
    for name in ["hub.db", "secret.key"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// Runs the command line and kills it at the n-th of these system calls of a thread; `false` when there were fewer.
pub(super) fn kill_at(calls: &str, n: usize, folder: &Path, arguments: &[&str]) -> Option<bool> {
    let mut strace = super::tool("strace")?;
    let inject = format!("inject={calls}:signal=KILL:when={n}");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e", &inject]);
    strace.arg(binaries::program("hub-cli")).args(arguments).env_clear().env("HUB_DATA_DIR", folder);
    let ended = strace.output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!told.contains("Operation not permitted"), "no system call can be tampered with: {told}");
    Some(!ended.status.success())
}

#[test]
fn killed_at_any_of_its_writes_a_command_leaves_the_old_or_the_new() {
    let folder = tempfile::tempdir().unwrap();
    let (ada, bob) = (make_hub(folder.path(), "ada"), make_hub(folder.path(), "bob"));
    let (here, file) = (folder.path().join("here"), folder.path().join("hub.tar"));
    let file = file.to_str().unwrap();
    let whole = |home: &Path| {
        assert_eq!(succeed(home, &["db", "check"])["items"], json!([]));
        succeed(home, &["users", "list"])["items"][0]["username"].as_str().unwrap().to_owned()
    };
    let writes = "rename,fsync,fdatasync";
    let mut kills = 0;
    for n in 1..40 {
        let _ = std::fs::remove_file(file);
        match kill_at(writes, n, &bob, &["db", "backup", "--to", file]) {
            None => return,
            Some(false) => break,
            Some(true) => kills += 1,
        }
        if Path::new(file).exists() {
            succeed(&bob, &["db", "restore", file, "--verify-only"]);
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    for n in 1..60 {
        copy_hub(&ada, &here);
        if kill_at(writes, n, &here, &["db", "restore", file, "--yes"]) == Some(false) {
            break;
        }
        kills += 1;
        seen.insert(whole(&here));
    }
    assert_eq!(whole(&here), "bob");
    assert!(seen.contains("ada"), "no kill came before the new one: {seen:?}");
    for n in 1..60 {
        copy_hub(&ada, &here);
        if kill_at(writes, n, &here, &["db", "encrypt", "rotate-key"]) == Some(false) {
            break;
        }
        kills += 1;
        assert_eq!(whole(&here), "ada");
        succeed(&here, &["db", "encrypt", "rotate-key"]);
        assert_eq!(whole(&here), "ada");
    }
    assert!(kills > 10, "{kills} kills are too few to say anything");
}

/// The contents of all files below a folder.
fn walk(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(
            |path| {
                if path.is_dir() { walk(&path) } else { vec![std::fs::read_to_string(path).unwrap()] }
            },
        )
        .collect()
}
