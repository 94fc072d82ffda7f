//! Scheduled backups: one per day while the hub runs; the newest ones are kept.
//!
//! The state is in the file names, which contain the time of each backup. A backup missed while the hub was stopped
//! is made at its next start, and a copied folder continues from the backups in it.

use std::{convert::Infallible, fmt, num::NonZeroUsize, str::FromStr, sync::Arc, time::Duration};

use super::{
    BackupTarget, Created, Home, NewBackup, blocking,
    create::{create, named, remove_leftovers},
};
use crate::{
    counters::Counters,
    error::{Error, Result},
    random::Random,
    secret::Secret,
    time::{Clock, Timestamp},
};

/// Prefix of the names. Other backups have another one, and only backups with this prefix are removed.
const SERIES: &str = "hub-nightly";
/// First pause after a failure. Each further pause is twice as long, up to [`LAST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LAST_PAUSE: Duration = Duration::from_secs(60 * 60);
/// Interval of checks of the time: a machine that slept is late by at most this.
const POLL_INTERVAL: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A time of the day in UTC, to the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay {
    minutes: u16,
}

impl TimeOfDay {
    /// Returns the first such time after an instant.
    pub fn next_after(self, instant: Timestamp) -> Timestamp {
        let midnight = Timestamp::from_millis(0) + DAY * u32::try_from(instant.as_days()).unwrap_or(0);
        let today = midnight + Duration::from_secs(u64::from(self.minutes) * 60);
        if today > instant { today } else { today + DAY }
    }
}

impl FromStr for TimeOfDay {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let two = |text: &str, below: u16| {
            let is_two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u16>().ok().filter(|number| is_two && *number < below)
        };
        let read =
            text.split_once(':').and_then(|(hour, minute)| Some(two(hour, 24)? * 60 + two(minute, 60)?));
        let minutes = read.ok_or_else(|| Error::invalid("time", "must be a time in UTC like 03:00"))?;
        Ok(Self { minutes })
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.minutes / 60, self.minutes % 60)
    }
}

/// A backup each night.
#[derive(Debug, Clone)]
pub struct Nightly {
    /// The hub to back up.
    pub home: Home,
    /// Destination of the backups.
    pub target: BackupTarget,
    /// Time of the day.
    pub at: TimeOfDay,
    /// Number of backups to keep.
    pub keep: NonZeroUsize,
    /// Passphrase that seals them, if they are sealed.
    pub passphrase: Option<Secret>,
}

impl Nightly {
    /// Creates backups for as long as it is polled. One is created immediately if there is none or the last night's
    /// is missing. A failed one is retried after a minute, then at growing intervals of up to an hour.
    pub async fn run(&self, clock: &Clock, random: &Random, counters: &Arc<Counters>) -> Infallible {
        let mut pause = FIRST_PAUSE;
        loop {
            let wait = match self.make_when_due(clock, random).await {
                Ok(made) => {
                    if let Some(created) = made {
                        counters.backups.count("made");
                        tracing::info!(backup = %created.location, bytes = created.size, "nightly backup created");
                        self.forget_old(clock.now()).await;
                    }
                    pause = FIRST_PAUSE;
                    self.at.next_after(clock.now()).since(clock.now()).min(POLL_INTERVAL)
                }
                Err(error) => {
                    counters.backups.count("failed");
                    let cause =
                        std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                    tracing::error!(%error, cause, again_in = ?pause, "the nightly backup failed");
                    let wait = pause;
                    pause = (pause * 2).min(LAST_PAUSE);
                    wait
                }
            };
            clock.sleep(wait).await;
        }
    }

    async fn make_when_due(&self, clock: &Clock, random: &Random) -> Result<Option<Created>> {
        let (names, now) = (self.target.names().await?, clock.now());
        let newest = nights(&names).into_iter().map(|(at, _)| at).find(|at| *at <= now);
        if newest.is_some_and(|newest| self.at.next_after(newest) > now) {
            return Ok(None);
        }
        if let Some(folder) = self.target.folder() {
            let folder = folder.to_owned();
            blocking(move || {
                remove_leftovers(&folder, &names, |name| made_at(name).is_some());
                Ok(())
            })
            .await?;
        }
        let name = named(SERIES, now, self.passphrase.is_some());
        let to = self.target.place(&name);
        let new = NewBackup { to, passphrase: self.passphrase.clone(), with_key: true };
        create(&self.home, new, clock, random).await.map(Some)
    }

