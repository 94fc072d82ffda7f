//! Receives for one bot: polls its network, passes batches to the inbox, and handles every failure
//! (`docs/ilink.md#polling`).

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use tracing::Instrument;

use super::{
    inbox::Intake,
    node::{BotWork, Engine},
    outbox::SUSPECT,
};
use crate::{
    bots::BotStatus,
    error::Result,
    network::{Batch, NetworkError},
    spans,
    time::Instant,
};

/// Pauses after errors: two short ones, then a long one with a new connection, then from the start.
const SHORT_PAUSE: Duration = Duration::from_secs(2);
const LONG_PAUSE: Duration = Duration::from_secs(30);
/// Without an answered poll for this long the bot counts as degraded.
const DEGRADED_AFTER: Duration = Duration::from_secs(3 * 60);
/// Without an answered poll for this long polling is announced to the network again.
const REANNOUNCE_AFTER: Duration = Duration::from_secs(10 * 60);
/// How long a first "login expired" is doubted.
const VERIFY_DELAY: Duration = Duration::from_secs(5);
/// How often an expired login is tried again: it has come back in some reports.
const EXPIRED_LOGIN_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// An idle bot's row is touched at most this often.
const NOTE_EVERY: Duration = Duration::from_secs(10);
/// Empty answers that come at once, in a row, before the next poll waits: the network's hold does not work.
const MAX_RUSHED_POLLS: u32 = 5;
/// An answer this fast was not held.
const MIN_HOLD: Duration = Duration::from_millis(100);
/// Failed announcements are repeated with growing pauses.
const ANNOUNCE_PAUSE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));

/// Why polling ended.
enum Ended {
    /// Stopped, or another node works for the bot.
    Stopped,
    /// The login is no longer valid.
    Expired(String),
}

/// What came of one poll.
enum Polled {
    Answer(Result<Batch, NetworkError>),
    /// A poll is requested at once.
    Poked,
    Stopped,
}

/// What follows from one poll.
enum Next {
    Poll,
    /// The network says that the login expired.
    Doubt(String),
    End,
}

/// What another try with the same login showed.
enum Login {
    Works,
    Expired,
    /// The network could not be asked.
    Unclear(Option<NetworkError>),
    Stopped,
}

struct Poller {
    engine: Arc<Engine>,
    bot: Arc<BotWork>,
    cursor: String,
    errors: u32,
    rushed: u32,
    last_answer: Instant,
    last_note: Option<Instant>,
    /// Whether the bot's row tells of a failure that no answer has followed.
    failed: bool,
    /// When the announcement is due again, and the pause after its next failure.
    announce_at: Option<Instant>,
    announce_pause: Duration,
}

impl Engine {
    /// Starts polling for a bot.
    pub(super) fn start_poller(self: &Arc<Self>, bot: &Arc<BotWork>, cursor: String, status: BotStatus) {
        let now = self.ctx.clock.instant();
        let poller = Poller {
            engine: Arc::clone(self),
            bot: Arc::clone(bot),
            cursor,
            errors: 0,
            rushed: 0,
            last_answer: now,
            last_note: None,
            failed: false,
            announce_at: Some(now),
            announce_pause: ANNOUNCE_PAUSE.0,
        };
        let expired = (status == BotStatus::Expired).then(|| "the network requires a new login".to_owned());
        let (engine, bot) = (Arc::clone(self), Arc::clone(bot));
        bot.tasks.clone().spawn("poller", async move {
            if AssertUnwindSafe(poller.run(expired)).catch_unwind().await.is_err() {
                engine.start_over(&bot, "its poller panicked").await;
            }
        });
    }
}

impl Poller {
    async fn run(mut self, mut expired: Option<String>) {
        loop {
            match expired.take() {
                None => self.status(BotStatus::Connecting, None).await,
                Some(reason) => {
                    let reason = format!("{reason}; bind the bot again");
                    if !self.wait_for_revival(reason).await {
                        return;
                    }
                }
            }
            match self.poll_until_it_ends().await {
                Ended::Stopped => break,
                Ended::Expired(reason) => expired = Some(reason),
            }
        }
        if !self.is_taken_over().await {
            self.bot.connection.stop().await;
        }
        self.status(BotStatus::Offline, None).await;
    }

    /// Polls until asked to stop or until the login has really expired.
    async fn poll_until_it_ends(&mut self) -> Ended {
        while self.holds_lease().await {
            let next = match self.announce_when_due().await {
                Err(NetworkError::LoginExpired(reason)) => Next::Doubt(reason),
                _ => self.poll_once().await,
            };
            match next {
                Next::Poll => {}
                Next::End => break,
                Next::Doubt(reason) => match self.doubt_login().await {
                    Login::Works | Login::Unclear(_) => {}
                    Login::Expired => return Ended::Expired(reason),
                    Login::Stopped => break,
                },
            }
        }
        Ended::Stopped
    }

