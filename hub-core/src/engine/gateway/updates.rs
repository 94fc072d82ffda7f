//! `getupdates`: a long poll from a position in the channel's log.

use std::{collections::HashMap, time::Duration};

use futures_util::FutureExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Gateway, Program, refusal, render::Rendering};
use crate::{
    channels::{
        Channels,
        log::{Listener, News},
    },
    error::{Error, ErrorCode, Result},
    id::MessageId,
    media_store::views::has_media,
    model::{
        message::Direction,
        trace::{PackedSteps, Step, StepDetail, StepKind, StepName, TraceStatus},
    },
    network::{
        MessageKind, Quote,
        server::{Answer, Reply, stamp},
    },
    store::{log::LogRow, media::MediaRow, traces::TraceUpdate},
};

/// Hold time of a poll without messages. Clients give up only after the longer announced time, so that they do not
/// lose a response in transit.
const HOLD: Duration = Duration::from_secs(30);
/// The announced time in milliseconds.
const ANNOUNCED_HOLD_MS: u64 = 35_000;
/// Messages of one response.
const BATCH: u32 = 50;
/// Characters of text and items of one response; the message that exceeds this is the last.
const BATCH_CHARS: i64 = 256 * 1024;

/// Messages that a poll found in the log.
struct Page {
    messages: Vec<Value>,
    /// Their ids, without those that were given to the program before.
    new: Vec<MessageId>,
    /// Everything up to this number was read.
    position: i64,
}

impl Gateway<'_> {
    /// Waits for messages after a cursor, which acknowledges everything before it. Without a cursor, and with one
    /// that was not issued to this program, waits for messages that the program has not acknowledged. Programs keep
    /// their cursor when they log in again or move to another hub, and none of them drops it when it is refused.
    pub(super) async fn updates(&self, program: &Program, cursor: &str, stop: &CancellationToken) -> Answer {
        let position = position_of(program, cursor).unwrap_or(program.acked);
        let busy = |error: Error| match error.code() {
            ErrorCode::RateLimited => {
                Reply { status: http::StatusCode::TOO_MANY_REQUESTS, ..refusal(&error) }
            }
            _ => refusal(&error),
        };
        let poll = self.ctx.node.ilink_polls.begin(program.id);
        let mut listener =
            Channels::new(self.ctx).listen_ilink(&program.client, position).await.map_err(busy)?;
        let failed = |error| refusal(&error);
        // After a restore of an older database the log may end before the cursor.
        let mut position = listener.position();
        if position > program.acked {
            self.advance(program, position, 0, Vec::new()).await.map_err(failed)?;
        }
        let until = self.ctx.clock.instant() + HOLD;
        loop {
            if let Some(News::Ended(_)) = listener.news() {
                return Err(Reply::expired());
            }
            if poll.is_newest() && listener.newest() > position {
                let page = self.read_page(program, position, listener.newest()).await.map_err(failed)?;
                position = page.position;
                if !page.messages.is_empty() {
                    self.advance(program, 0, position, page.new).await.map_err(failed)?;
                    return Ok(response(program, &page.messages, position));
                }
            } else if !wait(&mut listener, self.ctx.clock.sleep_until(until), stop, &poll.replaced).await {
                return Ok(response(program, &[], position));
            }
        }
    }

    /// Reads the messages after a position in the log.
    async fn read_page(&self, program: &Program, position: i64, newest: i64) -> Result<Page> {
        let (channel, bot) = (program.client.channel_id, program.client.bot_id);
        let mut read = self.ctx.store.read().await?;
        let rows = read.log().after(channel, position, BATCH, BATCH_CHARS).await?;
        // Numbers without rows are no longer kept.
        let position = rows.last().map_or(newest, |row| row.seq);
        let rows: Vec<LogRow> = rows.into_iter().filter(|row| row.direction == Direction::Inbound).collect();
        let quotes = rows.iter().map(quote_of).collect::<Result<Vec<_>>>()?;
        let quoted: Vec<&str> =
            quotes.iter().flatten().filter_map(|quote| quote.network_id.as_deref()).collect();
        let quoted = read.messages().quoted(bot, &quoted).await?;
        let with_files = rows.iter().filter(|row| has_media(&row.message.items));
        let quoted_files = quoted.values().filter(|message| message.kind != MessageKind::Text);
        let ids: Vec<_> = with_files
            .map(|row| row.message.message_id)
            .chain(quoted_files.map(|message| message.message_id))
            .collect();
        let mut files: HashMap<MessageId, Vec<MediaRow>> = HashMap::new();
        for file in read.media().of_messages(&ids).await? {
            if let Some(id) = file.message_id {
                files.entry(id).or_default().push(file);
            }
        }
        drop(read);
        let new =
            rows.iter().filter(|row| row.seq > program.given).map(|row| row.message.message_id).collect();
        let rendering = Rendering { ctx: self.ctx, program, quoted: &quoted, files: &files };
        let messages = rows.iter().zip(&quotes).map(|(row, quote)| rendering.message(row, quote.as_ref()));
        Ok(Page { messages: messages.collect::<Result<_>>()?, new, position })
    }

    /// Stores the position of a program, and records in the traces of messages that they were given to it.
    async fn advance(&self, program: &Program, acked: i64, given: i64, new: Vec<MessageId>) -> Result<()> {
        let (id, channel, now) = (program.id, program.client.channel_id, self.ctx.store.now());
        if acked == 0 && new.is_empty() {
            return Ok(());
        }
        let detail = StepDetail { ilink_client: Some(id), ..StepDetail::default() };
        let steps = [Step::new(StepName::Ilink, StepKind::Ilink, TraceStatus::Ok, now, now, detail)];
        let write = self.ctx.store.write(move |tx| {
            async move {
                if !new.is_empty() {
                    let traces = tx.ilink().traces_of(channel, &new).await?;
                    let update = |id| TraceUpdate {
                        id,
                        status: None,
                        ended: 0,
                        summary: None,
                        attempts: None,
                        ended_at: now,
                        steps: PackedSteps::new(id, &steps),
                    };
                    let updates: Vec<_> = traces.into_iter().map(update).collect();
                    tx.traces().update(&updates.iter().collect::<Vec<_>>()).await?;
                }
                tx.ilink().advance(id, acked, given).await
            }
            .boxed()
        });
        write.await
    }
}

/// The position of a cursor of this program.
fn position_of(program: &Program, cursor: &str) -> Option<i64> {
    i64::try_from(stamp::cursor_position(&program.key, 0, cursor)?).ok()
}

fn quote_of(row: &LogRow) -> Result<Option<Quote>> {
    let quoted = row.message.quoted.as_deref().map(serde_json::from_str).transpose();
    quoted.map_err(Error::internal)
}

/// Waits until there may be something new; `false` when the poll is to end.
async fn wait(
    listener: &mut Listener,
    until: impl Future<Output = ()>,
    stop: &CancellationToken,
    replaced: &CancellationToken,
) -> bool {
    tokio::select! {
        biased;
        () = listener.changed() => true,
        () = until => false,
        () = stop.cancelled() => false,
        () = replaced.cancelled() => false,
    }
}

fn response(program: &Program, messages: &[Value], position: i64) -> Reply {
    let cursor = stamp::cursor(&program.key, 0, u64::try_from(position).unwrap_or(0));
    Reply::json(&serde_json::json!({
        "ret": 0,
        "msgs": messages,
        "get_updates_buf": cursor,
        "sync_buf": "",
        "longpolling_timeout_ms": ANNOUNCED_HOLD_MS,
    }))
}
