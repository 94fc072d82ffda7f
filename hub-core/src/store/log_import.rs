//! The commit log of SQLite files with schema 25 to 30. A hub committed messages and outcomes as entries of this log before
//! it stored them in the other tables; one that was killed left entries behind. The migration to schema 31 stores them
//! and removes the log.

use sqlx::{Connection, SqliteConnection, query::Query, sqlite::SqliteArguments};

use super::fault::classify;
use crate::{
    error::{Advice, Error, ErrorCode, Result},
    id::TraceId,
    model::trace::{PackedSteps, StoredSteps},
};

/// The last schema with a log.
pub(super) const LAST_SCHEMA: i64 = 30;

/// An entry of this format has texts where format 2 has packed steps: arrays in `steps` of a trace, and in its updates what is
/// appended to one, without brackets. All else is the same.
const FORMAT_1: u8 = 1;
const FORMAT_2: u8 = 2;

/// The places of kinds of rows in [`KINDS`].
const TRACE: usize = 3;
const FINISHED: usize = 7;
const OUTCOME: usize = 8;
const TRACE_UPDATE: usize = 9;

/// The kinds of rows: the number of their values, and the statement that stores one in a file with the last schema.
const KINDS: [(usize, &str); 10] = [
    (
        18,
        "INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id, kind,
            content, items, quoted, network_id, dedupe_key, private, status, sent_at, created_at)
         VALUES (?1, ?2, 'inbound', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
         ON CONFLICT (bot_id, dedupe_key) DO NOTHING",
    ),
    (4, "INSERT INTO channel_log (channel_id, seq, message_id, content) VALUES (?1, ?2, ?3, ?4)"),
    (
        10,
        "INSERT INTO deliveries (id, message_id, bot_id, channel_id, trace_id, sink, lane, seq, state, attempts, due_at,
            claim, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', 0, ?10, ?9, ?10)",
    ),
    (
        13,
        "INSERT INTO traces (id, message_id, bot_id, channel_id, replay_of, status, open_sinks, summary, attempts,
            started_at, duration_ms, steps, packed_steps)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    ),
    (
        7,
        "INSERT INTO contacts (bot_id, user_id, user_name, remark, avatar_url, message_count, last_message_at,
            context_token, window_opened_at, window_sends)
         VALUES (?1, ?2, ?3, '', '', ?4, ?5, ?6, ?7, 0)
         ON CONFLICT (bot_id, user_id) DO UPDATE SET
            user_name = CASE WHEN excluded.user_name <> '' THEN excluded.user_name ELSE contacts.user_name END,
            message_count = contacts.message_count + excluded.message_count,
            last_message_at = excluded.last_message_at,
            context_token = COALESCE(excluded.context_token, contacts.context_token),
            window_sends = 0, window_closed = NULL, window_opened_at = excluded.window_opened_at",
    ),
    (
        4,
        "UPDATE bots SET cursor = COALESCE(?2, cursor), last_poll_at = ?4, last_error = NULL,
            last_inbound_at = COALESCE(?3, last_inbound_at)
         WHERE id = ?1",
    ),
    (2, "UPDATE channels SET last_seq = MAX(last_seq, ?2) WHERE id = ?1"),
    (
        9,
        "UPDATE deliveries SET state = ?3, attempts = ?4, due_at = ?5, first_attempt_at = ?6, claim = ?7, last_error = ?8,
            finished_at = ?9
         WHERE id = ?1 AND attempts = ?4 - 1 AND (SELECT lease_fence FROM bots WHERE bots.id = bot_id) = ?2",
    ),
    (2, "UPDATE successes SET count = count + 1, last_at = ?2 WHERE channel_id = ?1"),
    (
        7,
        "UPDATE traces SET
            status = CASE WHEN ?2 IS NULL THEN status WHEN open_sinks > ?3 THEN 'pending'
                WHEN worst = 'error' OR (worst = 'ok' AND ?2 = 'skipped') THEN worst ELSE ?2 END,
            worst = CASE WHEN ?3 = 0 OR open_sinks <= ?3 OR worst = 'error' OR (worst = 'ok' AND ?2 = 'skipped') THEN worst
                ELSE ?2 END,
            open_sinks = open_sinks - ?3,
            summary = CASE WHEN ?4 IS NULL OR worst = 'error' OR (worst = 'ok' AND ?2 = 'skipped') THEN summary
                ELSE ?4 END,
            attempts = MAX(attempts, COALESCE(?5, 0)), duration_ms = MAX(duration_ms, ?6 - started_at),
            packed_steps = CAST(packed_steps || ?7 AS BLOB)
         WHERE id = ?1",
    ),
];

