//! Prints a trace as a waterfall: one line per step with its start, name, status, duration, a bar and one detail.

use hub_core::{
    time::Timestamp,
    traces::{Step, StepDetail, StepName, Trace, TraceStatus},
};
use serde_json::json;

use crate::{
    printer::{Printer, Tone},
    screen::{clean, fit, pad, width, wrap},
};

/// Columns of the bar, narrow and otherwise.
const BAR_COLUMNS: [usize; 2] = [8, 16];
/// Minimum width of a detail, in columns.
const MIN_DETAIL: usize = 10;

pub fn draw(trace: &Trace, now: Timestamp, printer: &Printer) -> String {
    let columns = Columns::of(trace, printer.columns());
    let steps = trace.steps.iter().map(|step| line(trace, step, &columns, printer));
    let next = next_attempt(trace, now);
    heading(trace, printer)
        .into_iter()
        .chain(next)
        .chain(steps)
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns id, status and summary. The summary is on a line of its own if it does not fit.
fn heading(trace: &Trace, printer: &Printer) -> Vec<String> {
    let took = duration(trace.duration_ms);
    let plain = format!("trace {}  {}  {took}", trace.trace_id, trace.status.as_str());
    let painted = printer.paint(trace.status.as_str(), tone(trace.status));
    let head = format!("trace {}  {painted}  {took}", trace.trace_id);
    let summary = clean(&trace.summary);
    if width(&plain) + 2 + width(&summary) <= printer.columns() {
        return vec![format!("{head}  {summary}")];
    }
    let below = wrap(&summary, printer.columns().saturating_sub(2).max(20));
    [head].into_iter().chain(below.into_iter().map(|line| format!("  {line}"))).collect()
}

/// Describes the next attempt: `next attempt in 24 s, attempt 2 of 8`.
fn next_attempt(trace: &Trace, now: Timestamp) -> Option<String> {
    let at = trace.next_attempt_at?;
    let wait = u64::try_from(at.since(now).as_millis()).unwrap_or(u64::MAX);
    let when = match wait {
        0 => "now".to_owned(),
        1..120_000 => format!("in {} s", wait.div_ceil(1_000)),
        _ => format!("in {}", duration(wait)),
    };
    let of = trace.max_attempts.map(|most| format!(" of {most}")).unwrap_or_default();
    Some(format!("  next attempt {when}, attempt {}{of}", trace.attempts + 1))
}

/// Widths that fit one trace.
struct Columns {
    name: usize,
    status: usize,
    bar: usize,
    detail: usize,
    /// Milliseconds over the whole bar.
    span: u64,
}

impl Columns {
    fn of(trace: &Trace, total: usize) -> Self {
        let longest =
            |text: fn(&Step) -> &str| trace.steps.iter().map(|step| text(step).len()).max().unwrap_or(0);
        let name = longest(|step| step.name.as_str());
        let status = longest(|step| step.status.as_str());
        let bar = BAR_COLUMNS[usize::from(total >= 70)];
        let detail = total.saturating_sub(8 + 2 + name + 2 + status + 2 + 7 + 2 + bar + 2);
        let end = |step: &Step| offset(trace, step) + step.duration_ms;
        let span = trace.steps.iter().map(end).max().unwrap_or(0).max(1);
        Self { name, status, bar, detail, span }
    }
}

fn line(trace: &Trace, step: &Step, columns: &Columns, printer: &Printer) -> String {
    let at = format!("{:>8}", duration(offset(trace, step)));
    let status = printer.paint(&pad(step.status.as_str(), columns.status), tone(step.status));
    let mut line = format!(
        "{at}  {}  {status}  {:>7}  {}",
        pad(step.name.as_str(), columns.name),
        duration(step.duration_ms),
        bar(offset(trace, step), step.duration_ms, columns),
    );
    if columns.detail >= MIN_DETAIL {
        let detail = fit(&clean(&detail(step)), columns.detail);
        line = format!("{line}  {}", printer.paint(&detail, Tone::Faint));
    }
    line
}

fn offset(trace: &Trace, step: &Step) -> u64 {
    u64::try_from(step.started_at.since(trace.started_at).as_millis()).unwrap_or(u64::MAX)
}

fn bar(from: u64, length: u64, columns: &Columns) -> String {
    let (fill, point) = if is_utf8() { ('█', '▏') } else { ('#', '|') };
    let scale = |ms: u64| {
        let cells = u128::from(ms) * columns.bar as u128 / u128::from(columns.span);
        usize::try_from(cells).unwrap_or(columns.bar)
    };
    let start = scale(from).min(columns.bar - 1);
    let cells = scale(from + length).min(columns.bar).saturating_sub(start);
    let drawn = if cells == 0 { point.to_string() } else { fill.to_string().repeat(cells) };
    pad(&format!("{}{drawn}", " ".repeat(start)), columns.bar)
}

/// Whether the locale supports block characters.
fn is_utf8() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

const fn tone(status: TraceStatus) -> Tone {
    match status {
        TraceStatus::Ok => Tone::Good,
        TraceStatus::Error => Tone::Bad,
        TraceStatus::Pending => Tone::Doubtful,
        TraceStatus::Skipped => Tone::Faint,
    }
}

/// Milliseconds in at most seven columns.
pub fn duration(ms: u64) -> String {
    let tenths = |unit: u64, name: &str| format!("{}.{} {name}", ms / unit, ms % unit * 10 / unit);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => tenths(1_000, "s"),
        60_000..3_600_000 => tenths(60_000, "min"),
        3_600_000..86_400_000 => tenths(3_600_000, "h"),
        _ => format!("{} d", ms / 86_400_000),
    }
}

