//! `getupdates` (`docs/ilink.md#polling`): the long poll, its cursor and the delivery modes. Also `notifystart` and
//! `notifystop`.

use tokio::sync::watch;

use super::{
    Simulator,
    config::DeliveryMode,
    violation::ViolationKind,
    world::{Env, World},
};
use crate::{
    network::server::{Answer, Reply, stamp},
    time::Instant,
};

const BATCH: usize = 50;

/// One poll while it is held.
struct Poll {
    wx_id: String,
    /// Everything behind this position is wanted.
    position: u64,
    until: Instant,
    /// It has waited at least once.
    held: bool,
}

enum Step {
    Answer(Reply),
    Hold { until: Instant, bell: watch::Receiver<()> },
}

/// Counts a poll as held until it is answered or its connection goes away.
struct Held<'a> {
    simulator: &'a Simulator,
    wx_id: String,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(account) = self.simulator.world().accounts.get_mut(&self.wx_id) {
            account.inbox.held = account.inbox.held.saturating_sub(1);
        }
    }
}

impl Simulator {
    pub(super) async fn get_updates(&self, wx_id: String, cursor: &str) -> Answer {
        let mut poll = self.act(|world, env| world.begin_poll(env, wx_id, cursor))?;
        let _held = Held { simulator: self, wx_id: poll.wx_id.clone() };
        loop {
            let (until, mut bell) = match self.act(|world, env| world.step_poll(env, &mut poll)) {
                Step::Answer(reply) => return Ok(reply),
                Step::Hold { until, bell } => (until, bell),
            };
            tokio::select! {
                // An error means that the account is gone; the next step sees it.
                _ = bell.changed() => {}
                () = self.clock().sleep_until(until) => {}
            }
        }
    }
}

impl World {
    fn begin_poll(&mut self, env: &Env<'_>, wx_id: String, text: &str) -> Result<Poll, Reply> {
        let secret = self.secret;
        let Some(account) = self.accounts.get_mut(&wx_id) else { return Err(Reply::expired()) };
        let inbox = &mut account.inbox;
        let mode = env.config.delivery;
        let position = if text.is_empty() {
            match mode {
                DeliveryMode::Cursor | DeliveryMode::Consume => inbox.acknowledged(),
                DeliveryMode::ReplayOnEmpty => {
                    let replay = u64::try_from(env.config.replay).unwrap_or(u64::MAX);
                    inbox.acknowledged().min(inbox.head().saturating_sub(replay))
                }
            }
        } else {
            let known = stamp::cursor_position(&secret, account.generation, text);
            let Some(position) = known.filter(|position| *position <= inbox.head()) else {
                let kind = ViolationKind::ChangedCursor;
                self.violations.record(env, Some(&wx_id), kind, "cursor was not handed out to this bot");
                return Err(Reply::refuse(-2, "invalid get_updates_buf"));
            };
            match mode {
                DeliveryMode::Consume => position.max(inbox.acknowledged()),
                DeliveryMode::Cursor | DeliveryMode::ReplayOnEmpty => {
                    inbox.acknowledge(position, env.config.caps.retained);
                    position
                }
            }
        };
        if inbox.held > 0 {
            let kind = ViolationKind::SecondPoller;
            self.violations.record(env, Some(&wx_id), kind, "a poll of this bot is held already");
        }
        inbox.held += 1;
        Ok(Poll { wx_id, position, until: env.instant + env.config.hold, held: false })
    }

    fn step_poll(&mut self, env: &Env<'_>, poll: &mut Poll) -> Step {
        let Some(account) = self.accounts.get_mut(&poll.wx_id).filter(|account| !account.is_expired(env.now))
        else {
            return Step::Answer(Reply::expired());
        };
        let next_due = account.inbox.release_due(env.now);
        if poll.held {
            // What was handed out while this poll was held went to another poller, and goes to one only.
            poll.position = poll.position.max(account.inbox.handed);
        }
        let silent = env.config.silent_until_notifystart && !account.started;
        let limit = if silent { 0 } else { BATCH };
        let (messages, last) = account.inbox.behind(poll.position, limit);
        if messages.is_empty() && env.instant < poll.until {
            poll.held = true;
            let changes = [next_due, account.expires_at].into_iter().flatten().map(|at| env.instant_of(at));
            let until = changes.fold(poll.until, Instant::min);
            return Step::Hold { until, bell: account.bell.listen() };
        }
        // Written by hand: the messages are JSON already, and a load test moves many of them.
        let body = format!(
            r#"{{"ret":0,"msgs":[{}],"get_updates_buf":"{}","sync_buf":"","longpolling_timeout_ms":{}}}"#,
            messages.join(","),
            stamp::cursor(&self.secret, account.generation, last),
            env.config.hold.as_millis(),
        );
        account.inbox.handed = account.inbox.handed.max(last);
        if env.config.delivery == DeliveryMode::Consume {
            account.inbox.acknowledge(last, 0);
        }
        Step::Answer(Reply::raw_json(body))
    }

    pub(super) fn notify(&mut self, wx_id: &str, started: bool) -> Reply {
        if let Some(account) = self.accounts.get_mut(wx_id) {
            account.started = started;
            account.bell.ring();
        }
        Reply::done()
    }
}

#[cfg(test)]
mod tests;
