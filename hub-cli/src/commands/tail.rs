//! `tail`: the messages of a bot as they come and go, and their traces as they come to an end.

use std::{collections::VecDeque, time::Duration};

use hub_core::{
    Hub,
    access::Actor,
    bots::{Bots, Direction, Message, MessageFilter},
    id::{BotId, MessageId, TraceId},
    page::{MAX_LIMIT, PageRequest},
    traces::{Trace, TraceQuery, TraceStatus},
};

use serde_json::json;

use super::traces;
use crate::{
    args::TailArgs,
    exit::Failure,
    local::{self, Open},
    printer::{Printer, Tone},
    screen,
};

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// Unfinished traces that are looked at again; the oldest are then shown as they are.
const MAX_OPEN: usize = 1_000;

pub async fn run(args: TailArgs, printer: &Printer) -> Result<(), Failure> {
    let hub = local::open(&args.local, Open::Existing).await?;
    let bot = local::find_bot(&hub, &args.bot).await?.id;
    let mut after = match &args.since {
        Some(trace) => Some(trace.parse::<TraceId>()?),
        None => newer(&hub, bot, None, 1).await?.last().map(|trace| trace.trace_id),
    };
    let shows_messages = args.status.is_none();
    let mut said = match (&args.since, after) {
        // Ids of all kinds stand in the order of time, and a message is there before its trace.
        (Some(_), Some(trace)) => Some(MessageId::from_u128(trace.as_u128())),
        _ => messages(&hub, bot, None, 1).await?.last().map(|message| message.id),
    };
    if args.follow {
        Printer::ready("ready");
    }
    let wanted: Option<TraceStatus> = args.status.map(Into::into);
    let mut open: VecDeque<TraceId> = VecDeque::new();
    loop {
        if shows_messages {
            for message in messages(&hub, bot, said, usize::MAX).await? {
                said = Some(message.id);
                show_message(&message, printer)?;
            }
        }
        for trace in newer(&hub, bot, after, usize::MAX).await? {
            after = Some(trace.trace_id);
            open.push_back(trace.trace_id);
        }
        let last_look = !args.follow;
        for _ in 0..open.len() {
            let Some(id) = open.pop_front() else { break };
            let Some(trace) = hub.traces().find(&Actor::Operator, Some(bot), id).await? else { continue };
            if trace.status == TraceStatus::Pending && !last_look && open.len() < MAX_OPEN {
                open.push_back(id);
            } else if wanted.is_none_or(|wanted| trace.status == wanted) {
                show(&trace, printer)?;
            }
        }
        if last_look {
            break;
        }
        hub.context().clock.sleep(LOOK).await;
    }
    hub.shutdown().await;
    Ok(())
}

/// Traces behind a known one, oldest first, at most `most` of the newest.
async fn newer(hub: &Hub, bot: BotId, after: Option<TraceId>, most: usize) -> Result<Vec<Trace>, Failure> {
    let (query, mut found, mut cursor) = (TraceQuery::default(), Vec::new(), None::<String>);
    'pages: loop {
        let page = PageRequest::parse(&query.list_name(bot), Some(MAX_LIMIT), cursor.as_deref())?;
        let page = hub.traces().list(&Actor::Operator, bot, &query, &page).await?;
        for trace in page.items {
            if after.is_some_and(|after| trace.trace_id <= after) || found.len() >= most {
                break 'pages;
            }
            found.push(trace);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

/// Messages behind a known one, oldest first, at most `most` of the newest.
async fn messages(
    hub: &Hub,
    bot: BotId,
    after: Option<MessageId>,
    most: usize,
) -> Result<Vec<Message>, Failure> {
    let (filter, mut found, mut cursor) = (MessageFilter::default(), Vec::new(), None::<String>);
    'pages: loop {
        let page = PageRequest::parse(&Bots::message_list(bot, &filter), Some(MAX_LIMIT), cursor.as_deref())?;
        let page = hub.bots().messages(&Actor::Operator, bot, &filter, &page).await?;
        for message in page.items {
            if after.is_some_and(|after| message.id <= after) || found.len() >= most {
                break 'pages;
            }
            found.push(message);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

fn show_message(message: &Message, printer: &Printer) -> Result<(), Failure> {
    let (arrow, person) = match message.direction {
        Direction::Inbound => ("<", &message.from_user_id),
        Direction::Outbound => (">", &message.to_user_id),
    };
    let name = if message.user_name.is_empty() { person } else { &message.user_name };
    let (name, text) = (screen::clean(name), screen::clean(&message.content));
    let line = format!("{}  {arrow} {name}: {}", message.created_at, screen::fit(&text, 80));
    let document = json!({
        "message_id": message.id,
        "bot_id": message.bot_id,
        "direction": message.direction.as_str(),
        "from_user_id": message.from_user_id,
        "to_user_id": message.to_user_id,
        "content": message.content,
        "status": message.status,
        "trace_id": message.trace_id,
        "started_at": message.created_at,
    });
    printer.one(document, &line)
}

fn show(trace: &Trace, printer: &Printer) -> Result<(), Failure> {
    let tone = match trace.status {
        TraceStatus::Ok => Tone::Good,
        TraceStatus::Error => Tone::Bad,
        TraceStatus::Pending | TraceStatus::Skipped => Tone::Doubtful,
    };
    let status = printer.paint(&format!("{:<7}", trace.status.as_str()), tone);
    let summary = screen::clean(&trace.summary);
    let text = format!("{}  {status}  {}  {summary}", trace.started_at, trace.trace_id);
    printer.one(traces::head(trace), &text)
}
