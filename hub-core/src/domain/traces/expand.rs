//! Lists of traces with their steps and messages: a page is read by a fixed number of queries, and bounded in bytes.

use std::collections::HashMap;

use super::{TraceQuery, Traces};
use crate::{
    access::Actor,
    error::{Error, Result},
    id::{BotId, MessageId, TraceId},
    model::{message::Message, trace::Trace},
    page::{Page, PageRequest},
    store::traces::TraceRow,
};

/// Parts of each trace that a list includes in addition to its head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expand {
    /// Its steps.
    pub steps: bool,
    /// Its message.
    pub message: bool,
}

/// A trace of a list, with the requested parts.
#[derive(Debug, Clone)]
pub struct ExpandedTrace {
    /// The trace; without steps unless they were requested.
    pub trace: Trace,
    /// Its message, if it was requested and is not deleted.
    pub message: Option<Message>,
}

/// Bytes of steps and messages with which an expanded page ends. One trace may exceed them.
pub const EXPANDED_BYTES: i64 = 4 << 20;

/// Returns the number of these rows that fit on an expanded page, at least 1.
fn fitting(rows: &[TraceRow]) -> u32 {
    let mut bytes = 0;
    let fits = rows.iter().take_while(|row| {
        let is_open = bytes < EXPANDED_BYTES;
        bytes += row.size;
        is_open
    });
    u32::try_from(fits.count()).unwrap_or(u32::MAX).max(1)
}

impl Traces<'_> {
    /// Traces of a bot as [`list`](Self::list) has them, each with its steps or its message. A page ends with the trace
    /// with which it reaches [`EXPANDED_BYTES`], also before its limit; it has a cursor then.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn expanded(
        &self,
        actor: &Actor,
        bot_id: BotId,
        query: &TraceQuery,
        page: &PageRequest,
        expand: Expand,
    ) -> Result<Page<ExpandedTrace>> {
        let scope = actor.scope()?;
        if query.since.zip(query.until).is_some_and(|(since, until)| until < since) {
            return Err(Error::invalid("until", "must not be before since"));
        }
        let mut read = self.ctx.store.read().await?;
        let found = read.traces().list(scope, bot_id, query, page).await?;
        if found.rows.is_empty() && !read.channels().sees_bot(scope, bot_id).await? {
            return Err(Error::not_found("bot"));
        }
        let page =
            if expand == Expand::default() { page.clone() } else { page.at_most(fitting(&found.rows)) };
        let mut page = Page::from_found(&query.list_name(bot_id), &page, found, |row| row.id.to_string());
        if expand.steps {
            let ids: Vec<TraceId> = page.items.iter().map(|row| row.id).collect();
            let mut steps = read.traces().steps_of(&ids).await?;
            for row in &mut page.items {
                // Retention may have deleted the trace since.
                row.steps.0 = steps.remove(&row.id).unwrap_or_default();
            }
        }
        drop(read);
        let mut traces: Vec<_> = page.items.into_iter().map(Trace::from).collect();
        self.make_bodies(&mut traces).await?;
        let messages = if expand.message { self.messages_of(bot_id, &traces).await? } else { HashMap::new() };
        let expanded = |trace: Trace| {
            let message = messages.get(&trace.message_id).cloned();
            ExpandedTrace { trace, message }
        };
        Ok(Page { items: traces.into_iter().map(expanded).collect(), next_cursor: page.next_cursor })
    }

    /// The messages of traces of a bot, by their ids.
    async fn messages_of(&self, bot_id: BotId, traces: &[Trace]) -> Result<HashMap<MessageId, Message>> {
        let mut ids: Vec<MessageId> = traces.iter().map(|trace| trace.message_id).collect();
        ids.sort_unstable();
        ids.dedup();
        let found = self.ctx.store.read().await?.messages().find_all(bot_id, &ids).await?;
        let mut media = self.ctx.files().of_messages(&ids).await?;
        let with_media = |mut message: Message| {
            message.media = media.remove(&message.id).unwrap_or_default();
            (message.id, message)
        };
        Ok(found.into_iter().map(with_media).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::trace::{StoredSteps, TraceStatus},
        time::Timestamp,
    };

    fn row(size: i64) -> TraceRow {
        TraceRow {
            id: TraceId::MAX,
            message_id: MessageId::MAX,
            bot_id: BotId::MAX,
            channel_id: None,
            replay_of: None,
            status: TraceStatus::Ok,
            summary: String::new(),
            attempts: 0,
            started_at: Timestamp::MIN,
            duration_ms: 0,
            steps: StoredSteps::default(),
            channel_name: None,
            user_id: String::new(),
            user_name: String::new(),
            preview: String::new(),
            size,
            next_attempt_at: None,
            webhook: None,
        }
    }

    #[test]
    fn an_expanded_page_ends_when_it_is_full_and_has_one_trace_at_least() {
        assert_eq!(fitting(&[row(1), row(1), row(1)]), 3);
        assert_eq!(fitting(&[row(EXPANDED_BYTES * 2), row(1)]), 1);
        assert_eq!(fitting(&[row(EXPANDED_BYTES - 1), row(1), row(1)]), 2);
        assert_eq!(fitting(&[]), 1);
    }
}
