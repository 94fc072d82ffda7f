//! `send`: accepts a message into the outbox, and with `--wait` sees it leave.

use std::time::Duration;

use hub_core::{
    id::{BotId, TraceId},
    time::Clock,
    traces::{Trace, TraceStatus},
};
use serde_json::{Value, json};

use super::{text_or_stdin, users::cell};
use crate::{
    args::SendArgs,
    exit::{Exit, Failure},
    printer::Printer,
    reach::Reach,
};

pub const FIELDS: [&str; 4] = ["message_id", "trace_id", "bot_id", "status"];

/// Time between two looks at the trace.
const LOOK: Duration = Duration::from_millis(100);

pub async fn run(args: SendArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let content = text_or_stdin(args.text)?.trim_end_matches('\n').to_owned();
    let reach = Reach::open(&args.hub, local).await?;
    let bot = reach.bot(&args.bot).await?;
    if args.wait {
        reach.expect_work().await?;
    }
    let sent = match &args.via_app {
        Some(app) => reach.send_as_app(reach.app_place_on(app, bot).await?, args.to, content).await?,
        None => reach.send(bot, args.to, content).await?,
    };
    let status = if args.wait {
        let named = format!("message {} (trace {})", cell(&sent, "message_id"), cell(&sent, "trace_id"));
        let trace = wait(&reach, bot, trace_of(&sent)?, Duration::from_secs(args.timeout)).await?;
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
        cell(&sent, "status")
    };
    reach.close().await;
    let text = format!("{}\t{}\t{status}", cell(&sent, "message_id"), cell(&sent, "trace_id"));
    let document = json!({
        "message_id": sent["message_id"], "trace_id": sent["trace_id"], "bot_id": bot, "status": status,
    });
    printer.one(document, &text)
}

fn trace_of(sent: &Value) -> Result<TraceId, Failure> {
    let id = sent["trace_id"].as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| Failure::unreachable("the server's answer names no trace"))
}

/// The trace of a send once it is over; `None` when that takes longer than `limit`.
async fn wait(reach: &Reach, bot: BotId, id: TraceId, limit: Duration) -> Result<Option<Trace>, Failure> {
    let clock = Clock::system();
    let until = clock.now() + limit;
    loop {
        let trace = match reach.trace(Some(bot), id).await {
            // A server writes it down when it takes the message up.
            Err(failure) if failure.exit == Exit::NotFound => None,
            found => Some(found?),
        };
        if let Some(trace) = trace.filter(|trace| trace.status != TraceStatus::Pending) {
            return Ok(Some(trace));
        }
        if clock.now() >= until {
            return Ok(None);
        }
        clock.sleep(LOOK).await;
    }
}
