//! Backups in a bucket: made and restored by the shipped command line, and made each night.

use std::{num::NonZeroUsize, path::Path, process::Output, sync::Arc, time::Duration};

use hub_core::{
    backup::{BackupTarget, Home, Nightly},
    counters::Counters,
    random::Random,
    store::StoreConfig,
    time::{Clock, ManualClock},
};
use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{BUCKET, Moto, until};
use crate::support::binaries;

/// So much that it goes in several parts of 16 MiB.
const BALLAST: usize = 40_000_000;

fn hub_cli(moto: &Moto, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = std::process::Command::new(binaries::program("hub-cli"));
    command.env_clear().env("HUB_DATA_DIR", folder).args(arguments).arg("--json");
    command.env("HUB_MEDIA_S3_ENDPOINT", moto.url.as_str()).env("HUB_MEDIA_S3_ACCESS_KEY_ID", "somebody");
    command.env("HUB_MEDIA_S3_SECRET_ACCESS_KEY", "planted-s3-secret");
    let output = command.output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("planted"), "{output:?}");
    output
}

fn succeed(moto: &Moto, folder: &Path, arguments: &[&str]) -> Value {
    let output = hub_cli(moto, folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The code of a refusal's envelope, once its exit code was looked at.
fn refuse(moto: &Moto, folder: &Path, arguments: &[&str], exit: i32) -> String {
    let output = hub_cli(moto, folder, arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(exit), 0), "{arguments:?}: {told}");
    told
}

/// A hub of one administrator.
async fn make_hub(moto: &Moto, folder: &Path, ballast: usize) {
    let secret = folder.with_extension("secret");
    std::fs::write(&secret, "correct-horse-battery\n").unwrap();
    let secret = secret.to_str().unwrap();
    succeed(moto, folder, &["users", "create-admin", "ada", "--password-file", secret]);
    let options = SqliteConnectOptions::new().filename(folder.join("hub.db"));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    for sql in ["CREATE TABLE ballast (bytes BLOB)", "INSERT INTO ballast VALUES (randomblob($1))"] {
        let query = sqlx::query(sql);
        let size = i64::try_from(ballast).unwrap();
        let query = if sql.contains("$1") { query.bind(size) } else { query };
        query.execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_backup_goes_to_a_bucket_in_parts_and_comes_back() {
    let Some(moto) = Moto::start(0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    make_hub(&moto, &old, BALLAST).await;
    std::fs::write(folder.path().join("passphrase"), "open sesame\n").unwrap();
    std::fs::write(folder.path().join("wrong"), "open simsim\n").unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (passphrase, wrong) = (path("passphrase"), path("wrong"));
    let to = format!("s3://{BUCKET}/of hubs/one/");
    let made = succeed(&moto, &old, &["db", "backup", "--to", &to, "--passphrase-file", &passphrase]);
    let file = made["file"].as_str().unwrap();
    assert!(file.starts_with(&format!("{to}hub-")) && file.ends_with("Z.tar.sealed"), "{made}");
    assert!(made["bytes"].as_u64().unwrap() > BALLAST as u64, "{made}");
    assert_eq!(moto.objects().await.len(), 1);
    let left = |folder: &Path| {
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().contains("bucket")).count()
    };
    assert_eq!(left(&old), 0, "the copy of the database is gone");
    assert_eq!(succeed(&moto, &old, &["db", "status"])["last_backup_at"], made["created_at"]);

    let sealed = ["--passphrase-file", passphrase.as_str()];
    let with = |arguments: &[&'static str]| [&["db", "restore", file], arguments, &sealed[..]].concat();
    let refused = refuse(&moto, &new, &["db", "restore", file], 2);
    assert!(refused.contains("--passphrase-file"), "{refused}");
    refuse(&moto, &new, &["db", "restore", file, "--passphrase-file", &wrong], 2);
    assert!(!new.join("hub.db").exists());
    assert_eq!(succeed(&moto, &new, &with(&["--verify-only"]))["restored"], false);
    assert_eq!(succeed(&moto, &new, &with(&[]))["restored"], true);
    assert_eq!(succeed(&moto, &new, &["users", "list"])["items"][0]["username"], "ada");
    assert_eq!(succeed(&moto, &new, &["db", "check"])["items"], json!([]));
}

#[tokio::test]
async fn a_backup_that_cannot_be_written_or_read_is_refused_and_leaves_nothing() {
    let Some(mut moto) = Moto::start(0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    make_hub(&moto, &old, 1).await;
    let named = format!("s3://{BUCKET}/mine.tar");
    let made = succeed(&moto, &old, &["db", "backup", "--to", &named]);
    assert_eq!(made["file"], named);
    assert!(refuse(&moto, &old, &["db", "backup", "--to", &named], 6).contains("is there already"));
    let refused = refuse(&moto, &old, &["db", "backup", "--to", "s3://nowhere/"], 5);
    assert!(refused.contains("there is no bucket nowhere"), "{refused}");
    refuse(&moto, &old, &["db", "backup", "--to", "ftp://files/"], 2);
    let missing = format!("s3://{BUCKET}/other.tar");
    assert!(refuse(&moto, &new, &["db", "restore", &missing], 5).contains(&missing));
    let unnamed = format!("s3://{BUCKET}/");
    assert!(
        refuse(&moto, &new, &["db", "restore", &unnamed], 2).contains("the name of the backup is missing")
    );
    assert_eq!(moto.objects().await, ["mine.tar"]);
    assert!(!moto.says("uploads").await.contains("<UploadId>"), "parts are left");

    // Without credentials, and with a service that is away.
    let mut command = std::process::Command::new(binaries::program("hub-cli"));
    command.env_clear().env("HUB_DATA_DIR", &old).args(["db", "backup", "--to", &missing]);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("media_s3_access_key_id"), "{told}");
    moto.process.kill().unwrap();
    refuse(&moto, &old, &["db", "backup", "--to", &missing], 7);
    refuse(&moto, &new, &["db", "restore", &named], 7);
    let names = std::fs::read_dir(&old).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("bucket")));
    assert!(!new.join("hub.db").exists() && !new.join("hub.db.restoring").exists());
}

#[tokio::test]
async fn nightly_backups_in_a_bucket_are_pruned_to_the_newest() {
    let Some(moto) = Moto::start(0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("hub");
    make_hub(&moto, &data_dir, 1).await;
    succeed(&moto, &data_dir, &["db", "backup", "--to", &format!("s3://{BUCKET}/hub/one/by-hand.tar")]);
    let hub_core::media::MediaConfig::S3(bucket) = moto.config() else { unreachable!() };
    let nightly = Nightly {
        home: Home {
            store: StoreConfig::Sqlite(data_dir.join("hub.db")),
            media: hub_core::media::MediaConfig::Folder(data_dir.join("media")),
            key: None,
            data_dir,
        },
        target: BackupTarget::Bucket(bucket),
        at: "03:00".parse().unwrap(),
        keep: NonZeroUsize::new(2).unwrap(),
        passphrase: None,
    };
    let hands = ManualClock::new("2026-01-31T12:00:00Z".parse().unwrap());
    let (clock, random, counters) =
        (Clock::from(hands.clone()), Random::seeded(1), Arc::new(Counters::default()));
    let made = async |count: u64| {
        until("so many backups", async || {
            let at_rest = !hands.waits().is_empty();
            (counters.backups.counts().eq([("made", count), ("failed", 0)]) && at_rest).then_some(())
        })
        .await;
    };
    let story = async {
        for night in 1..=4 {
            made(night).await;
            hands.advance(Duration::from_secs(24 * 3600));
        }
        made(5).await;
    };
    tokio::select! {
        never = nightly.run(&clock, &random, &counters) => match never {},
        () = story => {}
    }
    let night = |day: u32| format!("hub/one/hub-nightly-202602{day:02}T120000Z.tar");
    assert_eq!(moto.objects().await, ["hub/one/by-hand.tar".to_owned(), night(3), night(4)]);
    let last = format!("s3://{BUCKET}/{}", night(4));
    let found = folder.path().join("found");
    assert_eq!(succeed(&moto, &found, &["db", "restore", &last])["restored"], true);
}
