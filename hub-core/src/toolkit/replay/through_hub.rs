//! Replays through the hub that made the recording, with its channel, plugins and webhook as they are now.

use std::time::Duration;

use async_trait::async_trait;

use super::{Carried, Carrier, NotSent, Outcome, Recording};
use crate::{
    Hub,
    access::Actor,
    error::{ErrorCode, Result},
    id::{BotId, TraceId},
    model::trace::{Trace, TraceStatus},
    time::{Clock, Instant},
    traces::{ReplayOptions, ReplayTo},
};

/// First pause between two polls of a trace; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
/// Longest pause between two polls, and before another request to a busy hub.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A hub that accepts replays: in this process, or behind an API.
#[async_trait]
pub trait ReplayingHub: Send + Sync {
    /// Accepts a replay; see [`Traces::replay`](crate::traces::Traces::replay).
    ///
    /// # Errors
    /// The reason why it was not accepted.
    async fn replay(&self, trace: &Trace, to: Option<&str>, supersede: bool) -> Result<TraceId>;

    /// Returns a trace with its steps.
    ///
    /// # Errors
    /// `NOT_FOUND`, or that there is no response.
    async fn trace(&self, bot_id: BotId, id: TraceId) -> Result<Trace>;
}

#[async_trait]
impl<H: ReplayingHub + ?Sized> ReplayingHub for &H {
    async fn replay(&self, trace: &Trace, to: Option<&str>, supersede: bool) -> Result<TraceId> {
        (**self).replay(trace, to, supersede).await
    }

    async fn trace(&self, bot_id: BotId, id: TraceId) -> Result<Trace> {
        (**self).trace(bot_id, id).await
    }
}

/// A hub in this process, called by an actor.
#[derive(Debug)]
pub struct AsActor {
    /// The hub.
    pub hub: Hub,
    /// The caller.
    pub actor: Actor,
}

#[async_trait]
impl ReplayingHub for AsActor {
    async fn replay(&self, trace: &Trace, to: Option<&str>, supersede: bool) -> Result<TraceId> {
        let options = ReplayOptions { to: to.map_or(ReplayTo::Webhook, ReplayTo::Url), supersede };
        self.hub.traces().replay(&self.actor, trace.bot_id, trace.trace_id, options, None).await
    }

    async fn trace(&self, bot_id: BotId, id: TraceId) -> Result<Trace> {
        self.hub.traces().get(&self.actor, bot_id, id).await
    }
}

/// Requests each replay from a hub and waits for the outcome of its first attempt.
#[derive(Debug)]
pub struct ThroughHub<H> {
    /// The hub.
    pub hub: H,
    /// Another URL than the channel's. Its credentials are not sent there.
    pub to: Option<String>,
    /// Whether replays supersede waiting deliveries.
    pub supersede: bool,
    /// Longest wait for one replay. The hub continues with it afterwards.
    pub timeout: Duration,
    /// Clock for the timeout.
    pub clock: Clock,
}

impl<H: ReplayingHub> ThroughHub<H> {
    /// Requests a replay and returns its trace id. Retries while the hub is busy; does not retry when it is unknown
    /// whether the hub accepted.
    async fn accepted(&self, trace: &Trace, until: Instant) -> Result<TraceId> {
        loop {
            match self.hub.replay(trace, self.to.as_deref(), self.supersede).await {
                Err(error) if error.code() == ErrorCode::RateLimited && self.clock.instant() < until => {
                    self.clock.sleep(error.retry_after().unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL)).await;
                }
                done => return done,
            }
        }
    }

    async fn settled(&self, bot_id: BotId, id: TraceId, until: Instant) -> Carried {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.hub.trace(bot_id, id).await {
                Ok(trace) => {
                    if let Some(carried) = outcome(trace) {
                        return carried;
                    }
                }
                Err(error) if error.is_retryable() => pause = POLL_INTERVAL,
                Err(error) => return Carried { new_trace_id: Some(id), ..Carried::failed(error.message()) },
            }
            if self.clock.instant() >= until {
                let late = format!(
                    "no attempt within {} s; the hub continues once it is running",
                    self.timeout.as_secs()
                );
                return Carried { new_trace_id: Some(id), ..Carried::failed(late) };
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(POLL_INTERVAL);
        }
    }
}

/// Returns the outcome in the trace of a replay; `None` before its first attempt.
fn outcome(trace: Trace) -> Option<Carried> {
    let (outcome, reason) = match trace.status {
        TraceStatus::Pending if trace.attempts == 0 => return None,
        TraceStatus::Pending => (Outcome::Fail, format!("{}; the hub tries again", trace.summary)),
        TraceStatus::Ok => (Outcome::Ok, trace.summary.clone()),
        TraceStatus::Error => (Outcome::Fail, trace.summary.clone()),
        TraceStatus::Skipped => (Outcome::Skipped, trace.summary.clone()),
    };
    let new_trace_id = Some(trace.trace_id);
    let answer = Recording { trace, message: None }.response();
    Some(Carried {
        outcome,
        status: answer.as_ref().map(|answer| answer.status),
        body: answer.map(|answer| answer.body).unwrap_or_default(),
        reason,
        new_trace_id,
        replies: Vec::new(),
    })
}

#[async_trait]
impl<H: ReplayingHub> Carrier for ThroughHub<H> {
    async fn target(&self, recording: &Recording) -> std::result::Result<String, NotSent> {
        let channel = recording.trace.channel_id;
        let channel = channel.ok_or_else(|| NotSent::Nothing("no channel was involved".to_owned()))?;
        if recording.trace.is_of_a_send() {
            return Err(NotSent::Nothing("it is the trace of a send, not of a received message".to_owned()));
        }
        Ok(self.to.clone().unwrap_or_else(|| format!("the webhook of channel {channel}")))
    }

    async fn carry(&self, recording: &Recording) -> Carried {
        if let Err(why) = self.target(recording).await {
            return why.into();
        }
        let until = self.clock.instant() + self.timeout;
        match self.accepted(&recording.trace, until).await {
            Ok(id) => self.settled(recording.trace.bot_id, id, until).await,
            Err(error) => Carried::failed(error.message()),
        }
    }
}
