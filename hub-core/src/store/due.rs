//! Due times in the store: wall-clock times that outlive the process, and what keeps a step of the wall clock from
//! becoming a wait.
//!
//! Each renewal of leases compares the shared clock with what nodes noted of it before. The node that finds a step
//! first moves the due times of all bots and notes by how much, in the transaction that renews its leases; the others
//! find their measurement noted ([`Noted::follow`]). A step back while no node runs shows in the noted time, which is
//! ahead of the clock then. A node that starts cannot tell a step forward from a time in which no node ran, and moves
//! nothing: what waits is due early then. A node that ran before can tell ([`Noted::hidden_step`]), and sees to it that
//! nothing expires for it. A due time that was stored after a step, by a node that died before it found the step, is
//! recognised by its distance: no schedule of the hub waits longer than [`LONGEST_WAIT`], so that what is further ahead
//! counts as due.

use std::time::Duration;

use super::{
    conn::{Conn, sql},
    leases::Leases,
};
use crate::{
    error::Result,
    time::{Clock, Instant, Timestamp},
};

/// No schedule waits longer: seven days are the longest wait of a retry schedule; jitter adds up to a fifth of it.
pub const LONGEST_WAIT: Duration = Duration::from_secs(9 * 24 * 3600);
/// A smaller change of the offset between two clocks is drift.
const SMALLEST_STEP: Duration = Duration::from_secs(2);

/// How long a due time is still ahead; zero when it has passed or lies further ahead than any schedule sets it.
pub fn wait(due_at: Timestamp, now: Timestamp) -> Duration {
    Some(due_at.since(now)).filter(|wait| *wait <= LONGEST_WAIT).unwrap_or_default()
}

/// A change of the offset between the wall clock and the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What the wall clock would show without the step.
    pub expected: Timestamp,
    /// What it shows.
    pub now: Timestamp,
    /// How long ago it was at most. What was stored since then has due times by the new clock.
    pub within: Duration,
}

impl Step {
    fn is_drift(self) -> bool {
        Duration::from_millis(self.by().unsigned_abs()) < SMALLEST_STEP
    }

    /// How far the wall clock moved, in milliseconds; negative when it went back.
    pub const fn by(self) -> i64 {
        self.now.as_millis() - self.expected.as_millis()
    }

    /// The time `at`, which was determined by the clock before the step, after it.
    pub(crate) fn moved(self, at: Timestamp) -> Timestamp {
        Timestamp::from_millis(at.as_millis() + self.by())
    }

    /// The due time `at` after the step. After a step back every future due time moves along; after a step forward
    /// those do that only the step made due, and not those that may have been stored after it.
    pub fn apply(self, at: Timestamp) -> Timestamp {
        let (after, until) = self.bounds();
        if at > after && at < until { self.moved(at) } else { at }
    }

    /// Whether what was stored at the time `at` may have been stored between a step back and its discovery, by the new
    /// clock, and does not move. What is stored after a step forward is beyond its [bounds](Self::bounds).
    pub fn is_since(self, at: Timestamp) -> bool {
        let (first, last) = self.undiscovered();
        at >= first && at <= last
    }

    /// Nothing is between these after a step forward.
    fn undiscovered(self) -> (Timestamp, Timestamp) {
        if self.by() < 0 { (self.now - self.within, self.now) } else { (Timestamp::MAX, Timestamp::MIN) }
    }

    /// The due times that move are between these.
    fn bounds(self) -> (Timestamp, Timestamp) {
        if self.by() < 0 { (self.now, Timestamp::MAX) } else { (self.expected, self.now - self.within) }
    }
}

/// A reading of a wall clock, to notice when the clock is set.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// What the monotonic clock of the process showed.
    pub at: Instant,
    /// What the wall clock showed.
    pub wall: Timestamp,
}

impl Reading {
    /// What the wall clock moved by since then, beyond the time that passed.
    pub fn step_to(self, next: Self) -> Option<Step> {
        Some(self.change_to(next)).filter(|step| !step.is_drift())
    }

    /// By how many milliseconds this machine's wall clock is ahead of the clock that was read; negative when it is behind.
    pub(crate) fn ahead_ms(self, machine: &Clock) -> i64 {
        self.change_to(Self { at: machine.instant(), wall: machine.now() }).by()
    }

