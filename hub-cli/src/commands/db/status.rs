//! `db status` and `db migrate`.

use hub_core::{
    backup::LAST_BACKUP,
    random::Random,
    store::{Schema, StoreConfig, Upkeep, claim_file},
    time::Timestamp,
};
use hub_server::config::{Config, mask_url};
use serde_json::{Map, Value, json};

use super::bytes;
use crate::{
    args::LocalArgs,
    exit::{Failure, hint},
    local::{self, Open},
    printer::{List, Printer},
};

pub async fn show(args: &LocalArgs, printer: &Printer) -> Result<(), Failure> {
    let config = local::settings(args)?;
    let mut upkeep = Upkeep::open(&config.store).await?;
    let schema = upkeep.schema().await?;
    let is_current = schema.version == schema.newest;
    // With another schema only its version is known.
    let rows = if is_current { upkeep.counts().await? } else { Vec::new() };
    let last_backup = if schema.version > 0 { upkeep.noted(LAST_BACKUP).await? } else { None };
    let last_backup = last_backup.and_then(|text| text.parse().ok()).map(Timestamp::from_millis);
    let size = u64::try_from(upkeep.size().await?).unwrap_or(0);
    let unreadable = upkeep.unreadable_entries().await?;
    let running = match &config.store {
        StoreConfig::Sqlite(path) => claim_file(path).is_err(),
        StoreConfig::Postgres(_) => is_current && upkeep.has_leases().await?,
    };
    upkeep.close().await?;
    let key_id = config.home().sealer(&Random::system()).ok().map(|sealer| sealer.key_id().to_owned());
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<12}  {value}"));
    line("database", name(&config));
    line("schema", schema_text(&schema));
    line("size", bytes(size));
    line("key", key_id.clone().unwrap_or_else(|| "none readable".to_owned()));
    line("server", if running { "running" } else { "not running" }.to_owned());
    line("last backup", last_backup.map_or_else(|| "never".to_owned(), |at| at.to_string()));
    if let Some(first) = unreadable.first() {
        line("commit log", format!("{} entries cannot be read; {}", unreadable.len(), first.message()));
        printer.note(&format!("hint: {}", hint(first).unwrap_or_default()));
    }
    for (table, count) in &rows {
        line(table, count.to_string());
    }
    let pending: Vec<i64> = schema.pending.iter().map(|(version, _)| *version).collect();
    let document = json!({
        "database": name(&config),
        "schema": schema.version,
        "newest": schema.newest,
        "pending": pending,
        "bytes": size,
        "rows": rows.iter().map(|(table, count)| ((*table).to_owned(), json!(count))).collect::<Map<_, _>>(),
        "key_id": key_id,
        "running": running,
        "last_backup_at": last_backup,
        "unreadable_entries": unreadable.len(),
    });
    printer.one(document, &lines.join("\n"))
}

fn schema_text(schema: &Schema) -> String {
    let Schema { version, newest, pending } = schema;
    if schema.is_newer() {
        format!("{version}, newer than this program's {newest}")
    } else if pending.is_empty() {
        format!("{version}, up to date")
    } else {
        format!("{version}; {} migrations are missing: hub-cli db migrate", pending.len())
    }
}

/// The migrations that `db migrate` would run.
pub async fn pending(args: &LocalArgs, printer: &Printer) -> Result<(), Failure> {
    let config = local::settings(args)?;
    let mut upkeep = Upkeep::open(&config.store).await?;
    let schema = upkeep.schema().await?;
    upkeep.close().await?;
    if schema.is_newer() {
        return Err(Failure::unreachable(format!("the schema is {}", schema_text(&schema)))
            .with_hint("this database is of a newer version of the hub; use that version"));
    }
    let row = |(version, name): &(i64, String)| vec![version.to_string(), name.clone()];
    let item = |(version, name): &(i64, String)| json!({ "version": version, "name": name });
    printer.list(List {
        columns: &["VERSION", "NAME"],
        rows: schema.pending.iter().map(row).collect(),
        items: schema.pending.iter().map(item).collect::<Vec<Value>>(),
        next_cursor: None,
        empty: "the schema is up to date",
    })
}

pub async fn migrate(args: &LocalArgs, printer: &Printer) -> Result<(), Failure> {
    let database = name(&local::settings(args)?);
    local::open(args, Open::Migrate).await?.shutdown().await;
    printer.note("the schema is up to date");
    printer.one(json!({ "database": database }), &database)
}

/// The database, without the password of its URL.
fn name(config: &Config) -> String {
    match &config.store {
        StoreConfig::Sqlite(path) => path.display().to_string(),
        StoreConfig::Postgres(url) => mask_url(url.expose()),
    }
}
