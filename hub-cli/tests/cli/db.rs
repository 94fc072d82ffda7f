//! Operating a hub from the command line: backups, checks, pruning, keys. What is refused changes nothing.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::program::{command, document as succeed, ends, fill_hub, run, stderr, stdout};

/// The error of a command that is refused; nothing reaches stdout.
fn refuse(folder: &Path, arguments: &[&str], exit: i32) -> String {
    let (out, err) = ends(&run(folder, arguments), exit);
    assert_eq!(out, "", "{arguments:?}");
    err
}

/// A hub with an admin and an AI endpoint, whose key is sealed.
fn hub() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fill_hub(folder.path(), "sk-planted-secret");
    folder
}

#[test]
fn a_backup_is_verified_restored_and_looked_at() {
    let (old, new) = (hub(), tempfile::tempdir().unwrap());
    let status = succeed(old.path(), &["db", "status"]);
    assert_eq!((&status["running"], &status["last_backup_at"]), (&json!(false), &Value::Null));
    assert_eq!(status["schema"], status["newest"]);
    let made = succeed(old.path(), &["db", "backup"]);
    let file = made["file"].as_str().unwrap();
    assert!(Path::new(file).starts_with(old.path().join("backups")) && file.ends_with("Z.tar"), "{file}");
    assert_eq!(made["key_id"], status["key_id"]);
    assert_eq!(succeed(old.path(), &["db", "status"])["last_backup_at"], made["created_at"]);
    assert!(refuse(old.path(), &["db", "backup", "--to", file], 6).contains("is there already"));

    let verified = succeed(new.path(), &["db", "restore", file, "--verify-only"]);
    assert_eq!(verified["restored"], false);
    assert!(std::fs::read_dir(new.path()).unwrap().next().is_none(), "a check changes nothing");
    assert!(refuse(old.path(), &["db", "restore", file], 2).contains("--yes"));
    assert_eq!(succeed(new.path(), &["db", "restore", file])["restored"], true);
    let users = succeed(new.path(), &["users", "list"]);
    assert_eq!(users["items"][0]["username"], "ada");
    let again = succeed(new.path(), &["db", "restore", file, "--yes"]);
    assert_eq!(again["replaced"].as_array().unwrap().len(), 3, "{again}");

    std::fs::write(new.path().join("cut.tar"), &std::fs::read(file).unwrap()[..20_000]).unwrap();
    let cut = new.path().join("cut.tar").display().to_string();
    assert!(refuse(new.path(), &["db", "restore", &cut, "--yes"], 2).contains("backup"));
    refuse(new.path(), &["db", "restore", "/nowhere.tar", "--yes"], 5);
    let empty = tempfile::tempdir().unwrap();
    refuse(empty.path(), &["db", "backup"], 5);
    refuse(empty.path(), &["db", "status"], 5);
}

#[test]
fn db_check_reports_problems_with_exit_9() {
    let folder = hub();
    assert_eq!(succeed(folder.path(), &["db", "check"])["items"], json!([]));
    let whole = run(folder.path(), &["db", "check"]);
    assert!(stderr(&whole).contains("no problems"), "{}", stderr(&whole));
    let key = folder.path().join("secret.key");
    std::fs::write(&key, "07".repeat(32)).unwrap();
    let broken = run(folder.path(), &["db", "check"]);
    assert_eq!(broken.status.code(), Some(9));
    assert!(stdout(&broken).starts_with("secrets\t1 secrets in ai_config.api_key"), "{broken:?}");
}

#[test]
fn rotating_the_key_keeps_old_backups_readable() {
    let (folder, other) = (hub(), tempfile::tempdir().unwrap());
    let bare = folder.path().join("bare.tar").display().to_string();
    succeed(folder.path(), &["db", "backup", "--to", &bare, "--no-key"]);
    let before = succeed(folder.path(), &["db", "status"])["key_id"].clone();
    let rotated = succeed(folder.path(), &["db", "encrypt", "rotate-key"]);
    assert_eq!((&rotated["old_key_id"], &rotated["sealed"]), (&before, &json!(1)));
    assert_eq!(succeed(folder.path(), &["db", "status"])["key_id"], rotated["key_id"]);
    assert_eq!(succeed(folder.path(), &["db", "check"])["items"], json!([]));
    assert!(refuse(other.path(), &["db", "restore", &bare], 7).contains("without its key"));
    std::fs::copy(folder.path().join("secret.key.old"), other.path().join("secret.key")).unwrap();
    succeed(other.path(), &["db", "restore", &bare, "--yes"]);
    assert!(
        refuse(folder.path(), &["db", "encrypt", "rotate-key", "--new-key-file", "/none"], 7)
            .contains("/none")
    );

    let set = |variable: &str| {
        let mut command = command(folder.path());
        command.env("HUB_SECRET_KEY_FILE", folder.path().join("secret.key")).args([
            "db",
            "encrypt",
            "rotate-key",
        ]);
        if !variable.is_empty() {
            command.args(["--new-key-file", variable]);
        }
        command.output().unwrap()
    };
    assert_eq!(set("").status.code(), Some(2));
    let new = folder.path().join("secret.key.old").display().to_string();
    let told = set(&new);
    assert!(told.status.success() && stderr(&told).contains("HUB_SECRET_KEY"), "{}", stderr(&told));
}

#[test]
fn pruning_needs_a_confirmation_and_vacuuming_does_not() {
    let folder = hub();
    let missing = refuse(folder.path(), &["db", "prune", "--older-than", "30d"], 2);
    assert!(missing.contains("--yes"), "{missing}");
    refuse(folder.path(), &["db", "prune", "--older-than", "soon", "--yes"], 2);
    let counted = succeed(folder.path(), &["db", "prune", "--older-than", "30d", "--dry-run"]);
    assert_eq!((&counted["pruned"], &counted["messages"]), (&json!(false), &json!(0)));
    assert_eq!(succeed(folder.path(), &["db", "prune", "--older-than", "0s", "--yes"])["pruned"], true);
    let room = succeed(folder.path(), &["db", "vacuum"]);
    assert!(room["bytes_after"].as_u64().unwrap() > 0, "{room}");
}

#[test]
fn the_database_is_found_where_the_server_finds_it() {
    let (folder, elsewhere) = (hub(), tempfile::tempdir().unwrap());
    let url = elsewhere.path().join("database-url");
    std::fs::write(&url, format!("sqlite://{}\n", folder.path().join("hub.db").display())).unwrap();
    let mut command = command(elsewhere.path());
    command.env("HUB_DATABASE_URL_FILE", &url).args(["db", "status", "--json=rows"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["rows"]["users"], 1);

    // What a project's own file says counts too, but secrets in it are refused.
    let file = elsewhere.path().join("hub.toml");
    let here = |content: &str| {
        std::fs::write(&file, content).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hub-cli"));
        command
            .env_clear()
            .current_dir(elsewhere.path())
            .args(["db", "status", "--json=rows"])
            .output()
            .unwrap()
    };
    let content = format!("data_dir = {:?}\n", folder.path().display().to_string());
    assert!(here(&content).status.success());
    let refused = here(&format!("{content}secret_key = \"{}\"\n", "ab".repeat(32)));
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("secret_key_file"), "{}", stderr(&refused));
    assert!(!stderr(&refused).contains("abab"));
}
