//! `traces …`: inspecting, comparing and exporting traces.

use hub_core::{
    id::TraceId,
    replay::Recording,
    time::Clock,
    traces::{Trace, TraceQuery},
};
use serde_json::{Value, json};

use super::{recordings, waterfall};
use crate::{
    args::{TracesCommand, TracesListArgs, TracesShowArgs},
    client::{Client, TraceDocument},
    context::Context,
    exit::Failure,
    printer::List,
    screen,
};

mod diff;
mod explain;
mod export;
mod to_test;
mod wire;

/// Columns of a message's text in a list at a terminal.
const MAX_TEXT_COLUMNS: usize = 40;

/// Runs a command; with `local` the files are read although a server is named.
pub async fn run(command: TracesCommand, cx: &Context) -> Result<(), Failure> {
    match command {
        TracesCommand::List(args) => list(args, cx).await,
        TracesCommand::Show(args) => show(args, cx).await,
        TracesCommand::Explain(args) => explain::run(args, cx).await,
        TracesCommand::Attempt(args) => parked(&args.trace, "attempt", cx.hub(&args.hub).await?, cx).await,
        TracesCommand::Cancel(args) => parked(&args.trace, "cancel", cx.hub(&args.hub).await?, cx).await,
        TracesCommand::Export(args) => export::run(args, cx).await,
        TracesCommand::Diff(args) => diff::run(args, cx).await,
        TracesCommand::ToTest(args) => to_test::run(args, cx).await,
    }
}

async fn list(args: TracesListArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.list.hub).await?;
    let bot = client.bot(&args.bot).await?;
    let query: TraceQuery = recordings::query(&client, bot, &args.filter).await?;
    let page = client.traces(bot, &query, &args.list.page).await?;
    cx.printer.list(List {
        columns: &COLUMNS,
        rows: page.items.iter().map(|item| row(&item.trace, cx.printer.is_terminal())).collect(),
        next_cursor: page.next_cursor,
        items: page.items.into_iter().map(|item| item.document).collect(),
        empty: "no such traces",
    })
}

const COLUMNS: [&str; 7] = ["TRACE ID", "STARTED", "STATUS", "CHANNEL", "FROM", "TEXT", "SUMMARY"];

/// A trace in a list; for a terminal with a shorter text.
fn row(trace: &Trace, short: bool) -> Vec<String> {
    let text = screen::clean(&trace.preview);
    vec![
        trace.trace_id.to_string(),
        trace.started_at.to_string(),
        trace.status.as_str().to_owned(),
        trace.channel_name.clone().unwrap_or_default(),
        person(trace).to_owned(),
        if short { screen::fit(&text, MAX_TEXT_COLUMNS) } else { text },
        trace.summary.clone(),
    ]
}

/// The name of the contact, or their id.
fn person(trace: &Trace) -> &str {
    if trace.user_name.is_empty() { &trace.user_id } else { &trace.user_name }
}

async fn show(args: TracesShowArgs, cx: &Context) -> Result<(), Failure> {
    let id = recordings::trace_id(&args.trace)?;
    let client = cx.hub(&args.hub).await?;
    let TraceDocument { trace, document } = TraceDocument::read(client.trace_document(None, id).await?)?;
    if args.raw {
        let text = wire::raw(&trace)?;
        return cx.printer.one(json!({ "raw": text }), &screen::escape(&text));
    }
    if args.curl {
        let curl = wire::curl(&trace)?;
        for name in &curl.left_out {
            cx.printer.note(&format!("omitted header, its value is not recorded: {name}"));
        }
        if curl.is_cut {
            cx.printer.note("only the beginning of the body is recorded");
        }
        return cx.printer.one(json!({ "curl": curl.command }), &screen::escape(&curl.command));
    }
    if args.har {
        return cx.printer.as_json().one(wire::har(&trace)?, "");
    }
    let now = Clock::system().now();
    cx.printer.one(document, &waterfall::draw(&trace, now, &cx.printer))
}

/// Does something with the parked delivery of a trace.
async fn parked(trace: &str, action: &str, client: Client, cx: &Context) -> Result<(), Failure> {
    let id = recordings::trace_id(trace)?;
    let bot = client.trace(None, id).await?.bot_id;
    client.post(&format!("/api/bots/{bot}/traces/{id}/{action}"), &Value::Null).await?;
    cx.printer.one(json!({ "trace_id": id }), &id.to_string())
}

/// A recording of one trace, whatever its bot.
async fn recording(client: &Client, id: TraceId) -> Result<Recording, Failure> {
    let trace = client.trace(None, id).await?;
    recordings::of_trace(client, trace).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_the_channel_the_person_and_the_text() {
        let trace = |name: &str| -> Trace {
            serde_json::from_value(json!({
                "trace_id": "tr_01KAJ6Z8QH0000000000000001", "message_id": "msg_01KAJ6Z8QH0000000000000000",
                "bot_id": "bot_01KAJ6Z8QH0000000000000000", "channel_id": null, "replay_of": null, "status": "error",
                "summary": "status 500", "started_at": "2026-01-02T03:04:05.678Z", "duration_ms": 1, "attempts": 8,
                "channel_name": "orders", "user_id": "ada@im.wechat", "user_name": name,
                "preview": "one\ntwo three four five six seven eight nine ten",
            }))
            .unwrap()
        };
        let short = row(&trace("Ada"), true);
        assert_eq!(short[2..5], ["error", "orders", "Ada"]);
        assert_eq!(short[5..], ["one two three four five six seven eight…", "status 500"]);
        let whole = row(&trace(""), false);
        assert_eq!(whole[4..6], ["ada@im.wechat", "one two three four five six seven eight nine ten"]);
        assert_eq!(whole.len(), COLUMNS.len());
    }
}
