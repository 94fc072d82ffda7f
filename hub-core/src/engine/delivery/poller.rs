//! Receives for one bot: polls its network, passes batches to the inbox, and handles every failure
//! (`docs/ilink.md#polling`).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tracing::Instrument;

use super::{
    bot::BotWork,
    inbox::{Inbox, Intake},
    work_store::WorkContext,
};
use crate::{
    bots::BotStatus,
    error::Result,
    model::cause::Cause,
    network::{Batch, NetworkError},
    random::Random,
    spans,
    time::{Clock, Instant},
};

/// Pauses after errors: two short ones, then a long one with a new connection, then from the start.
const SHORT_PAUSE: Duration = Duration::from_secs(2);
const LONG_PAUSE: Duration = Duration::from_secs(30);
/// Without an answered poll for this long the bot counts as degraded.
const DEGRADED_AFTER: Duration = Duration::from_secs(3 * 60);
/// Without an answered poll for this long polling is announced to the network again.
const REANNOUNCE_AFTER: Duration = Duration::from_secs(10 * 60);
/// Pause before a first "login expired" is verified.
const VERIFY_DELAY: Duration = Duration::from_secs(5);
/// Interval of attempts with an expired login: some became valid again.
const EXPIRED_LOGIN_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Least time between two writes to an idle bot's row.
const NOTE_INTERVAL: Duration = Duration::from_secs(10);
/// Immediate empty answers in a row before the next poll waits: the network's hold does not work.
const MAX_RUSHED_POLLS: u32 = 5;
/// An answer this fast was not held.
const MIN_HOLD: Duration = Duration::from_millis(100);
/// Longest wait of a poll for a crowded webhook, which is fast. The bot's other channels wait with it.
const CROWDED_WAIT: Duration = Duration::from_secs(1);
/// Interval of the checks during that wait.
const CROWDED_INTERVAL: Duration = Duration::from_millis(5);
/// Failed announcements are repeated with growing pauses.
const ANNOUNCE_PAUSE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));

/// Result of one poll.
enum Polled {
    Answer(Result<Batch, NetworkError>),
    /// An immediate poll is requested.
    PollNow,
    Stopped,
}

/// Next step after one poll.
enum Next {
    Poll,
    /// The network says that the login expired.
    VerifyLogin(String),
    End,
}

/// Result of another attempt with the same login.
enum Login {
    Works,
    Expired,
    /// The network did not say.
    Unclear(Option<NetworkError>),
    Stopped,
}

struct Poller {
    bot: Arc<BotWork>,
    inbox: Arc<Inbox>,
    clock: Clock,
    random: Random,
    /// Time that a running poll has to end when the node stops.
    grace: Duration,
    cursor: String,
    errors: u32,
    /// Polls in a row that returned empty at once.
    rushed: u32,
    /// Of these, polls in a row without a cursor: the network's answer to a login that it does not know any more.
    hollow: u32,
    last_answer: Instant,
    last_note: Option<Instant>,
    /// The failure that the bot's row shows; no answer has followed it.
    failure: Option<String>,
    /// Due time of the next announcement, and the pause after its next failure.
    announce_at: Option<Instant>,
    announce_pause: Duration,
}

/// Starts polling for a bot.
pub(super) fn start(
    ctx: &WorkContext,
    inbox: &Arc<Inbox>,
    bot: &Arc<BotWork>,
    cursor: String,
    status: BotStatus,
) {
    let now = ctx.clock.instant();
    let mut poller = Poller {
        bot: Arc::clone(bot),
        inbox: Arc::clone(inbox),
        clock: ctx.clock.clone(),
        random: ctx.random.clone(),
        grace: ctx.config.poll_grace,
        cursor,
        errors: 0,
        rushed: 0,
        hollow: 0,
        last_answer: now,
        last_note: None,
        failure: None,
        announce_at: Some(now),
        announce_pause: ANNOUNCE_PAUSE.0,
    };
    let expired = (status == BotStatus::Expired).then(|| Cause::NewLogin.to_string());
    bot.run("poller", async move { poller.run(expired).await });
}

impl Poller {
    async fn run(&mut self, mut expired: Option<String>) {
        loop {
            match expired.take() {
                // Taken over from a node that died: not offline, as far as is known, until the network fails.
                None if self.bot.status_is(BotStatus::Online, None) => {}
                None => self.bot.set_status(BotStatus::Connecting, None).await,
                Some(reason) => {
                    if !Box::pin(self.wait_for_login(
                        Cause::BindAgain { cause: Box::new(Cause::read(&reason)) }.to_string(),
                    ))
                    .await
                    {
                        return;
                    }
                }
            }
            expired = self.poll_until_it_ends().await;
            if expired.is_none() {
                break;
            }
        }
        // If another node polls for the bot by now, the end of polling must not be announced.
        if self.bot.is_node_stopping() || !self.bot.is_taken_over().await {
            self.bot.connection.stop().await;
        }
        self.bot.set_status(BotStatus::Offline, None).await;
    }

