//! Replaying the message of a trace.

use serde::Serialize;
use serde_json::json;
use url::Position;

use super::{Traces, open_deliveries};
use crate::{
    access::Actor,
    audit::origin,
    egress::CheckedUrl,
    error::{Error, Result},
    id::{BotId, ChannelId, MessageId, TraceId},
    idempotency::{self, Idempotent},
    model::{
        audit::Action,
        cause::Cause,
        sinks::SinkId,
        trace::{
            DeliveryState, PackedSteps, Step, StepDetail, StepError, StepKind, StepName, Trace, TraceStatus,
        },
    },
    store::{
        deliveries::Replay,
        traces::{NewTrace, TraceUpdate},
    },
    time::Timestamp,
    wake::Hint,
};

/// Receiver of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum ReplayTo<'a> {
    /// The channel's webhook.
    #[default]
    Webhook,
    /// Another URL, to which the channel's credentials are not sent.
    Url(&'a str),
    /// The channel's model: the sender gets another answer.
    Model,
}

/// Options of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ReplayOptions<'a> {
    /// The channel's webhook, or another URL.
    pub to: ReplayTo<'a>,
    /// Whether it takes the place of a delivery that waits, which is cancelled in the same commit.
    pub supersede: bool,
}

impl<'a> From<ReplayTo<'a>> for ReplayOptions<'a> {
    fn from(to: ReplayTo<'a>) -> Self {
        Self { to, supersede: false }
    }
}

fn not_parked() -> Error {
    Error::conflict("no delivery of this trace is parked")
        .with_hint("a delivery is parked when it has left its lane after a failed attempt")
}

impl Traces<'_> {
    /// Delivers the message of a trace again through the same channel, as it is configured now. The new delivery has
    /// its own trace and overtakes or delays nothing. A replay to another URL is delivered in addition to one that goes to
    /// the channel's webhook. `idempotency_key` is the caller's `Idempotency-Key`: the same key with the same request
    /// gives the first trace again.
    ///
    /// # Errors
    /// `NOT_FOUND` for a trace the actor may not see, `CONFLICT` when it tells of a send, no channel was involved or
    /// the channel's sink is off, when a delivery of the message to the same receiver is in flight, or waits and is not
    /// superseded, or the idempotency key was used for something else; `INVALID_PARAMS` when the URL is not acceptable.
    pub async fn replay(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: TraceId,
        how: impl Into<ReplayOptions<'_>>,
        idempotency_key: Option<&str>,
    ) -> Result<TraceId> {
        let how = how.into();
        let ReplayOptions { to, supersede } = how;
        let (trace, channel_id) = self.replayable(actor, bot_id, id).await?;
        let once = Idempotent::read(self.ctx, actor, "trace.replay", &(bot_id, id, how), idempotency_key)?;
        let mut read = self.ctx.store.read().await?;
        if let Some(key) = &once
            && let Some(first) = key.first_answer(&mut read).await?
        {
            return Ok(first);
        }
        let channel = read.channels().find(actor.scope()?, bot_id, channel_id).await?;
        drop(read);
        let channel = channel.ok_or_else(|| Error::not_found("channel"))?;
        let (sink, url, shown) = match to {
            ReplayTo::Webhook if !channel.webhook()?.enabled => {
                return Err(Error::conflict("the channel's webhook is off; switch it on or name a URL"));
            }
            ReplayTo::Model if !channel.ai()?.enabled => {
                return Err(Error::conflict("the channel's AI sink is off; switch it on"));
            }
            ReplayTo::Webhook => (SinkId::Webhook, None, None),
            ReplayTo::Url(url) => (SinkId::Webhook, Some(url), Some(shown(&self.ctx.egress.check_url(url)?))),
            ReplayTo::Model => (SinkId::Ai, None, Some("the model".to_owned())),
        };
        let (now, trace_id) = (self.ctx.store.now(), self.ctx.ids.next());
        let entry = url.map(|url| {
            let detail = json!({ "bot": bot_id, "replay_of": id, "origin": origin(url) });
            self.ctx.audit(actor, Action::ReplayedToUrl).target(trace_id, "").detail(detail)
        });
        let replay = Replay {
            id: self.ctx.ids.next(),
            message_id: trace.message_id,
            bot_id,
            channel_id,
            sink,
            target_url: url.map(str::to_owned),
            now,
            trace: new_trace(trace_id, (id, trace.message_id, bot_id, channel_id), now, shown),
        };
        let write = idempotency::write_once(&self.ctx.store, once, move |tx| {
            Box::pin(async move {
                let admitted = open_deliveries::make_way(tx, vec![replay], supersede, now).await?;
                if let Some((_, reason)) = admitted.refused.into_iter().next() {
                    return Err(Error::conflict(reason));
                }
                for replay in &admitted.replays {
                    tx.deliveries().insert_replay(replay).await?;
                }
                if let Some(entry) = entry {
                    tx.audit().add(&entry).await?;
                }
                Ok(trace_id)
            })
        });
        let trace_id = write.await?;
        self.ctx.node.wake.hint(Hint::Delivery(bot_id));
        Ok(trace_id)
    }

    /// Makes a parked delivery due now.
    ///
    /// # Errors
    /// `NOT_FOUND` for a trace the actor may not see, `CONFLICT` when no delivery of it is parked.
    pub async fn attempt_now(&self, actor: &Actor, bot_id: BotId, id: TraceId) -> Result<()> {
        let message = self.get(actor, bot_id, id).await?.message_id;
        let now = self.ctx.store.now();
        let write = self
            .ctx
            .store
            .write(move |tx| Box::pin(async move { tx.deliveries().attempt_parked(message, id, now).await }));
        if write.await? == 0 {
            return Err(not_parked());
        }
        self.ctx.node.wake.hint(Hint::Delivery(bot_id));
        Ok(())
    }

    /// Abandons a parked delivery: it can be replayed.
    ///
    /// # Errors
    /// As [`attempt_now`](Self::attempt_now).
    pub async fn cancel(&self, actor: &Actor, bot_id: BotId, id: TraceId) -> Result<()> {
        let message = self.get(actor, bot_id, id).await?.message_id;
        let now = self.ctx.store.now();
        let write = self.ctx.store.write(move |tx| {
            Box::pin(async move {
                let mut deliveries = tx.deliveries();
                let open = deliveries.open_of(&[message]).await?;
                let of_trace = open.iter().filter(|open| open.trace_id == id);
                let parked: Vec<_> =
                    of_trace.filter(|open| open.state == DeliveryState::Parked).map(|open| open.id).collect();
                let update = |trace| cancelled(trace, &Cause::Cancelled, now);
                Ok(deliveries
                    .abandon_waiting(&parked, &Cause::Cancelled.to_string(), now, update)
                    .await?
                    .len())
            })
        });
        if write.await? == 0 { Err(not_parked()) } else { Ok(()) }
    }

    async fn replayable(&self, actor: &Actor, bot_id: BotId, id: TraceId) -> Result<(Trace, ChannelId)> {
        let trace = self.get(actor, bot_id, id).await?;
        let nowhere =
            || Error::conflict("this trace belongs to no channel, so there is nowhere to deliver it to");
        let channel_id = trace.channel_id.ok_or_else(nowhere)?;
        if trace.is_of_a_send() {
            return Err(Error::conflict(
                "this is the trace of a send; only received messages can be replayed",
            ));
        }
        Ok((trace, channel_id))
    }
}

