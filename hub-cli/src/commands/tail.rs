//! `tail`: follows the messages of a bot, and their traces when they are completed.

use std::{collections::BTreeMap, time::Duration};

use hub_core::{
    id::{BotId, ChannelId, MessageId, TraceId},
    page::MAX_LIMIT,
    time::{Clock, Timestamp},
    traces::{TraceQuery, TraceStatus},
};
use serde_json::{Value, json};

use super::recordings::moment;
use crate::{
    args::{PageArgs, TailArgs},
    client::{Client, TraceDocument},
    context::Context,
    document::cell,
    exit::Failure,
    poll::every,
    printer::{Printer, Tone},
    screen,
};

/// Maximum number of known traces that are read again for unfinished ones.
const MAX_REREAD: u32 = MAX_LIMIT;
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub async fn run(args: TailArgs, cx: &Context) -> Result<(), Failure> {
    let start = Start::of(args.since.as_ref())?;
    let client = cx.hub(&args.hub).await?;
    let bot = client.bot(&args.bot).await?;
    let channel = match &args.channel {
        Some(channel) => Some(client.channel(bot, channel).await?),
        None => None,
    };
    let tail = Tail {
        client: &client,
        bot,
        channel,
        since: if let Start::At(time) = start { Some(time) } else { None },
    };
    let (mut after, mut said) = match start {
        // Ids of all kinds are in the order of time, and a message exists before its trace.
        Start::After(trace) => (Some(trace), Some(MessageId::from_u128(trace.as_u128()))),
        Start::At(_) => (None, None),
        Start::Now => (
            tail.newer(None, 1, None).await?.last().map(|one| one.trace.trace_id),
            tail.messages(None, 1).await?.last().and_then(id),
        ),
    };
    if args.follow {
        Printer::ready("ready");
    }
    let wanted = args.status;
    let mut open = BTreeMap::<TraceId, TraceDocument>::new();
    every(POLL_INTERVAL, async || {
        if wanted.is_none() {
            for message in tail.messages(said, usize::MAX).await? {
                said = id(&message);
                if tail.is_of_channel(&message) {
                    show_message(&message, &cx.printer)?;
                }
            }
        }
        let is_last = !args.follow;
        let mut over = Vec::new();
        let listed = tail.newer(after, usize::MAX, open.keys().next().copied()).await?;
        // Traces that are no longer listed were deleted, or are too old: they are shown in their last state.
        let oldest = listed.first().map(|one| one.trace.trace_id);
        while let Some(entry) = open.first_entry().filter(|entry| oldest.is_none_or(|id| *entry.key() < id)) {
            over.push(entry.remove());
        }
        for one in listed {
            let id = one.trace.trace_id;
            if after.is_none_or(|after| id > after) || open.remove(&id).is_some() {
                after = after.max(Some(id));
                if one.trace.status == TraceStatus::Pending && !is_last {
                    open.insert(id, one);
                } else {
                    over.push(one);
                }
            }
        }
        for one in over.into_iter().filter(|one| wanted.is_none_or(|wanted| one.trace.status == wanted)) {
            show(one, &cx.printer)?;
        }
        Ok(is_last.then_some(()))
    })
    .await
}

#[derive(Clone, Copy)]
enum Start {
    Now,
    After(TraceId),
    At(Timestamp),
}

impl Start {
    fn of(since: Option<&String>) -> Result<Self, Failure> {
        let Some(text) = since else { return Ok(Self::Now) };
        if let Ok(trace) = text.parse() {
            return Ok(Self::After(trace));
        }
        moment(text, Clock::system().now()).map(Self::At).ok_or_else(|| {
            Failure::usage(format!(
                "--since {text}: neither a trace nor a time like 10m or 2026-01-31T12:00:00Z"
            ))
        })
    }
}

struct Tail<'r> {
    client: &'r Client,
    bot: BotId,
    channel: Option<ChannelId>,
    since: Option<Timestamp>,
}

