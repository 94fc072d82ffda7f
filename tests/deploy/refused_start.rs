//! A start that is refused changes nothing: neither what a running hub needs, nor a database that another version wrote.

use std::{collections::BTreeMap, net::TcpListener, path::Path};

use hub_core::{data_dir, store::claim_file};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use super::restore::{hub_cli, succeed};
use crate::support::{binaries, http::Caller, process::Process};

/// Ports that are free.
const FREE: [(&str, &str); 2] = [("HUB_LISTEN", "127.0.0.1:0"), ("HUB_SIM_LISTEN", "127.0.0.1:0")];

fn start(folder: &Path, settings: &[(&str, &str)]) -> Process {
    let folder = folder.display().to_string();
    let mut environment = BTreeMap::from(FREE);
    environment.insert("HUB_DATA_DIR", &folder);
    environment.extend(settings.iter().copied());
    let environment: Vec<_> = environment.into_iter().collect();
    Process::start(&binaries::program("hub-server"), &[], &environment)
}

/// Starts a server that has to end by itself; what it printed.
async fn refused(folder: &Path, settings: &[(&str, &str)]) -> String {
    let (ended, log) = start(folder, settings).wait().await;
    assert!(!ended.success() && !log.contains("hub-server started"), "{log}");
    log
}

async fn open(folder: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(folder.join("hub.db"));
    SqliteConnection::connect_with(&options).await.unwrap()
}

/// Files and rows that a start writes, and a running hub does not.
async fn contents(folder: &Path) -> Vec<String> {
    let mut connection = open(folder).await;
    let mut rows = Vec::new();
    for (table, columns) in [
        ("_sqlx_migrations", "version"),
        ("meta", "key"),
        ("users", "id"),
        ("bots", "id, credentials"),
        ("channels", "id"),
        ("one_time", "*"),
    ] {
        let names = format!("SELECT group_concat('quote(' || name || ')') FROM pragma_table_info('{table}')");
        let columns = match columns {
            "*" => sqlx::query_scalar(AssertSqlSafe(names)).fetch_one(&mut connection).await.unwrap(),
            named => named.to_owned(),
        };
        let sql = format!("SELECT '{table} ' || json_array({columns}) AS row FROM {table} ORDER BY row");
        rows.extend(
            sqlx::query_scalar::<_, String>(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap(),
        );
    }
    connection.close().await.unwrap();
    rows
}

/// Names of files with their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeMap::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap_or_default())).collect()
}

#[tokio::test]
async fn a_second_start_on_a_folder_leaves_the_running_hub_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = start(folder.path(), &[]);
    first.wait_url().await;
    first.wait_line("\"status\":\"online\"").await;
    let before = contents(folder.path()).await;
    let names = |folder: &Path| files(folder).into_keys().collect::<Vec<_>>();
    let there = names(folder.path());
    for settings in [&[][..], &[("HUB_MIGRATE", "false")], &[("HUB_NETWORK", "both"), ("HUB_DEMO", "false")]]
    {
        let log = refused(folder.path(), settings).await;
        assert!(log.contains("another process works on this database"), "{log}");
    }
    assert_eq!(contents(folder.path()).await, before, "bots keep their logins");
    assert_eq!(names(folder.path()), there);
    // The command line reads and writes next to the hub.
    assert_eq!(succeed(folder.path(), &["db", "status"])["running"], true);
    succeed(folder.path(), &["db", "migrate"]);
    first.terminate().await;
    start(folder.path(), &[]).wait_url().await;
}