/// The end of a delivery of a trace that is abandoned for this reason.
pub(super) fn cancelled(id: TraceId, cause: &Cause, now: Timestamp) -> TraceUpdate {
    let detail = StepDetail { error: Some(StepError::new(cause.to_string())), ..StepDetail::default() };
    let step = Step::new(StepName::Response, StepKind::Cancel, TraceStatus::Error, now, now, detail);
    TraceUpdate {
        id,
        status: Some(TraceStatus::Error),
        ended: 1,
        summary: Some(cause.to_string()),
        attempts: None,
        ended_at: now,
        steps: PackedSteps::new(id, &[step]),
    }
}

/// An address for a trace. What follows the path may be a credential.
pub(super) fn shown(target: &CheckedUrl) -> String {
    target.as_url()[..Position::AfterPath].to_owned()
}

/// The trace of a replay of a trace, given with its message, bot and channel.
pub(super) fn new_trace(
    id: TraceId,
    (source, message_id, bot_id, channel_id): (TraceId, MessageId, BotId, ChannelId),
    now: Timestamp,
    to: Option<String>,
) -> NewTrace {
    let detail = StepDetail { replay_of: Some(source), to, ..StepDetail::default() };
    let received = Step::new(StepName::Received, StepKind::Replay, TraceStatus::Ok, now, now, detail);
    NewTrace {
        id,
        message_id,
        bot_id,
        channel_id: Some(channel_id),
        replay_of: Some(source),
        status: TraceStatus::Pending,
        open_sinks: 1,
        summary: Cause::Replay.to_string(),
        started_at: now,
        duration_ms: 0,
        steps: PackedSteps::new(id, &[received]),
    }
}