/// Removes a delivery that ended well, out of the first four values of its outcome.
const SUCCESS: &str = "DELETE FROM deliveries WHERE id = ?1 AND attempts = ?4 - 1 AND ?3 = 'done'
    AND (SELECT lease_fence FROM bots WHERE bots.id = bot_id) = ?2";

/// Whether a file has entries.
pub(super) async fn has_entries(conn: &mut SqliteConnection) -> Result<bool> {
    let has_log = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'commit_log')";
    if !sqlx::query_scalar(has_log).fetch_one(&mut *conn).await.map_err(classify)? {
        return Ok(false);
    }
    sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM commit_log)").fetch_one(conn).await.map_err(classify)
}

/// Stores all entries of a file with the last schema in its tables, and removes them, in one transaction.
pub(super) async fn store(conn: &mut SqliteConnection) -> Result<()> {
    // As the hub did: all rows that an entry names existed when it was committed.
    sqlx::raw_sql("PRAGMA foreign_keys = OFF").execute(&mut *conn).await.map_err(classify)?;
    let entries = "SELECT entry FROM commit_log ORDER BY id";
    let entries: Vec<Vec<u8>> = sqlx::query_scalar(entries).fetch_all(&mut *conn).await.map_err(classify)?;
    tracing::info!(entries = entries.len(), "storing the commit log of the version before");
    let mut tx = conn.begin().await.map_err(classify)?;
    for entry in entries {
        store_entry(&mut tx, &entry).await?;
    }
    sqlx::query("DELETE FROM commit_log").execute(&mut *tx).await.map_err(classify)?;
    tx.commit().await.map_err(classify)?;
    sqlx::raw_sql("PRAGMA foreign_keys = ON").execute(conn).await.map(drop).map_err(classify)
}

async fn store_entry(conn: &mut SqliteConnection, entry: &[u8]) -> Result<()> {
    // For each outcome whether its delivery was removed, or changed, or neither.
    let mut outcomes: Vec<[bool; 2]> = Vec::new();
    let (mut counted, mut traced) = (0, 0);
    for (kind, row) in read(entry)? {
        let statement = KINDS[kind].1;
        match kind {
            FINISHED => {
                let is_success = run(conn, SUCCESS, &row[..4]).await?;
                let is_done = row[2] == Value::Text("done".to_owned());
                outcomes.push([is_success, !is_done && run(conn, statement, &row).await?]);
            }
            OUTCOME => {
                if outcomes.get(counted).is_some_and(|[is_success, _]| *is_success) {
                    run(conn, statement, &row).await?;
                }
                counted += 1;
            }
            TRACE_UPDATE => {
                if outcomes.get(traced).is_some_and(|stored| stored.contains(&true)) {
                    run(conn, statement, &row).await?;
                }
                traced += 1;
            }
            _ => drop(run(conn, statement, &row).await?),
        }
    }
    Ok(())
}

