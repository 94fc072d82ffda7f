//! `replay`: sends recordings again, by the hub or from this machine. The logic is in `hub_core::replay`; here are
//! the arguments, the progress and the output.

use hub_core::{
    id::BotId,
    replay::{Differences, End, Outcome, Replay, Report, Stop, Summary, Totals},
    time::{Clock, Stopwatch},
};
use serde_json::json;
use tokio::signal::ctrl_c;

use super::recordings::{self, Recordings, trace_id};
use crate::{
    args::ReplayArgs,
    client::Client,
    commands::plugins::run::close,
    context::Context,
    exit::{Exit, Failure},
    printer::{Printer, Tone},
    screen,
};

mod bulk;
mod progress;
mod route;
mod source;

use progress::Progress;
use route::Route;
use source::{LineFilter, Source};

/// Runs the command; with `local` the files are used although a server is named.
pub async fn run(args: ReplayArgs, cx: &Context) -> Result<Exit, Failure> {
    let reads_stdin = args.traces == ["-"] || args.from.as_deref() == Some("-");
    if reads_stdin && args.secret.secret_file.as_deref() == Some("-") {
        return Err(Failure::usage("only one of the files can be stdin"));
    }
    let route = Route::of(&args, &cx.printer)?;
    let is_bulk = args.from.is_some() || args.traces.is_empty() || args.traces == ["-"];
    let dry_run = args.confirm.is_dry_run();
    if is_bulk && route.leaves_this_machine() && !dry_run {
        let what = "this sends requests to the recorded URLs, and people may receive replies";
        args.confirm.is_confirmed(what, &cx.printer).await?;
    }
    let client = match &args.from {
        Some(_) => None,
        None => Some(cx.hub(&args.hub).await?),
    };
    if let (Route::Hub { .. }, Some(client), false) = (&route, &client, dry_run) {
        client.expect_running_server().await?;
    }
    let replay = Replay {
        rate: args.pace.rate,
        concurrency: args.pace.concurrency.map_or(route.concurrency(), usize::from),
        dry_run,
        compare: args.pace.compare,
        stop_on_fail: args.pace.stop_on_fail,
    };
    let source = source(&args, client.as_ref()).await?;
    if let (true, Some(client)) = (args.how.bulk, &client) {
        return bulk::run(&args, source, client, &cx.printer).await;
    }
    let stop = Stop::default();
    let ended = tokio::select! {
        ended = drive(&replay, source, route, client.as_ref(), &stop, &cx.printer) => ended,
        never = interrupted(&stop, &cx.printer) => match never {},
    };
    ended
}

/// The first interruption starts no more requests, the second one does not wait for those in progress.
async fn interrupted(stop: &Stop, printer: &Printer) -> std::convert::Infallible {
    if ctrl_c().await.is_ok() {
        stop.soon.cancel();
        printer.note("stopping after the requests in progress; interrupt again to stop immediately");
        if ctrl_c().await.is_ok() {
            stop.now.cancel();
        }
    }
    std::future::pending().await
}

async fn source<'r>(args: &ReplayArgs, client: Option<&'r Client>) -> Result<Source<'r>, Failure> {
    let after = args.pace.resume_from.as_deref().map(trace_id).transpose()?;
    let Some(client) = client else {
        let from = args.from.as_deref().unwrap_or("-");
        let paths = if from == "-" { Vec::new() } else { source::files(from)? };
        return Ok(Source::Files { paths, filter: LineFilter::of(&args.filter)?, after });
    };
    let bot = match &args.bot {
        Some(bot) => Some(client.bot(bot).await?),
        None => None,
    };
    if args.traces == ["-"] {
        return Ok(Source::StdinIds { client, bot, after });
    }
    if !args.traces.is_empty() {
        let ids = args.traces.iter().map(|text| trace_id(text)).collect::<Result<_, _>>()?;
        return Ok(Source::Ids { client, bot, ids, after });
    }
    let bot = match bot {
        Some(bot) => bot,
        None => only_bot(client).await?,
    };
    let query = recordings::query(client, bot, &args.filter).await?;
    // A replay of a replay would reach the receiver again for the same message.
    Ok(Source::Query(Box::new(Recordings::new(client, bot, query, after, false))))
}

