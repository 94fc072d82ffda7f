//! The traces of a hub as recordings, one after another.

use std::{collections::VecDeque, time::Duration};

use hub_core::{
    id::{BotId, TraceId},
    page::MAX_LIMIT,
    replay::Recording,
    time::{Clock, Timestamp},
    traces::{Trace, TraceQuery},
};
use serde_json::json;

use crate::{
    args::{PageArgs, TraceFilterArgs},
    exit::Failure,
    reach::Reach,
};

/// A trace may have begun so much before its id was made, and the other way round.
const SLACK: Duration = Duration::from_secs(60);

/// The query of these arguments.
///
/// # Errors
/// When a time is none, or there is no such channel.
pub async fn query(reach: &Reach, bot: BotId, filter: &TraceFilterArgs) -> Result<TraceQuery, Failure> {
    let channel_id = match &filter.channel {
        Some(channel) => Some(reach.channel(bot, channel).await?),
        None => None,
    };
    let times = Times::of(filter.since.as_ref(), filter.until.as_ref())?;
    let status = filter.status.map(Into::into);
    Ok(TraceQuery { channel_id, status, since: times.since, until: times.until, ..TraceQuery::default() })
}

/// Between when.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl Times {
    /// Those of the arguments.
    ///
    /// # Errors
    /// When one is no time.
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

/// A time, or one so long before now: `30s`, `10m`, `2h`, `7d`.
pub fn moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let unit = match text.chars().next_back()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return text.parse().ok(),
    };
    let count: u32 = text[..text.len() - 1].parse().ok()?;
    Some(now - Duration::from_secs(u64::from(count) * unit))
}

/// A recording of a trace, with its message as far as the hub still has it.
///
/// # Errors
/// What the hub says.
pub async fn of_trace(reach: &Reach, trace: Trace) -> Result<Recording, Failure> {
    let message = reach.message_of(&trace).await?;
    Ok(Recording::new(trace, message.as_ref()))
}

/// A recording as a line of a file.
pub fn line(recording: &Recording) -> String {
    json!(recording).to_string()
}

/// Goes through the traces of a query, oldest first, and holds a page of recordings at a time.
#[derive(Debug)]
pub struct Recordings<'r> {
    reach: &'r Reach,
    bot: BotId,
    query: TraceQuery,
    behind: Option<TraceId>,
    /// Whether traces of replays are among them.
    replays: bool,
    page: VecDeque<Recording>,
    cursor: Option<String>,
    is_last: bool,
}

impl<'r> Recordings<'r> {
    /// Those behind a trace, or all of them. None that begins from now on is among them.
    pub fn new(
        reach: &'r Reach,
        bot: BotId,
        mut query: TraceQuery,
        behind: Option<TraceId>,
        replays: bool,
    ) -> Self {
        query.oldest_first = true;
        let now = Clock::system().now();
        query.until = Some(query.until.map_or(now, |until| until.min(now)));
        if let Some(behind) = behind {
            // The id tells when it was made; what is before it is left out one by one.
            let made = behind.made_at();
            query.since = Some(query.since.map_or(made - SLACK, |since| since.max(made - SLACK)));
            // Nothing is left when all of it is over.
            query.since = query.since.min(query.until);
        }
        Self { reach, bot, query, behind, replays, page: VecDeque::new(), cursor: None, is_last: false }
    }

    /// How many there are.
    ///
    /// # Errors
    /// What the hub says.
    pub async fn count(&self) -> Result<u64, Failure> {
        let (mut count, mut cursor) = (0, None);
        loop {
            let page = PageArgs { limit: MAX_LIMIT, cursor };
            let page = self.reach.traces(self.bot, &self.query, &page).await?;
            count += page.items.iter().filter(|trace| self.is_wanted(trace)).count() as u64;
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(count);
            }
        }
    }

    /// The same from the start.
    pub fn again(&self) -> Self {
        let (page, cursor) = (VecDeque::new(), None);
        Self { query: self.query.clone(), page, cursor, is_last: false, ..*self }
    }

    /// The next one.
    ///
    /// # Errors
    /// What the hub says.
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
            let page = self.reach.recordings(self.bot, &self.query, &wanted).await?;
            self.page = page.items.into();
            self.is_last = page.next_cursor.is_none();
            self.cursor = page.next_cursor;
        }
    }

    fn is_wanted(&self, trace: &Trace) -> bool {
        self.behind.is_none_or(|behind| trace.trace_id > behind)
            && (self.replays || trace.replay_of.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_moments_or_as_so_long_ago() {
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
