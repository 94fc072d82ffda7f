//! Time as a value: [`Timestamp`] for dates, [`Instant`] for deadlines, [`Clock`] for both.
//!
//! The wall clock may jump in either direction. Deadlines, intervals and measurements are therefore monotonic
//! ([`Clock::sleep_until`] accepts nothing else); the wall clock serves for display and for times that outlive the
//! process.
//!
//! Nothing else in the workspace reads the system clock (`.clippy.toml` sees to it), so that schedules,
//! windows and expiry are tested with a [`ManualClock`] instead of sleeping.

mod manual;

use std::{
    fmt,
    future::Future,
    ops::{Add, Sub},
    str::FromStr,
    sync::LazyLock,
    time::Duration,
};

pub use self::manual::ManualClock;
pub(crate) use self::manual::Watched;
use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::{
    OffsetDateTime,
    format_description::well_known::{Rfc2822, Rfc3339},
};

/// An instant in UTC with millisecond precision: Unix milliseconds in the store, RFC 3339 with exactly three fraction
/// digits on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 0001-01-01; the printable range starts here.
    pub const MIN: Self = Self(-62_135_596_800_000);
    /// 9999-12-31T23:59:59.999Z; the printable range ends here.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// From Unix milliseconds; values outside year 1..9999 are moved to the nearest end.
    pub const fn from_millis(millis: i64) -> Self {
        if millis < Self::MIN.0 {
            Self::MIN
        } else if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    /// Unix milliseconds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Unix seconds, rounded down.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Whole days since 1970 (UTC).
    pub const fn as_days(self) -> i64 {
        self.0.div_euclid(24 * 60 * 60 * 1000)
    }

    /// A date as headers of HTTP have it (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub fn from_http_date(text: &str) -> Option<Self> {
        let at = OffsetDateTime::parse(text, &Rfc2822).ok()?;
        Some(Self::from_millis(at.unix_timestamp().saturating_mul(1000)))
    }

    /// As [`from_http_date`](Self::from_http_date) reads it.
    pub(crate) fn http_date(self) -> String {
        let at = OffsetDateTime::from_unix_timestamp(self.as_seconds()).ok();
        let text = at.and_then(|at| at.format(&Rfc2822).ok()).unwrap_or_default();
        text.replace("+0000", "GMT")
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self::from_millis(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.as_seconds();
        let at = OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| fmt::Error)?;
        let (year, month, day) = at.to_calendar_date();
        let (hour, minute, second) = at.to_hms();
        let millis = self.0.rem_euclid(1000);
        write!(f, "{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z", u8::from(month))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let at = OffsetDateTime::parse(text, &Rfc3339)
            .map_err(|_| Error::invalid("time", "must be an RFC 3339 time"))?;
        let millis = at.unix_timestamp_nanos().div_euclid(1_000_000);
        Ok(Self::from_millis(i64::try_from(millis).unwrap_or(i64::MAX)))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A point in monotonic time: comparable with other instants of the same process, and not affected by changes of
/// the wall clock. Arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(Duration);

impl Instant {
    /// The earliest instant: before every other.
    pub const MIN: Self = Self(Duration::ZERO);
    /// What the monotonic clock shows when the process starts. Instants before the start exist, for durations that
    /// began in an earlier process.
    const START: Self = Self(Duration::from_secs(100 * 365 * 24 * 3600));

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Milliseconds on a scale of this process.
    pub(crate) fn as_millis(self) -> i64 {
        i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}

/// The wall clock, the monotonic clock and timers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(ManualClock),
}

impl Clock {
    /// The clock of the machine.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// The hands of this clock, when they are moved by hand.
    pub fn as_manual(&self) -> Option<&ManualClock> {
        match &self.0 {
            Source::System => None,
            Source::Manual(manual) => Some(manual),
        }
    }

    /// The current time of the wall clock, for display and for times that outlive the process.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system clock")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => {
                let nanos = OffsetDateTime::now_utc().unix_timestamp_nanos();
                Timestamp::from_millis(i64::try_from(nanos.div_euclid(1_000_000)).unwrap_or(i64::MAX))
            }
            Source::Manual(manual) => manual.now(),
        }
    }

    /// The current time of the monotonic clock, for deadlines and intervals.
    pub fn instant(&self) -> Instant {
        match &self.0 {
            Source::System => Instant::START + Stopwatch(*STARTED).elapsed(),
            Source::Manual(manual) => manual.instant(),
        }
    }

    /// Waits for a duration, by the monotonic clock.
    #[expect(clippy::disallowed_methods, reason = "the one place that sleeps")]
    pub async fn sleep(&self, duration: Duration) {
        match &self.0 {
            Source::System => tokio::time::sleep(duration).await,
            Source::Manual(manual) => manual.sleep_until(manual.instant() + duration).await,
        }
    }

    /// Waits until an instant; returns at once when it has passed.
    pub async fn sleep_until(&self, at: Instant) {
        match &self.0 {
            Source::System => self.sleep(at.since(self.instant())).await,
            Source::Manual(manual) => manual.sleep_until(at).await,
        }
    }

    /// Runs `future` for at most `limit` of this clock's time; `None` when the time ran out.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.sleep(limit) => None,
        }
    }
}

