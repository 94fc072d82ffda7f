//! Messages, traces and contacts in any number, written with statements of SQLite while the server has nothing to do.

use hub_core::{
    id::{MessageId, TraceId},
    time::{Clock, Timestamp},
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use super::Demo;
use crate::support::http::Caller;

/// Ids of the first user's objects.
pub struct Stock {
    pub bot: String,
    pub channel: String,
    /// The newest message of all, which has the long trace.
    pub message: String,
    pub trace: String,
}

impl Stock {
    /// The ids as JSON, for scripts.
    pub fn places(&self) -> String {
        let Self { bot, channel, message, trace } = self;
        json!({ "bot": bot, "channel": channel, "message": message, "trace": trace }).to_string()
    }

    /// Registers ann, and gives the bot of her demo so many messages, one per second until now. Every fifth has a trace,
    /// of which every tenth failed; the newest one has 200 steps. There is one contact per 50 messages, but at least 200.
    pub async fn fill(demo: &Demo, messages: u32) -> Self {
        let mut ann = Caller::stranger(&demo.url);
        let account = json!({ "username": "ann", "password": "tr0mbone solo" });
        ann.sign_in("/api/auth/register", account).await;
        let bots = ann.get("/api/bots").await;
        let bot = bots["items"][0]["id"].as_str().unwrap().to_owned();
        let channels = ann.get(&format!("/api/bots/{bot}/channels")).await;
        let channel = channels["items"][0]["id"].as_str().unwrap().to_owned();
        let now = Clock::system().now().as_millis();
        // A minute ago, so that the messages of the demo are the newest ones.
        let start = now - 60_000 - i64::from(messages) * 1_000;
        let last = Timestamp::from_millis(start + i64::from(messages - 1) * 1_000);
        let (message, trace) = (MessageId::first_at(last).to_string(), TraceId::first_at(last).to_string());
        let path = demo.folder.path().join("hub.db");
        assert!(path.exists(), "the database is elsewhere");
        let mut connection =
            SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
        let sql = rows(&bot, &channel, messages, start);
        let steps = steps(start).to_string().replace('\'', "''");
        let sql = format!(
            "PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE; {sql}
             UPDATE traces SET steps = '{steps}', attempts = 100 WHERE id = '{trace}'; COMMIT; ANALYZE;"
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        let long: i64 = sqlx::query_scalar("SELECT json_array_length(steps) FROM traces WHERE id = ?")
            .bind(&trace)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(long, 200);
        connection.close().await.unwrap();
        Self { bot, channel, message, trace }
    }
}

fn rows(bot: &str, channel: &str, messages: u32, start: i64) -> String {
    // 48 bits of the time are ten characters of a ULID, five bits each.
    let digit = |place: i32| {
        format!(
            "substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((({start} + i * 1000) >> {}) & 31), 1)",
            place * 5
        )
    };
    let time = (0..10).rev().map(digit).collect::<Vec<_>>().join(" || ");
    let numbers = |count: u32| {
        format!("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count})")
    };
    let (tail, people) = ("'0000000000000000'", (messages / 50).max(200));
    let steps = json!([
        step("received", "inbox", start, &json!({ "msg_type": "text" })),
        step("filter", "filter", start, &json!({}))
    ]);
    let all = numbers(messages);
    // Each tenth of the traces failed, the last one with them.
    format!(
        "{all} INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id,
            kind, content, items, dedupe_key, status, sent_at, created_at)
         SELECT 'msg_' || {time} || {tail}, '{bot}', 'inbound', 'person ' || (i % {people}), 'person ' || (i % {people}), 'wx',
            'Person ' || (i % {people}), '', '', 'text', 'order ' || i || ' ' || hex(randomblob(40)), '[]', 'stock ' || i,
            'received', {start} + i * 1000, {start} + i * 1000 FROM n;
         {all} INSERT INTO traces (id, message_id, bot_id, channel_id, status, summary, attempts, started_at, duration_ms,
            steps)
         SELECT 'tr_' || {time} || {tail}, 'msg_' || {time} || {tail}, '{bot}', '{channel}',
            iif(i % 50 = 49, 'error', 'ok'), iif(i % 50 = 49, 'failed after 2 attempts: status 500', 'status 200'), 1,
            {start} + i * 1000, 12, '{steps}' FROM n WHERE i % 5 = 4;
         {} INSERT INTO contacts (bot_id, user_id, user_name, remark, avatar_url, message_count, last_message_at,
            window_sends)
         SELECT '{bot}', 'person ' || i, 'Person ' || i, '', '', 50, {start} + i * 1000, 0 FROM n;",
        numbers(people)
    )
}

fn step(name: &str, kind: &str, at: i64, detail: &Value) -> Value {
    let at = Timestamp::from_millis(at).to_string();
    json!({ "name": name, "kind": kind, "status": "ok", "started_at": at, "duration_ms": 1, "detail": detail })
}

/// A hundred requests with their responses.
fn steps(start: i64) -> Value {
    let request = |n: i64| {
        let headers = json!([["content-type", "application/json"], ["x-attempt", n.to_string()]]);
        let body = json!({ "content": "order 42", "sender": { "user_id": "ann" } }).to_string();
        let sent = json!({ "attempt": n, "method": "POST", "url": "https://receiver.example/hook",
            "headers": headers, "body": body });
        let received = json!({ "status": 500, "headers": headers, "body": format!("attempt {n} failed") });
        [
            step("request", "webhook", start + n * 60_000, &sent),
            step("response", "webhook", start + n * 60_000 + 20, &received),
        ]
    };
    (1..=100).flat_map(request).collect()
}
