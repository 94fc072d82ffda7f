//! The sending window: the time in which the network lets a bot write to a person (`docs/ilink.md#sending-window`).
//! Pure functions: the limits are the network's, and the time is passed in.

use super::cause::Cause;
use crate::{network::WindowRules, time::Timestamp};

/// The accounting of one person's window, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Default, hub_macros::FromRow)]
pub struct Window {
    /// Time of the person's last message; absent if there is none since the last login.
    pub opened_at: Option<Timestamp>,
    /// Sends since then.
    #[row(number)]
    pub sends: u32,
    /// Message with which the network refused a send since then. While `opened_at` is absent, for a person who wrote
    /// under an earlier login: the time at which the bot was bound again, in Unix milliseconds.
    pub closed: Option<String>,
}

impl Window {
    /// Returns the number of sends that are left; `None` if it is not limited.
    ///
    /// # Errors
    /// The first rule that forbids a send now.
    pub fn check(&self, rules: &WindowRules, now: Timestamp) -> Result<Option<u32>, Cause> {
        let Some(opened_at) = self.opened_at else {
            let bound_again = self.closed.as_ref().and_then(|text| text.parse().ok());
            return Err(bound_again.map_or(Cause::NeverWrote, |millis| Cause::NotSinceBound {
                at: Timestamp::from_millis(millis),
            }));
        };
        if let Some(said) = &self.closed {
            return Err(Cause::closed_by_network(said));
        }
        if self.expires_at(rules).is_some_and(|end| now >= end) {
            return Err(Cause::WroteTooLongAgo { at: opened_at });
        }
        match rules.sends.map(|sends| sends.saturating_sub(self.sends)) {
            Some(0) => Err(Cause::SendsUsedUp),
            left => Ok(left),
        }
    }

    /// Returns the time at which the window expires; `None` if it is not open or never expires.
    pub fn expires_at(&self, rules: &WindowRules) -> Option<Timestamp> {
        Some(self.opened_at? + rules.age?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::time::ManualClock;

    const RULES: WindowRules = WindowRules {
        age: Some(Duration::from_secs(23 * 3600 + 1800)),
        sends: Some(10),
        burst: None,
        gap: Duration::ZERO,
    };

    #[test]
    fn table() {
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let open = |sends| Window { opened_at: Some(clock.now()), sends, closed: None };
        let minutes = |n: u64| clock.now() + Duration::from_secs(60 * n);
        let refused = Window { closed: Some("prepare failed".into()), ..open(2) };
        for (case, window, at, expected) in [
            ("S2: no one wrote", Window::default(), minutes(0), Err(Cause::NeverWrote)),
            ("fresh", open(0), minutes(0), Ok(Some(10))),
            ("S3: the tenth", open(9), minutes(0), Ok(Some(1))),
            ("S3: the eleventh", open(10), minutes(0), Err(Cause::SendsUsedUp)),
            ("counted beyond", open(12), minutes(0), Err(Cause::SendsUsedUp)),
            ("S16: 23 h 29 min", open(0), minutes(1409), Ok(Some(10))),
            ("S16: 23 h 30 min", open(0), minutes(1410), Err(Cause::WroteTooLongAgo { at: minutes(0) })),
            ("S16: 23 h 31 min", open(0), minutes(1411), Err(Cause::WroteTooLongAgo { at: minutes(0) })),
            ("S4: the network said no", refused, minutes(0), Err(Cause::closed_by_network("prepare failed"))),
        ] {
            assert_eq!(window.check(&RULES, at), expected, "{case}");
        }
    }

    #[test]
    fn a_network_without_limits_still_wants_the_person_to_write_first() {
        let rules = WindowRules::default();
        let now = Timestamp::from_millis(1_790_000_000_000);
        let open = Window { opened_at: Some(Timestamp::MIN), sends: 4_000_000, closed: None };
        assert_eq!(open.check(&rules, now), Ok(None));
        assert_eq!(open.expires_at(&rules), None);
        assert_eq!(Window::default().check(&rules, now), Err(Cause::NeverWrote));
    }
}
