//! Nights of a hub, on a clock that is moved by hand.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use super::*;
use crate::{
    counters::Counters,
    testing::until,
    time::{ManualClock, Timestamp},
};

const NOON: &str = "2026-01-31T12:00:00Z";
const HOUR: Duration = Duration::from_secs(3_600);

struct Nights {
    clock: ManualClock,
    counters: Arc<Counters>,
    target: std::path::PathBuf,
}

impl Nights {
    /// Lets backups be made of a hub while `story` goes on.
    async fn watch(nightly: Nightly, story: impl AsyncFnOnce(&Self)) {
        let target = match &nightly.target {
            BackupTarget::Folder(target) => target.clone(),
            #[cfg(feature = "s3")]
            BackupTarget::Bucket(_) => unreachable!("these backups are in a folder"),
        };
        let clock = ManualClock::new(NOON.parse().unwrap());
        let nights = Self { clock, counters: Arc::default(), target };
        let (clock, random) = (Clock::from(nights.clock.clone()), Random::seeded(2));
        tokio::select! {
            never = nightly.run(&clock, &random, &nights.counters) => match never {},
            () = story(&nights) => {}
        }
    }

    fn counted(&self) -> Vec<u64> {
        self.counters.backups.counts().map(|(_, count)| count).collect()
    }

    /// Waits until so many were made and have failed, and nothing is being done; gives what is waited for.
    async fn rest(&self, made: u64, failed: u64) -> Duration {
        let at_rest = async || {
            let wait = *self.clock.waits().first()?;
            (self.counted() == [made, failed]).then(|| wait.since(self.clock.now()))
        };
        until("so many backups", at_rest).await
    }

    /// As [`rest`](Self::rest), so much later.
    async fn later(&self, duration: Duration, made: u64, failed: u64) -> Duration {
        self.clock.advance(duration);
        self.rest(made, failed).await
    }

    fn names(&self) -> Vec<String> {
        names(&self.target)
    }
}

fn nightly(home: Home, target: &Path, passphrase: Option<&str>) -> Nightly {
    Nightly {
        home,
        target: BackupTarget::Folder(target.to_owned()),
        at: "03:00".parse().unwrap(),
        keep: NonZeroUsize::new(2).unwrap(),
        passphrase: passphrase.map(Secret::new),
    }
}

#[tokio::test]
async fn each_night_has_its_backup_and_the_newest_stay() {
    let (folder, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (home_there, target) = (hub(folder.path()).await, folder.path().join("nights"));
    fs::create_dir(&target).unwrap();
    let others = ["hub-20250101T000000Z.tar", "hub-nightly-20990101T030000Z.tar", "notes.txt"];
    let rests = ["hub-nightly-20260131T030000Z.tar.partial", "hub-nightly-20260130T030000Z.tar.partial-db"];
    for name in others.iter().chain(&rests) {
        fs::write(target.join(name), "there before").unwrap();
    }
    Nights::watch(nightly(home_there, &target, Some("open sesame")), async |nights| {
        // The first at once, then one a night, also when the hub was busy or asleep at three.
        assert_eq!(nights.rest(1, 0).await, HOUR);
        assert!(nights.names().iter().all(|name| !name.contains("partial")), "{:?}", nights.names());
        nights.later(14 * HOUR, 1, 0).await;
        nights.later(HOUR, 2, 0).await;
        nights.later(30 * HOUR, 3, 0).await;
        nights.later(17 * HOUR, 3, 0).await;
        nights.later(HOUR, 4, 0).await;
    })
    .await;
    let mut left = names(&target);
    left.retain(|name| !others.contains(&name.as_str()));
    assert_eq!(left, ["hub-nightly-20260202T090000Z.tar.sealed", "hub-nightly-20260203T030000Z.tar.sealed"]);
    assert_eq!(names(&target).len(), 5, "what others put there stays");
    let here = home(new.path());
    bring_back(&target.join(&left[1]), &here, Some("open sesame"), false).await.unwrap();
    assert_eq!(api_key(&here).await, "sk-secret");
    let newest = newest_nightly(&BackupTarget::Folder(target)).await.unwrap();
    assert_eq!(newest, Some("2099-01-01T03:00:00Z".parse::<Timestamp>().unwrap()));
}

#[tokio::test]
async fn a_night_that_has_its_backup_needs_none_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (home, target) = (hub(folder.path()).await, folder.path().join("nights"));
    for _ in 0..2 {
        Nights::watch(nightly(home.clone(), &target, None), async |nights| {
            until("it is at rest", async || nights.clock.waits().first().copied()).await;
        })
        .await;
        assert_eq!(names(&target), ["hub-nightly-20260131T120000Z.tar"]);
    }
}

#[tokio::test]
async fn a_failure_is_counted_and_tried_again_less_and_less_often() {
    let folder = tempfile::tempdir().unwrap();
    let (home, target) = (hub(folder.path()).await, folder.path().join("nights"));
    fs::write(&target, "in the way").unwrap();
    Nights::watch(nightly(home, &target, None), async |nights| {
        let minute = Duration::from_secs(60);
        let mut pause = nights.rest(0, 1).await;
        assert_eq!(pause, minute);
        for failed in 2..9 {
            let next = nights.later(pause, 0, failed).await;
            assert_eq!(next, (pause * 2).min(HOUR));
            pause = next;
        }
        fs::remove_file(&nights.target).unwrap();
        nights.later(pause, 1, 8).await;
        assert_eq!(nights.names().len(), 1);
        // The next failure begins again.
        fs::remove_dir_all(&nights.target).unwrap();
        fs::write(&nights.target, "in the way").unwrap();
        assert_eq!(nights.later(24 * HOUR, 1, 9).await, minute);
    })
    .await;
}
