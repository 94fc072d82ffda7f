//! Query plans: the rows that retention and lists read do not grow with the tables.

use hub_core::{
    admin::UserQuery,
    bots::{BotStatus, MessageFilter},
    page::{Found, Page, PageRequest},
    store::{
        audit::AuditFilter,
        plans::{self, Planned},
    },
    traces::{TraceQuery, TraceStatus},
};

use super::{
    filled::fill,
    lists::{Listed, read_all},
    scene::{Stage, everything, stage},
};
use crate::support::database::Db;

/// Enough rows that the planner of PostgreSQL prefers an index.
const ROWS: u32 = 3_000;

/// The statement that adds [`ROWS`] rows to a table.
fn rows(table: &str, columns: &str, prefix: &str, values: &str) -> String {
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         INSERT INTO {table} (id, {columns}) SELECT '{prefix}_0000000' || (1000000000000000000 + i), {values} FROM n"
    )
}

/// Fills a bot's messages, traces and outbox.
async fn fill_one_bot(db: &Db) -> Stage {
    let on = stage(db).await;
    let (bot, channel) = (on.bot, on.channel);
    db.sql(rows(
        "messages",
        "bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id, group_id, kind, content, items,
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
        "message_id, bot_id, channel_id, status, open_sinks, summary, attempts, started_at, duration_ms, steps",
        "tr",
        &format!(
            "'msg_0000000' || (1000000000000000000 + i), '{bot}', '{channel}', 'ok', 0, '', 1, i, 1, '[]'"
        ),
    ))
    .await;
    db.sql(rows(
        "outbox",
        "message_id, bot_id, peer, part, parts, client_id, text, state, attempts, unknowns, due_at, expires_at,
            created_at, updated_at",
        "out",
        &format!(
            "'msg_0000000' || (1000000000000000000 + i), '{bot}', 'person ' || (i % 50), 0, 1, 'client ' || i,
                'text', CASE WHEN i % 3 = 0 THEN 'queued' ELSE 'sent' END, 0, 0, i, i, i, i"
        ),
    ))
    .await;
    on
}

/// Tables with a row per node, minute or open connection.
const SMALL: &[&str] = &["tallies", "nodes", "channel_listeners", "ai_config", "meta", "revocations"];

/// Methods that read every row of a table, or all that an index without a condition has, and why they may.
const WHOLE: &[(&str, &str)] = &[
    ("accounts::has_admin", "ends with the first administrator, who is the first user"),
    ("demo::holder", "users of the hub; once, at the start"),
    ("stats::users", "users of the hub; for administrators"),
    ("stats::bots", "bots of the hub; for administrators and metrics"),
    ("stats::channels", "channels of the hub; for administrators and metrics"),
    ("stats::open_deliveries", "an index of the open deliveries"),
    ("leases::any_free", "with statistics, users and their bots up to the first that is free"),
    ("leases::unserved", "with statistics of a hub whose bots are free, as here, the bots of the hub"),
];

/// Lists of everyone's rows in the order of their ids, which end with their limit.
const OF_EVERYONE: &[&str] = &[
    "users::page",
    "bots::page of all users",
    "bots::page_in_status",
    "audit::page all",
    "audit::page action",
    "apps::page all for operators",
    "apps::page own for operators",
    "plugins::page",
    "plugins::pending",
    "sealed::page",
    "media::loose",
    // From one bot with open work to the next.
    "leases::with_work",
];

/// Lists in pages: what they read begins at their cursor.
const PAGES: &[&str] = &["::page", "::pending", "::search", "::list", "::list_sessions"];

/// A database's plan of a statement.
struct Plan<'s> {
    sql: &'s str,
    lines: Vec<String>,
}

impl<'s> Plan<'s> {
    async fn of(db: &Db, sql: &'s str) -> Self {
        Self { sql, lines: db.plan(sql).await }
    }

    fn shown(&self) -> String {
        format!("{}\n{}", self.lines.join("\n"), self.sql)
    }

