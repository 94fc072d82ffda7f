//! The start of the shipped server with many bots: the time until each was polled once, its processor time and memory.

use std::{num::NonZeroUsize, path::Path, time::Duration};

use hub_core::{
    id::MessageId,
    time::{Clock, Stopwatch},
};
use serde_json::json;
use sqlx::{Connection, SqliteConnection};
use tokio::net::{TcpListener, TcpStream};

use crate::{
    Options, Result, SPACING, Size, fill,
    http_caller::{Caller, until},
    median_of,
    network::{self, Bound},
    process::{Process, memory},
};

/// The bots that a user may have.
const BOTS_OF_USER: usize = 20;
/// Messages that the first round of retention deletes, and how old they are.
const OLD: u32 = 5_000;
const OLD_AGE: Duration = Duration::from_secs(31 * 24 * 3600);
/// Messages that people write, and those that they write at once.
const WRITTEN: usize = 4_000;
const AT_ONCE: usize = 200;
/// Bearer token for the metrics.
const METRICS_TOKEN: &str = "a token of the benchmark";
/// Maximum time until [`WRITTEN`] messages are stored and the old ones deleted, and the interval of its checks.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
const INTERVAL: Duration = Duration::from_millis(100);

/// A start of the server.
pub struct Start {
    /// Until it accepts connections.
    pub listening: Duration,
    /// Until every bot was polled once.
    pub polled: Duration,
    /// Its processor time until then.
    pub cpu: Duration,
    /// Its processor time for each message that people write then, while retention deletes old ones.
    pub message: Duration,
    /// Until its metrics are read, when that is done: the median time.
    pub metrics: Duration,
    /// The most memory it used, in bytes.
    pub memory: u64,
}

/// Binds the bots, then for each number of messages starts the server again with a database that has so many, and
/// measures statements on it.
pub async fn measure(program: &Path, options: &Options) -> Result<Vec<Size>> {
    let folder = tempfile::tempdir()?;
    let mut network = Process::role(&["network"])?;
    let network_at = network.line()?;
    let simulator = Caller::stranger(&format!("http://{network_at}"));
    let hub = Hub { program, folder: folder.path(), network_at: &network_at };
    let (process, address) = hub.start().await?;
    let bound = network::bind(&address, &simulator, options.bots.get(), BOTS_OF_USER).await;
    for bot in &bound {
        bot.owner.post(&format!("/api/bots/{}/channels", bot.id), json!({ "name": "orders" })).await;
    }
    process.terminate()?;
    let (database, empty) = (folder.path().join("hub.db"), folder.path().join("empty.db"));
    std::fs::rename(&database, &empty)?;
    let mut sizes = Vec::new();
    for &rows in &options.rows {
        std::fs::copy(&empty, &database)?;
        let now = Clock::system().now();
        let since = now - SPACING * rows;
        let url = format!("sqlite://{}", database.display());
        fill(&database, &[(rows.saturating_sub(OLD), since), (OLD.min(rows), now - OLD_AGE)]).await?;
        let start = hub.measure(&simulator, &bound, &url, options.samples).await?;
        sizes.push(Size { start, medians: super::measure(&database, since, rows, options.samples).await? });
    }
    Ok(sizes)
}

struct Hub<'a> {
    program: &'a Path,
    folder: &'a Path,
    network_at: &'a str,
}

impl Hub<'_> {
    async fn start(&self) -> Result<(Process, String)> {
        // Free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.to_string();
        let variables = [
            ("HUB_LISTEN", address.clone()),
            ("HUB_DATA_DIR", self.folder.display().to_string()),
            ("HUB_SIM_URL", format!("http://{}", self.network_at)),
            ("HUB_NETWORK", "sim".to_owned()),
            ("HUB_DEMO", "false".to_owned()),
            ("HUB_LOG", "error".to_owned()),
            ("HUB_METRICS_TOKEN", METRICS_TOKEN.to_owned()),
            ("HUB_RATE_DEFAULT", "10000000".to_owned()),
            ("HUB_RATE_AUTH_PER_IP", "10000000".to_owned()),
        ];
        let process = Process::program(self.program, &variables)?;
        until("the hub listens", async || TcpStream::connect(&address).await.ok()).await;
        Ok((process, address))
    }

    /// Starts it, waits until every bot was polled, and ends it.
    async fn measure(
        &self,
        simulator: &Caller,
        bound: &[Bound],
        url: &str,
        samples: NonZeroUsize,
    ) -> Result<Start> {
        network::reset(simulator).await;
        let watch = Stopwatch::start();
        let (process, address) = self.start().await?;
        let listening = watch.elapsed();
        network::wait_polled(simulator, bound.len()).await?;
        let (polled, cpu) = (watch.elapsed(), process.cpu());
        let caller = Caller::stranger(&format!("http://{address}")).with_bearer(METRICS_TOKEN);
        let metrics = async || match caller.call(reqwest::Method::GET, "/metrics", None).await {
            (status, ..) if status.is_success() => Ok(()),
            (status, answer, _) => Err(format!("/metrics: {status} {answer}").into()),
        };
        let start = Start {
            listening,
            polled,
            cpu,
            message: write(&process, simulator, bound, url).await?,
            metrics: median_of(samples, metrics).await?,
            memory: memory(process.id, "VmHWM:"),
        };
        process.terminate()?;
        Ok(start)
    }
}

/// People write to the bots; returns the processor time of the hub for each message, until all are stored and the
/// old ones are deleted.
async fn write(process: &Process, simulator: &Caller, bound: &[Bound], url: &str) -> Result<Duration> {
    let mut database = SqliteConnection::connect(url).await?;
    let since = MessageId::first_at(Clock::system().now()).to_string();
    let before = process.cpu();
    let numbers: Vec<usize> = (0..WRITTEN).collect();
    for numbers in numbers.chunks(AT_ONCE) {
        let messages: Vec<_> = numbers
            .iter()
            .map(|number| {
                let person = format!("person{}@im.wechat", number % 50);
                let wx_id = &bound[number % bound.len()].wx_id;
                json!({ "wx_id": wx_id, "from_user_id": person, "text": format!("order {number}") })
            })
            .collect();
        simulator.control("/_sim/messages", Some(json!({ "messages": messages }))).await;
    }
    let (old, watch) =
        (MessageId::first_at(Clock::system().now() - OLD_AGE / 2).to_string(), Stopwatch::start());
    loop {
        let (stored, left): (i64, i64) = sqlx::query_as(
            "SELECT (SELECT COUNT(*) FROM messages WHERE id >= $1), (SELECT COUNT(*) FROM messages WHERE id < $2)",
        )
        .bind(&since)
        .bind(&old)
        .fetch_one(&mut database)
        .await?;
        if usize::try_from(stored)? >= WRITTEN && left == 0 {
            break;
        }
        if watch.elapsed() > WRITE_TIMEOUT {
            return Err(format!("{stored} of {WRITTEN} messages are stored, {left} old ones are left").into());
        }
        Clock::system().sleep(INTERVAL).await;
    }
    database.close().await?;
    Ok(process.cpu().saturating_sub(before) / u32::try_from(WRITTEN)?)
}