#[tokio::test]
async fn a_second_start_leaves_the_setup_link_of_the_running_hub_valid() {
    let folder = tempfile::tempdir().unwrap();
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let production =
        [("HUB_PUBLIC_URL", "https://hub.example"), ("HUB_NETWORK", "ilink"), ("HUB_LISTEN", &*address)];
    let mut first = start(folder.path(), &production);
    first.wait_url().await;
    let log = first.log();
    let line = log.lines().find(|line| line.contains("hub-server started")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let production = [production[0], production[1]];
    refused(folder.path(), &production).await;
    let ada = json!({
        "username": "ada", "password": "tr0mbone solo", "setup_token": line["setup_token"],
    });
    let (status, body, ..) = Caller::stranger(&format!("http://{address}"))
        .call(reqwest::Method::POST, "/api/auth/register", Some(ada))
        .await;
    assert!(status.is_success(), "{body}");
    first.terminate().await;
}

#[tokio::test]
async fn nothing_is_created_while_another_process_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let _claim = claim_file(&data_dir::database(folder.path())).unwrap();
    let before = files(folder.path());
    refused(folder.path(), &[]).await;
    assert!(!hub_cli(folder.path(), &["db", "migrate"]).status.success());
    assert_eq!(files(folder.path()), before);
}

#[tokio::test]
async fn nothing_is_created_when_a_port_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for setting in ["HUB_LISTEN", "HUB_SIM_LISTEN", "HUB_METRICS_LISTEN"] {
        let log = refused(&data, &[(setting, address.as_str())]).await;
        assert!(log.contains("is in use by another program"), "{log}");
        assert!(!data.exists(), "{setting}");
    }
}

#[tokio::test]
async fn a_database_of_another_version_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    succeed(folder.path(), &["db", "migrate"]);
    std::fs::remove_file(folder.path().join("secret.key")).unwrap();
    let add = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
               VALUES (9999, 'newer', TRUE, x'00', 0)";
    let remove = "DELETE FROM _sqlx_migrations WHERE version = (SELECT MAX(version) FROM _sqlx_migrations)";
    // A newer schema; an older one with a migration that must not be run; a log that cannot be read.
    let unreadable = "DELETE FROM _sqlx_migrations WHERE version = 9999;
                      INSERT INTO commit_log (id, entry) VALUES (1, x'ff')";
    for (change, settings, reason) in [
        (add, &[][..], "schema version 9999, which this program does not know"),
        (unreadable, &[], "has format 255, and this program reads 1 and 2 (entry 1)"),
        (remove, &[], "has format 255, and this program reads 1 and 2 (entry 1)"),
        ("DELETE FROM commit_log", &[("HUB_MIGRATE", "false")], "hub-cli db migrate"),
    ] {
        let mut connection = open(folder.path()).await;
        sqlx::raw_sql(AssertSqlSafe(change)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let before = files(folder.path());
        let log = refused(folder.path(), settings).await;
        assert!(log.contains(reason) && log.contains("hint: "), "{reason}: {log}");
        let changed: Vec<_> =
            files(folder.path()).into_iter().filter(|file| before.get(&file.0) != Some(&file.1)).collect();
        assert!(
            changed.iter().all(|(name, _)| name.ends_with("hub.db.lock")),
            "{reason}: {:?}",
            changed.iter().map(|file| &file.0).collect::<Vec<_>>()
        );
    }
}

/// An entry that neither this version nor the one before wrote.
#[tokio::test]
async fn every_command_names_a_commit_log_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    succeed(folder.path(), &["db", "migrate"]);
    let mut connection = open(folder.path()).await;
    let insert = "INSERT INTO commit_log (id, entry) VALUES (7, x'c802'), (9, x'02ff')";
    sqlx::raw_sql(insert).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let backup = folder.path().join("hub.tar");
    for (arguments, exit) in [
        (&["db", "check"][..], 9),
        (&["db", "status"], 0),
        (&["doctor", "--offline", "--only", "store.commit-log", "--json"], 9),
        (&["db", "backup", "--to", backup.to_str().unwrap()], 7),
    ] {
        let output = hub_cli(folder.path(), arguments);
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {text}");
        for part in ["format 200", "entry 7", "start and stop the version of the hub that wrote it"] {
            // A table or a paragraph may be wrapped.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(part), "{arguments:?}, {part}: {text}");
        }
    }
    assert!(!backup.exists());
    assert_eq!(succeed(folder.path(), &["db", "status"])["unreadable_entries"], 2);
    let log = refused(folder.path(), &[]).await;
    assert!(log.contains("hub-cli db restore"), "{log}");
}