/// The most important detail of a step.
fn detail(step: &Step) -> String {
    let detail = &step.detail;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    if let Some(error) = &detail.error {
        let phase = error.phase.map(|phase| format!("failed at {phase}: "));
        return format!("{}{}{}", phase.unwrap_or_default(), error.message, phases(detail));
    }
    match (step.name, &detail.reason) {
        (StepName::Received, _) => match detail.replay_of {
            Some(id) => format!("replay of {id}"),
            None => text(&detail.msg_type),
        },
        (StepName::Filter, None) => "matched".to_owned(),
        (StepName::Request, _) => format!("{} {}{}", text(&detail.method), text(&detail.url), phases(detail)),
        (StepName::Response, _) => {
            let status = detail.status.map(|status| status.to_string());
            let problem = detail.reason.as_ref().map(|reason| format!("({reason}) "));
            format!("{} {}{}", text(&status), text(&problem), text(&detail.body))
        }
        (StepName::Reply, None) => format!("{} to {}", text(&detail.state), text(&detail.to)),
        (StepName::PluginOnRequest | StepName::PluginOnResponse, reason) => {
            let behind = reason.as_ref().map(|reason| format!(": {reason}"));
            format!("{} {}{}", text(&detail.plugin), text(&detail.version), text(&behind))
        }
        (_, Some(reason)) => reason.clone(),
        _ if *detail == StepDetail::default() => String::new(),
        _ => json!(detail).to_string(),
    }
}

/// Measured phases of a request: ` (dns 3 ms, connect 11 ms)`.
fn phases(detail: &StepDetail) -> String {
    let Some(phases) = &detail.phases else { return String::new() };
    let measured =
        [("dns", phases.dns_ms), ("connect", phases.connect_ms), ("first byte", phases.first_byte_ms)]
            .into_iter()
            .filter_map(|(text, ms)| Some(format!("{text} {}", duration(ms?))));
    let measured: Vec<_> = measured.collect();
    if measured.is_empty() { String::new() } else { format!(" ({})", measured.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_the_largest_unit() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (59_999, "59.9 s"),
            (90_000, "1.5 min"),
            (5_400_000, "1.5 h"),
            (u64::MAX / 2, "106751991167 d"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn the_next_attempt_is_announced_with_its_number() {
        let trace = |next: Option<&str>| -> Trace {
            let mut document = json!({
                "trace_id": "tr_01KAJ6Z8QH0000000000000001", "message_id": "msg_01KAJ6Z8QH0000000000000000",
                "bot_id": "bot_01KAJ6Z8QH0000000000000000", "channel_id": null, "replay_of": null,
                "status": "pending", "summary": "", "started_at": "2026-01-02T03:04:05.678Z", "duration_ms": 1,
                "attempts": 1, "max_attempts": 8,
            });
            document["next_attempt_at"] = json!(next);
            serde_json::from_value(document).unwrap()
        };
        let now: Timestamp = "2026-01-02T03:05:00.000Z".parse().unwrap();
        let announced = |next: &str| next_attempt(&trace(Some(next)), now).unwrap();
        assert_eq!(announced("2026-01-02T03:05:23.100Z"), "  next attempt in 24 s, attempt 2 of 8");
        assert_eq!(announced("2026-01-02T03:10:00.000Z"), "  next attempt in 5.0 min, attempt 2 of 8");
        assert_eq!(announced("2026-01-02T03:04:59.000Z"), "  next attempt now, attempt 2 of 8");
        assert_eq!(next_attempt(&trace(None), now), None);
    }

    #[test]
    fn the_phases_of_a_measured_request_are_named() {
        let detail = json!({ "phases": { "dns_ms": 3, "first_byte_ms": 1_200 } });
        assert_eq!(phases(&serde_json::from_value(detail).unwrap()), " (dns 3 ms, first byte 1.2 s)");
        assert_eq!(phases(&StepDetail::default()), "");
    }

    #[test]
    fn bars_stay_inside_their_columns() {
        let columns = Columns { name: 8, status: 2, bar: 16, detail: 20, span: 100 };
        for (from, length) in [(0, 0), (0, 100), (99, 1), (100, 0), (50, 25), (100, 100)] {
            assert_eq!(width(&bar(from, length, &columns)), 16, "{from} {length}");
        }
        assert!(bar(50, 25, &columns).starts_with("        "));
    }
}
