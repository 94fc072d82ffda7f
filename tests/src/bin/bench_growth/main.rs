//! `cargo run --release -p hub-tests --bin bench-growth`: what pages of lists and a round of retention cost while the
//! tables grow, and a start of the server with many bots, on SQLite. The same work on a small database in the same run is the reference: a ratio of 1 means
//! that it does not grow. `tests/BENCHMARKS.md` has the results.

#[path = "../../../support/http.rs"]
#[expect(clippy::unwrap_used, dead_code, reason = "written for tests: what goes wrong ends the run")]
mod http_caller;
mod network;
#[path = "../bench_delivery/process.rs"]
#[expect(dead_code, reason = "shared with the other benchmark")]
mod process;
#[path = "../bench_delivery/program.rs"]
mod program;
mod start;

use std::{fmt::Write as _, io::Write as _, path::PathBuf, time::Duration};

use clap::{Parser, Subcommand};
use hub_core::{
    access::Actor,
    id::{BotId, ChannelId, MessageId, TraceId, UserId},
    page::{PageRequest, encode},
    store::{Piece, Store, StoreConfig, traces::TraceFilter},
    time::{Clock, Stopwatch, Timestamp},
};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Failure> = std::result::Result<T, E>;

/// Measures what grows with the number of messages
#[derive(Debug, Parser)]
#[command(name = "bench-growth")]
struct Options {
    #[command(subcommand)]
    role: Option<Role>,
    /// Messages of the large database, each with a trace.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u32,
    /// Messages of the small one.
    #[arg(long, default_value_t = 10_000)]
    reference: u32,
    /// How often each statement is measured; the median counts. 0 measures none.
    #[arg(long, default_value_t = 21)]
    samples: usize,
    /// Bots of the server that is started; 0 starts none.
    #[arg(long, default_value_t = 1_000)]
    bots: usize,
    /// The server to start, in place of this workspace's release build.
    #[arg(long, value_name = "PROGRAM")]
    hub_server: Option<PathBuf>,
}

/// Processes that the benchmark starts of itself.
#[derive(Debug, Subcommand)]
enum Role {
    /// The chat network.
    #[command(hide = true)]
    Network,
}

/// When the oldest message came; one follows per millisecond.
const START: Timestamp = Timestamp::from_millis(1_790_000_000_000);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    if options.role.is_some() {
        return network::serve().await;
    }
    if options.bots > 0 {
        let program = program::find(options.hub_server.as_deref())?;
        let starts = start::measure(&program, options.bots, options.rows).await?;
        print(&table_of_starts(&options, &starts)?)?;
    }
    if options.samples > 0 {
        print(&table_of_queries(&options).await?)?;
    }
    Ok(())
}

fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn table_of_starts(options: &Options, [empty, full]: &[start::Start; 2]) -> Result<String> {
    let mut text = format!(
        "| a start with {} bots | no messages | {} messages | ratio |\n|---|---|---|---|\n",
        options.bots, options.rows
    );
    for (what, of) in [
        ("until it listens", (|start| start.listening) as fn(&start::Start) -> Duration),
        ("until every bot was polled", |start| start.polled),
        ("processor time until then", |start| start.cpu),
    ] {
        let (empty, full) = (of(empty), of(full));
        let ratio = full.as_secs_f64() / empty.as_secs_f64();
        writeln!(text, "| {what} | {} | {} | {ratio:.2} |", millis(empty), millis(full))?;
    }
    let [empty, full] = [empty, full].map(|start| start.memory >> 10);
    let ratio = full * 100 / empty.max(1);
    writeln!(text, "| highest memory | {empty} KiB | {full} KiB | {}.{:02} |\n", ratio / 100, ratio % 100)?;
    Ok(text)
}

async fn table_of_queries(options: &Options) -> Result<String> {
    let small = measure(options.reference, options.samples).await?;
    let large = measure(options.rows, options.samples).await?;
    let mut text = format!(
        "| median of {} | {} rows | {} rows | ratio |\n|---|---|---|---|\n",
        options.samples, options.reference, options.rows
    );
    for ((what, small), (_, large)) in small.iter().zip(&large) {
        let ratio = large.as_secs_f64() / small.as_secs_f64();
        writeln!(text, "| {what} | {} | {} | {ratio:.2} |", millis(*small), millis(*large))?;
    }
    Ok(text)
}

fn millis(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1_000.0)
}

