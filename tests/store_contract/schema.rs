//! The migrations of both databases make the same tables.

use std::{collections::BTreeMap, path::Path};

use crate::support::database::Db;

fn migrations(database: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub-core/migrations").join(database);
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn both_databases_have_the_same_migrations() {
    let names = migrations("sqlite");
    assert_eq!(names, migrations("postgres"));
    let numbers: Vec<u32> = names.iter().map(|name| name[..4].parse().unwrap()).collect();
    assert!(numbers.is_sorted_by(|before, after| before < after), "a number is used twice: {names:?}");
}

/// Columns by table: name, whether NULL is allowed, and the kind of value.
type Tables = BTreeMap<String, Vec<String>>;

fn tables(rows: Vec<String>) -> Tables {
    let mut tables = Tables::new();
    for row in rows {
        let (table, column) = row.split_once('.').unwrap();
        tables.entry(table.to_owned()).or_default().push(column.to_owned());
    }
    for columns in tables.values_mut() {
        columns.sort();
    }
    tables
}

#[tokio::test]
async fn both_databases_have_the_same_tables_and_columns() {
    let Some(postgres) = Db::postgres().await else { return };
    let sqlite = Db::sqlite().await;
    let theirs = postgres
        .texts(
            "SELECT table_name || '.' || column_name || ' ' ||
                CASE is_nullable WHEN 'NO' THEN 'NOT NULL ' ELSE '' END ||
                CASE data_type WHEN 'text' THEN 'text' WHEN 'bigint' THEN 'integer' WHEN 'integer' THEN 'integer'
                    WHEN 'boolean' THEN 'integer' WHEN 'bytea' THEN 'blob' ELSE data_type END
             FROM information_schema.columns
             WHERE table_schema = 'public' AND table_name <> '_sqlx_migrations'",
        )
        .await;
    let ours = sqlite
        .texts(
            "SELECT m.name || '.' || c.name || ' ' ||
                CASE WHEN c.\"notnull\" = 1 OR c.pk > 0 THEN 'NOT NULL ' ELSE '' END || lower(c.type)
             FROM sqlite_schema m JOIN pragma_table_info(m.name) c
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name <> '_sqlx_migrations'",
        )
        .await;
    let (ours, theirs) = (tables(ours), tables(theirs));
    assert!(ours.contains_key("users"));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (table, columns) in &ours {
        assert_eq!(columns, &theirs[table], "{table}");
    }
    let indexes = async |db: &Db, sql: &str| {
        let mut names = db.texts(sql).await;
        names.sort();
        names
    };
    let named =
        indexes(&sqlite, "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").await;
    let every =
        indexes(&postgres, "SELECT CAST(indexname AS TEXT) FROM pg_indexes WHERE schemaname = 'public'")
            .await;
    for name in &named {
        assert!(every.contains(name), "PostgreSQL lacks the index {name}");
    }
    sqlite.remove().await;
    postgres.remove().await;
}

/// PostgreSQL compares what is in an index byte by byte, as SQLite does, though its databases have the order of a language.
#[tokio::test]
async fn indexes_are_in_the_order_of_bytes() {
    let Some(postgres) = Db::postgres().await else { return };
    let of_language = postgres.texts("SELECT 'yes' WHERE 'a' < 'B'").await;
    assert_eq!(of_language, ["yes"], "the database of the tests has the order of a language");
    let others = postgres
        .texts(
            "SELECT CAST(i.indrelid::regclass || '.' || a.attname AS TEXT)
             FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
             WHERE c.relnamespace = 'public'::regnamespace AND c.relname <> '_sqlx_migrations'
                AND a.atttypid = 'text'::regtype AND a.attcollation <> 'pg_catalog.\"C\"'::regcollation",
        )
        .await;
    assert!(others.is_empty(), "name these in a migration, with COLLATE \"C\": {others:?}");
    postgres.remove().await;
}

/// References that PostgreSQL keeps by triggers on what they name: what a deleted row leaves goes with it, and
/// nothing is checked when a message is stored.
const KEPT_BY_TRIGGERS: [&str; 8] = [
    "channel_log.channel_id -> channels.id CASCADE",
    "channel_log.message_id -> messages.id CASCADE",
    "deliveries.channel_id -> channels.id CASCADE",
    "deliveries.message_id -> messages.id CASCADE",
    "messages.bot_id -> bots.id CASCADE",
    "traces.channel_id -> channels.id CASCADE",
    "traces.message_id -> messages.id CASCADE",
    "undelivered.trace_id -> traces.id CASCADE",
];

/// A row of one table that names a row of another: the same on both databases.
#[tokio::test]
async fn both_databases_have_the_same_references() {
    let Some(postgres) = Db::postgres().await else { return };
    let sqlite = Db::sqlite().await;
    let mut ours = sqlite
        .texts(
            "SELECT m.name || '.' || f.\"from\" || ' -> ' || f.\"table\" || '.' || f.\"to\" || ' ' || f.on_delete
             FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'",
        )
        .await;
    let mut theirs = postgres
        .texts(
            "SELECT CAST(k.table_name || '.' || k.column_name || ' -> ' || u.table_name || '.' || u.column_name ||
                ' ' || r.delete_rule AS TEXT)
             FROM information_schema.referential_constraints r
             JOIN information_schema.key_column_usage k ON k.constraint_name = r.constraint_name
             JOIN information_schema.constraint_column_usage u ON u.constraint_name = r.constraint_name",
        )
        .await;
    theirs.extend(KEPT_BY_TRIGGERS.map(str::to_owned));
    ours.sort();
    theirs.sort();
    assert!(!ours.is_empty());
    assert_eq!(ours, theirs);
    sqlite.remove().await;
    postgres.remove().await;
}
