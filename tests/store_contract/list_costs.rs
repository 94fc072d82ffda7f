//! A page of a list costs the same however many rows the hub has, which the steps of SQLite's virtual machine and the
//! rows that PostgreSQL read show. Every method of the store that lists or counts is among the [lists](super::lists).

use std::{collections::BTreeSet, path::Path};

use hub_core::page::MAX_SCANNED;

use super::{
    coverage::sources,
    filled::fill,
    lists::{Listed, read_all},
};
use crate::support::{
    database::Db,
    logged_plans::{LOGS_PLANS, number, plans},
    postgres::Server,
};

/// Rows of each table.
const FEW: u32 = 1_000;
const MANY: u32 = 30_000;
/// Steps for each of the rows that a list looks at for a filter without an index.
const STEPS_PER_SCANNED: u64 = 25;
/// A bot and its channels, each of which has an index of its traces.
const SOURCES: u64 = 3;

/// Rows that a part of a plan of PostgreSQL reads at most: of a table with [`MANY`], and of a user with half of them.
const MAX_ROWS_READ: usize = 5_000;

/// Lists with a filter without an index, by the beginning of their names.
const SCANNED: &[&str] = &[
    "traces::list failed",
    "traces::list pending",
    "messages::page direction",
    "messages::page text",
    "users::page role",
    "users::page status",
    "users::page text",
    "bots::page_in_status",
    "audit::page action",
    "ai::conversation",
];

/// Lists whose cost grows, by the beginning of their names, and with what.
const GROWING: &[(&str, &str)] = &[
    ("apps::count_of", "apps of one user"),
    ("plugins::count_of", "plugins of one user"),
    ("passkeys::count", "passkeys of one user"),
    ("passkeys::credential_ids", "passkeys of one user, 1,000 at most"),
    ("external_accounts::list", "linked accounts of one user, 200 at most"),
    ("accounts::count_sign_in_methods", "passkeys and linked accounts of one user"),
    ("media::bytes_of", "files of one user"),
    ("outbox::queued_parts", "unsent parts to one person"),
    ("sending::open", "unsent parts to the people named"),
    ("channels::deliveries_by_state", "open and dead deliveries of the channels of a page"),
    ("channels::health", "open and dead deliveries of the channels of a page"),
    ("channels::totals", "open and dead deliveries of the channels of one user"),
    ("messages::search in flight", "unsent parts of one user's bots"),
    ("media::opened_with_md5", "files of one bot with the same bytes"),
    ("leases::with_work", "bots with open work"),
    ("leases::unserved", "free bots, which living nodes take"),
    ("leases::any_free", "with statistics, users and their bots up to the first that is free"),
    ("replays::find", "traces of one replay"),
    ("replays::bots_of", "traces of one replay"),
    ("demo::holder", "users of the hub; once, at the start"),
    ("stats::users", "users of the hub; for administrators"),
    ("stats::bots", "bots of the hub; for administrators and metrics"),
    ("stats::channels", "channels of the hub; for administrators and metrics"),
    ("stats::open_deliveries", "open deliveries of the hub; for administrators and metrics"),
];

/// Methods that are not read, and why.
const UNREAD: &[(&str, &str)] = &[
    ("upkeep::", "commands of operators on a database"),
    ("leases::shares", "PostgreSQL alone: an index of the bots of each node"),
    ("deliveries::find_by_trace", "only the contract calls it"),
];

/// Whether a list that took `few` steps with few rows grows, if it takes `many` with many.
fn grows(name: &str, few: u64, many: u64) -> bool {
    if SCANNED.iter().any(|scanned| name.starts_with(scanned)) {
        return many > u64::from(MAX_SCANNED) * SOURCES * STEPS_PER_SCANNED;
    }
    many.abs_diff(few) * 5 > few
}

#[tokio::test]
async fn a_page_takes_as_many_steps_of_30000_rows_as_of_1000() {
    let (small, large) = (Db::sqlite().await, Db::sqlite().await);
    fill(&small, FEW).await;
    fill(&large, MANY).await;
    // SQLite has statistics only after `hub-cli db vacuum`.
    for statistics in ["SELECT 1", "ANALYZE"] {
        small.sql(statistics).await;
        large.sql(statistics).await;
        let (few, many) = (read_all(&small, FEW).await, read_all(&large, MANY).await);
        assert_eq!(few.len(), many.len());
        let lists = few.iter().zip(&many);
        let grown: Vec<String> = lists
            .filter(|(few, _)| !may_grow(few))
            .filter(|(few, many)| grows(&few.name, few.steps, many.steps))
            .map(|(few, many)| format!("{}: {} steps, then {}", few.name, few.steps, many.steps))
            .collect();
        assert!(grown.is_empty(), "after {statistics}: {grown:#?}");
    }
    small.remove().await;
    large.remove().await;
}