/// The medians of a database with so many messages.
async fn measure(rows: u32, samples: usize) -> Result<Vec<(&'static str, Duration)>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("hub.db");
    let store = Store::open(&StoreConfig::Sqlite(path.clone()), Clock::system()).await?;
    fill(&format!("sqlite://{}", path.display()), rows, START).await?;
    let middle = TraceId::first_at(START + Duration::from_millis(u64::from(rows / 2))).to_string();
    let within = TraceFilter {
        since: Some(START),
        until: Some(START + Duration::from_millis(u64::from(rows / 2))),
        ..TraceFilter::default()
    };
    let of_message = TraceFilter { message_id: Some(MessageId::first_at(START)), ..TraceFilter::default() };
    let all = TraceFilter::default();
    let at_middle = PageRequest::parse("t", None, Some(&encode("t", &middle)))?;
    let first = PageRequest::default();
    let mut medians = Vec::new();
    for (what, filter, page) in [
        ("traces: the first page", &all, &first),
        ("traces: a page in the middle", &all, &at_middle),
        ("traces: until the middle", &within, &first),
        ("traces: of a message", &of_message, &first),
    ] {
        let mut times = Vec::new();
        for _ in 0..samples {
            let watch = Stopwatch::start();
            let mut read = store.read().await?;
            read.traces().list(Actor::Operator.scope()?, bot(), filter, page).await?;
            times.push(watch.elapsed());
        }
        medians.push((what, median(times)));
    }
    let mut times = Vec::new();
    for _ in 0..samples {
        let watch = Stopwatch::start();
        let deleted = store
            .write(|tx| {
                Box::pin(async move {
                    let traces = tx.traces().delete_before("", START, 500).await?;
                    let messages = tx.sending().delete_messages_before("", START, 500).await?;
                    Ok([traces, messages])
                })
            })
            .await?;
        times.push(watch.elapsed());
        if deleted.iter().any(|piece| *piece != Piece::default()) {
            return Err("nothing is old, and something was deleted".into());
        }
    }
    medians.push(("a round of retention with nothing old", median(times)));
    store.close().await;
    Ok(medians)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

const fn bot() -> BotId {
    BotId::from_u128(1)
}

/// Writes the rows with statements of SQLite alone. The number of a row is the time in its id, since `start`.
async fn fill(url: &str, rows: u32, start: Timestamp) -> Result<()> {
    let mut connection = SqliteConnection::connect(url).await?;
    let (user, bot, channel) = (UserId::from_u128(1), bot(), ChannelId::from_u128(1));
    let start = start.as_millis();
    // 48 bits of the time are ten characters of a ULID, five bits each.
    let digits: Vec<String> = (0..10)
        .rev()
        .map(|place| {
            format!(
                "substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((({start} + i) >> {}) & 31), 1)",
                place * 5
            )
        })
        .collect();
    let time = digits.join(" || ");
    let numbers =
        format!("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows})");
    let tail = "'0000000000000000'";
    let sql = format!(
        "PRAGMA synchronous = OFF; BEGIN;
         INSERT INTO users (id, username, display_name, email, role, status, created_at, updated_at)
            VALUES ('{user}', 'ada', 'Ada', '', 'admin', 'active', 0, 0);
         INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id, credentials,
            credentials_rev, cursor, config_rev, lease_fence, created_at)
            VALUES ('{bot}', '{user}', 'bot', 'sim', 'pending', 0, 'bot@im.bot', '', 'sealed', 1, '', 0, 0, 0);
         INSERT INTO channels (id, bot_id, name, enabled, key_hash, key_last4, filter, websocket, webhook, ai,
            on_plugin_error, lane_hold_s, last_seq, created_at, updated_at)
            VALUES ('{channel}', '{bot}', 'orders', 1, 'hash', 'last', '{{}}', '{{}}', '{{}}', '{{}}', 'retry', 60, 0,
                0, 0);
         {numbers} INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id,
            group_id, kind, content, items, dedupe_key, private, status, sent_at, created_at)
            SELECT 'msg_' || {time} || {tail}, '{bot}', 'inbound', 'person ' || (i % 200), '', '', '', '', '', 'text',
                printf('%.200c', 't'), '[]', printf('%012d', i), printf('%.300c', 'p'), 'received', {start} + i,
                {start} + i FROM n;
         {numbers} INSERT INTO traces (id, message_id, bot_id, channel_id, status, summary, attempts, started_at,
            duration_ms, steps)
            SELECT 'tr_' || {time} || {tail}, 'msg_' || {time} || {tail}, '{bot}', '{channel}', 'ok', 'status 200', 1,
                {start} + i, 12, printf('[\"%.480c\"]', 's') FROM n;
         COMMIT; PRAGMA wal_checkpoint(TRUNCATE)"
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await?;
    Ok(())
}
