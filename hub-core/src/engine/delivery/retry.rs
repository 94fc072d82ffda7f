//! Verdict on a response, and the due time of the next attempt, as pure functions.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};

use crate::{channels::sinks::MAX_WAIT_S, random::Random, store::due::LONGEST_WAIT, time::Timestamp};

// A due time beyond `LONGEST_WAIT` counts as due at once; jitter adds a fifth.
const _: () = assert!(MAX_WAIT_S as u64 * 6 / 5 < LONGEST_WAIT.as_secs());

/// Shortest and longest wait that a receiver can request.
const RETRY_AFTER_RANGE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));

/// Meaning of a response for its delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// 2xx: delivered.
    Success,
    /// 410: the receiver accepts no more messages; the delivery ends and its sink is disabled.
    Gone,
    /// Anything else, redirects included: try again.
    Retry {
        /// Wait that a 429 or 503 requested, within 1 s to 24 h.
        after: Option<Duration>,
    },
}

impl Verdict {
    /// Judges an answer.
    pub fn of(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Self {
        match status {
            _ if status.is_success() => Self::Success,
            StatusCode::GONE => Self::Gone,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Self::Retry { after: retry_after(headers, now) }
            }
            _ => Self::Retry { after: None },
        }
    }
}

/// Next step after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another attempt.
    At(Timestamp),
    /// The schedule is used up.
    Dead,
}

/// Returns the time of the next attempt after `attempts_made` attempts. `schedule_s` holds the waits in seconds,
/// one per retry; each is varied by up to 20 % either way, so that deliveries that failed together are not retried
/// together. A wait that the receiver requested is kept exactly, and still uses up its place in the schedule.
pub fn next_attempt(
    attempts_made: u32,
    schedule_s: &[u32],
    retry_after: Option<Duration>,
    now: Timestamp,
    random: &Random,
) -> Next {
    let Some(retries_made) = attempts_made.checked_sub(1) else { return Next::At(now) };
    let Some(&wait_s) = schedule_s.get(retries_made as usize) else { return Next::Dead };
    Next::At(now + retry_after.map_or_else(|| jittered(wait_s, random), clamp))
}

/// 80 % to 120 % of a wait.
fn jittered(wait_s: u32, random: &Random) -> Duration {
    let wait_ms = u64::from(wait_s) * 1000;
    Duration::from_millis(wait_ms * 4 / 5 + random.below(wait_ms * 2 / 5 + 1))
}

fn clamp(wait: Duration) -> Duration {
    wait.clamp(RETRY_AFTER_RANGE.0, RETRY_AFTER_RANGE.1)
}

/// Reads `Retry-After`: seconds or an HTTP date. The longest of several values counts; other values are ignored.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let values = headers.get_all(RETRY_AFTER).iter();
    values.filter_map(|value| wait(value.to_str().ok()?.trim(), now)).max().map(clamp)
}

fn wait(text: &str, now: Timestamp) -> Option<Duration> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // Too many digits are a long time, not an error.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    Timestamp::from_http_date(text).map(|at| at.since(now))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::model::sinks::DEFAULT_SCHEDULE_S;

    /// 1994-11-06T08:49:37Z, the moment that HTTP's examples show.
    const NOW: Timestamp = Timestamp::from_millis(784_111_777_000);

    fn retry_after_headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (RETRY_AFTER, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn answers_are_judged_by_status() {
        let headers = retry_after_headers(&["7"]);
        for status in 100..600 {
            let code = StatusCode::from_u16(status).unwrap();
            let expected = match status {
                200..300 => Verdict::Success,
                410 => Verdict::Gone,
                429 | 503 => Verdict::Retry { after: Some(Duration::from_secs(7)) },
                _ => Verdict::Retry { after: None },
            };
            assert_eq!(Verdict::of(code, &headers, NOW), expected, "{status}");
        }
    }

    #[test]
    fn hostile_waits_are_ignored_or_clamped() {
        const DAY: u64 = 24 * 3600;
        for (values, seconds) in [
            (&["5"][..], Some(5)),
            (&[" 5 "], Some(5)),
            (&["0"], Some(1)),
            (&["86400"], Some(DAY)),
            (&["86401"], Some(DAY)),
            (&["99999999999999999999999999"], Some(DAY)),
            (&["-1"], None),
            (&["+1"], None),
            (&["1.5"], None),
            (&["1e99"], None),
            (&["0x10"], None),
            (&[""], None),
            (&["soon"], None),
            (&["5, 6"], None),
            (&["Sun, 06 Nov 1994 08:50:37 GMT"], Some(60)),
            (&["Sun, 06 Nov 1994 08:49:36 GMT"], Some(1)),
            (&["Fri, 06 Nov 2994 08:49:37 GMT"], Some(DAY)),
            (&["Sun, 32 Nov 1994 08:49:37 GMT"], None),
            (&["5", "9"], Some(9)),
            (&["garbage", "9"], Some(9)),
            (&[], None),
        ] {
            assert_eq!(
                retry_after(&retry_after_headers(values), NOW),
                seconds.map(Duration::from_secs),
                "{values:?}"
            );
        }
        let mut binary = HeaderMap::new();
        binary.insert(RETRY_AFTER, HeaderValue::from_bytes(b"\xff5").unwrap());
        assert_eq!(retry_after(&binary, NOW), None);
    }

    #[test]
    fn waits_stay_within_a_fifth_of_the_schedule() {
        let random = Random::seeded(1);
        for (index, &wait_s) in DEFAULT_SCHEDULE_S.iter().enumerate() {
            let made = u32::try_from(index).unwrap() + 1;
            let mut seen = Vec::new();
            for _ in 0..200 {
                let Next::At(at) = next_attempt(made, &DEFAULT_SCHEDULE_S, None, NOW, &random) else {
                    panic!("the schedule is not used up")
                };
                seen.push(at.since(NOW).as_millis());
            }
            let wait_ms = u128::from(wait_s) * 1000;
            assert!(seen.iter().all(|ms| (wait_ms * 8 / 10..=wait_ms * 12 / 10).contains(ms)));
            assert!(seen.iter().any(|ms| *ms < wait_ms) && seen.iter().any(|ms| *ms > wait_ms));
        }
    }

    #[test]
    fn the_schedule_ends() {
        let random = Random::seeded(2);
        let next = |made, schedule: &[u32], after| next_attempt(made, schedule, after, NOW, &random);
        assert_eq!(next(0, &[], None), Next::At(NOW));
        assert_eq!(next(1, &[], None), Next::Dead);
        assert_eq!(next(8, &DEFAULT_SCHEDULE_S, None), Next::Dead);
        assert_eq!(next(u32::MAX, &DEFAULT_SCHEDULE_S, Some(Duration::from_secs(9))), Next::Dead);
        let requested = Duration::from_secs(9);
        assert_eq!(next(7, &DEFAULT_SCHEDULE_S, Some(requested)), Next::At(NOW + requested));
        assert_eq!(next(1, &[1], Some(Duration::MAX)), Next::At(NOW + RETRY_AFTER_RANGE.1));
        assert!(matches!(next(1, &[u32::MAX], None), Next::At(_)));
    }
}
