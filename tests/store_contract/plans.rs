//! What retention and lists read does not grow with the tables: the databases' own plans say so.

use hub_core::{
    bots::MessageFilter,
    page::{Found, Page, PageRequest},
    store::plans::{self, Planned},
    traces::{TraceQuery, TraceStatus},
};

use super::scene::{Stage, add_channel, everything, stage};
use crate::support::database::Db;

/// Enough rows that the planner of PostgreSQL prefers an index.
const ROWS: u32 = 3_000;

async fn fill(db: &Db) -> Stage {
    let on = stage(db).await;
    let (bot, channel) = (on.bot, on.channel);
    add_channel(db, bot, "other").await;
    let rows = |table: &str, columns: &str, prefix: &str, values: &str| {
        format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
             INSERT INTO {table} ({columns})
             SELECT '{prefix}_0000000' || (1000000000000000000 + i), {values} FROM n"
        )
    };
    db.sql(rows(
        "messages",
        "id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id, kind, content, items,
            dedupe_key, status, sent_at, created_at",
        "msg",
        &format!(
            "'{bot}', 'inbound', 'person ' || (i % 50), '', '', '', '', '', 'text', 'text', '[]', 'key ' || i,
                'received', i, i"
        ),
    ))
    .await;
    db.sql(rows(
        "traces",
        "id, message_id, bot_id, channel_id, status, open_sinks, summary, attempts, started_at, duration_ms, steps",
        "tr",
        &format!(
            "'msg_0000000' || (1000000000000000000 + i), '{bot}', '{channel}', 'ok', 0, '', 1, i, 1, '[]'"
        ),
    ))
    .await;
    db.sql(rows(
        "audit",
        "id, at, actor, actor_name, credential, action, target, target_name, detail, ip",
        "aud",
        "i, 'actor ' || (i % 50), '', '', 'x', 'target ' || (i % 50), '', '{}', ''",
    ))
    .await;
    db.sql(rows(
        "contacts",
        "user_id, bot_id, user_name, remark, avatar_url, message_count, last_message_at, window_sends",
        "person",
        &format!("'{bot}', '', '', '', 1, i, 0"),
    ))
    .await;
    db.sql(rows(
        "outbox",
        "message_id, id, bot_id, peer, part, parts, client_id, text, state, attempts, unknowns, due_at, expires_at,
            created_at, updated_at",
        "msg",
        &format!(
            "'out_0000000' || (1000000000000000000 + i), '{bot}', 'person ' || (i % 50), 0, 1, 'client ' || i, 'text',
                CASE WHEN i % 3 = 0 THEN 'queued' ELSE 'sent' END, 0, 0, i, i, i, i"
        ),
    ))
    .await;
    db.sql(if db.is_postgres() { "ANALYZE; SET enable_seqscan = off" } else { "SELECT 1" }).await;
    on
}

/// A line of a plan that reads every row of a table.
fn is_scan(line: &str, plan: &[String]) -> bool {
    let line = line.trim_start();
    // What a statement selects from itself is as short as its own limit, and a list is as short as it was given.
    let own = |name: &str| {
        matches!(name, "json_each" | "CONSTANT")
            || plan
                .iter()
                .any(|line| line == &format!("CO-ROUTINE {name}") || line == &format!("MATERIALIZE {name}"))
    };
    line.contains("Seq Scan on")
        || line.strip_prefix("SCAN ").is_some_and(|rest| !own(rest.split(' ').next().unwrap()))
}

async fn check(db: &Db, statements: Vec<Planned>, bounded: impl Fn(&str, &str) -> bool) {
    fill(db).await;
    for Planned { name, sqlite, postgres } in statements {
        let sql = if db.is_postgres() { postgres } else { sqlite };
        let plan = db.plan(&sql).await;
        let shown = plan.join("\n");
        assert!(
            !plan.is_empty() && !plan.iter().any(|line| is_scan(line, &plan)),
            "{name} reads a table:\n{shown}\n{sql}"
        );
        assert!(plan.iter().any(|line| bounded(&name, line)), "{name} has no bound:\n{shown}\n{sql}");
    }
}

async fn retention_reads_nothing_but_what_is_old(db: &Db) {
    check(db, plans::retention(), |_, line| {
        line.contains("<?") || line.contains("<(?") || line.contains("Index Cond") && line.contains('<')
    })
    .await;
}

async fn a_search_for_work_reads_no_idle_bot(db: &Db) {
    check(db, plans::rounds(), |_, line| {
        // PostgreSQL does not show what a step reads.
        line.contains("(bot_id>?)")
            || line.contains("WorkTable Scan on busy")
            || line.contains("outbox_open (bot_id=? AND peer>?)")
            || line.contains("outbox_open (bot_id=? AND peer=?)")
            || line.contains("WorkTable Scan on people")
            || line.contains("Index Cond") && line.contains("(peer = ANY ($0))")
    })
    .await;
}

