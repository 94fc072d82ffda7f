//! `traces list` and `traces show`.

use hub_core::{
    access::Actor,
    page::PageRequest,
    traces::{Trace, TraceQuery},
};
use serde_json::{Value, json};

use super::waterfall;
use crate::{
    args::{TracesListArgs, TracesShowArgs},
    exit::Failure,
    local::{self, Open},
    printer::{List, Printer},
};

pub const LIST_FIELDS: [&str; 10] = [
    "trace_id",
    "message_id",
    "bot_id",
    "channel_id",
    "replay_of",
    "status",
    "summary",
    "started_at",
    "duration_ms",
    "attempts",
];

pub const FIELDS: [&str; 11] = [
    "trace_id",
    "message_id",
    "bot_id",
    "channel_id",
    "replay_of",
    "status",
    "summary",
    "started_at",
    "duration_ms",
    "attempts",
    "steps",
];

pub async fn list(args: TracesListArgs, printer: &Printer) -> Result<(), Failure> {
    let hub = local::open(&args.local, Open::Existing).await?;
    let bot = local::find_bot(&hub, &args.bot).await?;
    let query = TraceQuery { status: args.status.map(Into::into), ..TraceQuery::default() };
    let page =
        PageRequest::parse(&query.list_name(bot.id), Some(args.page.limit), args.page.cursor.as_deref())?;
    let page = hub.traces().list(&Actor::Operator, bot.id, &query, &page).await?;
    hub.shutdown().await;
    let row = |trace: &Trace| {
        vec![
            trace.trace_id.to_string(),
            trace.started_at.to_string(),
            trace.status.as_str().to_owned(),
            waterfall::duration(trace.duration_ms),
            trace.summary.clone(),
        ]
    };
    printer.list(List {
        columns: &["TRACE ID", "STARTED", "STATUS", "TOOK", "SUMMARY"],
        rows: page.items.iter().map(row).collect(),
        items: page.items.iter().map(head).collect(),
        next_cursor: page.next_cursor,
        empty: "no traces yet",
    })
}

pub async fn show(args: TracesShowArgs, printer: &Printer) -> Result<(), Failure> {
    let Ok(id) = args.trace.parse() else {
        return Err(Failure::not_found(format!("{} is not the id of a trace", args.trace))
            .with_hint("hub-cli traces list --bot BOT"));
    };
    let hub = local::open(&args.local, Open::Existing).await?;
    let trace = hub.traces().find(&Actor::Operator, None, id).await?;
    hub.shutdown().await;
    let trace = trace.ok_or_else(|| Failure::not_found("trace not found"))?;
    printer.one(document(&trace), &waterfall::draw(&trace, printer))
}

/// A trace as the API shows it (`contract.md` §6.7).
pub fn document(trace: &Trace) -> Value {
    let mut document = head(trace);
    document["steps"] = json!(trace.steps);
    document
}

/// The same without its steps.
pub fn head(trace: &Trace) -> Value {
    json!({
        "trace_id": trace.trace_id,
        "message_id": trace.message_id,
        "bot_id": trace.bot_id,
        "channel_id": trace.channel_id,
        "replay_of": trace.replay_of,
        "status": trace.status,
        "summary": trace.summary,
        "started_at": trace.started_at,
        "duration_ms": trace.duration_ms,
        "attempts": trace.attempts,
    })
}
