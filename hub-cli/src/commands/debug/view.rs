//! The result of a hook as text.

use hub_core::{
    plugins::{
        Manifest,
        debug::{DebugError, Debugged},
        outcome::millis,
    },
    sandbox::{Limits, LogLevel, Reply},
};

use crate::{
    commands::plugins::run::changes,
    printer::{Printer, Tone},
    screen,
};

/// Maximum width of a reply, in columns.
const MAX_REPLY_COLUMNS: usize = 200;

pub fn draw(path: &str, source: &str, manifest: &Manifest, debugged: &Debugged, printer: &Printer) -> String {
    let mut lines = vec![head(path, manifest, debugged, printer)];
    for note in &debugged.warnings {
        lines.push(format!(
            "  {} line {}: {}",
            printer.paint("warn ", Tone::Doubtful),
            note.line,
            note.message
        ));
    }
    if !debugged.matched {
        let rules = debugged.permissions.matches.join(", ");
        lines.push(format!(
            "  @match {} does not match the message: the plugin is bypassed",
            screen::clean(&rules)
        ));
        return lines.join("\n");
    }
    if !debugged.present && debugged.error.is_none() {
        lines.push(format!("  there is no {} in the source", debugged.hook.as_str()));
    }
    lines.extend(debugged.logs.iter().map(|log| {
        let (name, tone) = match log.level {
            LogLevel::Debug => ("debug", Tone::Faint),
            LogLevel::Info => ("log  ", Tone::Faint),
            LogLevel::Warn => ("warn ", Tone::Doubtful),
            LogLevel::Error => ("error", Tone::Bad),
        };
        format!("  {} {}", printer.paint(name, tone), screen::clean(&log.text))
    }));
    lines.extend(debugged.replies.iter().map(|reply| format!("  reply {}", shown(reply))));
    if debugged.skipped {
        lines.push("  skip  nothing is sent to the webhook, and no further plugin runs".to_owned());
    }
    if let Some(request) = &debugged.request {
        lines.extend(changes(&debugged.before, request, printer));
    }
    if let Some(state) = &debugged.state {
        lines.push(format!("  state {}", screen::fit(&screen::clean(state.get()), MAX_REPLY_COLUMNS)));
    }
    if let Some(error) = &debugged.error {
        lines.extend(failure(path, source, error, printer));
    }
    for host in &debugged.permissions.connects {
        lines.push(format!(
            "  connect  {}  allowed by @connect (fetch reaches only the servers of --host)",
            screen::clean(host)
        ));
    }
    lines.join("\n")
}

fn head(path: &str, manifest: &Manifest, debugged: &Debugged, printer: &Printer) -> String {
    let file = std::path::Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
    let version = manifest.version.as_deref().map(|version| format!(" {}", screen::clean(version)));
    #[expect(clippy::cast_precision_loss, reason = "megabytes")]
    let megabytes = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    let verdict = match &debugged.error {
        None => printer.paint("sandbox ok", Tone::Good),
        Some(error) => printer.paint(&format!("failed: {}", error.kind), Tone::Bad),
    };
    format!(
        "{}{}   {}   {:.1} ms of {}   mem {:.1}/{:.0} MB   {verdict}",
        printer.paint(&screen::clean(&file), Tone::Strong),
        version.unwrap_or_default(),
        debugged.hook.as_str(),
        millis(debugged.duration_us),
        debugged.permissions.timeout_ms,
        megabytes(debugged.memory_bytes),
        megabytes(Limits::default().memory as u64),
    )
}

pub fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Text(text) => screen::fit(&format!("{:?}", screen::clean(text)), MAX_REPLY_COLUMNS),
        Reply::DataUri(uri) => format!("a data: URI of {} bytes", uri.len()),
        Reply::File { base64, filename } => {
            format!("a file {} of about {} bytes", screen::clean(filename), base64.len() / 4 * 3)
        }
        Reply::Forward => "the webhook's response unchanged".to_owned(),
    }
}

/// The error with the lines around it.
fn failure(path: &str, source: &str, error: &DebugError, printer: &Printer) -> Vec<String> {
    let place = match (error.line, error.column) {
        (Some(line), Some(column)) => format!("{path}:{line}:{column}: "),
        (Some(line), None) => format!("{path}:{line}: "),
        _ => String::new(),
    };
    let mut lines = vec![format!(
        "  {} {place}{}",
        printer.paint(&format!("error[{}]", error.kind), Tone::Bad),
        screen::clean(&error.message)
    )];
    let Some(line) = error.line.and_then(|line| usize::try_from(line).ok()) else { return lines };
    let excerpt = (1..).zip(source.lines()).skip(line.saturating_sub(2)).take(3);
    for (number, text) in excerpt {
        lines.push(format!("  {number:>5} | {}", screen::clean(&text.replace('\t', " "))));
        if number == line
            && let Some(column) = error.column.and_then(|column| usize::try_from(column).ok())
        {
            let caret = " ".repeat(column.saturating_sub(1).min(200)) + "^";
            lines.push(format!("        | {}", printer.paint(&caret, Tone::Bad)));
        }
    }
    lines
}
