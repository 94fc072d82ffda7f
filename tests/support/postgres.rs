//! One PostgreSQL server per test run, from the machine's own binaries, in a temporary folder, on a socket of
//! its own. A watchdog process ends it and removes the folder when the test process is gone, however it went:
//! the watchdog waits for the end of a pipe that only the test process holds.

use std::{
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use hub_core::{
    secret::Secret,
    store::{Store, StoreConfig},
    time::Clock,
};
use sqlx::{Connection, PgConnection};
use tokio::sync::OnceCell;

use super::postgres_user::{Unprivileged, command, find_program};

/// Maximum time of a start of the server.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Small, and without work in the background that tests have no use for.
const TEST_SETTINGS: [&str; 2] = ["shared_buffers=32MB", "autovacuum=off"];

/// The same, and it never waits for the disk: nothing in the shared server outlives the machine, or has to.
const SHARED_SETTINGS: [&str; 4] =
    ["shared_buffers=32MB", "autovacuum=off", "fsync=off", "full_page_writes=off"];

/// The running server.
#[derive(Debug)]
pub struct Server {
    socket_folder: PathBuf,
    databases: AtomicU32,
    /// The database that [`migrated_database`](Self::migrated_database) copies.
    template: OnceCell<()>,
    /// Its standard input is what the watchdog listens to; its end is the end of the server.
    watchdog: Mutex<Child>,
}

/// The server of this run, started at the first call. `None` if PostgreSQL is not installed, which is printed once
/// to standard error.
///
/// # Panics
/// Panics if PostgreSQL is not installed and `CI=true` or `HUB_REQUIRE_POSTGRES=1`, and if it does not start.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER
        .get_or_init(|| {
            let server = Server::with(&SHARED_SETTINGS);
            if server.is_none() {
                let _ = writeln!(std::io::stderr(), "{MISSING} are SKIPPED");
            }
            server
        })
        .as_ref()
}

const MISSING: &str = "PostgreSQL is not installed (no `initdb` and `postgres` in PATH or \
                       /usr/lib/postgresql/*/bin): tests that need it";

fn required() -> bool {
    let set = |name, wanted| std::env::var(name).is_ok_and(|value| value == wanted);
    set("CI", "true") || set("HUB_REQUIRE_POSTGRES", "1")
}

/// The folder with `initdb` and `postgres`.
fn find_binaries() -> Option<PathBuf> {
    let complete = |folder: &Path| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    // A link in PATH may stand alone: the server looks for its neighbours where the link points to.
    let in_path =
        find_program("postgres").and_then(|path| Some(path.canonicalize().ok()?.parent()?.to_owned()));
    if let Some(folder) = in_path.filter(|folder| complete(folder)) {
        return Some(folder);
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> =
        versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).collect();
    folders.retain(|folder| complete(folder));
    folders.sort();
    folders.pop()
}

impl Server {
    /// A server for one test that does to it what others must not see. It ends with this value. `None` when
    /// the machine has no PostgreSQL.
    ///
    /// # Panics
    /// As [`server`].
    pub fn alone() -> Option<Self> {
        Self::with(&TEST_SETTINGS)
    }

    /// A server with these settings next to those that every caller wants. `None` and panics as in
    /// [`alone`](Self::alone).
    pub fn with(settings: &[&str]) -> Option<Self> {
        let binaries = find_binaries();
        assert!(
            binaries.is_some() || !required(),
            "{MISSING} cannot run, and CI or HUB_REQUIRE_POSTGRES wants them to"
        );
        Some(Self::run_from(&binaries?, settings))
    }

    /// Ends the server's processes and connections without asking; the data stays.
    pub fn stop(&self) {
        self.tell("stop");
        self.wait_for("its end", || !self.socket_folder.join("data/postmaster.pid").exists());
    }

    /// Starts the stopped server again.
    pub fn start(&self) {
        self.tell("start");
        self.wait_until_ready();
    }

    fn tell(&self, word: &str) {
        let mut watchdog = self.watchdog.lock().unwrap();
        writeln!(watchdog.stdin.as_mut().unwrap(), "{word}").unwrap();
    }

