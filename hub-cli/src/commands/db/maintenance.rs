//! `db check`, `db vacuum`, `db prune` and `db encrypt rotate-key`.

use hub_core::{
    data_dir,
    random::Random,
    store::Upkeep,
    time::{Clock, Timestamp},
    upkeep,
};
use serde_json::{Map, Value, json};

use super::bytes;
use crate::{
    args::{DbPruneArgs, DbRotateKeyArgs, LocalArgs},
    commands::recordings::moment,
    exit::{Exit, Failure},
    local::{self, Open},
    printer::{List, Printer},
};

pub async fn check(args: &LocalArgs, printer: &Printer) -> Result<Exit, Failure> {
    let home = local::settings(args)?.home();
    let checked = upkeep::check(&home, &Random::system()).await?;
    let findings = &checked.findings;
    let row = |finding: &upkeep::Finding| vec![finding.check.to_owned(), finding.message.clone()];
    let item = |finding: &upkeep::Finding| json!({ "check": finding.check, "message": finding.message });
    printer.list(List {
        columns: &["CHECK", "MESSAGE"],
        rows: findings.iter().map(row).collect(),
        items: findings.iter().map(item).collect::<Vec<Value>>(),
        next_cursor: None,
        empty: "no problems",
    })?;
    printer.note(&format!("{} secrets decrypted, {} files present", checked.secrets, checked.files));
    Ok(if findings.is_empty() { Exit::Done } else { Exit::CheckFailed })
}

pub async fn vacuum(args: &LocalArgs, printer: &Printer) -> Result<(), Failure> {
    let mut database = Upkeep::open(&local::settings(args)?.store).await?;
    let before = u64::try_from(database.size().await?).unwrap_or(0);
    database.vacuum().await?;
    let after = u64::try_from(database.size().await?).unwrap_or(0);
    database.close().await?;
    let text = format!("{} before, {} after", bytes(before), bytes(after));
    printer.one(json!({ "bytes_before": before, "bytes_after": after }), &text)
}

pub async fn prune(args: DbPruneArgs, printer: &Printer) -> Result<(), Failure> {
    let before = moment(&args.older_than, Clock::system().now()).ok_or_else(|| {
        Failure::usage("--older-than: must be like 12h or 30d, or a time like 2026-01-31T12:00:00Z")
    })?;
    let what = format!("this permanently deletes traces, messages and logs before {before}");
    let confirmed = args.confirm.is_confirmed_by_name(&what, "prune", printer).await?;
    let counts = if confirmed {
        let hub = local::open(&args.local, Open::Existing).await?;
        let forgotten = hub.forget(before).await;
        hub.shutdown().await;
        let forgotten = forgotten?;
        vec![
            ("traces", forgotten.traces),
            ("messages", forgotten.messages),
            ("app_calls", forgotten.app_calls),
            ("app_events", forgotten.app_events),
        ]
    } else {
        let mut database = Upkeep::open(&local::settings(&args.local)?.store).await?;
        let counts = database.count_before(before).await?;
        database.close().await?;
        counts.into_iter().map(|(name, count)| (name, u64::try_from(count).unwrap_or(0))).collect()
    };
    pruned(before, confirmed, &counts, printer)
}

fn pruned(before: Timestamp, done: bool, counts: &[(&str, u64)], printer: &Printer) -> Result<(), Failure> {
    let mut document = Map::new();
    document.insert("before".into(), json!(before));
    document.insert("pruned".into(), done.into());
    document.extend(counts.iter().map(|(name, count)| ((*name).to_owned(), json!(count))));
    printer.note(if done { "deleted:" } else { "would be deleted:" });
    let lines: Vec<String> = counts.iter().map(|(name, count)| format!("{name:<10}  {count}")).collect();
    printer.one(Value::Object(document), &lines.join("\n"))
}

pub async fn rotate_key(args: DbRotateKeyArgs, printer: &Printer) -> Result<Exit, Failure> {
    let config = local::settings(&args.local)?;
    let new_key = args.new_key_file.as_deref().map(data_dir::read_key).transpose()?;
    let rotated = upkeep::rotate_key(&config.home(), new_key, &Random::system()).await?;
    printer.note(&format!("{} secrets are now encrypted with the key {}", rotated.sealed, rotated.new_key));
    if let Some(path) = &args.new_key_file {
        let to = path.display();
        printer.note(&format!("now set HUB_SECRET_KEY or HUB_SECRET_KEY_FILE to {to}, and start the server"));
    }
    printer.note(
        "copies encrypted with the old key remain in unused pages of the file until `hub-cli db vacuum`",
    );
    let document = json!({
        "old_key_id": rotated.old_key,
        "key_id": rotated.new_key,
        "sealed": rotated.sealed,
        "unreadable": rotated.unreadable,
    });
    printer.one(document, &rotated.new_key)?;
    if rotated.unreadable > 0 {
        printer.note(&format!(
            "warning: {} secrets could not be decrypted with either key and were not changed",
            rotated.unreadable
        ));
        return Ok(Exit::Partial);
    }
    Ok(Exit::Done)
}
