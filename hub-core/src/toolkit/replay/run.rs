//! Driving many recordings: rate, concurrency, counts, and where to go on.

use std::{collections::VecDeque, num::NonZeroU32, pin::pin, time::Duration};

use futures_util::{Stream, StreamExt, stream::FuturesUnordered};
use tokio_util::sync::CancellationToken;

use super::{Carried, Carrier, Differences, Outcome, Recording, Report, Totals};
use crate::{
    id::TraceId,
    time::{Clock, Instant},
};

/// Maximum distance in the source between the oldest open recording and the newest one that was started.
const WINDOW: usize = 1_024;

/// Options for sending recordings again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// Maximum number started per second; unlimited if absent.
    pub rate: Option<NonZeroU32>,
    /// Maximum number in progress; with one, each waits for the previous one. Zero counts as one.
    pub concurrency: usize,
    /// Determines the targets and sends nothing.
    pub dry_run: bool,
    /// Compares each response with the recorded one.
    pub compare: bool,
    /// Starts no more after the first failure.
    pub stop_on_fail: bool,
}

impl Default for Replay {
    /// One after another, without a rate limit.
    fn default() -> Self {
        Self { rate: None, concurrency: 1, dry_run: false, compare: false, stop_on_fail: false }
    }
}

/// Signals to stop a run.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Starts nothing more, and waits for recordings in progress.
    pub soon: CancellationToken,
    /// Stops without waiting.
    pub now: CancellationToken,
}

/// A completed run.
#[derive(Debug)]
pub struct Summary<E> {
    /// The counts.
    pub totals: Totals,
    /// Last recording up to which all are complete: another run resumes after it.
    pub resume_from: Option<TraceId>,
    /// Reason for the end.
    pub end: End<E>,
}

/// Reason for the end of a run.
#[derive(Debug, PartialEq, Eq)]
pub enum End<E> {
    /// All recordings are complete.
    Complete,
    /// It was stopped.
    Stopped,
    /// A recording failed, and `stop_on_fail` was set.
    Failed,
    /// The source returned an error.
    Source(E),
}

impl Replay {
    /// Sends the recordings of a stream, in its order as far as the concurrency allows. Calls `report_done` for each
    /// completed recording.
    pub async fn run<E>(
        &self,
        source: impl Stream<Item = Result<Recording, E>>,
        carrier: &dyn Carrier,
        clock: &Clock,
        stop: &Stop,
        mut report_done: impl FnMut(&Report, &Totals),
    ) -> Summary<E> {
        let mut source = pin!(source.fuse());
        let mut under_way = FuturesUnordered::new();
        let mut pace = Pace::new(self.rate, clock.instant());
        let mut progress = Progress::default();
        let (mut totals, mut end, mut next) = (Totals::default(), None, None::<Recording>);
        loop {
            let begins = end.is_none() && under_way.len() < self.concurrency.max(1) && progress.has_room();
            if end.is_some() && under_way.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = stop.now.cancelled() => {
                    end = Some(End::Stopped);
                    break;
                }
                () = stop.soon.cancelled(), if end.is_none() => end = Some(End::Stopped),
                Some((place, report)) = under_way.next(), if !under_way.is_empty() => {
                    let report: Report = report;
                    totals.count(&report);
                    let fails = report.outcome == Outcome::Fail && self.stop_on_fail;
                    if fails {
                        // A run that resumes sends it again.
                        end.get_or_insert(End::Failed);
                    } else {
                        progress.over(place);
                    }
                    report_done(&report, &totals);
                }
                () = clock.sleep_until(pace.due), if begins && next.is_some() => {
                    if let Some(recording) = next.take() {
                        pace.begun(clock.instant());
                        let place = progress.begin(recording.trace.trace_id);
                        under_way.push(async move { (place, self.one(&recording, carrier, clock).await) });
                    }
                }
                item = source.next(), if begins && next.is_none() => match item {
                    Some(Ok(recording)) => next = Some(recording),
                    Some(Err(error)) => end = Some(End::Source(error)),
                    None => end = Some(End::Complete),
                },
            }
        }
        Summary { totals, resume_from: progress.done, end: end.unwrap_or(End::Complete) }
    }

    async fn one(&self, recording: &Recording, carrier: &dyn Carrier, clock: &Clock) -> Report {
        let began = clock.instant();
        let carried = if self.dry_run {
            match carrier.target(recording).await {
                Ok(target) => Carried { outcome: Outcome::Ok, ..Carried::failed(target) },
                Err(why) => why.into(),
            }
        } else {
            carrier.carry(recording).await
        };
        let compares = self.compare && !self.dry_run && carried.outcome != Outcome::Skipped;
        let differences =
            compares.then(|| Differences::of(recording.response().as_ref(), carried.status, &carried.body));
        Report {
            trace_id: recording.trace.trace_id,
            outcome: carried.outcome,
            status: carried.status,
            reason: carried.reason,
            duration_ms: u64::try_from(clock.instant().since(began).as_millis()).unwrap_or(u64::MAX),
            new_trace_id: carried.new_trace_id,
            replies: carried.replies,
            differences,
        }
    }
}

