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
    exit::{Exit, Failure},
    reach::Reach,
};

/// How often a server that is asked too much is asked again, a second apart: longer than its limit lasts.
const TRIES: u32 = 120;
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
    let message = patiently(async || reach.message_of(&trace).await).await?;
    Ok(Recording::new(trace, message.as_ref()))
}

/// A recording as a line of a file.
pub fn line(recording: &Recording) -> String {
    json!(recording).to_string()
}

/// Goes through the traces of a query, oldest first, and holds a page of their heads at a time.
#[derive(Debug)]
pub struct Recordings<'r> {
    reach: &'r Reach,
    bot: BotId,
    query: TraceQuery,
    behind: Option<TraceId>,
    /// Whether traces of replays are among them.
    replays: bool,
    page: VecDeque<Trace>,
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
        let (mut all, mut count) = (self.again(), 0);
        while all.head().await?.is_some() {
            count += 1;
        }
        Ok(count)
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
        while let Some(head) = self.head().await? {
            let reach = self.reach;
            let whole = patiently(async || reach.trace(Some(self.bot), head.trace_id).await).await;
            match whole {
                Ok(trace) => return of_trace(reach, trace).await.map(Some),
                // Its time was over meanwhile.
                Err(failure) if failure.exit == Exit::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(None)
    }

    async fn head(&mut self) -> Result<Option<Trace>, Failure> {
        loop {
            while let Some(trace) = self.page.pop_front() {
                let is_behind = self.behind.is_none_or(|behind| trace.trace_id > behind);
                if is_behind && (self.replays || trace.replay_of.is_none()) {
                    return Ok(Some(trace));
                }
            }
            if self.is_last {
                return Ok(None);
            }
            let wanted = PageArgs { limit: MAX_LIMIT, cursor: self.cursor.take() };
            let page = patiently(async || self.reach.traces(self.bot, &self.query, &wanted).await).await?;
            self.page = page.items.into();
            self.is_last = page.next_cursor.is_none();
            self.cursor = page.next_cursor;
        }
    }
}

/// Asks again while the server says that it was asked too much.
pub async fn patiently<T>(ask: impl AsyncFn() -> Result<T, Failure>) -> Result<T, Failure> {
    let clock = Clock::system();
    for _ in 0..TRIES {
        match ask().await {
            Err(failure) if failure.code == "RATE_LIMITED" => clock.sleep(Duration::from_secs(1)).await,
            done => return done,
        }
    }
    ask().await
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