    fn change_to(self, next: Self) -> Step {
        let within = next.at.since(self.at);
        Step { expected: self.wall + within, now: next.wall, within }
    }
}

/// By which clock the times of an outcome were determined.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// The shared clock then.
    pub read: Reading,
    /// The reading that due times in the store went by then; `None` before a node's first renewal of leases.
    pub followed: Option<Followed>,
}

impl Stamp {
    /// Whether the clock was not set since.
    pub(super) fn is_current(self, now: Reading) -> bool {
        let readings = [Some(self.read), self.followed.map(|followed| followed.reading)];
        readings.into_iter().flatten().all(|reading| reading.step_to(now).is_none())
    }
}

/// What the nodes of a database noted of the clock that they share.
#[derive(Debug, Clone, Copy)]
pub struct Noted {
    /// The time at the last renewal of leases by any node.
    pub seen_at: Timestamp,
    /// The sum of all steps that due times were moved by, in milliseconds.
    pub moved_ms: i64,
}

/// What a node knows of the shared clock after a renewal of its leases.
#[derive(Debug, Clone, Copy)]
pub struct Followed {
    /// The clock itself.
    pub reading: Reading,
    moved_ms: i64,
}

impl Noted {
    /// Adds a node's reading; returns the step by which due times have still to be moved. At a node's first reading
    /// that is a step back alone: a clock that is ahead may just have run while no node did.
    pub fn follow(self, before: Option<Followed>, reading: Reading) -> (Followed, Option<Step>) {
        let now = reading.wall;
        let first = Step { expected: self.seen_at.max(now), now, within: Duration::ZERO };
        let step = match before {
            Some(before) => {
                let step = self.unknown_change(before, reading);
                // What a node noted that started meanwhile tells of a step back after a hidden one.
                if self.hides(step) { first } else { step }
            }
            None => first,
        };
        let step = Some(step).filter(|step| !step.is_drift());
        (Followed { reading, moved_ms: self.moved_ms + step.map_or(0, Step::by) }, step)
    }

    /// A step forward that a node hid which started after it and took it for a downtime. All nodes go by the clock after it,
    /// so that no due time moves. What was to expire before its discovery expires later by the step, once for each node
    /// that finds it: later than it should at worst.
    pub fn hidden_step(self, before: Option<Followed>, reading: Reading) -> Option<Step> {
        before.map(|before| self.unknown_change(before, reading)).filter(|step| self.hides(*step))
    }

    fn hides(self, step: Step) -> bool {
        step.by() > 0 && self.seen_at > step.expected + SMALLEST_STEP
    }

    /// What the clock moved by between two readings, without the steps that were followed since the first. It may be one
    /// when the readings show none: the node slept through a step and its reversal, and another has followed the first
    /// alone.
    fn unknown_change(self, before: Followed, reading: Reading) -> Step {
        let (change, known_ms) = (before.reading.change_to(reading), self.moved_ms - before.moved_ms);
        let expected = Timestamp::from_millis(change.expected.as_millis() + known_ms);
        Step { expected, ..change }
    }

    /// What an outcome of `stamp` has to be moved by before it is stored: from the clock that it was determined by to the
    /// one that due times in the store go by. They differ by steps that were found since, and by steps that no node has
    /// found yet, which will move what is stored before.
    pub(crate) fn step_for(self, stamp: Stamp, now: Reading) -> Option<Step> {
        let (_, unfollowed) = self.follow(stamp.followed, now);
        let since = stamp.read.change_to(now);
        let expected_ms = since.expected.as_millis() + unfollowed.map_or(0, Step::by);
        Some(Step { expected: Timestamp::from_millis(expected_ms), ..since }).filter(|step| !step.is_drift())
    }
}

impl From<Followed> for Noted {
    fn from(Followed { reading, moved_ms }: Followed) -> Self {
        Self { seen_at: reading.wall, moved_ms }
    }
}

/// The due times of all tables, on a lent connection.
#[derive(Debug)]
pub struct Due<'c>(pub(super) Conn<'c>);

