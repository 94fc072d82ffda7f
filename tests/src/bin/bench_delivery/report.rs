//! The table.

use std::{fmt::Write as _, io::Write as _, time::Duration};

use crate::{
    Result,
    flow::{Flow, float},
    options::{Database, Options},
};

/// Results of the bare client, at the same rate.
pub struct Reference {
    pub rate: f64,
    /// Microseconds per message.
    pub cpu: f64,
}

/// Messages for a receiver that is dead.
pub struct Queue {
    pub messages: u64,
    pub empty: u64,
    pub highest: u64,
    pub full: u64,
    pub restarted: u64,
    pub ready_after: Duration,
    /// Messages taken in per second meanwhile.
    pub rate: f64,
}

/// One database.
pub struct Table {
    pub database: Database,
    pub rate: u64,
    pub idle_rss: u64,
    pub first_start: Duration,
    pub start: Duration,
    pub held: Option<(Flow, Reference)>,
    pub saturated: Option<(Flow, Reference)>,
    /// Bytes of the database per message, where it is a file.
    pub disk: Option<f64>,
    pub with_plugin: Option<Flow>,
    pub replies: Option<(Flow, Reference)>,
    pub queue: Option<Queue>,
}

/// Columns: measurement, value of the hub, value of the bare client, goal.
type Row = [String; 4];

/// Prints everything.
pub fn print(options: &Options, tables: &[Table]) -> Result<()> {
    let mut text = String::new();
    let Options { bots, channels, conversations, nodes, seconds, .. } = options;
    writeln!(
        text,
        "{nodes} node(s), {bots} bot(s) × {channels} channel(s), {conversations} conversations per bot, texts of 500 bytes, \
         signed webhooks, {seconds} s; {}",
        machine()
    )?;
    for table in tables {
        write!(text, "\n### {}\n\n", table.database.name())?;
        let header = ["", "hub", "bare client", "aim"].map(str::to_owned);
        let rows: Vec<Row> = std::iter::once(header).chain(rows(table)).collect();
        let widths: Vec<usize> =
            (0..4).map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
        for (number, row) in rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "))?;
            if number == 0 {
                let lines = widths.iter().map(|width| "-".repeat(*width));
                writeln!(text, "| {} |", lines.collect::<Vec<_>>().join(" | "))?;
            }
        }
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn rows(table: &Table) -> Vec<Row> {
    let mut rows = vec![
        row("start to ready, empty database", millis(table.start), "", "< 300 ms"),
        row("start to ready, the very first", millis(table.first_start), "", ""),
        row("RSS, idle", mib(table.idle_rss), "", "<= 35 MiB"),
    ];
    let (most, most_held, latency) = match table.database {
        Database::Sqlite => ("<= 7 ×", "<= 20 ×", "<= 3 / 8 ms"),
        Database::Postgres => ("<= 9 ×", "", "<= 5 / 12 ms"),
    };
    if let Some((flow, bare)) = &table.held {
        let aims = if table.rate > 300 { ["", "p99 < 100 ms"] } else { [most_held, latency] };
        rows.extend(flow_rows(&format!("{}/s held", table.rate), flow, bare, aims));
    }
    if let Some((flow, bare)) = &table.saturated {
        rows.extend(flow_rows("saturated", flow, bare, [most, ""]));
        let (hub, rate) = (format!("{:.0}/s", flow.rate), format!("{:.0}/s", bare.rate));
        rows.push(row("saturated: messages end to end", hub, &rate, ""));
        if let Some(disk) = table.disk {
            rows.push(row("saturated: disk per message", format!("{:.2} KB", disk / 1e3), "", "<= 1.3 KB"));
        }
        if let Some(with_plugin) = &table.with_plugin {
            rows.extend(flow_rows("with a plugin", with_plugin, bare, ["<= 45 ×", ""]));
            let share = format!("{:.0} %", with_plugin.rate / flow.rate * 100.0);
            rows.push(row("with a plugin: share of the rate without", share, "", ""));
        }
    }
    if let Some((flow, bare)) = &table.replies {
        rows.extend(flow_rows("each with a reply", flow, bare, ["<= 30 ×", latency]));
    }
    if let Some(queue) = &table.queue {
        let name = |what: &str| format!("{} queued: {what}", queue.messages);
        rows.push(row(&name("RSS before"), mib(queue.empty), "", ""));
        rows.push(row(&name("RSS, highest"), mib(queue.highest), "", "< 256 MiB"));
        rows.push(row(&name("RSS after"), mib(queue.full), "", "< 256 MiB"));
        rows.push(row(&name("taken in"), format!("{:.0}/s", queue.rate), "", ""));
        rows.push(row(&name("start to ready"), millis(queue.ready_after), "", ""));
        rows.push(row(&name("RSS after that start"), mib(queue.restarted), "", "< 256 MiB"));
    }
    rows
}

/// The aims are those for the ratio to the bare client and for the latency.
fn flow_rows(name: &str, flow: &Flow, bare: &Reference, [most, latest]: [&str; 2]) -> Vec<Row> {
    let name = |what: &str| format!("{name}: {what}");
    let cpu = flow.hub_cpu + flow.database_cpu;
    let parts = if flow.database_cpu > 0.0 {
        format!("{cpu:.0} µs ({:.0} + {:.0})", flow.hub_cpu, flow.database_cpu)
    } else {
        format!("{cpu:.0} µs")
    };
    let bare = format!("{:.0} µs ({:.1} ×)", bare.cpu, cpu / bare.cpu);
    let latency = format!("{} / {} / {}", millis(flow.p50), millis(flow.p99), millis(flow.max));
    let commits = flow.commits.map_or_else(|| "not told".to_owned(), |commits| format!("{commits:.3}"));
    let mut rows = vec![
        row(&name("messages"), format!("{} at {:.0}/s", flow.messages, flow.rate), "", ""),
        row(&name("CPU per message"), parts, &bare, most),
        row(&name("answer to webhook, p50 / p99 / max"), latency, "", latest),
        row(&name("commits per message"), commits, "", ""),
        row(&name("RSS"), mib(flow.rss), "", ""),
    ];
    if flow.order_breaks + flow.repeated > 0 {
        let wrong = format!("{} out of order, {} twice", flow.order_breaks, flow.repeated);
        rows.push(row(&name("wrong"), wrong, "", "0"));
    }
    rows
}

fn row(what: &str, hub: String, bare: &str, aim: &str) -> Row {
    [what.to_owned(), hub, bare.to_owned(), aim.to_owned()]
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", float(bytes) / f64::from(1 << 20))
}

/// The processors and the load of this machine.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let load = read("/proc/loadavg").split_whitespace().next().unwrap_or_default().to_owned();
    format!("{count} × {}, load {load}", model.map_or("unknown", |(_, model)| model))
}