    /// Removes the oldest backups. Those with a future time are neither counted nor removed: a clock was wrong.
    async fn forget_old(&self, now: Timestamp) {
        let names = match self.target.names().await {
            Ok(names) => names,
            Err(error) => return tracing::warn!(%error, "cannot list old backups"),
        };
        let past = nights(&names).into_iter().filter(|(at, _)| *at <= now);
        for (_, name) in past.skip(self.keep.get()) {
            match self.target.remove(name).await {
                Ok(()) => tracing::info!(name, "an old nightly backup is removed"),
                Err(error) => tracing::warn!(%error, name, "an old nightly backup stays"),
            }
        }
    }
}

/// Returns the time of the newest nightly backup at the target.
///
/// # Errors
/// If the target cannot be listed.
pub async fn newest_nightly(target: &BackupTarget) -> Result<Option<Timestamp>> {
    Ok(nights(&target.names().await?).first().map(|(at, _)| *at))
}

/// The nightly backups among these names, the newest first.
fn nights(names: &[String]) -> Vec<(Timestamp, &str)> {
    let mut nights: Vec<_> = names.iter().filter_map(|name| Some((made_at(name)?, name.as_str()))).collect();
    nights.sort_unstable_by(|a, b| b.cmp(a));
    nights
}

/// Returns the time in the name of a nightly backup; `None` for every other name.
fn made_at(name: &str) -> Option<Timestamp> {
    let time = name.strip_prefix(SERIES)?.strip_prefix('-')?.get(..16)?;
    let part = |range: std::ops::Range<usize>| time.get(range);
    let written = format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0..4)?,
        part(4..6)?,
        part(6..8)?,
        part(9..11)?,
        part(11..13)?,
        part(13..15)?
    );
    let at: Timestamp = written.parse().ok()?;
    // Files with other names are not ours.
    [false, true].into_iter().any(|sealed| named(SERIES, at, sealed) == name).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_time_of_the_day_comes_once_a_day() {
        let three: TimeOfDay = "03:00".parse().unwrap();
        for (behind, next) in [
            ("2026-01-31T02:59:59.999Z", "2026-01-31T03:00:00Z"),
            ("2026-01-31T03:00:00Z", "2026-02-01T03:00:00Z"),
            ("2026-12-31T23:59:00Z", "2027-01-01T03:00:00Z"),
            ("1970-01-01T00:00:00Z", "1970-01-01T03:00:00Z"),
        ] {
            assert_eq!(three.next_after(at(behind)), at(next), "{behind}");
        }
        assert_eq!("23:59".parse::<TimeOfDay>().unwrap().to_string(), "23:59");
        for wrong in ["", "3:00", "24:00", "03:60", "03:00:00", "0300", "+3:00", "ab:cd", "03:0é"] {
            assert!(wrong.parse::<TimeOfDay>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_names_of_its_own_are_those_of_nights() {
        let night = at("2026-01-31T03:00:07Z");
        for sealed in [false, true] {
            assert_eq!(made_at(&named(SERIES, night, sealed)), Some(night));
        }
        for other in [
            "hub-20260131T030007Z.tar",
            "hub-nightly-20260131T030007Z.tar.partial",
            "hub-nightly-20260131T030007Z.tar.sealed.partial-db",
            "hub-nightly-20260131T030007Z",
            "hub-nightly-20260231T030007Z.tar",
            "hub-nightly-2026013é",
            "hub-nightly-20260131X030007Z.tar",
            "my-hub-nightly-20260131T030007Z.tar",
            "hub-nightly-20260131T030007Z.tar.gz",
            "",
        ] {
            assert_eq!(made_at(other), None, "{other}");
        }
    }
}