    /// Whether a name is of what is as short as the statement itself makes it: what it selects first, and a list that it
    /// was given; or of a small table.
    fn is_short(&self, name: &str) -> bool {
        let is_small = |table: &&str| {
            let alias = format!("{table} AS {name}");
            *table == name || [" ", ","].iter().any(|end| self.sql.contains(&format!("{alias}{end}")))
        };
        let selects = |line: &String| {
            line.strip_prefix("CO-ROUTINE ").or_else(|| line.strip_prefix("MATERIALIZE ")) == Some(name)
        };
        matches!(name, "json_each" | "CONSTANT")
            || SMALL.iter().any(is_small)
            || self.lines.iter().any(selects)
    }

    /// Whether a line reads every row of a table, or builds an index of them.
    fn is_scan(&self, line: &str) -> bool {
        let line = line.trim_start();
        let name = |after: &str| line.split(after).nth(1).and_then(|rest| rest.split(' ').next());
        let sqlite = name("SCAN ").filter(|_| line.starts_with("SCAN ") && !line.contains(" VIRTUAL TABLE "));
        let automatic = name("SEARCH ").filter(|_| line.contains(" AUTOMATIC "));
        [name("Seq Scan on "), sqlite, automatic].into_iter().flatten().any(|name| !self.is_short(name))
    }

    fn scans(&self) -> bool {
        self.lines.iter().any(|line| self.is_scan(line))
    }

    /// The conditions with which SQLite searches indexes of tables that grow.
    fn conditions(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| {
            let rest = line.strip_prefix("SEARCH ")?;
            let is_short = self.is_short(rest.split(' ').next().unwrap());
            (!is_short).then(|| rest.split_once(" (").map_or("", |(_, condition)| condition))
        })
    }

    /// Returns the reason for which SQLite reads more than the statement returns, if it does. A comparison with an id
    /// alone is not a bound.
    fn excess(&self, may_scan: bool, is_of_everyone: bool) -> Option<&'static str> {
        if self.lines.is_empty() {
            return Some("has no plan");
        }
        if !may_scan && self.scans() {
            return Some("reads a table");
        }
        let is_unbounded = |condition: &str| !condition.contains("=?");
        (!may_scan && !is_of_everyone && self.conditions().any(is_unbounded)).then_some("has no bound")
    }
}

async fn check(db: &Db, statements: Vec<Planned>, bounded: impl Fn(&str) -> bool) {
    db.sql(if db.is_postgres() { "ANALYZE; SET enable_seqscan = off" } else { "SELECT 1" }).await;
    for Planned { name, sqlite, postgres } in statements {
        let sql = if db.is_postgres() { postgres } else { sqlite };
        let plan = Plan::of(db, &sql).await;
        assert!(!plan.lines.is_empty() && !plan.scans(), "{name} reads a table:\n{}", plan.shown());
        assert!(plan.lines.iter().any(|line| bounded(line)), "{name} has no bound:\n{}", plan.shown());
    }
}

async fn retention_reads_nothing_but_what_is_old(db: &Db) {
    fill(db, ROWS).await;
    check(db, plans::retention(), |line| {
        line.contains("<?") || line.contains("<(?") || line.contains("Index Cond") && line.contains('<')
    })
    .await;
}

