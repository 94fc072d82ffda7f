//! `traces …`: looked at, compared, taken elsewhere.

use hub_core::{
    id::TraceId,
    replay::Recording,
    traces::{Trace, TraceQuery},
};
use serde_json::{Value, json};

use super::{recordings, waterfall};
use crate::{
    args::{TracesCommand, TracesListArgs, TracesShowArgs},
    exit::Failure,
    printer::{List, Printer},
    reach::Reach,
    screen,
};

mod diff;
mod export;
mod to_test;
mod wire;

/// Of a recording; a trace has those before `message`, and in a list those before `steps`.
const FIELDS: [&str; 12] = [
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
    "message",
];

/// The names in a trace of a list.
pub fn list_fields() -> &'static [&'static str] {
    &FIELDS[..10]
}

/// The names in a command's JSON document.
pub fn fields(command: &TracesCommand) -> &'static [&'static str] {
    match command {
        TracesCommand::List(_) => list_fields(),
        TracesCommand::Show(args) if args.raw => &["raw"],
        TracesCommand::Show(args) if args.curl => &["curl"],
        TracesCommand::Show(args) if args.har => &["log"],
        TracesCommand::Show(_) => &FIELDS[..11],
        TracesCommand::Export(_) => &FIELDS,
        TracesCommand::Diff(_) => &diff::FIELDS,
        TracesCommand::ToTest(_) => &to_test::FIELDS,
    }
}

/// Runs a command; `local` is whether the files are to be read though a server is named.
pub async fn run(command: TracesCommand, local: bool, printer: &Printer) -> Result<(), Failure> {
    match command {
        TracesCommand::List(args) => list(args, local, printer).await,
        TracesCommand::Show(args) => show(args, local, printer).await,
        TracesCommand::Export(args) => export::run(args, local, printer).await,
        TracesCommand::Diff(args) => diff::run(args, local, printer).await,
        TracesCommand::ToTest(args) => to_test::run(args, local, printer).await,
    }
}

async fn list(args: TracesListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let bot = reach.bot(&args.bot).await?;
    let query: TraceQuery = recordings::query(&reach, bot, &args.filter).await?;
    let page = reach.traces(bot, &query, &args.page).await?;
    reach.close().await;
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
        empty: "no such traces",
    })
}

async fn show(args: TracesShowArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let id = id(&args.trace)?;
    let reach = Reach::open(&args.hub, local).await?;
    let trace = reach.trace(None, id).await?;
    reach.close().await;
    if args.raw {
        let text = wire::raw(&trace)?;
        return printer.one(json!({ "raw": text }), &screen::escape(&text));
    }
    if args.curl {
        let curl = wire::curl(&trace)?;
        for name in &curl.left_out {
            printer.note(&format!("left out, its value is not recorded: {name}"));
        }
        if curl.is_cut {
            printer.note("only the beginning of the body is recorded");
        }
        return printer.one(json!({ "curl": curl.command }), &screen::escape(&curl.command));
    }
    if args.har {
        return printer.as_json().one(wire::har(&trace)?, "");
    }
    printer.one(document(&trace), &waterfall::draw(&trace, printer))
}

/// The id of a trace.
///
/// # Errors
/// When it is none.
pub fn id(text: &str) -> Result<TraceId, Failure> {
    text.parse().map_err(|_| {
        Failure::not_found(format!("{text} is not the id of a trace"))
            .with_hint("hub-cli traces list --bot BOT")
    })
}

/// A recording of one trace, whatever its bot.
async fn recording(reach: &Reach, id: TraceId) -> Result<Recording, Failure> {
    let trace = reach.trace(None, id).await?;
    recordings::of_trace(reach, trace).await
}

/// A trace as the API shows it (`contract.md` §6.7).
pub fn document(trace: &Trace) -> Value {
    json!(trace)
}

/// The same without its steps.
pub fn head(trace: &Trace) -> Value {
    let mut document = document(trace);
    if let Some(fields) = document.as_object_mut() {
        fields.remove("steps");
    }
    document
}
