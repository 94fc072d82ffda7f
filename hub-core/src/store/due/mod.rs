//! Due times in the store: wall-clock times that outlive the process, and what keeps a step of the wall clock from
//! becoming a wait.
//!
//! Each renewal of leases compares the shared clock with what nodes noted of it before. The node that finds a step
//! first moves the due times of all bots and notes by how much, in the transaction that renews its leases; the others
//! find their measurement noted ([`StoredClock::follow`]). A step back while no node runs shows in the noted time, which is
//! ahead of the clock then. A node that starts cannot tell a step forward from a time in which no node ran, and moves
//! nothing: what waits is due early then. A node that ran before can tell ([`StoredClock::hidden_step`]), and sees to it that
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

/// Returns the time left until `due_at`; zero when it has passed or is later than any schedule allows.
pub fn wait(due_at: Timestamp, now: Timestamp) -> Duration {
    Some(due_at.since(now)).filter(|wait| *wait <= LONGEST_WAIT).unwrap_or_default()
}

/// A change of the offset between the wall clock and the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Time that the wall clock would show without the step.
    pub expected: Timestamp,
    /// Time that it shows.
    pub now: Timestamp,
    /// Longest time since the step. Rows stored within it may have due times by the new clock.
    pub within: Duration,
}

impl Step {
    fn is_drift(self) -> bool {
        Duration::from_millis(self.by().unsigned_abs()) < SMALLEST_STEP
    }

    /// Milliseconds by which the wall clock moved; negative when it was set back.
    pub const fn by(self) -> i64 {
        self.now.as_millis() - self.expected.as_millis()
    }

    /// Returns a time that the clock determined before the step, on the clock after it.
    pub(crate) fn moved(self, at: Timestamp) -> Timestamp {
        Timestamp::from_millis(at.as_millis() + self.by())
    }

    /// Returns the due time `at` after the step. A step back moves every future due time. A step forward moves those
    /// that only the step made due, except times that may have been stored after it.
    pub fn apply(self, at: Timestamp) -> Timestamp {
        let (after, until) = self.bounds();
        if at > after && at < until { self.moved(at) } else { at }
    }

    /// Returns the expiry `at` of a row created at `created`, after the step. A step forward moves expiries that only
    /// seem to have passed: a row created after the step lives longer than a step stays undiscovered.
    pub fn apply_to_expiry(self, at: Timestamp, created: Timestamp) -> Timestamp {
        let (after, until) = self.expiry_bounds();
        if at > after && at < until && !self.is_since(created) { self.moved(at) } else { at }
    }

    /// Whether a row stored at `at` may have been stored between a step back and its discovery, by the new clock;
    /// such a row does not move. Rows stored after a step forward are beyond its [bounds](Self::bounds).
    fn is_since(self, at: Timestamp) -> bool {
        let (first, last) = self.undiscovered();
        at >= first && at <= last
    }

    /// Interval in which a step back was not discovered yet; empty after a step forward.
    fn undiscovered(self) -> (Timestamp, Timestamp) {
        // A row of the same moment as the last reading may have an earlier millisecond.
        let first = self.now - self.within - Duration::from_millis(1);
        if self.by() < 0 { (first, self.now) } else { (Timestamp::MAX, Timestamp::MIN) }
    }

    /// Bounds of the due times that move.
    fn bounds(self) -> (Timestamp, Timestamp) {
        if self.by() < 0 { (self.now, Timestamp::MAX) } else { (self.expected, self.now - self.within) }
    }

    fn expiry_bounds(self) -> (Timestamp, Timestamp) {
        if self.by() < 0 { self.bounds() } else { (self.expected, self.now + Duration::from_millis(1)) }
    }
}

/// A reading of a wall clock, to notice when the clock is set.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Time of the monotonic clock of the process.
    pub at: Instant,
    /// Time of the wall clock.
    pub wall: Timestamp,
}

impl Reading {
    /// Returns the change of the wall clock since then beyond the time that passed; `None` if it is only drift.
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

/// The clock that determined the times of an outcome.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// Reading of the shared clock at that time.
    pub read: Reading,
    /// Reading that due times in the store were based on; `None` before a node's first renewal of leases.
    pub followed: Option<Followed>,
}

impl Stamp {
    /// Whether the clock has not been set since then.
    pub(super) fn is_current(self, now: Reading) -> bool {
        let readings = [Some(self.read), self.followed.map(|followed| followed.reading)];
        readings.into_iter().flatten().all(|reading| reading.step_to(now).is_none())
    }
}

/// Stored state of the clock that the nodes of a database share.
#[derive(Debug, Clone, Copy)]
pub struct StoredClock {
    /// Time of the last renewal of leases by any node.
    pub seen_at: Timestamp,
    /// The sum of all steps that due times were moved by, in milliseconds.
    pub moved_ms: i64,
}

/// State of the shared clock that a node has followed, after a renewal of its leases.
#[derive(Debug, Clone, Copy)]
pub struct Followed {
    /// The clock itself.
    pub reading: Reading,
    moved_ms: i64,
}

