//! "Is typing" for as long as work goes on.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Connection, NetworkError};
use crate::{secret::Secret, tasks::Tasks, time::Clock};

/// Interval at which the indicator is renewed.
const REPEAT: Duration = Duration::from_secs(5);
/// Time after which the indicator is removed even if the guard was not dropped: hanging work must not type forever.
const LONGEST: Duration = Duration::from_secs(600);

/// Shows a person that the bot is typing, from [`TypingIndicator::start`] until it is dropped.
///
/// The indicator is a courtesy: it is sent in the background, its failures are not reported, and it disappears
/// after ten minutes at the latest. Dropping the guard returns at once; the background task then removes the
/// indicator, after any call that is still in progress.
#[derive(Debug)]
#[must_use = "the sign disappears when this is dropped"]
pub struct TypingIndicator {
    _stop: DropGuard,
}

impl TypingIndicator {
    /// Begins to show the indicator to `to_user_id`. `tasks` runs the calls; when it stops, the indicator is
    /// removed as well.
    pub fn start(
        connection: Arc<dyn Connection>,
        to_user_id: impl Into<String>,
        context_token: Option<Secret>,
        clock: Clock,
        tasks: &Tasks,
    ) -> Self {
        let stop = tasks.stop_token().child_token();
        let sign =
            Sign { connection, to_user_id: to_user_id.into(), context_token, clock, stop: stop.clone() };
        tasks.spawn("typing", sign.show());
        Self { _stop: stop.drop_guard() }
    }
}

struct Sign {
    connection: Arc<dyn Connection>,
    to_user_id: String,
    context_token: Option<Secret>,
    clock: Clock,
    stop: CancellationToken,
}

impl Sign {
    async fn show(self) {
        let end = self.clock.instant() + LONGEST;
        let mut next = self.clock.instant();
        let mut shown = false;
        while self.clock.instant() < end && !self.stop.is_cancelled() {
            shown |= self.set(true).await;
            next = (next + REPEAT).max(self.clock.instant());
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                () = self.clock.sleep_until(next) => {}
            }
        }
        if shown {
            self.set(false).await;
        }
    }

    /// Whether the sign may have changed on the other side: only a refusal says for sure that it has not.
    async fn set(&self, on: bool) -> bool {
        let result = self.connection.typing(&self.to_user_id, self.context_token.as_ref(), on).await;
        if let Err(error) = &result {
            tracing::debug!(%error, on, "typing sign not sent");
        }
        !matches!(result, Err(NetworkError::Refused { .. } | NetworkError::LoginExpired(_)))
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::sync::mpsc;

    use super::*;
    use crate::{
        network::{Batch, Outgoing, SendOutcome},
        time::{ManualClock, Timestamp},
    };

    /// Reports each call with the second it came in, and answers it alike.
    #[derive(Debug)]
    struct Recorder {
        clock: ManualClock,
        calls: mpsc::Sender<(i64, bool)>,
        answer: Result<(), NetworkError>,
    }

    #[async_trait]
    impl Connection for Recorder {
        async fn receive(&self, _: &str) -> Result<Batch, NetworkError> {
            Ok(Batch::default())
        }

        async fn send(&self, _: &Outgoing) -> SendOutcome {
            SendOutcome::AcceptedUnconfirmed
        }

        async fn typing(&self, to: &str, token: Option<&Secret>, on: bool) -> Result<(), NetworkError> {
            assert_eq!((to, token.map(Secret::expose)), ("Ann@im.wechat", Some("AARz1")));
            self.calls.send((self.clock.now().as_seconds(), on)).await.unwrap();
            self.answer.clone()
        }
    }

    struct Stage {
        clock: ManualClock,
        tasks: Tasks,
        calls: mpsc::Receiver<(i64, bool)>,
        sign: TypingIndicator,
    }

    fn stage(answer: Result<(), NetworkError>) -> Stage {
        let clock = ManualClock::new(Timestamp::from_millis(0));
        let (sender, calls) = mpsc::channel(8);
        let connection = Arc::new(Recorder { clock: clock.clone(), calls: sender, answer });
        let tasks = Tasks::new();
        let token = Some("AARz1".into());
        let sign = TypingIndicator::start(connection, "Ann@im.wechat", token, clock.clone().into(), &tasks);
        Stage { clock, tasks, calls, sign }
    }

    #[tokio::test]
    async fn the_sign_repeats_every_five_seconds_and_ends_with_the_work() {
        let Stage { clock, calls: mut seen, sign, .. } = stage(Ok(()));
        for second in [0, 5, 10] {
            assert_eq!(seen.recv().await, Some((second, true)));
            clock.advance(Duration::from_secs(if second == 10 { 2 } else { 5 }));
        }
        drop(sign);
        assert_eq!(seen.recv().await, Some((12, false)));
        assert_eq!(seen.recv().await, None, "the task has ended");
    }

    #[tokio::test]
    async fn the_sign_ends_by_itself_and_with_the_hub() {
        let Stage { clock, calls: mut seen, sign, .. } = stage(Ok(()));
        assert_eq!(seen.recv().await, Some((0, true)));
        clock.advance(LONGEST);
        assert_eq!(seen.recv().await, Some((600, false)));
        assert_eq!(seen.recv().await, None);
        drop(sign);

        let Stage { tasks, calls: mut seen, sign: _sign, .. } = stage(Ok(()));
        assert_eq!(seen.recv().await, Some((0, true)));
        tasks.stop();
        assert_eq!(seen.recv().await, Some((0, false)));
        assert_eq!(seen.recv().await, None);
    }

    #[tokio::test]
    async fn refusals_are_swallowed_and_nothing_is_taken_away_that_was_not_shown() {
        let refused = NetworkError::Refused { code: -4, message: "no conversation".into() };
        let Stage { clock, calls: mut seen, sign, .. } = stage(Err(refused));
        assert_eq!(seen.recv().await, Some((0, true)));
        clock.advance(REPEAT);
        assert_eq!(seen.recv().await, Some((5, true)));
        drop(sign);
        assert_eq!(seen.recv().await, None);
    }
}