    async fn poll_once(&mut self) -> Next {
        failpoint!("poll.before", passed);
        let asked = self.engine.ctx.clock.instant();
        let answer = match self.poll().await {
            Polled::Answer(answer) => answer,
            Polled::Poked => return Next::Poll,
            Polled::Stopped => return Next::End,
        };
        failpoint!("poll.answered", passed);
        self.slow_down(asked, &answer).await;
        match answer {
            Ok(batch) => match self.take_in(batch).await {
                Ok(Intake::Done) => {}
                Ok(Intake::Lost) => return Next::End,
                Err(error) => {
                    Engine::report("a batch could not be stored", &self.bot, &error);
                    self.pause(SHORT_PAUSE).await;
                }
            },
            Err(NetworkError::LoginExpired(reason)) => return Next::Doubt(reason),
            Err(error) => self.bear(&error).await,
        }
        Next::Poll
    }

    /// One poll. When the hub stops it may end by itself for a while before it is cut; if only the bot is taken away
    /// it is cut, since another node may be polling already.
    async fn poll(&self) -> Polled {
        let poll = self.bot.connection.receive(&self.cursor);
        tokio::pin!(poll);
        tokio::select! {
            biased;
            answer = &mut poll => Polled::Answer(answer),
            () = self.bot.poke.notified() => Polled::Poked,
            () = self.bot.tasks.stop_token().cancelled() => {
                if !self.engine.tasks.stopping() {
                    return Polled::Stopped;
                }
                let ctx = &self.engine.ctx;
                // What comes in the last moment is stored like everything else.
                ctx.clock.timeout(ctx.config.poll_grace, poll).await.map_or(Polled::Stopped, Polled::Answer)
            }
        }
    }

    /// No lease, no poll. `false` when asked to stop.
    async fn holds_lease(&self) -> bool {
        self.bot.wait_for_lease(&self.engine.ctx.clock).await
    }

    /// Whether another node, or this one under a later lease, polls for the bot by now: then the end of polling must
    /// not be announced.
    async fn is_taken_over(&self) -> bool {
        if self.engine.tasks.stopping() {
            return false;
        }
        let (store, lease) = (&self.engine.ctx.store, &self.bot.lease);
        let held = store.is_held(lease.bot_id).await.unwrap_or(false);
        held && store.work(lease).await.is_ok_and(|work| work.is_none())
    }

    async fn take_in(&mut self, batch: Batch) -> Result<Intake> {
        let now = self.engine.ctx.clock.instant();
        let moved = batch.cursor.as_ref().is_some_and(|cursor| *cursor != self.cursor);
        let answered = batch.answered;
        if answered {
            self.errors = 0;
            self.last_answer = now;
        }
        let note =
            answered && (self.failed || self.last_note.is_none_or(|last| now.since(last) >= NOTE_EVERY));
        if !batch.messages.is_empty() || moved || note {
            let cursor = batch.cursor.clone();
            let span = spans::poll_batch(self.bot.lease.bot_id, batch.messages.len());
            let intake = self.engine.take_in(&self.bot, batch).instrument(span).await?;
            if intake == Intake::Lost {
                return Ok(intake);
            }
            self.last_note = Some(now);
            self.failed = false;
            if let Some(cursor) = cursor {
                self.cursor = cursor;
            }
        }
        if answered {
            self.answered().await;
        } else {
            self.degrade_when_silent("the network does not respond to polls").await;
        }
        Ok(Intake::Done)
    }

    /// Keeps a network that answers empty at once from being polled in a tight loop.
    async fn slow_down(&mut self, asked: Instant, answer: &Result<Batch, NetworkError>) {
        let empty = answer.as_ref().is_ok_and(|batch| batch.messages.is_empty());
        if !empty || self.engine.ctx.clock.instant().since(asked) >= MIN_HOLD {
            self.rushed = 0;
            return;
        }
        self.rushed += 1;
        if self.rushed >= MAX_RUSHED_POLLS {
            self.pause(SHORT_PAUSE).await;
        }
    }