async fn a_search_for_work_reads_no_idle_bot(db: &Db) {
    fill_one_bot(db).await;
    check(db, plans::rounds(), |line| {
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

/// The lists whose statements read more than they return, with their plans.
async fn excesses(db: &Db, lists: &[Listed]) -> Vec<String> {
    let mut found = Vec::new();
    for list in lists {
        let may_scan = WHOLE.iter().any(|(method, _)| list.method == *method);
        let is_of_everyone = OF_EVERYONE.iter().any(|name| list.name.starts_with(name));
        let is_page =
            PAGES.iter().any(|end| list.method.ends_with(end)) && list.name.ends_with("in the middle");
        let mut begins_at_cursor = false;
        for statement in &list.ran {
            let plan = Plan::of(db, &statement.sql).await;
            if let Some(excess) = plan.excess(may_scan, is_of_everyone) {
                found.push(format!("{} {excess}:\n{}\n", list.name, plan.shown()));
            }
            begins_at_cursor |= plan.conditions().any(|condition| condition.contains(['<', '>']));
        }
        if is_page && !begins_at_cursor {
            found.push(format!("{} does not begin at its cursor: {:?}\n", list.name, list.ran));
        }
    }
    found
}

#[tokio::test]
async fn every_list_reads_an_index_of_its_parent() {
    let db = Db::sqlite().await;
    fill(&db, ROWS).await;
    let lists = read_all(&db, ROWS).await;
    // SQLite has statistics only after `hub-cli db vacuum`.
    for statistics in ["SELECT 1", "ANALYZE"] {
        db.sql(statistics).await;
        let found = excesses(&db, &lists).await;
        assert!(found.is_empty(), "after {statistics}:\n{}", found.join("\n"));
    }
    db.remove().await;
}

#[test]
fn a_bound_of_an_id_alone_does_not_count() {
    let excess = |line: &str| Plan { sql: "", lines: vec![line.to_owned()] }.excess(false, false);
    for line in [
        "SCAN t",
        "SCAN t USING INDEX traces_by_message",
        "SEARCH t USING INDEX sqlite_autoindex_traces_1 (id>? AND id<?)",
        "SEARCH t USING AUTOMATIC COVERING INDEX (id=?)",
    ] {
        assert!(excess(line).is_some(), "{line}");
    }
    let bounded = "SEARCH t USING INDEX traces_by_channel_or_bot (<expr>=? AND id>? AND id<?)";
    assert_eq!(excess(bounded), None);
}

/// Reads a list with `find`, and returns the number of items of each page.
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
    let on = fill_one_bot(db).await;
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

async fn a_page_of_administrators_looks_at_a_bounded_number_of_rows(db: &Db) {
    let on = stage(db).await;
    db.sql(rows(
        "audit",
        "at, actor, actor_name, credential, action, target, target_name, detail, ip",
        "aud",
        "i, 'actor', '', '', CASE i WHEN 1 THEN 'rare' ELSE 'x' END, CASE i WHEN 1 THEN 'rare' ELSE 'y' END, '', '{}', ''",
    ))
    .await;
    db.sql(rows(
        "users",
        "username, display_name, email, role, status, created_at, updated_at",
        "usr",
        "'user ' || i, CASE i WHEN 1 THEN 'Rare' ELSE '' END, '', 'member', 'active', i, i",
    ))
    .await;
    db.sql(rows(
        "bots",
        "owner_id, name, network, status, status_since, wx_id, owner_user_id, credentials, credentials_rev, cursor,
            config_rev, lease_fence, created_at",
        "bot",
        &format!(
            "'{}', '', 'sim', CASE i WHEN 1 THEN 'expired' ELSE 'online' END, 0, 'account ' || i, 'person ' || i,
                'sealed', 1, '', 0, 0, i",
            on.owner
        ),
    ))
    .await;
    let [rare, actor] = ["rare", "actor"].map(|text| Some(text.to_owned()));
    let all = AuditFilter::default;
    for (filter, expected) in [
        (AuditFilter { action: rare.clone(), ..all() }, &[0, 0, 1][..]),
        (AuditFilter { actor, target: rare.clone(), ..all() }, &[0, 0, 1]),
        (AuditFilter { target: rare.clone(), ..all() }, &[1]),
    ] {
        let find = async |page| db.store.read().await.unwrap().audit().page(&filter, &page).await.unwrap();
        assert_eq!(pages(find, |entry| entry.id.to_string()).await, expected, "{filter:?}");
    }
    let query = UserQuery { q: rare, ..UserQuery::default() };
    let find = async |page| db.store.read().await.unwrap().users().page(&query, &page).await.unwrap();
    assert_eq!(
        pages(find, |row| row.user.id.to_string()).await,
        [0, 0, 0, 1],
        "the owner of the bots is one more"
    );
    for (owner, expected) in [(None, &[0, 0, 0, 1][..]), (Some(on.owner), &[1])] {
        let find = async |page| {
            let mut read = db.store.read().await.unwrap();
            read.bots().page_in_status(owner, Some(BotStatus::Expired), &page).await.unwrap()
        };
        assert_eq!(pages(find, |bot| bot.id.to_string()).await, expected, "{owner:?}");
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
    a_page_without_an_index_looks_at_a_bounded_number_of_rows,
    a_page_of_administrators_looks_at_a_bounded_number_of_rows
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
