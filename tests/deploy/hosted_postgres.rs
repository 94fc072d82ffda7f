//! PostgreSQL as it is hosted: behind a pooler, with few connections and few rights. Each condition has a sentence and a
//! remedy.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use hub_core::{
    Error,
    secret::Secret,
    store::{Store, StoreConfig, Upkeep},
    time::Clock,
};
use serde_json::json;

use crate::support::{
    binaries,
    http::{Caller, until},
    postgres::{self, Server},
    postgres_user::{Unprivileged, command, find_program},
    process::Process,
};

/// A running PgBouncer, with the parameters that its users leave as they are.
struct Pooler {
    port: u16,
    process: Child,
    folder: tempfile::TempDir,
}

impl Pooler {
    /// `None` where PgBouncer is not installed, which CI does not accept.
    async fn start(server: &Server, settings: &str) -> Option<Self> {
        let usual = Some(PathBuf::from("/usr/sbin/pgbouncer")).filter(|path| path.is_file());
        let Some(program) = find_program("pgbouncer").or(usual) else {
            super::tool("pgbouncer");
            return None;
        };
        let who = Unprivileged::find().unwrap();
        let folder = tempfile::tempdir().unwrap();
        // Free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let users = write("users", "\"hub\" \"secret\"\n\"guest\" \"secret\"\n");
        let file = write(
            "pgbouncer.ini",
            &format!(
                "[databases]\n* = host={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
                 auth_file = {users}\ndefault_pool_size = 30\nmax_client_conn = 60\n{settings}\n",
                server.socket_folder().display()
            ),
        );
        if let Some(who) = &who {
            for path in [folder.path(), Path::new(&users), Path::new(&file)] {
                std::os::unix::fs::chown(path, Some(who.uid), Some(who.gid)).unwrap();
            }
        }
        let process = command(who.as_ref(), &program)
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pooler = Self { port, process, folder };
        until("PgBouncer listens", async || {
            assert!(pooler.process.try_wait().unwrap().is_none(), "{}", pooler.log());
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        })
        .await;
        Some(pooler)
    }

    fn log(&mut self) -> String {
        let mut log = String::new();
        let _ = self.process.stderr.take().map(|mut stderr| stderr.read_to_string(&mut log));
        format!("{log}in {}", self.folder.path().display())
    }

