//! `audit list` and `stats`.

use std::time::Duration;

use serde_json::Value;

use crate::{
    args::{AuditListArgs, StatsArgs},
    client::Client,
    context::Context,
    document::cell,
    exit::Failure,
    poll::every,
    printer::{Format, List, Printer},
};

const STATS: &str = "/api/admin/stats";
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub async fn list(args: AuditListArgs, cx: &Context) -> Result<(), Failure> {
    let filters = [("actor", args.actor), ("action", args.action), ("target", args.target)];
    let client = cx.hub(&args.list.hub).await?;
    let page = client.list("/api/admin/audit", &filters, &args.list.page).await?;
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
    let columns = &["AT", "WHO", "WHAT", "TO", "FROM", "DETAIL"];
    cx.printer.list(List::of(page, columns, row, "no entries yet"))
}

pub async fn stats(args: StatsArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    if args.watch {
        return watch(&client, &cx.printer).await;
    }
    let stats = client.get(STATS).await?;
    let text = text_of(&stats);
    cx.printer.one(stats, &text)
}

/// Prints the numbers, and again whenever one changes: in place at a terminal, otherwise one after another.
async fn watch(client: &Client, printer: &Printer) -> Result<(), Failure> {
    let mut shown = String::new();
    every(POLL_INTERVAL, async || {
        let stats = client.get(STATS).await?;
        let text = text_of(&stats);
        if text != shown {
            match printer.format {
                Format::Json(_) => printer.one(stats, "")?,
                Format::Text => printer.replace(shown.lines().count(), &text)?,
            }
            shown = text;
        }
        Ok(None)
    })
    .await
}

/// One line per number; the series is summarized by its last ten minutes.
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