async fn only_bot(client: &Client) -> Result<BotId, Failure> {
    match client.bots().await?.as_slice() {
        [bot] => Ok(*bot),
        [] => Err(Failure::not_found("there are no bots").with_hint("recordings of a file: --from FILE")),
        _ => Err(Failure::usage("there are several bots").with_hint("name one with --bot, or name traces")),
    }
}

async fn drive(
    replay: &Replay,
    source: Source<'_>,
    route: Route,
    client: Option<&Client>,
    stop: &Stop,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let sandbox = route.sandbox().cloned();
    let carrier = route.carrier(client)?;
    let total = tokio::select! {
        total = source.count() => total?,
        () = stop.soon.cancelled() => return Err(Failure::interrupted()),
    };
    let mut progress = Progress::new(total, printer);
    let (watch, mut written) = (Stopwatch::start(), Ok(()));
    let mut has_head = false;
    let reported = |report: &Report, totals: &Totals| {
        let is_reported =
            progress.prints_successes(printer) || report.outcome != Outcome::Ok || differs(report);
        if is_reported && written.is_ok() {
            let head = printer.is_terminal() && !std::mem::replace(&mut has_head, true);
            written = progress.above(|| print(report, head, printer));
            if written.is_err() {
                // Their outcome is no longer read.
                stop.soon.cancel();
            }
        }
        progress.update(totals, printer);
    };
    let summary = replay.run(source.stream(), &*carrier, &Clock::system(), stop, reported).await;
    progress.finish();
    if let Some(sandbox) = sandbox {
        close(&sandbox, printer);
    }
    written?;
    end(summary, total, replay.dry_run, watch, printer)
}

fn differs(report: &Report) -> bool {
    report.differences.as_ref().is_some_and(Differences::any)
}

/// Headings at a terminal, aligned as by `row`.
const HEAD: [&str; 5] = ["TRACE ID", "OUTCOME", "STATUS", "MS", "REASON"];