    /// Polls until stopped, or until the login has expired. Returns the reason of the expiry.
    async fn poll_until_it_ends(&mut self) -> Option<String> {
        while self.bot.wait_for_lease().await {
            let next = match self.announce_when_due().await {
                Err(NetworkError::LoginExpired(reason)) => Next::VerifyLogin(reason),
                _ => self.poll_once().await,
            };
            match next {
                Next::Poll => {}
                Next::End => break,
                Next::VerifyLogin(reason) => match Box::pin(self.verify_login()).await {
                    Login::Works | Login::Unclear(_) => {}
                    Login::Expired => return Some(reason),
                    Login::Stopped => break,
                },
            }
        }
        None
    }

    async fn poll_once(&mut self) -> Next {
        failpoint!("poll.before", passed);
        let polled_at = self.clock.instant();
        let answer = match self.poll().await {
            Polled::Answer(answer) => answer,
            Polled::PollNow => return Next::Poll,
            Polled::Stopped => return Next::End,
        };
        failpoint!("poll.answered", passed);
        self.slow_down(polled_at, &answer).await;
        match answer {
            Ok(batch) => match Box::pin(self.store(batch)).await {
                Ok(Intake::Done) => self.wait_for_room().await,
                Ok(Intake::Lost) => return Next::End,
                Err(error) => {
                    self.bot.report("a batch could not be stored", &error);
                    self.pause(SHORT_PAUSE).await;
                }
            },
            Err(NetworkError::LoginExpired(reason)) => return Next::VerifyLogin(reason),
            Err(error) => self.back_off(&error).await,
        }
        Next::Poll
    }

    /// Waits, within limits, while a webhook is crowded. More messages would only wait in the store in place of the network,
    /// where they cost memory, a query, and a row that says they are open. A request to reconnect is noticed after it.
    async fn wait_for_room(&self) {
        let until = self.clock.instant() + CROWDED_WAIT;
        while self.inbox.is_crowded(&self.bot) && self.clock.instant() < until {
            if !self.pause(CROWDED_INTERVAL).await {
                return;
            }
        }
    }

    /// Polls once. When the hub stops, the poll has the grace time to end by itself before it is cancelled. If only
    /// the bot is released, it is cancelled at once, since another node may be polling already.
    async fn poll(&self) -> Polled {
        let poll = self.bot.connection.receive(&self.cursor);
        tokio::pin!(poll);
        tokio::select! {
            biased;
            answer = &mut poll => Polled::Answer(answer),
            () = self.bot.poll_now.notified() => Polled::PollNow,
            () = self.bot.tasks.stop_token().cancelled() => {
                if !self.bot.is_node_stopping() {
                    return Polled::Stopped;
                }
                // Messages that arrive in the last moment are stored like all others.
                Box::pin(self.clock.timeout(self.grace, poll)).await.map_or(Polled::Stopped, Polled::Answer)
            }
        }
    }

    async fn store(&mut self, batch: Batch) -> Result<Intake> {
        let now = self.clock.instant();
        let moved = batch.cursor.as_ref().is_some_and(|cursor| *cursor != self.cursor);
        let answered = batch.answered;
        if answered {
            self.errors = 0;
            self.last_answer = now;
        }
        let note = answered && self.last_note.is_none_or(|last| now.since(last) >= NOTE_INTERVAL);
        if !batch.messages.is_empty() || moved || (answered && self.failure.is_some()) {
            let cursor = batch.cursor.clone();
            let span = spans::poll_batch(self.bot.lease.bot_id, batch.messages.len());
            let intake = self.inbox.accept(&self.bot, batch).instrument(span).await?;
            if intake == Intake::Lost {
                return Ok(intake);
            }
            self.last_note = Some(now);
            self.failure = None;
            if let Some(cursor) = cursor {
                self.cursor = cursor;
            }
        } else if note {
            self.last_note = Some(now);
            self.inbox.note_answer(&self.bot);
        }
        if answered {
            self.answered().await;
        } else {
            self.degrade_when_silent(&Cause::NoPollResponse.to_string()).await;
        }
        Ok(Intake::Done)
    }

