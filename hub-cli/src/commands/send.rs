//! `send`: accepts a message into the outbox, and with `--wait` sees it leave.

use std::time::Duration;

use hub_core::{
    Hub,
    access::Actor,
    bots::NewSend,
    id::TraceId,
    traces::{Trace, TraceStatus},
};
use serde_json::json;

use super::text_or_stdin;
use crate::{
    args::SendArgs,
    exit::{Exit, Failure},
    local::{self, Open},
    printer::Printer,
};

pub const FIELDS: [&str; 4] = ["message_id", "trace_id", "bot_id", "status"];

/// Time between two looks at the trace.
const LOOK: Duration = Duration::from_millis(100);

pub async fn run(args: SendArgs, printer: &Printer) -> Result<(), Failure> {
    let content = text_or_stdin(args.text)?;
    let hub = local::open(&args.local, Open::Existing).await?;
    let bot = local::find_bot(&hub, &args.bot).await?;
    let new = NewSend {
        to_user_id: Some(args.to),
        content: content.trim_end_matches('\n').to_owned(),
        ..NewSend::default()
    };
    let sent = hub.bots().send(&Actor::Operator, bot.id, new, None).await?;
    let status = if args.wait {
        let named = format!("message {} (trace {})", sent.message_id, sent.trace_id);
        let trace = wait(&hub, sent.trace_id, Duration::from_secs(args.timeout)).await?;
        match trace {
            Some(trace) if trace.status == TraceStatus::Ok => "sent".to_owned(),
            Some(trace) => {
                let what = format!("{named} was not sent: {}", trace.summary);
                return Err(Failure::new(Exit::Failed, "UPSTREAM_ERROR", what));
            }
            None => {
                let what = format!("{named} was not sent within {} s", args.timeout);
                return Err(Failure::timed_out(what).with_hint("is a server running on this hub?"));
            }
        }
    } else {
        sent.status
    };
    hub.shutdown().await;
    let text = format!("{}\t{}\t{status}", sent.message_id, sent.trace_id);
    let document = json!({
        "message_id": sent.message_id, "trace_id": sent.trace_id, "bot_id": bot.id, "status": status,
    });
    printer.one(document, &text)
}

/// The trace of a send once it is over; `None` when that takes longer than `limit`.
async fn wait(hub: &Hub, id: TraceId, limit: Duration) -> Result<Option<Trace>, Failure> {
    let clock = &hub.context().clock;
    let until = clock.now() + limit;
    loop {
        let trace = hub.traces().find(&Actor::Operator, None, id).await?;
        if let Some(trace) = trace.filter(|trace| trace.status != TraceStatus::Pending) {
            return Ok(Some(trace));
        }
        if clock.now() >= until {
            return Ok(None);
        }
        clock.sleep(LOOK).await;
    }
}