impl Due<'_> {
    /// Reads the shared clock and moves what waits along with a step that no node has seen yet. Of several nodes one
    /// does so at a time.
    pub async fn follow_clock(
        &mut self,
        before: Option<Followed>,
        clock: &Clock,
    ) -> Result<(Followed, Option<Step>)> {
        let noted = self.noted().await?;
        let at = clock.instant();
        let wall = Leases(self.0.lend()).database_now().await?.unwrap_or_else(|| clock.now());
        let noted = noted.unwrap_or(Noted { seen_at: wall, moved_ms: 0 });
        let reading = Reading { at, wall };
        let (followed, step) = noted.follow(before, reading);
        if let Some(step) = step {
            self.shift(step).await?;
        }
        if let Some(step) = noted.hidden_step(before, reading) {
            self.shift_expiry(step).await?;
        }
        self.note(followed.into()).await?;
        Ok((followed, step))
    }

    /// [`Noted::step_for`] an outcome that this transaction stores. The database is asked only around a step.
    pub(super) async fn step_for(&mut self, stamp: Stamp, now: Reading) -> Result<Option<Step>> {
        if stamp.is_current(now) {
            return Ok(None);
        }
        Ok(self.noted().await?.and_then(|noted| noted.step_for(stamp, now)))
    }

    async fn noted(&mut self) -> Result<Option<Noted>> {
        let text: Option<String> = sql!(self.0, optional_value:
            "SELECT value FROM meta WHERE key = 'clock'",
            "SELECT value FROM meta WHERE key = 'clock' FOR UPDATE"
        )?;
        Ok(text.and_then(|text| {
            let (seen_at, moved_ms) = text.split_once(' ')?;
            let seen_at = Timestamp::from_millis(seen_at.parse().ok()?);
            Some(Noted { seen_at, moved_ms: moved_ms.parse().ok()? })
        }))
    }

    async fn note(&mut self, noted: Noted) -> Result<()> {
        sql!(self.0, run:
            "INSERT INTO meta (key, value) VALUES ('clock', $1)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value";
            format!("{} {}", noted.seen_at.as_millis(), noted.moved_ms)
        )
    }

    /// Moves due times, first attempts, the ends of leases and [expiries](Self::shift_expiry) along with a step. A due time
    /// that was set after it becomes due early.
    async fn shift(&mut self, step: Step) -> Result<()> {
        self.shift_expiry(step).await?;
        let (after, until) = step.bounds();
        for sql in [
            "UPDATE nodes SET lease_until = lease_until + $1 WHERE lease_until > $2 AND lease_until < $3",
            "UPDATE deliveries SET due_at = due_at + $1 WHERE state IN ('pending', 'parked') AND due_at > $2
                AND due_at < $3",
            "UPDATE deliveries SET first_attempt_at = first_attempt_at + $1 WHERE state IN ('pending', 'parked')
                AND first_attempt_at > $2 AND first_attempt_at < $3",
            "UPDATE outbox SET due_at = due_at + $1 WHERE state IN ('queued', 'sending') AND due_at > $2
                AND due_at < $3",
            "UPDATE media SET due_at = due_at + $1 WHERE state = 'downloading' AND due_at > $2 AND due_at < $3",
            "UPDATE app_events SET due_at = due_at + $1 WHERE state = 'pending' AND due_at > $2 AND due_at < $3",
            "UPDATE app_events SET claimed_until = claimed_until + $1 WHERE state = 'pending'
                AND claimed_until > $2 AND claimed_until < $3",
        ] {
            sql!(self.0, run: sql; step.by(), after, until)?;
        }
        Ok(())
    }

    /// Moves the times at which items expire along with a step, so that none expires early.
    async fn shift_expiry(&mut self, step: Step) -> Result<()> {
        let ((after, until), (first, last)) = (step.bounds(), step.undiscovered());
        sql!(self.0, run:
            "UPDATE outbox SET expires_at = expires_at + $1 WHERE state IN ('queued', 'sending') AND expires_at > $2
                AND expires_at < $3 AND (created_at < $4 OR created_at > $5)";
            step.by(), after, until, first, last
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ManualClock;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_step_moves_what_it_would_delay_or_hasten() {
        let back = Step { expected: NOW, now: NOW - HOUR, within: SECOND };
        assert_eq!(back.apply(NOW + HOUR), NOW);
        assert_eq!(back.apply(NOW), NOW - HOUR, "it was due, and still is");
        assert_eq!(back.apply(NOW - HOUR * 2), NOW - HOUR * 2);
        let forward = Step { expected: NOW, now: NOW + HOUR * 24, within: SECOND };
        assert_eq!(forward.apply(NOW + HOUR), NOW + HOUR * 25);
        assert_eq!(forward.apply(NOW), NOW, "it was due before");
        assert_eq!(forward.apply(NOW + HOUR * 25), NOW + HOUR * 25, "stored after the step");
        let since = NOW + HOUR * 24 - SECOND;
        assert_eq!(forward.apply(since), since, "stored between the step and its discovery");
    }

    #[test]
    fn a_reading_tells_by_how_much_a_machine_is_ahead_of_the_shared_clock() {
        let manual = ManualClock::new(NOW);
        let machine = Clock::from(manual.clone());
        let reading = |wall| Reading { at: machine.instant(), wall };
        let (same, behind) = (reading(NOW), reading(NOW - HOUR));
        manual.advance(SECOND * 4);
        assert_eq!((same.ahead_ms(&machine), behind.ahead_ms(&machine)), (0, 3_600_000));
        manual.set(NOW - HOUR * 2);
        assert_eq!(same.ahead_ms(&machine), -7_204_000);
    }

    #[test]
    fn a_step_that_several_nodes_measure_counts_once() {
        let at = Clock::from(ManualClock::new(NOW)).instant();
        let reading = |after: Duration, wall| Reading { at: at + after, wall };
        let noted = Noted { seen_at: NOW, moved_ms: 0 };
        let (one, step) = noted.follow(None, reading(Duration::ZERO, NOW));
        assert_eq!(step, None);
        let (other, _) = Noted::from(one).follow(None, reading(Duration::ZERO, NOW));
        for wall in [NOW - HOUR, NOW + HOUR] {
            let (one, step) = Noted::from(other).follow(Some(one), reading(SECOND, wall + SECOND));
            assert_eq!(step.map(Step::by), Some(wall.as_millis() - NOW.as_millis()));
            let (other, step) = Noted::from(one).follow(Some(other), reading(SECOND * 5, wall + SECOND * 5));
            assert_eq!(step, None, "the first node moved the due times");
            let (_, step) = Noted::from(other).follow(Some(one), reading(SECOND * 9, wall + SECOND * 9));
            assert_eq!(step, None, "one step is moved by once");
        }
    }

    #[test]
    fn a_node_that_slept_through_a_step_and_its_reversal_finds_what_is_left_to_move() {
        let at = Clock::from(ManualClock::new(NOW)).instant();
        let reading = |after: Duration, wall: Timestamp| Reading { at: at + after, wall: wall + after };
        let noted = Noted { seen_at: NOW, moved_ms: 0 };
        let (first, _) = noted.follow(None, reading(Duration::ZERO, NOW));
        // Another node follows the step and dies; then the clock is set right.
        let (other, step) = Noted::from(first).follow(Some(first), reading(SECOND, NOW + HOUR));
        assert!(step.is_some());
        let (slept, step) = Noted::from(other).follow(Some(first), reading(SECOND * 60, NOW));
        assert_eq!(step.map(Step::by), Some(-3_600_000));
        let (_, step) = Noted::from(slept).follow(Some(slept), reading(SECOND * 64, NOW));
        assert_eq!(step, None);
    }

    #[test]
    fn a_step_forward_that_a_new_node_took_for_a_downtime_counts_for_no_node() {
        let at = Clock::from(ManualClock::new(NOW)).instant();
        let reading = |after: Duration, wall: Timestamp| Reading { at: at + after, wall: wall + after };
        let (first, _) = Noted { seen_at: NOW, moved_ms: 7 }.follow(None, reading(Duration::ZERO, NOW));
        let ahead = NOW + HOUR;
        let (new, step) = Noted::from(first).follow(None, reading(SECOND, ahead));
        assert_eq!(step, None);
        let mut noted = Noted::from(new);
        let hidden = noted.hidden_step(Some(first), reading(SECOND * 4, ahead)).unwrap();
        assert_eq!((hidden.by(), hidden.apply(NOW + HOUR / 2)), (3_600_000, ahead + HOUR / 2));
        assert_eq!(
            hidden.apply(ahead + HOUR / 2),
            ahead + HOUR / 2,
            "moved by another node, or stored since"
        );
        assert_eq!(noted.hidden_step(Some(new), reading(SECOND * 4, ahead)).map(Step::by), None);
        let (mut first, mut new) = (first, new);
        for after in (4..20).step_by(4).map(|seconds| SECOND * seconds) {
            let step;
            (first, step) = noted.follow(Some(first), reading(after, ahead));
            assert_eq!((step, first.moved_ms), (None, 7));
            let step;
            (new, step) = Noted::from(first).follow(Some(new), reading(after + SECOND, ahead));
            assert_eq!((step, new.moved_ms), (None, 7));
            noted = new.into();
        }
        let (_, step) = noted.follow(Some(first), reading(SECOND * 24, ahead + HOUR));
        assert_eq!(step.map(Step::by), Some(3_600_000), "the next one is");
    }

    #[test]
    fn a_step_back_after_one_forward_is_found_by_a_node_that_saw_neither() {
        let at = Clock::from(ManualClock::new(NOW)).instant();
        let reading = |after: Duration, wall: Timestamp| Reading { at: at + after, wall: wall + after };
        let (old, _) = Noted { seen_at: NOW, moved_ms: 0 }.follow(None, reading(Duration::ZERO, NOW));
        // A new node goes by the clock between the steps.
        let (new, step) = Noted::from(old).follow(None, reading(SECOND, NOW + HOUR * 26));
        assert_eq!(step, None);
        let (found, step) = Noted::from(new).follow(Some(old), reading(SECOND * 4, NOW + HOUR * 25));
        assert_eq!(step.map(Step::by), Some(-3_597_000), "by what was noted: it does not know how long ago");
        let (_, step) = Noted::from(found).follow(Some(new), reading(SECOND * 5, NOW + HOUR * 25));
        assert_eq!(step.map(Step::by), Some(-3_000), "the rest");
    }

    #[test]
    fn an_outcome_is_stored_by_the_clock_that_due_times_go_by() {
        let at = Clock::from(ManualClock::new(NOW)).instant();
        let reading = |after: Duration, wall: Timestamp| Reading { at: at + after, wall: wall + after };
        let (first, _) = Noted { seen_at: NOW, moved_ms: 0 }.follow(None, reading(Duration::ZERO, NOW));
        let noted = Noted::from(first);
        let before = Stamp { read: reading(SECOND, NOW), followed: Some(first) };
        for wall in [NOW - HOUR, NOW + HOUR] {
            let by = |noted: Noted, stamp: Stamp, now| noted.step_for(stamp, now).map(Step::by);
            let step_ms = Some(wall.as_millis() - NOW.as_millis());
            let (found, _) = noted.follow(Some(first), reading(SECOND * 4, wall));
            assert_eq!(by(noted, before, reading(SECOND * 3, NOW)), None, "no step");
            assert_eq!(by(noted, before, reading(SECOND * 3, wall)), None, "moved when the step is found");
            assert_eq!(
                by(found.into(), before, reading(SECOND * 5, wall)),
                step_ms,
                "found before it is stored"
            );
            let between = Stamp { read: reading(SECOND * 2, wall), followed: Some(first) };
            assert_eq!(
                by(found.into(), between, reading(SECOND * 5, wall)),
                None,
                "by the new clock already"
            );
            let back_ms = step_ms.map(|ms| -ms);
            assert_eq!(
                by(noted, between, reading(SECOND * 3, wall)),
                back_ms,
                "moved when the step is found"
            );
            let again = reading(SECOND * 6, wall + HOUR * 5);
            assert_eq!(by(found.into(), before, again), step_ms, "the second step is not found yet");
        }
    }

    #[test]
    fn a_start_finds_a_step_back_and_takes_a_step_forward_for_a_downtime() {
        let at = Clock::from(ManualClock::new(NOW)).instant();
        let noted = Noted { seen_at: NOW, moved_ms: 5 };
        for (wall, by) in [(NOW - HOUR, Some(-3_600_000)), (NOW + HOUR, None), (NOW - SECOND, None)] {
            let (followed, step) = noted.follow(None, Reading { at, wall });
            assert_eq!(step.map(Step::by), by);
            assert_eq!(Noted::from(followed).moved_ms, 5 + by.unwrap_or(0));
        }
    }

    #[test]
    fn a_due_time_beyond_every_schedule_is_due() {
        assert_eq!(wait(NOW + HOUR, NOW), HOUR);
        assert_eq!(wait(NOW + LONGEST_WAIT, NOW), LONGEST_WAIT);
        assert_eq!(wait(NOW - HOUR, NOW), Duration::ZERO);
        assert_eq!(wait(NOW + HOUR * 24 * 365 * 3, NOW), Duration::ZERO);
    }
}
