//! `replay --bulk`: one request to the hub for all traces, and its progress. The hub continues without this command.

use std::{collections::HashSet, time::Duration};

use futures_util::StreamExt;
use hub_core::{
    id::TraceId,
    page::MAX_LIMIT,
    replay::{Outcome, Report, Totals},
    time::Clock,
    traces::{MAX_REPLAYED, Trace, TraceStatus},
};
use serde_json::{Value, json};

use super::{Progress, exit, print, progress::line, source::Source};
use crate::{
    args::{PageArgs, ReplayArgs},
    client::{Client, read},
    document::{next_cursor, take_items},
    exit::{Exit, Failure},
    printer::Printer,
};

/// Time between two requests for the progress.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Starts the replay and prints the failed deliveries, then the totals.
pub async fn run(
    args: &ReplayArgs,
    source: Source<'_>,
    client: &Client,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let ids = ids(source).await?;
    if ids.is_empty() {
        printer.summary(&json!(Totals::default()), "no such traces, nothing was sent");
        return Ok(Exit::Done);
    }
    let (url, dry_run) = (args.how.to.as_ref().map(url::Url::as_str), args.confirm.is_dry_run());
    let body = json!({ "trace_ids": ids, "url": url, "supersede": args.how.supersede, "dry_run": dry_run });
    let started = client.post("/api/replays", &body).await?;
    let (total, refused) = (count(&started, "total"), refused(&started)?);
    for report in &refused {
        print(report, false, printer)?;
    }
    let Some(id) = started["id"].as_str().filter(|_| !dry_run) else {
        let totals = Totals { ok: total, skipped: refused.len() as u64, ..Totals::default() };
        let text = format!("{}; nothing was sent (--dry-run)", line(None, &totals));
        printer.summary(&document(&totals, None), &text);
        return Ok(Exit::Done);
    };
    let mut totals = follow(id, total, args.pace.timeout, client, printer).await?;
    for trace in traces(id, None, client).await? {
        if let Some(report) = report(&trace) {
            print(&report, false, printer)?;
        }
    }
    totals.skipped += refused.len() as u64;
    printer.summary(&document(&totals, Some(id)), &line(None, &totals));
    Ok(exit(&totals))
}

/// The ids of all recordings, each once.
async fn ids(source: Source<'_>) -> Result<Vec<TraceId>, Failure> {
    let (mut recordings, mut ids, mut known) = (source.stream(), Vec::new(), HashSet::new());
    while let Some(recording) = recordings.next().await {
        let id = recording?.trace.trace_id;
        if known.insert(id) {
            ids.push(id);
        }
        if ids.len() > MAX_REPLAYED {
            return Err(Failure::usage("--bulk replays at most 1000 traces").with_hint("narrow the filter"));
        }
    }
    Ok(ids)
}

/// Shows the progress until every delivery was attempted once, or until the time is over.
async fn follow(
    id: &str,
    total: u64,
    timeout: u64,
    client: &Client,
    printer: &Printer,
) -> Result<Totals, Failure> {
    let clock = Clock::system();
    let until = clock.instant() + Duration::from_secs(timeout);
    let mut progress = Progress::new(Some(total), printer);
    loop {
        // Read before the numbers: a delivery that ends in between is then not counted as waiting.
        let waiting = traces(id, Some(TraceStatus::Pending), client).await?;
        let now = client.get(&format!("/api/replays/{id}")).await?;
        let [pending, ok, error, skipped, deleted] =
            ["pending", "ok", "error", "skipped", "deleted"].map(|name| count(&now, name));
        let totals = Totals { ok, failed: error + deleted, skipped, differing: 0 };
        progress.update(&totals, printer);
        if waiting.iter().all(|trace| trace.attempts > 0) || clock.instant() >= until {
            progress.finish();
            // Deliveries that the hub will retry have failed so far.
            return Ok(Totals { failed: totals.failed + pending, ..totals });
        }
        clock.sleep(POLL_INTERVAL).await;
    }
}

/// The new traces of a replay.
async fn traces(id: &str, status: Option<TraceStatus>, client: &Client) -> Result<Vec<Trace>, Failure> {
    let status = status.map(|status| status.as_str().to_owned());
    let filters = [("replay_id", Some(id.to_owned())), ("status", status)];
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = PageArgs { limit: MAX_LIMIT, cursor };
        let mut found = client.list("/api/traces", &filters, &page).await?;
        cursor = next_cursor(&found);
        for item in take_items(&mut found) {
            all.push(read(item)?);
        }
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

/// Report about a trace; `None` for a delivered one.
fn report(trace: &Trace) -> Option<Report> {
    let (outcome, reason) = match trace.status {
        TraceStatus::Ok => return None,
        TraceStatus::Pending => (Outcome::Fail, format!("{}; the hub tries again", trace.summary)),
        TraceStatus::Error => (Outcome::Fail, trace.summary.clone()),
        TraceStatus::Skipped => (Outcome::Skipped, trace.summary.clone()),
    };
    Some(Report {
        trace_id: trace.replay_of.unwrap_or(trace.trace_id),
        outcome,
        status: None,
        reason,
        duration_ms: trace.duration_ms,
        new_trace_id: Some(trace.trace_id),
        replies: Vec::new(),
        differences: None,
    })
}

/// The traces that cannot be replayed.
fn refused(replay: &Value) -> Result<Vec<Report>, Failure> {
    let refused: Vec<hub_core::traces::RefusedReplay> = read(replay["refused"].clone())?;
    let report = |refused: hub_core::traces::RefusedReplay| Report {
        trace_id: refused.trace_id,
        outcome: Outcome::Skipped,
        status: None,
        reason: refused.reason,
        duration_ms: 0,
        new_trace_id: None,
        replies: Vec::new(),
        differences: None,
    };
    Ok(refused.into_iter().map(report).collect())
}

fn count(replay: &Value, name: &str) -> u64 {
    replay[name].as_u64().unwrap_or(0)
}

fn document(totals: &Totals, id: Option<&str>) -> Value {
    let mut document = json!(totals);
    document["replay_id"] = json!(id);
    document
}