/// Runs a statement with the values of a row; returns whether it changed something.
async fn run(conn: &mut SqliteConnection, statement: &'static str, row: &[Value]) -> Result<bool> {
    let bind = |query: Query<'static, sqlx::Sqlite, SqliteArguments>, value: &Value| match value.clone() {
        Value::Null => query.bind(None::<i64>),
        Value::Text(text) => query.bind(text),
        Value::Number(number) => query.bind(number),
        Value::Bytes(bytes) => query.bind(bytes),
    };
    let done = row.iter().fold(sqlx::query(statement), bind).execute(conn).await.map_err(classify)?;
    Ok(done.rows_affected() > 0)
}

/// Checks that all entries can be read.
///
/// # Errors
/// `UNAVAILABLE` naming an entry, its problem, and the fix.
pub(super) async fn check(conn: &mut SqliteConnection) -> Result<()> {
    if !has_entries(conn).await? {
        return Ok(());
    }
    let entries = sqlx::query_as("SELECT id, entry FROM commit_log ORDER BY id").fetch_all(conn);
    let entries: Vec<(i64, Vec<u8>)> = entries.await.map_err(classify)?;
    for (id, entry) in entries {
        read(&entry).map_err(|error| {
            let message = format!("{} (entry {id})", error.message());
            Error::new(error.code(), message).with_hint_of(&error)
        })?;
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Null,
    Text(String),
    Number(i64),
    Bytes(Vec<u8>),
}

/// The rows of an entry in their order, each with its place in [`KINDS`].
///
/// # Errors
/// `UNAVAILABLE` when it has another format, or is corrupt.
fn read(entry: &[u8]) -> Result<Vec<(usize, Vec<Value>)>> {
    match entry.split_first() {
        Some((format @ &(FORMAT_1 | FORMAT_2), rest)) => rows(Bytes(rest), *format).ok_or_else(corrupt),
        Some((other, _)) => {
            let message = format!(
                "an entry of the commit log has format {other}, and this program reads {FORMAT_1} and {FORMAT_2}"
            );
            Err(Error::new(ErrorCode::Unavailable, message)
                .with_hint(
                    "start and stop the version of the hub that wrote it; if no other version was used, the file is \
                     corrupt, and a backup has to be restored",
                )
                .with_advice([Advice::RestoreBackup]))
        }
        None => Err(corrupt()),
    }
}

fn corrupt() -> Error {
    Error::new(ErrorCode::Unavailable, "an entry of the commit log is corrupt")
        .with_hint("copy the data directory, then restore a backup")
        .with_advice([Advice::RestoreBackup])
}

fn rows(mut bytes: Bytes<'_>, format: u8) -> Option<Vec<(usize, Vec<Value>)>> {
    let mut rows = Vec::new();
    while !bytes.0.is_empty() {
        let kind = usize::from(bytes.byte()?);
        let (columns, _) = *KINDS.get(kind)?;
        let is_short = format == FORMAT_1 && kind == TRACE;
        for _ in 0..bytes.len()? {
            let row =
                (0..columns - usize::from(is_short)).map(|_| bytes.value()).collect::<Option<Vec<_>>>()?;
            rows.push((kind, if format == FORMAT_1 { converted(kind, row)? } else { row }));
        }
    }
    Some(rows)
}

/// A row of format 1 in format 2. The array of a trace stays in its column, from which it is read before packed steps.
fn converted(kind: usize, mut row: Vec<Value>) -> Option<Vec<Value>> {
    match kind {
        TRACE => row.push(Value::Bytes(Vec::new())),
        TRACE_UPDATE => {
            let (Some(Value::Text(id)), Some(Value::Text(steps))) = (row.first(), row.last()) else {
                return None;
            };
            let id: TraceId = id.parse().ok()?;
            let steps = StoredSteps::read(id, &format!("[{steps}]"), &[]).ok()?;
            *row.last_mut()? = Value::Bytes(PackedSteps::new(id, &steps.0).as_bytes().to_vec());
        }
        _ => {}
    }
    Some(row)
}

/// Unread rest of an entry.
struct Bytes<'e>(&'e [u8]);