/// The origin of [`Clock::instant`].
#[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
static STARTED: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

/// Measures how long something really took, for statistics. Nothing may be decided by it: what depends on time
/// asks the [`Clock`].
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts measuring.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

impl From<ManualClock> for Clock {
    fn from(manual: ManualClock) -> Self {
        Self(Source::Manual(manual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_three_fraction_digits_and_reads_itself() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_790_000_000_123, "2026-09-21T14:13:20.123Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (Timestamp::MAX.as_millis(), "9999-12-31T23:59:59.999Z"),
            (Timestamp::MIN.as_millis(), "0001-01-01T00:00:00.000Z"),
        ] {
            let at = Timestamp::from_millis(millis);
            assert_eq!(at.to_string(), text);
            assert_eq!(text.parse::<Timestamp>().unwrap(), at);
        }
        assert_eq!(
            "2026-09-21T16:13:20.1239+02:00".parse::<Timestamp>().unwrap().as_millis(),
            1_790_000_000_123
        );
        assert!("yesterday".parse::<Timestamp>().is_err());
    }

    #[tokio::test]
    async fn manual_clock_wakes_sleepers_when_moved() {
        let manual = ManualClock::new(Timestamp::from_millis(1_000));
        let clock = Clock::from(manual.clone());
        let wait = clock.sleep(Duration::from_secs(60));
        tokio::pin!(wait);
        assert!(futures_util::poll!(&mut wait).is_pending());
        assert_eq!(manual.waits(), [Timestamp::from_millis(61_000)]);
        manual.advance(Duration::from_secs(59));
        assert!(futures_util::poll!(&mut wait).is_pending());
        manual.advance(Duration::from_secs(1));
        wait.await;
        assert_eq!(clock.now().as_millis(), 61_000);
        assert_eq!(manual.waits(), []);
    }

    #[tokio::test]
    async fn a_step_of_the_wall_clock_neither_shortens_nor_lengthens_a_wait() {
        let manual = ManualClock::new(Timestamp::from_millis(1_000_000));
        let clock = Clock::from(manual.clone());
        let wait = clock.sleep(Duration::from_secs(60));
        tokio::pin!(wait);
        assert!(futures_util::poll!(&mut wait).is_pending());
        for wall in [0, 9_000_000, 500_000] {
            manual.set(Timestamp::from_millis(wall));
            assert!(futures_util::poll!(&mut wait).is_pending());
            assert_eq!(manual.waits(), [Timestamp::from_millis(wall + 60_000)]);
        }
        manual.advance(Duration::from_secs(60));
        wait.await;
        assert_eq!(clock.now(), Timestamp::from_millis(560_000));
    }

    #[test]
    fn instants_saturate() {
        let start = Clock::from(ManualClock::new(Timestamp::MIN)).instant();
        assert_eq!(start.since(start + Duration::MAX), Duration::ZERO);
        assert_eq!(start - Duration::MAX, Instant::MIN);
        assert!(Instant::MIN < start - Duration::from_secs(10 * 365 * 24 * 3600));
    }
}