/// Reads [`StoredClock`] as text, on SQLite and on PostgreSQL.
pub(super) const NOTED: [&str; 2] =
    ["SELECT value FROM meta WHERE key = 'clock'", "SELECT value FROM meta WHERE key = 'clock' FOR UPDATE"];

impl StoredClock {
    /// Reads its stored form.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (seen_at, moved_ms) = text.split_once(' ')?;
        let seen_at = Timestamp::from_millis(seen_at.parse().ok()?);
        Some(Self { seen_at, moved_ms: moved_ms.parse().ok()? })
    }

    /// Adds a node's reading; returns the step by which due times must still be moved. A first reading only shows a
    /// step back: a clock that is ahead may just have run while no node did.
    pub fn follow(self, before: Option<Followed>, reading: Reading) -> (Followed, Option<Step>) {
        let now = reading.wall;
        let first = Step { expected: self.seen_at.max(now), now, within: Duration::ZERO };
        let step = match before {
            Some(before) => {
                let step = self.unknown_change(before, reading);
                // The reading of a node that started meanwhile shows a step back after a hidden one.
                if self.hides(step) { first } else { step }
            }
            None => first,
        };
        let step = Some(step).filter(|step| !step.is_drift());
        (Followed { reading, moved_ms: self.moved_ms + step.map_or(0, Step::by) }, step)
    }

    /// Returns a step forward that another node hid: it started after the step and took it for a downtime. All nodes
    /// use the clock after it, so no due time moves. Items that would have expired before its discovery expire later
    /// by the step, once for each node that finds it: too late at worst.
    pub fn hidden_step(self, before: Option<Followed>, reading: Reading) -> Option<Step> {
        before.map(|before| self.unknown_change(before, reading)).filter(|step| self.hides(*step))
    }

    fn hides(self, step: Step) -> bool {
        step.by() > 0 && self.seen_at > step.expected + SMALLEST_STEP
    }

    /// Returns the change of the clock between two readings, without the steps that were followed since the first. It
    /// may be a step where the readings show none: the node slept through a step and its reversal, and another node
    /// has only followed the first.
    fn unknown_change(self, before: Followed, reading: Reading) -> Step {
        let (change, known_ms) = (before.reading.change_to(reading), self.moved_ms - before.moved_ms);
        let expected = Timestamp::from_millis(change.expected.as_millis() + known_ms);
        Step { expected, ..change }
    }

    /// Returns the step by which to move an outcome of `stamp` before it is stored: from the clock that determined it
    /// to the one that due times in the store are based on. They differ by steps that were found since, and by steps
    /// that no node has found yet, which will move the rows stored before them.
    pub(crate) fn step_for(self, stamp: Stamp, now: Reading) -> Option<Step> {
        let (_, unfollowed) = self.follow(stamp.followed, now);
        let since = stamp.read.change_to(now);
        let expected_ms = since.expected.as_millis() + unfollowed.map_or(0, Step::by);
        Some(Step { expected: Timestamp::from_millis(expected_ms), ..since }).filter(|step| !step.is_drift())
    }
}

impl From<Followed> for StoredClock {
    fn from(Followed { reading, moved_ms }: Followed) -> Self {
        Self { seen_at: reading.wall, moved_ms }
    }
}

/// The due times of all tables, on a lent connection.
#[derive(Debug)]
pub struct Due<'c>(pub(super) Conn<'c>);

impl Due<'_> {
    /// Reads the shared clock and moves the times of waiting rows by a step that no node has seen yet. Nodes do so
    /// one at a time.
    pub async fn follow_clock(
        &mut self,
        before: Option<Followed>,
        clock: &Clock,
    ) -> Result<(Followed, Option<Step>)> {
        let noted = self.noted().await?;
        let at = clock.instant();
        let wall = Leases(self.0.lend()).database_now().await?.unwrap_or_else(|| clock.now());
        let noted = noted.unwrap_or(StoredClock { seen_at: wall, moved_ms: 0 });
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

    /// The stored state of the shared clock, locked until the commit; `None` before a node's first renewal of leases.
    pub(super) async fn noted(&mut self) -> Result<Option<StoredClock>> {
        let text: Option<String> = sql!(self.0, optional_value: NOTED[0], NOTED[1])?;
        Ok(text.as_deref().and_then(StoredClock::read))
    }

    async fn note(&mut self, noted: StoredClock) -> Result<()> {
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
        ] {
            sql!(self.0, run: sql; step.by(), after, until)?;
        }
        Ok(())
    }

    /// Moves the times at which items expire along with a step, so that none expires early.
    async fn shift_expiry(&mut self, step: Step) -> Result<()> {
        let ((after, until), (first, last)) = (step.expiry_bounds(), step.undiscovered());
        sql!(self.0, run:
            "UPDATE outbox SET expires_at = expires_at + $1 WHERE state IN ('queued', 'sending') AND expires_at > $2
                AND expires_at < $3 AND (created_at < $4 OR created_at > $5)";
            step.by(), after, until, first, last
        )
    }
}

#[cfg(test)]
mod tests;