    fn run_from(binaries: &Path, settings: &[&str]) -> Self {
        let who = Unprivileged::find().unwrap();
        let folder = tempfile::Builder::new().prefix("hub-pg-").tempdir().unwrap().keep();
        if let Some(who) = &who {
            std::os::unix::fs::chown(&folder, Some(who.uid), Some(who.gid)).unwrap();
        }
        let data = folder.join("data");
        let made = command(who.as_ref(), &binaries.join("initdb"))
            .args(["--username=hub", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "-D"])
            .arg(&data)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        let watchdog = start_watchdog(binaries, who.as_ref(), &folder, settings);
        let server = Self {
            socket_folder: folder,
            databases: AtomicU32::new(0),
            template: OnceCell::new(),
            watchdog: Mutex::new(watchdog),
        };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&self) {
        // The socket takes connections, to refuse them, before the server is ready; the last line of its lock
        // file says when it is.
        let lock_file = self.socket_folder.join("data/postmaster.pid");
        self.wait_for("its start", || {
            let state = std::fs::read_to_string(&lock_file).unwrap_or_default();
            state.lines().nth(7).is_some_and(|state| state.trim() == "ready")
        });
    }

    fn wait_for(&self, what: &str, look: impl Fn() -> bool) {
        let step = Duration::from_millis(20);
        for _ in 0..TEST_TIMEOUT.as_millis() / step.as_millis() {
            if look() {
                return;
            }
            std::thread::sleep(step);
        }
        panic!("PostgreSQL: waited in vain for {what}: {}", self.log());
    }

    /// The folder of its socket, which is its `host`.
    pub fn socket_folder(&self) -> &Path {
        &self.socket_folder
    }

    /// Log of the server so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.socket_folder.join("log")).unwrap_or_default()
    }

    /// Makes an empty database and says where it is.
    pub async fn create_database(&self) -> StoreConfig {
        self.create("template1").await
    }

    /// Makes a database with the tables of a store, and says where it is. All migrations run once: they take longer
    /// than a copy. Its texts are in the order of a language, as in most databases that people have.
    pub async fn migrated_database(&self) -> StoreConfig {
        const TEMPLATE: &str = "migrated";
        const LANGUAGE: &str = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'";
        self.template
            .get_or_init(async || {
                self.run(&format!("CREATE DATABASE {TEMPLATE} {LANGUAGE}")).await;
                Store::open(&self.config(TEMPLATE), Clock::system()).await.unwrap().close().await;
            })
            .await;
        self.create(TEMPLATE).await
    }

    async fn create(&self, template: &str) -> StoreConfig {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        self.config(&name)
    }

    /// Removes a database that one of the functions above made, connections and all.
    pub async fn drop_database(&self, config: &StoreConfig) {
        let StoreConfig::Postgres(url) = config else { return };
        let name = url.expose().split(['/', '?']).nth(3).unwrap();
        self.run(&format!("DROP DATABASE {name} WITH (FORCE)")).await;
    }

    fn config(&self, database: &str) -> StoreConfig {
        StoreConfig::Postgres(Secret::new(self.url(database)))
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://hub@localhost/{database}?host={}", self.socket_folder.display())
    }

    /// Runs statements in the database `postgres`, as its owner.
    pub async fn run(&self, sql: &str) {
        // A template takes one copy at a time, so a run of tests now and then has to ask again.
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        for _ in 0..100 {
            match sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await {
                Ok(_) => return connection.close().await.unwrap(),
                Err(error) if error.to_string().contains("being accessed by other users") => {
                    Clock::system().sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("{sql}: {error}"),
            }
        }
        panic!("{sql}: the template stays busy");
    }
}

/// Starts a process that runs the server until its standard input ends, then ends it and removes the folder.
fn start_watchdog(binaries: &Path, who: Option<&Unprivileged>, folder: &Path, settings: &[&str]) -> Child {
    const SCRIPT: &str = r#"
        trap '' INT TERM HUP
        folder=$1
        shift
        start() { "$@" >>"$folder/log" 2>&1 </dev/null & server=$!; }
        stop() { kill -QUIT "$server"; wait "$server"; }
        start "$@"
        while read -r word; do
            case $word in
                start) start "$@" ;;
                stop) stop ;;
            esac
        done
        stop
        rm -rf "$folder"
    "#;
    let mut watchdog = Command::new("sh");
    watchdog.args(["-c", SCRIPT, "watchdog"]).arg(folder);
    if let Some(who) = who {
        watchdog.args(who.prefix());
    }
    watchdog
        .arg(binaries.join("postgres"))
        .arg("-D")
        .arg(folder.join("data"))
        .arg("-k")
        .arg(folder)
        .args(["-c", "listen_addresses=", "-c", "fsync=on", "-c", "max_connections=300"])
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A group of its own: Ctrl-C in the terminal reaches the tests, and only their end reaches it.
        .process_group(0);
    watchdog.spawn().unwrap()
}