impl Tail<'_> {
    /// Traces after a known one, oldest first, at most `most` of the newest; with an `open` one, also those back to
    /// it, at most [`MAX_REREAD`].
    async fn newer(
        &self,
        after: Option<TraceId>,
        most: usize,
        open: Option<TraceId>,
    ) -> Result<Vec<TraceDocument>, Failure> {
        let query = TraceQuery { channel_id: self.channel, since: self.since, ..TraceQuery::default() };
        let (mut found, mut cursor, mut back) = (Vec::new(), None, 0);
        'pages: loop {
            let page = self.client.traces(self.bot, &query, &PageArgs { limit: MAX_LIMIT, cursor }).await?;
            for one in page.items {
                let id = one.trace.trace_id;
                if after.is_some_and(|after| id <= after) {
                    back += 1;
                    if back > MAX_REREAD || open.is_none_or(|open| id < open) {
                        break 'pages;
                    }
                }
                if found.len() >= most {
                    break 'pages;
                }
                found.push(one);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    /// Messages after a known one, oldest first, at most `most` of the newest.
    async fn messages(&self, after: Option<MessageId>, most: usize) -> Result<Vec<Value>, Failure> {
        let path = format!("/api/bots/{}/messages", self.bot);
        let filters = [("since", self.since.map(|since| since.to_string()))];
        let mut count = 0;
        let is_new = |message: &Value| {
            let is_known = after.is_some_and(|after| id(message).is_none_or(|id| id <= after));
            count += 1;
            !is_known && count <= most
        };
        let mut found = self.client.items_while(&path, &filters, is_new).await?;
        found.reverse();
        Ok(found)
    }

    /// Whether a message belongs to the followed channel, if there is one.
    fn is_of_channel(&self, message: &Value) -> bool {
        let ids = || message["channel_ids"].as_array().into_iter().flatten().filter_map(Value::as_str);
        self.channel.is_none_or(|channel| ids().any(|id| *id == channel.to_string()))
    }
}

fn id(message: &Value) -> Option<MessageId> {
    message["id"].as_str().and_then(|id| id.parse().ok())
}

fn show_message(message: &Value, printer: &Printer) -> Result<(), Failure> {
    let (arrow, person) = match message["direction"].as_str() {
        Some("inbound") => ("<", cell(message, "from_user_id")),
        _ => (">", cell(message, "to_user_id")),
    };
    let name = Some(cell(message, "user_name")).filter(|name| !name.is_empty()).unwrap_or(person);
    let (name, text) = (screen::clean(&name), screen::clean(&cell(message, "content")));
    let line = format!("{}  {arrow} {name}: {}", cell(message, "created_at"), screen::fit(&text, 80));
    let document = json!({
        "message_id": message["id"],
        "bot_id": message["bot_id"],
        "direction": message["direction"],
        "from_user_id": message["from_user_id"],
        "to_user_id": message["to_user_id"],
        "content": message["content"],
        "status": message["status"],
        "trace_id": message["trace_id"],
        "started_at": message["created_at"],
    });
    printer.one(document, &line)
}

fn show(TraceDocument { trace, document }: TraceDocument, printer: &Printer) -> Result<(), Failure> {
    let tone = match trace.status {
        TraceStatus::Ok => Tone::Good,
        TraceStatus::Error => Tone::Bad,
        TraceStatus::Pending | TraceStatus::Skipped => Tone::Doubtful,
    };
    let status = printer.paint(&format!("{:<7}", trace.status.as_str()), tone);
    let summary = screen::clean(&trace.summary);
    let channel = trace.channel_name.as_deref().map(|name| format!("{}  ", screen::clean(name)));
    let channel = channel.unwrap_or_default();
    let text = format!("{}  {status}  {}  {channel}{summary}", trace.started_at, trace.trace_id);
    printer.one(document, &text)
}