    /// Pauses after an error, as the network's own client does.
    async fn bear(&mut self, error: &NetworkError) {
        self.errors += 1;
        tracing::debug!(bot_id = %self.bot.lease.bot_id, %error, in_a_row = self.errors, "a poll failed");
        self.note_error(&error.to_string()).await;
        self.degrade_when_silent(&error.to_string()).await;
        let asked = match error {
            NetworkError::Throttled { retry_after, .. } => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let pause = if self.errors >= 3 {
            self.errors = 0;
            self.bot.connection.reset();
            LONG_PAUSE
        } else {
            SHORT_PAUSE
        };
        self.pause(jittered(pause, &self.engine).max(asked)).await;
    }

    /// After a "login expired": waits, announces, polls once with the same login. A stray refusal has been
    /// seen, and only a second one counts.
    async fn doubt_login(&mut self) -> Login {
        self.status(BotStatus::Degraded, Some("the network reports an expired login; verifying".to_owned()))
            .await;
        if !self.pause(VERIFY_DELAY).await {
            return Login::Stopped;
        }
        let login = self.try_login().await;
        if let Login::Unclear(Some(error)) = &login {
            self.bear(error).await;
        }
        login
    }

    /// Tries an expired login once an hour; `false` when asked to stop. A new login ends this task: it
    /// comes with a new lease.
    async fn wait_for_revival(&mut self, reason: String) -> bool {
        loop {
            self.status(BotStatus::Expired, Some(reason.clone())).await;
            if !self.pause(EXPIRED_LOGIN_INTERVAL).await || !self.holds_lease().await {
                return false;
            }
            match self.try_login().await {
                Login::Works => return true,
                Login::Stopped => return false,
                Login::Expired | Login::Unclear(_) => {}
            }
        }
    }

    async fn try_login(&mut self) -> Login {
        if self.bot.connection.start().await.is_err_and(|error| is_expired(&error)) {
            return Login::Expired;
        }
        let answer = loop {
            match self.poll().await {
                Polled::Answer(answer) => break answer,
                Polled::Poked => {}
                Polled::Stopped => return Login::Stopped,
            }
        };
        match answer {
            Ok(batch) if !batch.answered => Login::Unclear(None),
            Ok(batch) => {
                if self.bot.is_expired() {
                    self.status(BotStatus::Connecting, None).await;
                }
                match self.take_in(batch).await {
                    Ok(Intake::Lost) => return Login::Stopped,
                    Ok(Intake::Done) => {}
                    Err(error) => Engine::report("a batch could not be stored", &self.bot, &error),
                }
                Login::Works
            }
            Err(NetworkError::LoginExpired(_)) => Login::Expired,
            Err(error) => Login::Unclear(Some(error)),
        }
    }

    /// Tells the network that polling begins or goes on. Only an expired login matters; any other failure is
    /// repeated later and polling goes on meanwhile.
    async fn announce_when_due(&mut self) -> Result<(), NetworkError> {
        let now = self.engine.ctx.clock.instant();
        let silent = now.since(self.last_answer) >= REANNOUNCE_AFTER;
        if !self.bot.is_status_known() {
            // A request to reconnect: as at the start of polling.
            self.status(BotStatus::Connecting, None).await;
            self.announce_at = Some(now);
        }
        if !silent && self.announce_at.is_none_or(|at| now < at) {
            return Ok(());
        }
        match self.bot.connection.start().await {
            Ok(()) => {
                self.announce_at = silent.then(|| now + REANNOUNCE_AFTER);
                self.announce_pause = ANNOUNCE_PAUSE.0;
                if self.bot.status_is(BotStatus::Connecting, None) {
                    // The network took the login. The first poll of an idle bot says so only when its hold ends.
                    self.answered().await;
                }
                Ok(())
            }
            Err(error) if is_expired(&error) => Err(error),
            Err(error) => {
                tracing::debug!(bot_id = %self.bot.lease.bot_id, %error, "announcing the poller failed");
                self.announce_at = Some(now + self.announce_pause);
                self.announce_pause = (self.announce_pause * 2).min(ANNOUNCE_PAUSE.1);
                Ok(())
            }
        }
    }

    async fn degrade_when_silent(&self, reason: &str) {
        if self.engine.ctx.clock.instant().since(self.last_answer) >= DEGRADED_AFTER {
            self.status(BotStatus::Degraded, Some(reason.to_owned())).await;
        }
    }

    /// Sleeps, unless a poll is requested; `false` if stopped meanwhile.
    async fn pause(&self, pause: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.engine.ctx.clock.sleep(pause) => true,
            () = self.bot.poke.notified() => true,
            () = self.bot.tasks.stop_token().cancelled() => false,
        }
    }

    /// The status of a bot whose network answers.
    async fn answered(&self) {
        if self.bot.suspect.load(Ordering::Relaxed) {
            self.status(BotStatus::Degraded, Some(SUSPECT.to_owned())).await;
        } else {
            self.status(BotStatus::Online, None).await;
        }
    }

    async fn status(&self, status: BotStatus, reason: Option<String>) {
        self.engine.move_bot(&self.bot, status, reason).await;
    }

    async fn note_error(&mut self, error: &str) {
        self.failed = true;
        if let Err(error) = self.engine.ctx.store.note_poll(&self.bot.lease, error.to_owned()).await {
            Engine::report("a poll's failure could not be noted", &self.bot, &error);
        }
    }
}

fn is_expired(error: &NetworkError) -> bool {
    matches!(error, NetworkError::LoginExpired(_))
}

/// A pause moved by up to 20 % either way.
fn jittered(pause: Duration, engine: &Engine) -> Duration {
    let millis = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis * 4 / 5 + engine.ctx.random.below(millis * 2 / 5 + 1))
}
