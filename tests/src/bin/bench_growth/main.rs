//! `cargo run --release -p hub-tests --bin bench-growth`: what pages of lists and a round of retention cost while the
//! tables grow, and a start of the server with many bots and what a message costs then, on SQLite. The same work on a
//! small database in the same run is the reference: a ratio of 1 means that it does not grow. `tests/BENCHMARKS.md` has the results.

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

use std::{
    fmt::Write as _,
    io::Write as _,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Parser, Subcommand};
use hub_core::{
    access::Actor,
    bots::MessageFilter,
    id::{BotId, ChannelId, MessageId, TraceId, UserId},
    page::{MAX_SCANNED, PageRequest, encode},
    store::{DeletedBatch, Store, StoreConfig},
    time::{Clock, Stopwatch, Timestamp},
    traces::{TraceQuery, TraceSearch},
};
use sqlx::{
    AssertSqlSafe, Connection, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Failure> = std::result::Result<T, E>;

/// Measures what grows with the number of messages
#[derive(Debug, Parser)]
#[command(name = "bench-growth")]
struct Options {
    #[command(subcommand)]
    role: Option<Role>,
    /// Messages of each database, each with a trace; the first one is the reference.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    rows: Vec<u32>,
    /// How often each statement is measured; the median counts.
    #[arg(long, default_value = "21")]
    samples: NonZeroUsize,
    /// Bots of the server that is started.
    #[arg(long, default_value = "1000")]
    bots: NonZeroUsize,
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

/// The time between two stored messages: a hundred in a second, all of one bot.
pub const SPACING: Duration = Duration::from_millis(10);

/// Medians of statements, in the order of the table.
type Medians = Vec<(&'static str, Duration)>;

/// Measurements with one number of messages.
struct Size {
    start: start::Start,
    medians: Medians,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    if options.role.is_some() {
        return network::serve().await;
    }
    let program = program::find(options.hub_server.as_deref())?;
    let sizes = start::measure(&program, &options).await?;
    print(&table_of_starts(&options, &sizes)?)?;
    print(&table_of_queries(&options, &sizes)?)
}

fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

fn table_of_starts(options: &Options, sizes: &[Size]) -> Result<String> {
    let mut text = head(&format!("a start with {} bots", options.bots), &options.rows)?;
    for (what, of) in [
        ("until it listens", (|start| start.listening) as fn(&start::Start) -> Duration),
        ("until every bot was polled", |start| start.polled),
        ("processor time until then", |start| start.cpu),
        ("processor time of a message, with retention", |start| start.message),
        ("its metrics", |start| start.metrics),
    ] {
        row(&mut text, what, &sizes.iter().map(|size| of(&size.start)).collect::<Vec<_>>())?;
    }
    let memory = sizes.iter().map(|size| format!("{} KiB", size.start.memory >> 10));
    writeln!(text, "| highest memory | {} | |\n", memory.collect::<Vec<_>>().join(" | "))?;
    Ok(text)
}

fn table_of_queries(options: &Options, sizes: &[Size]) -> Result<String> {
    let mut text = head(&format!("median of {}", options.samples), &options.rows)?;
    for (at, (what, _)) in sizes.iter().take(1).flat_map(|size| &size.medians).enumerate() {
        row(&mut text, what, &sizes.iter().map(|size| size.medians[at].1).collect::<Vec<_>>())?;
    }
    Ok(text)
}

fn head(what: &str, rows: &[u32]) -> Result<String> {
    let mut text = format!("| {what} |");
    rows.iter().try_for_each(|rows| write!(text, " {rows} messages |"))?;
    writeln!(text, " ratio of last to first |\n|---{}|---|", "|---".repeat(rows.len()))?;
    Ok(text)
}

fn row(text: &mut String, what: &str, times: &[Duration]) -> Result<()> {
    write!(text, "| {what} |")?;
    times.iter().try_for_each(|time| write!(text, " {} |", millis(*time)))?;
    let (first, last) =
        (times.first().copied().unwrap_or_default(), times.last().copied().unwrap_or_default());
    writeln!(text, " {:.2} |", last.as_secs_f64() / first.as_secs_f64())?;
    Ok(())
}

fn millis(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1_000.0)
}

/// The medians of a database with so many messages since `start`.
async fn measure(path: &Path, start: Timestamp, rows: u32, samples: NonZeroUsize) -> Result<Medians> {
    let store = Store::open(&StoreConfig::Sqlite(path.to_owned()), Clock::system()).await?;
    let until = start + SPACING * (rows / 2);
    let first = PageRequest::default();
    let mut medians = Vec::new();

    let middle = TraceId::first_at(until).to_string();
    let at_middle = PageRequest::parse("t", None, Some(&encode("t", &middle)))?;
    let all = TraceQuery::default();
    let within = TraceQuery { since: Some(start), until: Some(until), ..all.clone() };
    let of_message = TraceQuery { message_id: Some(MessageId::first_at(start)), ..all.clone() };
    for (what, filter, page) in [
        ("traces: the first page", &all, &first),
        ("traces: a page in the middle", &all, &at_middle),
        ("traces: until the middle", &within, &first),
        ("traces: of a message", &of_message, &first),
    ] {
        let list = async || {
            store.read().await?.traces().list(Actor::Operator.scope()?, bot(), filter, page).await?;
            Ok(())
        };
        medians.push((what, median_of(samples, list).await?));
    }
    let all = TraceSearch::default();
    let search = async || {
        store.read().await?.traces().search(Some(owner()), &all, &first, MAX_SCANNED).await?;
        Ok(())
    };
    medians.push(("traces: of all bots, counted up to 1,000", median_of(samples, search).await?));

    let middle = MessageId::first_at(until).to_string();
    let at_middle = PageRequest::parse("m", None, Some(&encode("m", &middle)))?;
    let all = MessageFilter::default();
    let within = MessageFilter { since: Some(start), until: Some(until), ..all.clone() };
    let of_person = MessageFilter { user_id: Some("person 1".to_owned()), ..all.clone() };
    for (what, filter, page) in [
        ("messages: the first page", &all, &first),
        ("messages: a page in the middle", &all, &at_middle),
        ("messages: until the middle", &within, &first),
        ("messages: of a person", &of_person, &first),
    ] {
        let list = async || {
            store.read().await?.messages().page(bot(), filter, page).await?;
            Ok(())
        };
        medians.push((what, median_of(samples, list).await?));
    }

    let retention = async || {
        let deleted = store
            .write(move |tx| {
                Box::pin(async move {
                    let traces = tx.traces().delete_before("", start, 500).await?;
                    let messages = tx.sending().delete_messages_before("", start, 500).await?;
                    Ok([traces, messages])
                })
            })
            .await?;
        if deleted.iter().any(|piece| *piece != DeletedBatch::default()) {
            return Err("nothing is old, and something was deleted".into());
        }
        Ok(())
    };
    medians.push(("a round of retention with nothing old", median_of(samples, retention).await?));
    store.close().await;
    Ok(medians)
}

/// The median time of so many runs.
async fn median_of(samples: NonZeroUsize, mut run: impl AsyncFnMut() -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..samples.get() {
        let watch = Stopwatch::start();
        run().await?;
        times.push(watch.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

const fn owner() -> UserId {
    UserId::from_u128(1)
}

const fn bot() -> BotId {
    BotId::from_u128(1)
}

/// Writes rows with statements of SQLite alone: for each part so many, of which the first one came at this time and
/// the others at this spacing.
async fn fill(database: &Path, parts: &[(u32, Timestamp)]) -> Result<()> {
    let options = SqliteConnectOptions::new()
        .filename(database)
        .journal_mode(SqliteJournalMode::Off)
        .synchronous(SqliteSynchronous::Off)
        .pragma("cache_size", "-1000000");
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let (user, bot, channel) = (owner(), bot(), ChannelId::from_u128(1));
    let owner = format!(
        "INSERT INTO users (id, username, display_name, email, role, status, created_at, updated_at)
            VALUES ('{user}', 'ada', 'Ada', '', 'admin', 'active', 0, 0);
         INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id, credentials,
            credentials_rev, cursor, config_rev, lease_fence, created_at)
            VALUES ('{bot}', '{user}', 'bot', 'sim', 'pending', 0, 'bot@im.bot', '', 'sealed', 1, '', 0, 0, 0);
         INSERT INTO channels (id, bot_id, name, enabled, key_hash, key_last4, filter, websocket, webhook, ai,
            on_plugin_error, lane_hold_s, last_seq, created_at, updated_at)
            VALUES ('{channel}', '{bot}', 'orders', 1, 'hash', 'last', '{{}}', '{{}}', '{{}}', '{{}}', 'retry', 60, 0,
                0, 0);"
    );
    sqlx::raw_sql(AssertSqlSafe(owner)).execute(&mut connection).await?;
    for (part, (rows, start)) in parts.iter().enumerate() {
        let rows = messages(bot, channel, part, *rows, start.as_millis());
        sqlx::raw_sql(AssertSqlSafe(rows)).execute(&mut connection).await?;
    }
    connection.close().await?;
    // To disk, so that no program that is measured has to write it with its first sync.
    Ok(std::fs::File::open(database)?.sync_all()?)
}

/// The statements for the messages and traces of a part.
fn messages(bot: BotId, channel: ChannelId, part: usize, rows: u32, start: i64) -> String {
    let spacing = SPACING.as_millis();
    // 48 bits of the time are ten characters of a ULID, five bits each.
    let digits: Vec<String> = (0..10)
        .rev()
        .map(|place| {
            format!(
                "substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((({start} + i * {spacing}) >> {}) & 31), 1)",
                place * 5
            )
        })
        .collect();
    let time = digits.join(" || ");
    let numbers =
        format!("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows})");
    let tail = "'0000000000000000'";
    format!(
        "BEGIN;
         {numbers} INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id,
            group_id, kind, content, items, dedupe_key, private, status, sent_at, created_at)
            SELECT 'msg_' || {time} || {tail}, '{bot}', 'inbound', 'person ' || (i % 200), '', '', '', '', '', 'text',
                printf('%.200c', 't'), '[]', '{part} ' || i, printf('%.300c', 'p'), 'received', {start} + i * {spacing},
                {start} + i * {spacing} FROM n;
         {numbers} INSERT INTO traces (id, message_id, bot_id, channel_id, status, summary, attempts, started_at,
            duration_ms, steps)
            SELECT 'tr_' || {time} || {tail}, 'msg_' || {time} || {tail}, '{bot}', '{channel}', 'ok', 'status 200', 1,
                {start} + i * {spacing}, 12, printf('[\"%.480c\"]', 's') FROM n;
         COMMIT;"
    )
}