/// Cells in columns: the first five have a width.
fn row(cells: &[String]) -> String {
    let widths = [29, 7, 6, 6, 0];
    let padded = cells.iter().enumerate().map(|(column, cell)| {
        let width: usize = widths.get(column).copied().unwrap_or_default();
        let fill = " ".repeat(width.saturating_sub(screen::width(cell)));
        if matches!(column, 2 | 3) { format!("{fill}{cell}") } else { format!("{cell}{fill}") }
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// One row; as text with the difference below it.
fn print(report: &Report, head: bool, printer: &Printer) -> Result<(), Failure> {
    let tone = match report.outcome {
        Outcome::Ok => Tone::Good,
        Outcome::Fail => Tone::Bad,
        Outcome::Skipped => Tone::Doubtful,
    };
    let difference = report.differences.as_ref().map(in_words).unwrap_or_default();
    let outcome = report.outcome.as_str();
    let mut cells = [
        report.trace_id.to_string(),
        outcome.to_owned(),
        report.status.map(|status| status.to_string()).unwrap_or_default(),
        report.duration_ms.to_string(),
        screen::clean(&report.reason),
        difference,
        report.new_trace_id.map(|id| id.to_string()).unwrap_or_default(),
    ];
    let mut text = cells.join("\t");
    if printer.is_terminal() {
        // Padded before it is painted: escape sequences have no width.
        cells[1] = format!("{outcome:<7}");
        text = row(&cells).replacen(outcome, &printer.paint(outcome, tone), 1);
        if head {
            text = format!("{}\n{text}", printer.paint(&row(&HEAD.map(str::to_owned)), Tone::Faint));
        }
        let body = report.differences.as_ref().and_then(|differences| differences.body.as_deref());
        for line in body.unwrap_or_default().lines() {
            text = format!("{text}\n    {}", printer.paint_diff(line));
        }
        for reply in &report.replies {
            text = format!("{text}\n    reply {}", screen::fit(&screen::clean(reply), 200));
        }
    }
    printer.one(json!(report), &text)
}

fn in_words(differences: &Differences) -> String {
    let shown = |status: Option<u16>| status.map_or_else(|| "none".to_owned(), |status| status.to_string());
    let status =
        differences.status.map(|(before, after)| format!("status {} → {}", shown(before), shown(after)));
    let body = differences.body.is_some().then(|| "body".to_owned());
    [status, body].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The summary, and the exit code.
fn end(
    summary: Summary<Failure>,
    total: Option<u64>,
    dry_run: bool,
    watch: Stopwatch,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let Summary { totals, resume_from, end } = summary;
    let counted = progress::line(total, &totals);
    let go_on = resume_from.map(|trace| format!("continue with --resume-from {trace}"));
    let mut document = json!(totals);
    document["total"] = json!(total);
    document["resume_from"] = json!(resume_from);
    let with_hint = |failure: Failure| match &go_on {
        Some(hint) => failure.with_hint(hint.clone()),
        None => failure,
    };
    match end {
        End::Stopped => {
            let mut failure = Failure::interrupted();
            failure.message = format!("interrupted: {counted}");
            return Err(with_hint(failure));
        }
        End::Source(failure) => {
            if totals.done() > 0 {
                printer.summary(&document, &counted);
                return Err(with_hint(failure));
            }
            return Err(failure);
        }
        End::Complete if totals.done() == 0 => {
            printer.summary(&document, "no such traces, nothing was sent");
            return Ok(Exit::Done);
        }
        End::Complete | End::Failed => {}
    }
    let seconds = watch.elapsed().as_secs();
    let sent = if dry_run { "; nothing was sent (--dry-run)".to_owned() } else { format!(" · {seconds} s") };
    let mut text = format!("{counted}{sent}");
    if let (End::Failed, Some(hint)) = (&end, &go_on) {
        text = format!("{text}\n{hint}");
    }
    printer.summary(&document, &text);
    Ok(exit(&totals))
}

fn exit(totals: &Totals) -> Exit {
    match totals {
        Totals { failed: 0, differing: 0, .. } => Exit::Done,
        Totals { failed: 0, .. } => Exit::CheckFailed,
        Totals { ok: 0, .. } => Exit::Failed,
        _ => Exit::Partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_of_a_replay_reflects_its_totals() {
        let exit_of = |ok, failed, differing| exit(&Totals { ok, failed, skipped: 1, differing });
        assert_eq!(exit_of(2, 0, 0), Exit::Done);
        assert_eq!(exit_of(0, 0, 0), Exit::Done);
        assert_eq!(exit_of(2, 0, 1), Exit::CheckFailed);
        assert_eq!(exit_of(1, 1, 1), Exit::Partial);
        assert_eq!(exit_of(0, 2, 2), Exit::Failed);
    }

    #[test]
    fn rows_are_aligned_under_their_head() {
        let trace = "tr_01KAJ6Z8QH0000000000000000";
        let cells = [trace, "skipped", "", "12", "no request"].map(str::to_owned);
        let (head, cells) = (row(&HEAD.map(str::to_owned)), row(&cells));
        assert_eq!(head.find("OUTCOME"), cells.find("skipped"));
        assert_eq!(head.find("REASON"), cells.find("no request"));
        assert_eq!(head.find("MS"), cells.find("12"));
    }

    #[test]
    fn replay_differences_are_described() {
        let differences = Differences { status: Some((Some(200), None)), body: Some("-a".to_owned()) };
        assert_eq!(in_words(&differences), "status 200 → none, body");
        assert_eq!(in_words(&Differences::default()), "");
    }
}
