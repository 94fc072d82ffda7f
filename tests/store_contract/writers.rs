//! SQLite, with and without a commit log, and PostgreSQL store messages and outcomes in their own ways: the same commands
//! leave the same rows in all.

use std::sync::Arc;

use hub_core::{
    id::{DeliveryId, Ids, TraceId},
    random::Random,
    store::{
        Store,
        ai::AiUsage,
        deliveries::{DeliveryState, Finished, HealthReport, SinkHealth},
        due::{Reading, Stamp},
        inbox::{Accept, AcceptMessage, Accepted},
        sending::Permit,
    },
    time::{Clock, ManualClock},
};

use super::{
    deliveries::finished,
    immediate_send::{at_once, reply},
    scene::{Stage, add_channel, batch, message, scope, stage, taken, with_ai},
};
use crate::support::database::{Db, START};

/// A command whose effects are compared.
enum Step {
    Accept(Vec<AcceptMessage>, Option<String>, i64),
    Finish(Arc<Finished>),
    /// One that is not of the hot path.
    Remark(&'static str, String),
}

#[derive(Debug, PartialEq)]
enum Answer {
    Accepted(Accepted),
    Permit(Option<Permit>),
    Remark(bool),
}

/// A delivery that the commands so far have not finished.
struct Open {
    delivery: DeliveryId,
    trace: TraceId,
    attempts: i64,
}

const PEOPLE: [&str; 3] = ["ann", "bob", "cid"];
const STATES: [DeliveryState; 4] =
    [DeliveryState::Done, DeliveryState::Done, DeliveryState::Pending, DeliveryState::Dead];

/// Columns that both databases have alike: the names of tables, and the texts that are compared.
const TABLES: [(&str, &str); 10] = [
    (
        "messages",
        "id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id, kind, content, items, \
         quoted, network_id, dedupe_key, private, status, status_reason, channel_id, trace_id, sent_at, created_at",
    ),
    ("channel_log", "channel_id, seq, message_id, content"),
    (
        "deliveries",
        "id, message_id, bot_id, channel_id, trace_id, sink, lane, seq, state, attempts, due_at, first_attempt_at, \
         claim, last_error, created_at, finished_at",
    ),
    (
        "traces",
        "id, message_id, bot_id, channel_id, replay_of, status, worst, open_sinks, summary, attempts, started_at, \
         duration_ms, length(packed_steps)",
    ),
    (
        "contacts",
        "bot_id, user_id, user_name, remark, message_count, last_message_at, context_token, window_opened_at, \
         window_sends, window_closed, recent_sends",
    ),
    ("bots", "id, cursor, config_rev, last_poll_at, last_inbound_at, last_error"),
    ("channels", "id, last_seq, failing_since, webhook_disabled"),
    ("successes", "channel_id, count, last_at"),
    (
        "outbox",
        "id, message_id, bot_id, peer, part, parts, text, state, attempts, unknowns, due_at, expires_at",
    ),
    ("ai_usage", "channel_id, day, source, calls, prompt_tokens, completion_tokens"),
];

async fn rows(db: &Db) -> Vec<String> {
    let mut rows = Vec::new();
    for (table, columns) in TABLES {
        let columns: Vec<_> =
            columns.split(", ").map(|column| format!("COALESCE(CAST({column} AS TEXT), 'NULL')")).collect();
        let sql = format!("SELECT '{table} ' || {} FROM {table}", columns.join(" || ' ' || "));
        let mut of_table = db.texts(sql).await;
        of_table.sort();
        rows.extend(of_table);
    }
    rows
}

fn next_step(db: &Db, on: &Stage, stamp: Stamp, random: &Random, open: &mut Vec<Open>, n: usize) -> Step {
    let below = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap();
    if below(8) == 0 {
        return Step::Remark(PEOPLE[below(3)], format!("remark {n}"));
    }
    if open.is_empty() || below(2) == 0 {
        let messages = (0..below(4)).map(|_| {
            // One of three is a repeat.
            let key = if below(3) == 0 { below(n + 1) } else { 10_000 + n * 10 + below(10) };
            let claim = if below(4) == 0 { 0 } else { on.lease.fence };
            let one = message(db, on.bot, PEOPLE[below(3)], &key.to_string(), &format!("text {n}"));
            let (one, delivery) = taken(db, one, on.channel, claim);
            let trace = one.routes[0].trace.id;
            open.push(Open { delivery, trace, attempts: 0 });
            if below(4) > 0 {
                return one;
            }
            let (both, second) = with_ai(db, one);
            open.push(Open { delivery: second, trace, attempts: 0 });
            both
        });
        let messages = messages.collect();
        let cursor = (below(3) > 0).then(|| format!("cursor {n}"));
        return Step::Accept(messages, cursor, if below(10) == 0 { 99 } else { on.lease.fence });
    }
    let place = below(open.len());
    let one = &mut open[place];
    // Some come again, as after a commit whose response was lost.
    one.attempts += i64::from(below(5) > 0 || one.attempts == 0);
    let state = STATES[below(STATES.len())];
    let (attempts, keep) = (one.attempts, state == DeliveryState::Pending);
    let fence = if below(10) == 0 { 99 } else { on.lease.fence };
    let outcome = finished(on, one.delivery, one.trace, state);
    let mut outcome = Finished { attempts, keep, fence, stamp, ..outcome };
    outcome.trace.attempts = Some(attempts);
    if keep {
        outcome.trace.status = None;
        outcome.trace.ended = 0;
    }
    if below(3) == 0 {
        outcome.replies = vec![reply(db, on, &below(n + 1).to_string())];
        outcome.send_at_once = Some(at_once());
    }
    let report = match below(12) {
        0 => Some(HealthReport::Gone),
        1..4 => Some(HealthReport::Works),
        4..7 => Some(HealthReport::Fails { now: START, give_up_before: START }),
        _ => None,
    };
    outcome.health = report.map(|report| SinkHealth { channel: on.channel, report });
    outcome.usage = (below(3) == 0).then_some(AiUsage {
        channel_id: on.channel,
        day: 20_000,
        source: "global",
        calls: 1,
        prompt_tokens: 10,
        completion_tokens: 3,
    });
    Step::Finish(Arc::new(outcome))
}

async fn run(db: &Db, on: &Stage, step: Step) -> Answer {
    match step {
        Step::Accept(messages, cursor, fence) => {
            let config_rev = db.number("SELECT CAST(MAX(config_rev) AS BIGINT) FROM bots").await;
            let batch = batch(&on.lease, cursor.as_deref(), messages);
            Answer::Accepted(db.store.accept(Accept { fence, config_rev, ..batch }).await.unwrap())
        }
        Step::Finish(outcome) => Answer::Permit(db.store.finish(outcome).await.unwrap()),
        Step::Remark(person, remark) => {
            let (owner, bot) = (scope(on.owner).owner(), on.bot);
            let set = commit!(db, |tx| tx.contacts().set_remark(owner, bot, person, &remark).await);
            Answer::Remark(set.unwrap())
        }
    }
}

#[tokio::test]
async fn any_commands_leave_the_same_rows() {
    for seed in 0..12 {
        let Some(mut postgres) = Db::postgres().await else { return };
        let (mut sqlite, mut logged) = (Db::sqlite().await, Db::claimed().await);
        // Every second one flushes the oldest entries again and again.
        if seed % 2 == 1 {
            logged.store.limit_log(16);
        }
        let reading = Reading { at: Clock::system().instant(), wall: sqlite.store.now() };
        let stamp = Stamp { read: reading, followed: None };
        let mut stages = Vec::new();
        for db in [&mut sqlite, &mut logged, &mut postgres] {
            db.ids = Ids::new(ManualClock::new(START).into(), Random::seeded(seed));
            let on = stage(db).await;
            add_channel(db, on.bot, "second").await;
            stages.push((on, Random::seeded(seed + 1_000), Vec::new()));
        }
        for n in 0..80 {
            let mut answers = Vec::new();
            for (db, (on, random, open)) in [&sqlite, &logged, &postgres].into_iter().zip(&mut stages) {
                let step = next_step(db, on, stamp, random, open, n);
                answers.push(run(db, on, step).await);
            }
            assert_eq!(answers[0], answers[1], "seed {seed}, step {n}");
            assert_eq!(answers[0], answers[2], "seed {seed}, step {n}");
        }
        if seed % 4 == 3 {
            // What a killed process leaves in the log is flushed by the next one.
            let next = Store::open(&logged.config, Clock::system()).await.unwrap();
            next.read().await.unwrap();
            next.close().await;
        }
        let expected = rows(&sqlite).await;
        for (db, name) in [(sqlite, "SQLite"), (logged, "SQLite with a log"), (postgres, "PostgreSQL")] {
            assert_eq!(rows(&db).await, expected, "seed {seed}, {name}");
            db.remove().await;
        }
    }
}
