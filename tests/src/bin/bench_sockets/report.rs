//! The table.

use std::{fmt::Write as _, io::Write as _, time::Duration};

use crate::{
    Result,
    measure::{Pair, Results, Times},
    options::{Options, Sizes},
};

/// Columns: measurement, value of the hub, value of the bare server, goal.
type Row = [String; 4];

/// Prints everything.
pub fn print(options: &Options, results: &Results) -> Result<()> {
    let sizes = options.sizes();
    let mut text = String::new();
    for row in rows(&sizes, results) {
        writeln!(text, "| {} |", row.join(" | "))?;
        if row[0].is_empty() {
            writeln!(text, "|---|---|---|---|")?;
        }
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn rows(sizes: &Sizes, results: &Results) -> Vec<Row> {
    let Results { idle, fan_out, polls, resume } = results;
    let more = idle.hub.saturating_sub(idle.bare);
    let Sizes { sockets, channels, rate, missed, .. } = sizes;
    let count = fan_out.hub.0.len();
    let speed = sizes.missed as u128 * 1000 / resume.took.as_millis().max(1);
    vec![
        row("", "hub", "bare server", "aim"),
        row(&format!("{} idle sockets: RSS of each", sizes.idle), kib(idle.hub), kib(idle.bare), ""),
        row("of that, over the bare server's", kib(more), "", "<= 12 KiB"),
        latency(
            &format!(
                "{rate} messages/s, each to {sockets} of {} sockets ({count} in all), p50 / p99 / max",
                sockets * channels
            ),
            fan_out,
            "",
        ),
        latency(&format!("{} long polls woken, p50 / p99 / max", polls.hub.0.len()), polls, "p99 < 2 × bare"),
        row(&format!("{missed} missed messages, in order"), format!("{speed}/s"), "", ""),
        row("RSS before", mib(resume.before), "", ""),
        row("RSS meanwhile, highest", mib(resume.highest), "", "does not grow"),
    ]
}

fn latency(what: &str, times: &Pair<Times>, aim: &str) -> Row {
    let shown = |times: &Times| [50, 99, 100].map(|part| millis(times.percentile(part))).join(" / ");
    row(what, shown(&times.hub), shown(&times.bare), aim)
}

fn row(what: &str, hub: impl Into<String>, bare: impl Into<String>, aim: &str) -> Row {
    [what.to_owned(), hub.into(), bare.into(), aim.to_owned()]
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn kib(bytes: u64) -> String {
    format!("{}.{} KiB", bytes / 1024, bytes % 1024 * 10 / 1024)
}

fn mib(bytes: u64) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}
