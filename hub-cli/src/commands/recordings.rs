//! The traces of a hub as a stream of recordings.

use std::{collections::VecDeque, time::Duration};

use hub_core::{
    id::{BotId, TraceId},
    page::MAX_LIMIT,
    replay::Recording,
    time::{Clock, Timestamp},
    traces::{Trace, TraceQuery},
};
use hub_server::config::parse_duration;
use serde_json::json;

use crate::{
    args::{PageArgs, TraceFilterArgs},
    client::Client,
    exit::Failure,
};

/// Maximum difference between the start of a trace and the time in its id.
const ID_CLOCK_SLACK: Duration = Duration::from_secs(60);

/// Builds the query of these arguments.
///
/// # Errors
/// A failure if a time is invalid or the channel does not exist.
pub async fn query(client: &Client, bot: BotId, filter: &TraceFilterArgs) -> Result<TraceQuery, Failure> {
    let channel_id = match &filter.channel {
        Some(channel) => Some(client.channel(bot, channel).await?),
        None => None,
    };
    let times = Times::of(filter.since.as_ref(), filter.until.as_ref())?;
    let (since, until) = (times.since, times.until);
    Ok(TraceQuery { channel_id, status: filter.status, since, until, ..TraceQuery::default() })
}

#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl Times {
    pub fn of(since: Option<&String>, until: Option<&String>) -> Result<Self, Failure> {
        let now = Clock::system().now();
        let read = |flag: &str, text: Option<&String>| {
            let read = text.map(|text| moment(text, now).ok_or(text)).transpose();
            read.map_err(|text| {
                Failure::usage(format!(
                    "--{flag} {text}: neither a time like 2026-01-31T12:00:00Z nor one ago like 10m"
                ))
            })
        };
        Ok(Self { since: read("since", since)?, until: read("until", until)? })
    }
}

/// A time, or a duration before now: `30s`, `10m`, `2h`, `7d`.
pub fn moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    parse_duration(text).map(|ago| now - ago).or_else(|| text.parse().ok())
}

/// The id of a trace.
pub fn trace_id(text: &str) -> Result<TraceId, Failure> {
    text.parse().map_err(|_| {
        Failure::not_found(format!("{text} is not the id of a trace"))
            .with_hint("hub-cli traces list --bot BOT")
    })
}

/// A recording of a trace, with its message if the hub still has it.
pub async fn of_trace(client: &Client, trace: Trace) -> Result<Recording, Failure> {
    let message = client.message_of(&trace).await?;
    Ok(Recording::new(trace, message.as_ref()))
}

/// A recording as a line of a file.
pub fn line(recording: &Recording) -> String {
    json!(recording).to_string()
}

/// Iterates over the traces of a query, oldest first, with a page of recordings in memory.
#[derive(Debug, Clone)]
pub struct Recordings<'r> {
    client: &'r Client,
    bot: BotId,
    query: TraceQuery,
    after: Option<TraceId>,
    /// Whether traces of replays are included.
    replays: bool,
    page: VecDeque<Recording>,
    cursor: Option<String>,
    is_last: bool,
}

impl<'r> Recordings<'r> {
    /// Creates an iterator over the traces after one, or over all, except those that begin from now on.
    pub fn new(
        client: &'r Client,
        bot: BotId,
        mut query: TraceQuery,
        after: Option<TraceId>,
        replays: bool,
    ) -> Self {
        query.oldest_first = true;
        let now = Clock::system().now();
        query.until = Some(query.until.map_or(now, |until| until.min(now)));
        if let Some(after) = after {
            // The id contains its time; traces before it are skipped one by one.
            let made = after.made_at();
            query.since =
                Some(query.since.map_or(made - ID_CLOCK_SLACK, |since| since.max(made - ID_CLOCK_SLACK)));
            // Empty when the whole range is in the future.
            query.since = query.since.min(query.until);
        }
        Self { client, bot, query, after, replays, page: VecDeque::new(), cursor: None, is_last: false }
    }

    pub async fn count(&self) -> Result<u64, Failure> {
        let (mut count, mut cursor) = (0, None);
        loop {
            let page = PageArgs { limit: MAX_LIMIT, cursor };
            let page = self.client.traces(self.bot, &self.query, &page).await?;
            count += page.items.iter().filter(|item| self.is_wanted(&item.trace)).count() as u64;
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(count);
            }
        }
    }

    pub async fn next(&mut self) -> Result<Option<Recording>, Failure> {
        loop {
            while let Some(recording) = self.page.pop_front() {
                if self.is_wanted(&recording.trace) {
                    return Ok(Some(recording));
                }
            }
            if self.is_last {
                return Ok(None);
            }
            let wanted = PageArgs { limit: MAX_LIMIT, cursor: self.cursor.take() };
            let page = self.client.recordings(self.bot, &self.query, &wanted).await?;
            self.page = page.items.into();
            self.is_last = page.next_cursor.is_none();
            self.cursor = page.next_cursor;
        }
    }

    fn is_wanted(&self, trace: &Trace) -> bool {
        self.after.is_none_or(|after| trace.trace_id > after) && (self.replays || trace.replay_of.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_relative_to_now() {
        let now = Timestamp::from_millis(1_790_000_000_000);
        for (text, seconds) in [("30s", 30), ("10m", 600), ("2h", 7_200), ("7d", 604_800), ("0s", 0)] {
            assert_eq!(moment(text, now), Some(now - Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(moment("2026-01-31T12:00:00Z", now).unwrap().to_string(), "2026-01-31T12:00:00.000Z");
        for text in ["", "m", "-1m", "yesterday", "10", "5000000000d", "é"] {
            assert_eq!(moment(text, now), None, "{text}");
        }
    }
}
