//! `audit list` and `stats`.

use std::time::Duration;

use hub_core::{store::audit::AuditFilter, time::Clock};
use serde_json::Value;

use super::users::cell;
use crate::{
    args::{AuditListArgs, StatsArgs},
    exit::Failure,
    printer::{Format, List, Printer},
    reach::Reach,
};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);

pub const LIST_FIELDS: [&str; 10] =
    ["id", "at", "actor", "actor_name", "credential", "action", "target", "target_name", "detail", "ip"];

pub const STATS_FIELDS: [&str; 8] =
    ["users", "bots", "channels", "messages", "deliveries", "oldest_pending_at", "plugin_runs", "series"];

pub async fn list(args: AuditListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let filter = AuditFilter { actor: args.actor, action: args.action, target: args.target };
    let reach = Reach::open(&args.hub, local).await?;
    let mut page = reach.audit(&filter, &args.page).await?;
    reach.close().await;
    let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let or = |entry: &Value, name: &str, id: &str| {
        let named = cell(entry, name);
        if named.is_empty() { cell(entry, id) } else { named }
    };
    let row = |entry: &Value| {
        vec![
            cell(entry, "at"),
            or(entry, "actor_name", "actor"),
            cell(entry, "action"),
            or(entry, "target_name", "target"),
            cell(entry, "ip"),
            cell(entry, "detail"),
        ]
    };
    printer.list(List {
        columns: &["AT", "WHO", "WHAT", "TO", "FROM", "DETAIL"],
        rows: items.iter().map(row).collect(),
        items,
        next_cursor: page["next_cursor"].as_str().map(str::to_owned),
        empty: "nothing was done yet",
    })
}

pub async fn stats(args: StatsArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let stats = reach.stats().await?;
    if args.watch {
        return watch(&reach, stats, printer).await;
    }
    reach.close().await;
    let text = text_of(&stats);
    printer.one(stats, &text)
}

/// Shows the numbers, and again whenever one of them is another: in place at a terminal, otherwise below each other.
async fn watch(reach: &Reach, mut stats: Value, printer: &Printer) -> Result<(), Failure> {
    let (clock, mut shown) = (Clock::system(), String::new());
    loop {
        let text = text_of(&stats);
        if text != shown {
            match printer.format {
                Format::Json(_) => printer.one(stats, "")?,
                Format::Text => printer.replace(shown.lines().count(), &text)?,
            }
            shown = text;
        }
        clock.sleep(LOOK).await;
        stats = reach.stats().await?;
    }
}

/// One line per number; the series is summed up by its last ten minutes.
fn text_of(stats: &Value) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<22}  {value}"));
    for (part, names) in [
        ("users", &["total", "active", "disabled", "admins"][..]),
        ("messages", &["in", "out"]),
        ("deliveries", &["pending", "parked", "done", "dead"]),
    ] {
        for name in names {
            line(&format!("{part} {name}"), cell(&stats[part], name));
        }
    }
    line("bots total", cell(&stats["bots"], "total"));
    for (status, count) in stats["bots"]["by_status"].as_object().into_iter().flatten() {
        if *count != 0 {
            line(&format!("bots {status}"), count.to_string());
        }
    }
    line("channels", cell(stats, "channels"));
    line("plugin runs", cell(stats, "plugin_runs"));
    line("oldest pending", cell(stats, "oldest_pending_at"));
    let series = stats["series"].as_array().map(Vec::as_slice).unwrap_or_default();
    let last =
        |name: &str| -> u64 { series.iter().rev().take(10).filter_map(|minute| minute[name].as_u64()).sum() };
    for name in ["messages_in", "messages_out", "delivered", "failed"] {
        line(&format!("{name}, 10 min"), last(name).to_string());
    }
    lines.join("\n")
}
