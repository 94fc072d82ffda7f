//! Due times in the store: wall-clock times that outlive the process, and what keeps a step of the wall clock from
//! becoming a wait.
//!
//! A running node notices a step and moves the due times of its bots along ([`Due::shift`]). A due time that was
//! stored under a wrong clock before a restart is recognised by its distance: no schedule of the hub waits longer
//! than [`LONGEST_WAIT`], so that what is further ahead counts as due.

use std::time::Duration;

use super::conn::{Conn, on};
use crate::{error::Result, id::NodeId, time::Timestamp};

/// No schedule waits longer: a day, which is the longest wait of a retry schedule and of `Retry-After`, a fifth of
/// it as jitter, and a margin.
pub const LONGEST_WAIT: Duration = Duration::from_secs(36 * 3600);

/// How long a due time is still ahead; zero when it has passed or lies further ahead than any schedule sets it.
pub fn wait(due_at: Timestamp, now: Timestamp) -> Duration {
    Some(due_at.since(now)).filter(|wait| *wait <= LONGEST_WAIT).unwrap_or_default()
}

/// The due times of all tables, on a lent connection.
#[derive(Debug)]
pub struct Due<'c>(pub(super) Conn<'c>);

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
    /// How far the wall clock moved, in milliseconds; negative when it went back.
    pub const fn by(self) -> i64 {
        self.now.as_millis() - self.expected.as_millis()
    }

    /// The due time `at` after the step. After a step back every future due time moves along; after a step forward
    /// those do that only the step made due, and not those that may have been stored after it.
    pub fn apply(self, at: Timestamp) -> Timestamp {
        let (after, until) = self.bounds();
        if at > after && at < until { Timestamp::from_millis(at.as_millis() + self.by()) } else { at }
    }

    /// The due times that move are between these.
    fn bounds(self) -> (Timestamp, Timestamp) {
        if self.by() < 0 { (self.now, Timestamp::MAX) } else { (self.expected, self.now - self.within) }
    }
}

impl Due<'_> {
    /// Moves what waits for the bots of a node along with a step of the wall clock.
    pub async fn shift(&mut self, node: NodeId, step: Step) -> Result<()> {
        failpoint!("due.shift");
        let (after, until) = step.bounds();
        let by = step.by();
        for sql in [
            "UPDATE outbox SET expires_at = expires_at + $2 WHERE state IN ('queued', 'sending') AND expires_at > $3
                AND expires_at < $4 AND bot_id IN (SELECT id FROM bots WHERE lease_owner = $1)",
            "UPDATE deliveries SET due_at = due_at + $2 WHERE state IN ('pending', 'parked') AND due_at > $3
                AND due_at < $4 AND bot_id IN (SELECT id FROM bots WHERE lease_owner = $1)",
            "UPDATE outbox SET due_at = due_at + $2 WHERE state IN ('queued', 'sending') AND due_at > $3
                AND due_at < $4 AND bot_id IN (SELECT id FROM bots WHERE lease_owner = $1)",
            "UPDATE media SET due_at = due_at + $2 WHERE state = 'downloading' AND due_at > $3
                AND due_at < $4 AND bot_id IN (SELECT id FROM bots WHERE lease_owner = $1)",
            "UPDATE app_events SET due_at = due_at + $2 WHERE state = 'pending' AND due_at > $3
                AND due_at < $4 AND bot_id IN (SELECT id FROM bots WHERE lease_owner = $1)",
        ] {
            on!(self.0, |conn| sqlx::query(sql)
                .bind(node.to_string())
                .bind(by)
                .bind(after.as_millis())
                .bind(until.as_millis())
                .execute(conn)
                .await
                .map(|_| ()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_due_time_beyond_every_schedule_is_due() {
        assert_eq!(wait(NOW + HOUR, NOW), HOUR);
        assert_eq!(wait(NOW + LONGEST_WAIT, NOW), LONGEST_WAIT);
        assert_eq!(wait(NOW - HOUR, NOW), Duration::ZERO);
        assert_eq!(wait(NOW + HOUR * 24 * 365 * 3, NOW), Duration::ZERO);
    }
}