fn may_grow(list: &Listed) -> bool {
    GROWING.iter().any(|(name, _)| list.name.starts_with(name))
}

/// The number of rows that the most expensive part of a plan read, those that it left out included.
fn max_rows_read(plan: &[&str]) -> usize {
    let read = |line: &&str| {
        let rows = number(line, "actual rows=").filter(|_| line.contains("Scan"));
        rows.map(|rows| rows * number(line, " loops=").unwrap_or(1))
    };
    let removed = |line: &&str| {
        number(line, "Rows Removed by Filter: ").or(number(line, "Rows Removed by Join Filter: "))
    };
    plan.iter().filter_map(|line| read(line).or(removed(line))).max().unwrap_or(0)
}

#[tokio::test]
async fn a_page_reads_few_of_30000_rows_of_postgresql() {
    let Some(server) = Server::with(&LOGS_PLANS) else { return };
    let db = Db::of(&server).await;
    fill(&db, MANY).await;
    db.sql("ANALYZE").await;
    let lists = read_all(&db, MANY).await;
    db.store.close().await;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let log = server.log();
    let plans: Vec<(String, Vec<&str>)> = plans(&log).map(|plan| (words(&plan.join(" ")), plan)).collect();
    let mut read = Vec::new();
    for list in lists.iter().filter(|list| !may_grow(list)) {
        for statement in &list.ran {
            let text = format!("Query Text: {}", words(&statement.sql));
            let of_statement = plans.iter().filter(|(shown, _)| shown.starts_with(&text)).collect::<Vec<_>>();
            assert!(!of_statement.is_empty(), "{} is not in the log: {text}", list.name);
            let too_many = of_statement.iter().filter(|(_, plan)| max_rows_read(plan) > MAX_ROWS_READ);
            read.extend(too_many.map(|(_, plan)| format!("{}:\n{}\n", list.name, plan.join("\n"))));
        }
    }
    assert!(read.is_empty(), "{}", read.join("\n"));
}

/// The methods of the store's views in a source that list or count without writing, with their file.
fn lists_in<'s>(file: &'s str, source: &'s str) -> impl Iterator<Item = String> + use<'s> {
    let methods = source.split("    pub async fn ").skip(1);
    let methods = methods.map(|method| method.split("\n    }\n").next().unwrap_or(method));
    methods.filter_map(move |method| {
        let has = |words: &[&str]| words.iter().any(|word| method.contains(word));
        let lists = has(&["all:", "values:", "PageRequest", "LIMIT", "COUNT(", "count(", "SUM("]);
        let writes = has(&["INSERT ", "UPDATE ", "DELETE ", "DELETE_", "run:", "execute:"]);
        let name = method.split(['(', '<']).next()?;
        (lists && !writes).then(|| format!("{file}::{name}"))
    })
}

#[tokio::test]
async fn every_method_that_lists_or_counts_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub-core/src/store");
    let mut methods = BTreeSet::new();
    for (file, path) in sources(&folder) {
        let source = std::fs::read_to_string(&path).unwrap();
        let source = source.split("#[cfg(test)]").next().unwrap();
        let source = source.split("#[cfg(any(test,").next().unwrap();
        methods.extend(lists_in(&file, source));
    }
    assert!(methods.contains("traces::list") && methods.contains("stats::minutes_of"), "{methods:?}");
    let db = Db::sqlite().await;
    fill(&db, FEW).await;
    let read: BTreeSet<&str> = read_all(&db, FEW).await.iter().map(|list| list.method).collect();
    db.remove().await;
    let left_out: Vec<&String> = methods
        .iter()
        .filter(|method| !read.contains(method.as_str()))
        .filter(|method| !UNREAD.iter().any(|(name, _)| method.starts_with(name)))
        .collect();
    assert!(left_out.is_empty(), "add these to `lists`: {left_out:?}");
    for (name, _) in GROWING {
        let method = name.split(' ').next().unwrap();
        assert!(read.contains(method), "{method} is not read");
    }
}
