//! `cargo run --release -p hub-tests --bin bench-bots`: a node with many bots whose people write nothing. Measured are
//! the start until all of them are polled, processor time and memory of the idle hub, how long it takes until all
//! of them are polled again after the hub was killed (by a second node on PostgreSQL, by a restart on SQLite), and what
//! the hub needs while the network is away.
//! `tests/BENCHMARKS.md` has the results.

#[path = "../bench_delivery/database.rs"]
mod database;
#[path = "../bench_growth/network.rs"]
#[expect(dead_code, reason = "shared with the other benchmark")]
mod network;
mod options;
#[path = "../bench_delivery/process.rs"]
#[expect(dead_code, reason = "shared with the other benchmark")]
mod process;
#[path = "../bench_delivery/program.rs"]
mod program;
#[path = "../bench_delivery/support.rs"]
mod support;

use std::{io::Write as _, path::Path, time::Duration};

use clap::Parser;
use hub_core::time::{Clock, Stopwatch};
use tokio::net::{TcpListener, TcpStream};

use self::{
    database::Place,
    options::{Database, Options},
    process::{Process, memory},
    support::http::{self as http_caller, Caller, until},
};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Failure> = std::result::Result<T, E>;

/// All nodes of a database need the same key.
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// Time that a hub settles before its memory is read, or its idle time is measured.
const SETTLE: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    if options.role.is_some() {
        return network::serve().await;
    }
    let program = program::find(options.hub_server.as_deref())?;
    for database in [Database::Sqlite, Database::Postgres] {
        if options.database.is_none_or(|only| only == database) {
            let rows = measure(&options, &program, database).await?;
            let mut table = format!("| {database:?}, {} bots | |\n|---|---|\n", options.bots);
            table.extend(rows.iter().map(|(what, value)| format!("| {what} | {value} |\n")));
            std::io::stdout().write_all(format!("{table}\n").as_bytes())?;
        }
    }
    Ok(())
}

async fn measure(
    options: &Options,
    program: &Path,
    database: Database,
) -> Result<Vec<(&'static str, String)>> {
    let bots = options.bots;
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let place = Place::new(database).await?;
    let mut network = Process::role(&["network"])?;
    let network_at = network.line()?;
    let each = |memory: u64, empty| memory.saturating_sub(empty) / (bots as u64).max(1);
    let simulator = Caller::stranger(&format!("http://{network_at}"));
    let node = |number: usize| Node {
        program,
        folder: folders[number].path(),
        network_at: &network_at,
        database_url: place.url(),
    };

    let (process, address) = node(0).start().await?;
    Clock::system().sleep(SETTLE).await;
    let empty = anonymous(&process);
    let watch = Stopwatch::start();
    network::bind(&address, &simulator, bots, options.bots_of_user).await;
    let bound = (watch.elapsed(), process.cpu());
    process.terminate()?;

    network::reset(&simulator).await;
    let before = place.cpu();
    let watch = Stopwatch::start();
    let (process, _) = node(0).start().await?;
    network::wait_polled(&simulator, bots).await?;
    let start = (watch.elapsed(), process.cpu(), place.cpu().saturating_sub(before));

    Clock::system().sleep(SETTLE).await;
    let idle = load(&process, &place, options.seconds).await;
    let idle_memory = each(anonymous(&process), empty);

    // The second node is there when the first one dies; SQLite has one node, which is started again.
    let standby = if database == Database::Postgres { Some(node(1).start().await?) } else { None };
    network::reset(&simulator).await;
    drop(process);
    let watch = Stopwatch::start();
    let second = match standby {
        Some(standby) => standby,
        None => node(0).start().await?,
    };
    network::wait_polled(&simulator, bots).await?;
    let takeover = (watch.elapsed(), second.0.cpu());

    drop(network);
    let away = load(&second.0, &place, options.seconds).await;
    let away_memory = each(anonymous(&second.0), empty);
    second.0.terminate()?;

    Ok(vec![
        ("binding all: time", seconds(bound.0)),
        ("binding all: processor time of the hub", seconds(bound.1)),
        ("from a start until all were polled: time", seconds(start.0)),
        ("processor time until then, hub + database", format!("{} + {}", seconds(start.1), seconds(start.2))),
        ("idle: share of a processor, hub + database", idle),
        ("idle: anonymous memory of each, over the empty hub", format!("{:.1} KiB", kib(idle_memory))),
        ("anonymous memory of the empty hub", format!("{:.1} MiB", kib(empty) / 1024.0)),
        ("from a kill until all were polled: time", seconds(takeover.0)),
        ("processor time of the node that took them over", seconds(takeover.1)),
        ("network away: share of a processor, hub + database", away),
        ("network away: anonymous memory of each", format!("{:.1} KiB", kib(away_memory))),
    ])
}

/// Shares of a processor over some seconds.
async fn load(hub: &Process, place: &Place, time: u64) -> String {
    let (before, database, watch) = (hub.cpu(), place.cpu(), Stopwatch::start());
    Clock::system().sleep(Duration::from_secs(time)).await;
    let share = |cpu: Duration| 100.0 * cpu.as_secs_f64() / watch.elapsed().as_secs_f64();
    let (hub, database) = (hub.cpu().saturating_sub(before), place.cpu().saturating_sub(database));
    format!("{:.1} % + {:.1} %", share(hub), share(database))
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "bytes of one process")]
fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

/// Memory that belongs to no file.
fn anonymous(process: &Process) -> u64 {
    memory(process.id, "RssAnon:")
}

struct Node<'a> {
    program: &'a Path,
    folder: &'a Path,
    network_at: &'a str,
    database_url: Option<&'a str>,
}

impl Node<'_> {
    /// Starts a hub; waits until it listens.
    async fn start(&self) -> Result<(Process, String)> {
        // Free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.to_string();
        let mut variables = vec![
            ("HUB_LISTEN", address.clone()),
            ("HUB_DATA_DIR", self.folder.display().to_string()),
            ("HUB_SECRET_KEY", KEY.to_owned()),
            ("HUB_SIM_URL", format!("http://{}", self.network_at)),
            ("HUB_NETWORK", "sim".to_owned()),
            ("HUB_DEMO", "false".to_owned()),
            ("HUB_LOG", "error".to_owned()),
            ("HUB_MAX_BOTS_PER_USER", "1000000".to_owned()),
            ("HUB_RATE_DEFAULT", "10000000".to_owned()),
            ("HUB_RATE_AUTH_PER_IP", "10000000".to_owned()),
        ];
        variables.extend(self.database_url.map(|url| ("HUB_DATABASE_URL", url.to_owned())));
        let process = Process::program(self.program, &variables)?;
        until("the hub listens", async || TcpStream::connect(&address).await.ok()).await;
        Ok((process, address))
    }
}