    /// Keeps a network that answers empty at once from being polled in a tight loop.
    async fn slow_down(&mut self, polled_at: Instant, answer: &Result<Batch, NetworkError>) {
        let empty = answer.as_ref().is_ok_and(|batch| batch.messages.is_empty());
        if !empty || self.clock.instant().since(polled_at) >= MIN_HOLD {
            (self.rushed, self.hollow) = (0, 0);
            return;
        }
        self.rushed += 1;
        self.hollow =
            if answer.as_ref().is_ok_and(|batch| batch.cursor.is_none()) { self.hollow + 1 } else { 0 };
        if self.hollow == MAX_RUSHED_POLLS {
            // The answer to an announcement may say that the login has expired.
            self.announce_at = Some(self.clock.instant());
        }
        if self.rushed >= MAX_RUSHED_POLLS {
            self.pause(SHORT_PAUSE).await;
        }
    }

    /// Pauses after an error, as the network's own client does.
    async fn back_off(&mut self, error: &NetworkError) {
        self.errors += 1;
        tracing::debug!(bot_id = %self.bot.lease.bot_id, %error, in_a_row = self.errors, "a poll failed");
        let failure = error.to_string();
        // The bots of a network that is away fail again and again, and all of them in the same way.
        if self.failure.as_ref() != Some(&failure) && self.bot.note_poll_failure(&failure).await {
            self.failure = Some(failure.clone());
        }
        self.degrade_when_silent(&failure).await;
        let requested_pause = match error {
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
        self.pause(jittered(pause, &self.random).max(requested_pause)).await;
    }

    /// Waits, announces and polls once with the same login after a "login expired". Single refusals occur, and only
    /// a second one counts.
    async fn verify_login(&mut self) -> Login {
        self.bot.set_status(BotStatus::Degraded, Some(&Cause::VerifyingLogin.to_string())).await;
        if !self.pause(VERIFY_DELAY).await {
            return Login::Stopped;
        }
        let login = self.try_login().await;
        if let Login::Unclear(Some(error)) = &login {
            self.back_off(error).await;
        }
        login
    }

    /// Tries an expired login once an hour; `false` when stopped. A new login ends this task, because it comes with
    /// a new lease.
    async fn wait_for_login(&mut self, reason: String) -> bool {
        loop {
            self.bot.set_status(BotStatus::Expired, Some(&reason)).await;
            if !self.pause(EXPIRED_LOGIN_INTERVAL).await || !self.bot.wait_for_lease().await {
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
                Polled::PollNow => {}
                Polled::Stopped => return Login::Stopped,
            }
        };
        match answer {
            Ok(batch) if !batch.answered => Login::Unclear(None),
            Ok(batch) => {
                if self.bot.is_expired() {
                    self.bot.set_status(BotStatus::Connecting, None).await;
                }
                match self.store(batch).await {
                    Ok(Intake::Lost) => return Login::Stopped,
                    Ok(Intake::Done) => {}
                    Err(error) => self.bot.report("a batch could not be stored", &error),
                }
                Login::Works
            }
            Err(NetworkError::LoginExpired(_)) => Login::Expired,
            Err(error) => Login::Unclear(Some(error)),
        }
    }

    /// Notifies the network that polling begins or continues. Only an expired login matters; any other failure is
    /// repeated later and polling goes on meanwhile.
    async fn announce_when_due(&mut self) -> Result<(), NetworkError> {
        let now = self.clock.instant();
        let silent = now.since(self.last_answer) >= REANNOUNCE_AFTER;
        if !self.bot.is_status_known() {
            // A request to reconnect: as at the start of polling.
            self.bot.set_status(BotStatus::Connecting, None).await;
            self.failure = None;
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
        if self.clock.instant().since(self.last_answer) >= DEGRADED_AFTER {
            self.bot.set_status(BotStatus::Degraded, Some(reason)).await;
        }
    }

    /// Sleeps, unless a poll is requested; `false` if stopped meanwhile.
    async fn pause(&self, pause: Duration) -> bool {
        tokio::select! {
            biased;
            // In a box, since most of the time the poller waits for something else.
            () = Box::pin(self.clock.sleep(pause)) => true,
            () = self.bot.poll_now.notified() => true,
            () = self.bot.tasks.stop_token().cancelled() => false,
        }
    }

    /// Sets the status of a bot whose network answers.
    async fn answered(&self) {
        if self.hollow >= MAX_RUSHED_POLLS {
            self.bot.set_status(BotStatus::Degraded, Some(&Cause::EmptyPolls.to_string())).await;
        } else if self.bot.suspect.load(Ordering::Relaxed) {
            self.bot.set_status(BotStatus::Degraded, Some(&Cause::NoMessageIds.to_string())).await;
        } else {
            self.bot.set_status(BotStatus::Online, None).await;
        }
    }
}

fn is_expired(error: &NetworkError) -> bool {
    matches!(error, NetworkError::LoginExpired(_))
}

/// A pause moved by up to 20 % either way.
fn jittered(pause: Duration, random: &Random) -> Duration {
    let millis = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis * 4 / 5 + random.below(millis * 2 / 5 + 1))
}
