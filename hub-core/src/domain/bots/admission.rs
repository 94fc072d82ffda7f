//! Whether a message may be accepted now: what the network's window and the limits of the hub leave for a person.

use std::time::Duration;

use super::pacing::RecentSends;
use crate::{
    error::{Error, ErrorCode, Result},
    model::{bot::StoredContact, cause::Cause},
    network::WindowRules,
    store::outbox::Queued,
    time::Timestamp,
};

/// Longest pause that counts as sending at once: a connection that is repeated, not a network that throttles.
const SHORT_PAUSE: Duration = Duration::from_secs(30);

/// The rules by which messages are accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admission {
    pub rules: WindowRules,
    /// Parts that may wait for one person.
    pub max_queued: u32,
    /// Whether a message may wait for a limit on recent sends. iLink programs read an acceptance as "sent".
    pub may_pause: bool,
}

impl Admission {
    /// Refuses so many parts if they cannot be sent now to a person for whom others wait.
    ///
    /// # Errors
    /// `WINDOW_CLOSED` when the network would refuse them; `RATE_LIMITED` when too much waits for the person, or when they
    /// would have to pause and may not.
    pub(super) fn check(
        &self,
        contact: Option<StoredContact>,
        queued: Queued,
        parts: usize,
        now: Timestamp,
    ) -> Result<()> {
        let (window, recent) =
            contact.map(|contact| (contact.window, contact.recent_sends)).unwrap_or_default();
        let left = window.check(&self.rules, now).map_err(|closed| refused(&closed))?;
        let parts = u32::try_from(parts).unwrap_or(u32::MAX);
        if !self.may_pause
            && let Some(until) = self.pause(&RecentSends::parse(&recent, now), queued, parts, now)
        {
            return Err(Error::new(ErrorCode::RateLimited, format!("it would have to wait until {until}"))
                .with_retry_after(until.since(now)));
        }
        self.fit(parts, queued.parts, left)
    }

    /// Until when the last of so many parts would wait, with what waits already.
    fn pause(&self, recent: &RecentSends, queued: Queued, parts: u32, now: Timestamp) -> Option<Timestamp> {
        let throttled = queued.due_at.filter(|due| due.since(now) > SHORT_PAUSE);
        let ahead = queued.parts.saturating_add(parts).saturating_sub(1);
        let paced = recent.next_at(&self.rules, ahead as usize).filter(|until| *until > now);
        throttled.max(paced)
    }

    /// Whether so many parts more are within what the network allows and the hub keeps.
    fn fit(&self, parts: u32, queued: u32, left: Option<u32>) -> Result<()> {
        if let Some(left) = left
            && queued.saturating_add(parts) > left
        {
            let free = left.saturating_sub(queued);
            let mut message = format!(
                "it needs {parts} sends and {free} are left until this person writes again \
                 ({queued} wait already)"
            );
            if parts > 1 {
                message += "; send a long text as a file, or raise the setting text_part_chars";
            }
            return Err(Error::new(ErrorCode::WindowClosed, message));
        }
        if queued.saturating_add(parts) > self.max_queued {
            let message =
                format!("{queued} parts wait for this person already; at most {} may", self.max_queued);
            return Err(Error::new(ErrorCode::RateLimited, message).with_retry_after(Duration::from_secs(60)));
        }
        Ok(())
    }
}

fn refused(closed: &Cause) -> Error {
    Error::new(ErrorCode::WindowClosed, format!("nothing was sent: {closed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
    const GAP: Duration = Duration::from_millis(300);

    fn pause(burst: Option<u32>, sent: u64, queued: u32, due_in: u64, parts: u32) -> Option<u64> {
        let rules = WindowRules { age: None, sends: None, burst, gap: GAP };
        let admission = Admission { rules, max_queued: 200, may_pause: false };
        let recent = (0..sent).map(|n| NOW - Duration::from_secs(sent - n)).collect();
        let due_at = (queued > 0).then(|| NOW + Duration::from_secs(due_in));
        let until = admission.pause(&recent, Queued { parts: queued, due_at }, parts, NOW);
        until.map(|until| until.since(NOW).as_secs())
    }

    #[test]
    fn what_has_to_wait_for_a_limit_says_until_when() {
        assert_eq!(pause(None, 50, 40, 0, 3), None, "without a limit nothing waits");
        assert_eq!(pause(Some(3), 2, 0, 0, 1), None, "the third");
        assert_eq!(pause(Some(3), 2, 0, 0, 2), Some(298), "the second part is the fourth send");
        assert_eq!(pause(Some(3), 2, 1, 0, 1), Some(298), "one waits already");
        assert_eq!(pause(Some(3), 3, 0, 0, 1), Some(297));
        assert_eq!(pause(None, 0, 1, 30, 1), None, "a connection that is repeated");
        assert_eq!(pause(None, 0, 1, 120, 1), Some(120), "the network throttles");
        assert_eq!(pause(Some(3), 3, 1, 600, 1), Some(600), "the later of both");
    }
}