    fn url(&self, user: &str, database: &StoreConfig, query: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{}{query}", self.port, name_of(database))
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn name_of(database: &StoreConfig) -> String {
    let StoreConfig::Postgres(url) = database else { panic!("the server makes such databases") };
    url.expose().split(['/', '?']).nth(3).unwrap().to_owned()
}

/// The URL of a database of the server, as another user.
fn direct(server: &Server, user: &str, database: &str) -> String {
    format!("postgres://{user}@localhost/{database}?host={}", server.socket_folder().display())
}

async fn open(url: &str) -> Result<(), Error> {
    let store = Store::open(&StoreConfig::Postgres(Secret::new(url)), Clock::system()).await?;
    store.close().await;
    Ok(())
}

/// Opening the database fails with this sentence and this remedy.
async fn assert_refused(url: &str, says: &str, remedy: &str) {
    let error = open(url).await.expect_err(url);
    let hint = error.hint().unwrap_or_default();
    assert!(error.message().contains(says) && hint.contains(remedy), "{url}: {} ({hint})", error.message());
    assert!(!error.message().contains("secret"), "{}", error.message());
}

#[tokio::test]
async fn a_hub_works_behind_a_pooler_of_sessions_as_it_is_installed() {
    let Some(server) = postgres::server() else { return };
    let Some(pooler) = Pooler::start(server, "auth_type = trust\npool_mode = session").await else { return };
    let database = server.create_database().await;
    let url = pooler.url("hub", &database, "");
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().display().to_string();
    let environment = [
        ("HUB_DATABASE_URL", &*url),
        ("HUB_DATA_DIR", &*data_dir),
        ("HUB_LISTEN", "127.0.0.1:0"),
        ("HUB_SIM_LISTEN", "127.0.0.1:0"),
        ("HUB_ADMIN_USERNAME", "ada"),
        ("HUB_ADMIN_PASSWORD", "tr0mbone solo"),
    ];
    // Twice: a session of the pooler that was used before has nothing of its last user.
    for _ in 0..2 {
        let mut hub = Process::start(&binaries::program("hub-server"), &[], &environment);
        let url = hub.wait_url().await;
        let login = json!({ "username": "ada", "password": "tr0mbone solo" });
        let (status, body, ..) =
            Caller::stranger(&url).call(reqwest::Method::POST, "/api/auth/login", Some(login)).await;
        assert!(status.is_success(), "{body}");
        let (status, body, ..) = Caller::stranger(&url).call(reqwest::Method::GET, "/readyz", None).await;
        assert!(status.is_success(), "{body}");
        let log = hub.log();
        assert!(!log.contains("\"level\":\"ERROR\""), "{log}");
        hub.terminate().await;
    }
}

#[tokio::test]
async fn a_pooler_of_transactions_is_refused_by_name() {
    let Some(server) = postgres::server() else { return };
    let database = server.create_database().await;
    for settings in ["", "server_round_robin = 1", "default_pool_size = 2"] {
        let settings = format!("auth_type = trust\npool_mode = transaction\n{settings}");
        let Some(pooler) = Pooler::start(server, &settings).await else { return };
        assert_refused(&pooler.url("hub", &database, ""), "transaction pooling", "pool_mode = session").await;
    }
}

#[tokio::test]
async fn what_a_pooler_refuses_has_a_remedy() {
    let Some(server) = postgres::server() else { return };
    let database = server.create_database().await;
    let Some(pooler) = Pooler::start(server, "auth_type = scram-sha-256\nmax_client_conn = 1").await else {
        return;
    };
    let url = |user: &str, query: &str| pooler.url(user, &database, query);
    assert_refused(&url("hub:wrong", ""), "refused", "user and password").await;
    assert_refused(&url("stranger:secret", ""), "refused", "user and password").await;
    assert_refused(&url("hub:secret", ""), "refused", "connections").await;
    assert_refused(&url("hub:secret", "?options=-c%20jit%3Doff"), "options", "ALTER ROLE").await;
    assert_refused(&url("hub:secret", "?sslmode=require"), "no TLS with", "sslmode").await;
    // A server that wants TLS, and a client that does not.
    let key = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert_file, key_file) = (folder.path().join("cert"), folder.path().join("key"));
    std::fs::write(&cert_file, key.cert.pem()).unwrap();
    std::fs::write(&key_file, key.signing_key.serialize_pem()).unwrap();
    if let Some(who) = Unprivileged::find().unwrap() {
        for path in [folder.path(), &cert_file, &key_file] {
            std::os::unix::fs::chown(path, Some(who.uid), Some(who.gid)).unwrap();
        }
    }
    let settings = format!(
        "auth_type = trust\nclient_tls_sslmode = require\nclient_tls_cert_file = {}\nclient_tls_key_file = {}",
        cert_file.display(),
        key_file.display()
    );
    let Some(pooler) = Pooler::start(server, &settings).await else { return };
    assert_refused(&pooler.url("hub", &database, "?sslmode=disable"), "refused", "remove sslmode=disable")
        .await;
    open(&pooler.url("hub", &database, "?sslmode=require")).await.unwrap();
}

#[tokio::test]
async fn what_the_database_refuses_has_a_remedy() {
    let Some(server) = postgres::Server::alone() else { return };
    server
        .run(
            "CREATE ROLE guest LOGIN; CREATE ROLE lone LOGIN CONNECTION LIMIT 1;
             CREATE ROLE reader LOGIN; ALTER ROLE reader SET default_transaction_read_only = on;
             CREATE ROLE idle NOLOGIN",
        )
        .await;
    let database = name_of(&server.create_database().await);
    let migrated = name_of(&server.migrated_database().await);
    let at = |user: &str, database: &str| direct(&server, user, database);
    assert_refused(&at("hub", "nowhere"), "\"nowhere\" does not exist", "createdb").await;
    assert_refused(&at("stranger", &database), "\"stranger\" does not exist", "user").await;
    assert_refused(&at("idle", &database), "not permitted to log in", "user").await;
    assert_refused(&at("guest", &database), "permission denied for schema public", "GRANT USAGE, CREATE")
        .await;
    assert_refused(&at("guest", &migrated), "permission denied", "GRANT").await;
    assert_refused(&at("lone", &database), "too many connections", "10 connections").await;
    assert_refused(&at("reader", &database), "read-only", "default_transaction_read_only = off").await;
    assert_refused(&at("reader", &migrated), "read-only", "primary").await;
    server.run(&format!("REVOKE CONNECT ON DATABASE {migrated} FROM PUBLIC")).await;
    assert_refused(&at("guest", &migrated), "permission denied for database", "GRANT CONNECT").await;
    // Nothing listens there.
    assert_refused("postgres://hub@127.0.0.1:1/hub", "127.0.0.1:1 does not answer", "host and port").await;
    assert_refused("postgres://hub@nowhere.invalid/hub", "nowhere.invalid:5432 does not answer", "host")
        .await;
    let folder = server.socket_folder().display().to_string();
    server.stop();
    assert_refused(&at("hub", &database), &folder, "check that it runs").await;
    // The tools of the command line say the same.
    let error = Upkeep::open(&StoreConfig::Postgres(Secret::new(at("hub", "hub")))).await.err().unwrap();
    assert!(error.message().contains(&folder), "{}", error.message());
}

#[tokio::test]
async fn a_damaged_file_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&[b"not a database at all; ".as_slice(), &[b'x'; 4096]].concat()).unwrap();
    let config = StoreConfig::Sqlite(path.clone());
    let opened = Store::open(&config, Clock::system()).await.err().unwrap();
    let looked_at = Upkeep::open(&config).await.err().unwrap();
    for error in [opened, looked_at] {
        let (message, hint) = (error.message(), error.hint().unwrap_or_default());
        assert!(message.contains(&path.display().to_string()) && message.contains("damaged"), "{message}");
        assert!(hint.contains("restore a backup"), "{hint}");
    }
}
