//! Pacing: limits the messages to a person within [`WindowRules::BURST_SPAN`]. The network blocks accounts that write
//! faster, so messages above the limit wait in the outbox. Pure: the time is passed in.

use std::collections::VecDeque;

use crate::{network::WindowRules, time::Timestamp};

/// Times of the last sends to a person, oldest first, as the store keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecentSends(VecDeque<Timestamp>);

impl RecentSends {
    /// Parses the stored form: Unix milliseconds with commas. Times older than the span are left out. Times in the
    /// future were stored before the clock was set back, and count as now.
    pub fn parse(text: &str, now: Timestamp) -> Self {
        let times = text.split(',').filter_map(|millis| Some(Timestamp::from_millis(millis.parse().ok()?)));
        times.filter(|at| now.since(*at) < WindowRules::BURST_SPAN).map(|at| at.min(now)).collect()
    }

    /// Formats the times for the store.
    pub fn to_text(&self) -> String {
        let millis: Vec<String> = self.0.iter().map(|at| at.as_millis().to_string()).collect();
        millis.join(",")
    }

    /// Adds a send, the newest.
    pub fn push(&mut self, at: Timestamp) {
        self.0.push_back(at);
    }

    /// The sends, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Timestamp> {
        self.0.iter().copied()
    }

    /// Returns the number of sends that are possible now; `None` for any number.
    pub fn left(&self, rules: &WindowRules) -> Option<u32> {
        let used = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        rules.burst.map(|burst| burst.saturating_sub(used))
    }

    /// Returns the time at which the next send is possible, after `ahead` others; `None` if it is possible now.
    pub fn next_at(&self, rules: &WindowRules, ahead: usize) -> Option<Timestamp> {
        let burst = rules.burst? as usize;
        // The send after which the window has room: `burst` others follow it within the span. Those ahead repeat the
        // pattern of the present ones.
        let place = (self.0.len() + ahead).checked_sub(burst)?;
        let rounds = u32::try_from(place / burst.max(1)).unwrap_or(u32::MAX);
        let first = self.0.get(place % burst.max(1)).or(self.0.back())?;
        Some(*first + WindowRules::BURST_SPAN.saturating_mul(rounds.saturating_add(1)))
    }
}

impl FromIterator<Timestamp> for RecentSends {
    fn from_iter<I: IntoIterator<Item = Timestamp>>(times: I) -> Self {
        Self(times.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
    const RULES: WindowRules = WindowRules { age: None, sends: None, burst: Some(3), gap: Duration::ZERO };

    fn seconds_ago(seconds: &[u64]) -> RecentSends {
        seconds.iter().map(|s| NOW - Duration::from_secs(*s)).collect()
    }

    #[test]
    fn the_stored_form_is_read_again_within_the_span() {
        let sends = seconds_ago(&[299, 10, 0]);
        assert_eq!(RecentSends::parse(&sends.to_text(), NOW), sends);
        let later = RecentSends::parse(&sends.to_text(), NOW + Duration::from_secs(1));
        assert_eq!(later, seconds_ago(&[10, 0]));
        assert_eq!(RecentSends::parse("", NOW), RecentSends::default());
        let set_back = RecentSends::parse(&sends.to_text(), NOW - Duration::from_secs(3600));
        assert!(set_back.iter().all(|at| at == NOW - Duration::from_secs(3600)), "{set_back:?}");
    }

    #[test]
    fn each_waiting_send_has_its_time() {
        let at = |s: u64| Some(NOW + Duration::from_secs(s));
        let sends = seconds_ago(&[200, 100, 0]);
        assert_eq!(sends.left(&RULES), Some(0));
        let times: Vec<_> = (0..5).map(|ahead| sends.next_at(&RULES, ahead)).collect();
        assert_eq!(times, [at(100), at(200), at(300), at(400), at(500)]);
        let two = seconds_ago(&[200, 100]);
        assert_eq!(
            (two.left(&RULES), two.next_at(&RULES, 0), two.next_at(&RULES, 1)),
            (Some(1), None, at(100))
        );
        let unlimited = WindowRules::default();
        assert_eq!((sends.left(&unlimited), sends.next_at(&unlimited, 9)), (None, None));
    }
}