impl<'e> Bytes<'e> {
    fn take(&mut self, len: usize) -> Option<&'e [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn len(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?)).ok()
    }

    fn value(&mut self) -> Option<Value> {
        Some(match self.byte()? {
            0 => Value::Null,
            1 => {
                let len = self.len()?;
                Value::Text(String::from_utf8(self.take(len)?.to_vec()).ok()?)
            }
            2 => Value::Number(i64::from_le_bytes(self.array()?)),
            3 => {
                let len = self.len()?;
                Value::Bytes(self.take(len)?.to_vec())
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;
    use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

    use super::*;
    use crate::{
        model::trace::StepName::{Filter, Received, Request},
        store::{Store, StoreConfig, backend},
        time::Clock,
    };

    /// A delivery that succeeded, its trace and the update that ended it, in format 1. Two elements of the steps are
    /// strings, as version 0.1.0 compressed them.
    const OLD_ENTRY: &str = "\
        010201000000011e000000646c765f30314d38464e433254333933515336445a57364d48355841595001050000006d73\
        675f310105000000626f745f31010400000063685f31011d00000074725f30314d38464e433254333933515336445a57\
        364d48355841594e0107000000776562686f6f6b0103000000616e6e0201000000000000000207000000000000000243\
        0b561fa20100000301000000011d00000074725f30314d38464e433254333933515336445a57364d48355841594e0105\
        0000006d73675f310105000000626f745f31010400000063685f3100010700000070656e64696e670201000000000000\
        00010000000002000000000000000002430b561fa2010000020000000000000000012f0000005b22422b594244324d43\
        433738354e5467794d6a41324d6a51774d32344350674a63414741324d6a51774d3330225d0601000000010400000063\
        685f310201000000000000000701000000011e000000646c765f30314d38464e433254333933515336445a57364d4835\
        584159500207000000000000000104000000646f6e650201000000000000000002430b561fa201000002000000000000\
        00000002480b561fa20100000801000000010400000063685f3102480b561fa20100000901000000011d00000074725f\
        30314d38464e433254333933515336445a57364d48355841594e01020000006f6b020100000000000000010900000064\
        656c69766572656402010000000000000002480b561fa201000001640000007b226e616d65223a227265717565737422\
        2c226b696e64223a22776562686f6f6b222c226174223a313739353832323036323430347d2c22422b594244324d4343\
        3738354e5467794d6a41324d6a51774d32344350674a63414741324d6a51774d333022";

    const TRACE_ID: &str = "tr_01M8FNC2T393QS6DZW6MH5XAYN";
    const DELIVERY_ID: &str = "dlv_01M8FNC2T254C39Q3S6DZWMH5X";

    /// An entry of format 2 with these rows of a kind each.
    fn entry(kinds: &[(usize, &[&[Value]])]) -> Vec<u8> {
        let mut entry = vec![FORMAT_2];
        let len = |len: usize| u32::try_from(len).unwrap().to_le_bytes();
        for (kind, rows) in kinds {
            entry.push(u8::try_from(*kind).unwrap());
            entry.extend(len(rows.len()));
            for value in rows.iter().copied().flatten() {
                match value {
                    Value::Null => entry.push(0),
                    Value::Text(text) => {
                        entry.push(1);
                        entry.extend(len(text.len()));
                        entry.extend(text.as_bytes());
                    }
                    Value::Number(number) => {
                        entry.push(2);
                        entry.extend(number.to_le_bytes());
                    }
                    Value::Bytes(bytes) => {
                        entry.push(3);
                        entry.extend(len(bytes.len()));
                        entry.extend(bytes);
                    }
                }
            }
        }
        entry
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    /// A file with the last schema that has a log, with a bot and a channel and these entries.
    async fn file(folder: &std::path::Path, entries: &[Vec<u8>]) -> StoreConfig {
        let path = folder.join("hub.db");
        let mut conn = backend::sqlite_until(&path, LAST_SCHEMA).await.unwrap();
        let rows = "INSERT INTO users (id, username, display_name, email, role, status, created_at, updated_at)
                VALUES ('usr_1', 'ann', '', '', 'user', 'active', 0, 0);
            INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id, credentials,
                credentials_rev, cursor, config_rev, lease_fence, created_at)
                VALUES ('bot_1', 'usr_1', '', 'sim', 'connected', 0, '', '', '', 0, 'old', 0, 7, 0);
            INSERT INTO channels (id, bot_id, name, enabled, key_hash, key_last4, filter, websocket, webhook, ai,
                on_plugin_error, lane_hold_s, last_seq, created_at, updated_at)
                VALUES ('ch_1', 'bot_1', '', 1, '', '', '{}', '{}', '{}', '{}', 'skip', 0, 1, 0, 0)";
        sqlx::raw_sql(rows).execute(&mut conn).await.unwrap();
        for entry in entries {
            sqlx::query("INSERT INTO commit_log (entry) VALUES (?1)")
                .bind(entry)
                .execute(&mut conn)
                .await
                .unwrap();
        }
        conn.close().await.unwrap();
        StoreConfig::Sqlite(path)
    }

    /// What an expression is in the file.
    async fn read(config: &StoreConfig, expression: &str) -> String {
        let StoreConfig::Sqlite(path) = config else { unreachable!("a file") };
        let mut conn = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
        let sql = AssertSqlSafe(format!("SELECT CAST(({expression}) AS TEXT)"));
        let found: Option<String> = sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap();
        found.unwrap_or_else(|| "NULL".to_owned())
    }

    async fn open(config: &StoreConfig) -> Result<Store> {
        Store::open(config, Clock::system()).await
    }

    #[tokio::test]
    async fn a_trace_of_format_1_is_stored_with_all_its_steps() {
        let folder = tempfile::tempdir().unwrap();
        let config = file(folder.path(), &[HEXLOWER.decode(OLD_ENTRY.as_bytes()).unwrap()]).await;
        let store = open(&config).await.unwrap();
        let trace = TRACE_ID.parse().unwrap();
        let steps = store.read().await.unwrap().traces().steps_of(&[trace]).await.unwrap();
        let names: Vec<_> = steps[&trace].iter().map(|step| step.name).collect();
        assert_eq!(names, [Received, Filter, Request, Received, Filter]);
        assert_eq!(read(&config, "SELECT COUNT(*) FROM deliveries").await, "0");
        assert_eq!(read(&config, "SELECT count || ' ' || status FROM successes, traces").await, "1 ok");
        store.close().await;
    }

    #[tokio::test]
    async fn messages_and_outcomes_of_a_killed_hub_are_stored_once() {
        let folder = tempfile::tempdir().unwrap();
        let number = Value::Number;
        let message = |id: &str, key: &str| {
            let ids =
                [text(id), text("bot_1"), text("ann"), text("ann"), text("bot"), text("Ann"), text("ann")];
            let content =
                [text(""), text("text"), text("hello"), text(""), Value::Null, text("n1"), text(key)];
            [&ids[..], &content, &[Value::Null, text("received"), number(5), number(6)]].concat()
        };
        let (first, repeat) = (message("msg_1", "id:n1"), message("msg_2", "id:n1"));
        let log = [text("ch_1"), number(2), text("msg_1"), Value::Null];
        let delivery = |id: &str, sink: &str| {
            let ids = [text(id), text("msg_1"), text("bot_1"), text("ch_1"), text(TRACE_ID), text(sink)];
            [&ids[..], &[text("ann"), number(2), number(7), number(6)]].concat()
        };
        let (webhook, ai) = (delivery(DELIVERY_ID, "webhook"), delivery("dlv_2", "ai"));
        let trace = [
            &[text(TRACE_ID), text("msg_1"), text("bot_1"), text("ch_1"), Value::Null, text("pending")][..],
            &[number(2), text(""), number(0), number(5), number(1), text(""), Value::Bytes(vec![1])],
        ]
        .concat();
        let contact =
            [text("bot_1"), text("ann"), text("Ann"), number(1), number(6), text("token"), number(6)];
        let cursor = [text("bot_1"), text("new"), number(6), number(6)];
        let last = [text("ch_1"), number(2)];
        let outcome = |id: &str, fence: i64, state: &str| {
            let ended = if state == "done" { number(9) } else { Value::Null };
            let times = [number(1), number(8), number(7), number(7), Value::Null, ended];
            [&[text(id), number(fence), text(state)][..], &times].concat()
        };
        let count = [text("ch_1"), number(9)];
        let update = |status: Value, ended: i64, step: u8| {
            let values = [number(ended), text("delivered"), number(1), number(9), Value::Bytes(vec![step])];
            [&[text(TRACE_ID), status][..], &values].concat()
        };
        let (done, foreign) = (outcome(DELIVERY_ID, 7, "done"), outcome("dlv_2", 6, "done"));
        let again = outcome("dlv_2", 7, "pending");
        let (ended, waits) = (update(text("ok"), 1, 2), update(Value::Null, 0, 3));
        let entries = [
            entry(&[
                (0, &[&first, &repeat]),
                (1, &[&log]),
                (2, &[&webhook, &ai]),
                (TRACE, &[&trace]),
                (4, &[&contact]),
                (5, &[&cursor]),
                (6, &[&last]),
            ]),
            // That of another lease, and one that came again, store nothing.
            entry(&[
                (FINISHED, &[&done, &foreign, &again, &done]),
                (OUTCOME, &[&count, &count, &count, &count]),
                (TRACE_UPDATE, &[&ended, &ended, &waits, &ended]),
            ]),
        ];
        let config = file(folder.path(), &entries).await;
        open(&config).await.unwrap().close().await;
        for (expression, found) in [
            ("SELECT COUNT(*) FROM messages WHERE id = 'msg_1' AND direction = 'inbound'", "1"),
            ("SELECT COUNT(*) FROM messages", "1"),
            ("SELECT message_id FROM channel_log WHERE channel_id = 'ch_1' AND seq = 2", "msg_1"),
            ("SELECT last_seq FROM channels", "2"),
            ("SELECT cursor || ' ' || last_inbound_at FROM bots", "new 6"),
            ("SELECT context_token || ' ' || message_count FROM contacts", "token 1"),
            (
                "SELECT group_concat(id || ' ' || state || ' ' || attempts || ' ' || due_at) FROM deliveries",
                "dlv_2 pending 1 8",
            ),
            ("SELECT count || ' ' || last_at FROM successes", "1 9"),
            (
                "SELECT status || ' ' || open_sinks || ' ' || worst || ' ' || hex(packed_steps) FROM traces",
                "pending 1 ok 010203",
            ),
            ("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'commit_log'", "0"),
        ] {
            assert_eq!(read(&config, expression).await, found, "{expression}");
        }
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_read_is_not_migrated() {
        let whole = HEXLOWER.decode(OLD_ENTRY.as_bytes()).unwrap();
        let other = "an entry of the commit log has format 255, and this program reads 1 and 2 (entry 2)";
        let corrupt = "an entry of the commit log is corrupt (entry 2)";
        let cut = (whole.len() - 80..whole.len()).step_by(8).map(|end| (whole[..end].to_vec(), corrupt));
        for (bad, message) in cut.chain([(vec![255], other), (Vec::new(), corrupt), (vec![2, 0, 1], corrupt)])
        {
            let folder = tempfile::tempdir().unwrap();
            let config = file(folder.path(), &[whole.clone(), bad]).await;
            let refused = open(&config).await.unwrap_err();
            assert_eq!((refused.code(), refused.message()), (ErrorCode::Unavailable, message));
            assert_eq!(read(&config, "SELECT MAX(version) FROM _sqlx_migrations").await, "30");
            assert_eq!(read(&config, "SELECT COUNT(*) FROM commit_log").await, "2");
        }
    }
}