/// Schedule of starts at a rate.
struct Pace {
    start: Instant,
    /// Microseconds between two, for rates that milliseconds are too coarse for.
    gap: u64,
    /// Microseconds from the start.
    next: u64,
    due: Instant,
}

impl Pace {
    fn new(rate: Option<NonZeroU32>, now: Instant) -> Self {
        Self { start: now, gap: rate.map_or(0, |rate| 1_000_000 / u64::from(rate.get())), next: 0, due: now }
    }

    /// Records a start. Starts that were missed because of a slow source are not caught up with.
    fn begun(&mut self, now: Instant) {
        let elapsed = u64::try_from(now.since(self.start).as_micros()).unwrap_or(u64::MAX);
        // The clock's last millisecond is not over yet.
        self.next = self.next.max(elapsed.saturating_sub(1_000)).saturating_add(self.gap);
        self.due = self.start + Duration::from_micros(self.next);
    }
}

/// Recordings in progress, in the order of the source.
#[derive(Default)]
struct Progress {
    open: VecDeque<(TraceId, bool)>,
    /// Position of the first one in the source.
    first: usize,
    /// Last recording up to which all are complete.
    done: Option<TraceId>,
}

impl Progress {
    fn has_room(&self) -> bool {
        self.open.len() < WINDOW
    }

    fn begin(&mut self, id: TraceId) -> usize {
        self.open.push_back((id, false));
        self.first + self.open.len() - 1
    }

    fn over(&mut self, place: usize) {
        if let Some(entry) = self.open.get_mut(place - self.first) {
            entry.1 = true;
        }
        while let Some((id, true)) = self.open.front() {
            self.done = Some(*id);
            self.open.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resume_starts_after_the_last_completed_recording() {
        let mut progress = Progress::default();
        let [a, b, c] = [1, 2, 3].map(TraceId::from_u128);
        let places = [a, b, c].map(|id| progress.begin(id));
        assert_eq!(places, [0, 1, 2]);
        progress.over(1);
        assert_eq!(progress.done, None);
        progress.over(0);
        assert_eq!(progress.done, Some(b));
        assert_eq!(progress.begin(a), 3);
        progress.over(2);
        assert_eq!((progress.done, progress.open.len()), (Some(c), 1));
    }

    #[test]
    fn a_pace_is_kept_and_not_caught_up_with() {
        let start = Instant::MIN;
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut pace = Pace::new(NonZeroU32::new(4_000), start);
        for _ in 0..8 {
            pace.begun(start);
        }
        assert_eq!(pace.due, at(2), "four in a millisecond");
        let mut pace = Pace::new(NonZeroU32::new(2), start);
        pace.begun(start);
        assert_eq!(pace.due, at(500));
        pace.begun(at(5_000));
        assert_eq!(pace.due, at(5_499));
        let mut pace = Pace::new(None, start);
        pace.begun(at(10));
        assert!(pace.due <= at(10));
    }
}