async fn a_page_of_a_list_begins_at_its_cursor(db: &Db) {
    check(db, plans::lists(), |name, line| {
        // The traces of a message and those that are named are few: they are all read.
        let few = matches!(name, "traces: message" | "traces of all bots: message")
            && (line.contains("(message_id=?)") || line.contains("message_id ="))
            || name == "traces: ids" && line.contains("(id=?)");
        let id = line.contains("id<?") || line.contains("id)<(?");
        let is_of_person = line.contains("peer=?") || line.contains("(peer = ");
        let id = id && (is_of_person || !name.contains(": person"));
        few || id || line.contains("Index Cond") && (line.contains("id < ") || line.contains("id) < "))
    })
    .await;
}

/// How many items each page of a list has, read with `find`.
async fn pages<T>(find: impl AsyncFn(PageRequest) -> Found<T>, key: impl Fn(&T) -> String) -> Vec<usize> {
    let (mut sizes, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let request = PageRequest::parse("list", None, cursor.as_deref()).unwrap();
        let page = Page::from_found("list", &request, find(request.clone()).await, &key);
        sizes.push(page.items.len());
        cursor = page.next_cursor;
        if cursor.is_none() {
            return sizes;
        }
    }
}

async fn a_page_without_an_index_looks_at_a_bounded_number_of_rows(db: &Db) {
    let on = fill(db).await;
    db.sql("UPDATE messages SET content = 'needle' WHERE created_at = 1".to_owned()).await;
    for (at, status) in [(1, "pending"), (2, "error")] {
        db.sql(format!("UPDATE traces SET status = '{status}' WHERE started_at = {at}")).await;
    }
    let messages = async |filter: MessageFilter| {
        let find = async |page| {
            db.store.read().await.unwrap().messages().page(on.bot, &filter, &page).await.unwrap()
        };
        pages(find, |message| message.id.to_string()).await
    };
    let needle = MessageFilter { q: Some("needle".to_owned()), ..MessageFilter::default() };
    assert_eq!(messages(needle.clone()).await, [0, 0, 1]);
    assert_eq!(messages(MessageFilter { user_id: Some("person 1".to_owned()), ..needle }).await, [1]);

    let traces = async |filter: TraceQuery| {
        let find = async |page| {
            let mut read = db.store.read().await.unwrap();
            read.traces().list(everything(), on.bot, &filter, &page).await.unwrap()
        };
        pages(find, |trace| trace.id.to_string()).await
    };
    let pending = TraceQuery { status: Some(TraceStatus::Pending), ..TraceQuery::default() };
    let failed = TraceQuery { status: Some(TraceStatus::Error), ..pending.clone() };
    for channel_id in [None, Some(on.channel)] {
        for (filter, expected) in [
            (pending.clone(), &[0, 0, 1][..]),
            (TraceQuery { oldest_first: true, ..pending.clone() }, &[1, 0, 0]),
            (failed.clone(), &[1]),
            (TraceQuery { oldest_first: true, ..failed.clone() }, &[1]),
        ] {
            assert_eq!(traces(TraceQuery { channel_id, ..filter.clone() }).await, expected, "{filter:?}");
        }
    }
}

/// Each case on both databases.
macro_rules! on_both {
    ($($case:ident),*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $case() {
                let db = crate::support::database::Db::sqlite().await;
                super::$case(&db).await;
                db.remove().await;
            })*
        }

        mod postgres {
            $(#[tokio::test]
            async fn $case() {
                if let Some(db) = crate::support::database::Db::postgres().await {
                    super::$case(&db).await;
                    db.remove().await;
                }
            })*
        }
    };
}

on_both!(
    retention_reads_nothing_but_what_is_old,
    a_search_for_work_reads_no_idle_bot,
    a_page_of_a_list_begins_at_its_cursor,
    a_page_without_an_index_looks_at_a_bounded_number_of_rows
);

/// A comparison that allows for a missing value bounds nothing: lists compare with the greatest id in its place.
#[test]
fn no_statement_compares_an_id_or_a_time_with_what_may_be_missing() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub-core/src/store");
    let mut folders = vec![folder];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let unbounded = source.lines().filter(|line| {
                let rest = line.split("AS TEXT) IS NULL OR ").nth(1);
                rest.is_some_and(|rest| {
                    rest.split(' ').nth(1).is_some_and(|operator| operator.starts_with(['<', '>']))
                })
            });
            found.extend(unbounded.map(|line| format!("{}: {}", path.display(), line.trim())));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
