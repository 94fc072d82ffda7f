//! Replaying the message of a trace.

use serde_json::Value;
use url::Position;

use super::Traces;
use crate::{
    access::Actor,
    egress::CheckedUrl,
    error::{Error, Result},
    id::{BotId, ChannelId, MessageId, TraceId},
    model::{
        sinks::SinkId,
        trace::{Step, StepName, Trace, TraceStatus, steps_text},
    },
    store::{
        deliveries::Replay,
        traces::{NewTrace, TraceUpdate},
    },
    time::Timestamp,
    wake::Hint,
};

/// The outcome of a delivery that its owner cancelled.
const CANCELLED: &str = "cancelled";

fn not_parked() -> Error {
    Error::conflict("no delivery of this trace is parked")
        .with_hint("a delivery is parked when it has left its lane after a failed attempt")
}

impl Traces<'_> {
    /// Delivers the message of a trace again through the same channel, as it is configured now, optionally to
    /// another URL. The new delivery has a trace of its own and overtakes or delays nothing.
    ///
    /// # Errors
    /// `NOT_FOUND` for a trace the actor may not see, `CONFLICT` when it tells of a send, no channel was involved or
    /// its webhook has no URL, `INVALID_PARAMS` when `to` is not an acceptable URL.
    pub async fn replay(
        &self,
        actor: &Actor,
        bot_id: BotId,
        id: TraceId,
        to: Option<&str>,
    ) -> Result<TraceId> {
        let (trace, channel_id) = self.replayable(actor, bot_id, id).await?;
        let target = to.map(|to| self.ctx.egress.check_url(to)).transpose()?;
        let shown = target.as_ref().map(shown);
        let channel =
            self.ctx.store.read().await?.channels().find(actor.scope()?, bot_id, channel_id).await?;
        let channel = channel.ok_or_else(|| Error::not_found("channel"))?;
        if to.is_none() && !channel.webhook()?.enabled {
            return Err(Error::conflict("the channel's webhook is off; switch it on or name a URL"));
        }
        let detail = serde_json::json!({ "replay_of": id, "to": shown });
        self.store_replay(trace, channel_id, SinkId::Webhook, to, detail).await
    }

    /// Lets the channel's model answer the message of a trace again, as the channel is configured now: the sender
    /// gets another answer.
    ///
    /// # Errors
    /// `NOT_FOUND` for a trace the actor may not see, `CONFLICT` when no channel was involved or its AI sink is
    /// off.
    pub async fn replay_to_model(&self, actor: &Actor, bot_id: BotId, id: TraceId) -> Result<TraceId> {
        let (trace, channel_id) = self.replayable(actor, bot_id, id).await?;
        let channel =
            self.ctx.store.read().await?.channels().find(actor.scope()?, bot_id, channel_id).await?;
        let channel = channel.ok_or_else(|| Error::not_found("channel"))?;
        if !channel.ai()?.enabled {
            return Err(Error::conflict("the channel's AI sink is off; switch it on"));
        }
        let detail = serde_json::json!({ "replay_of": id, "to": "the model" });
        self.store_replay(trace, channel_id, SinkId::Ai, None, detail).await
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
        let update = move |ended| {
            let detail = serde_json::json!({ "error": CANCELLED });
            let step = Step::new(StepName::Response, "cancel", TraceStatus::Error, now, now, detail);
            TraceUpdate {
                id,
                status: Some(TraceStatus::Error),
                ended,
                summary: Some(CANCELLED.to_owned()),
                attempts: None,
                ended_at: now,
                steps: steps_text(&[step]),
            }
        };
        let write = self.ctx.store.write(move |tx| {
            Box::pin(
                async move { tx.deliveries().cancel_parked((message, id), CANCELLED, now, update).await },
            )
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

    async fn store_replay(
        &self,
        trace: Trace,
        channel_id: ChannelId,
        sink: SinkId,
        to: Option<&str>,
        detail: Value,
    ) -> Result<TraceId> {
        let (now, bot_id, trace_id) = (self.ctx.store.now(), trace.bot_id, self.ctx.ids.next());
        let source = (trace.trace_id, trace.message_id, bot_id, channel_id);
        let new_trace = new_trace(trace_id, source, now, detail);
        let replay = Replay {
            id: self.ctx.ids.next(),
            message_id: trace.message_id,
            bot_id,
            channel_id,
            sink,
            target_url: to.map(str::to_owned),
            now,
            trace: new_trace,
        };
        self.ctx
            .store
            .write(move |tx| Box::pin(async move { tx.deliveries().insert_replay(&replay).await }))
            .await?;
        self.ctx.node.wake.hint(Hint::Delivery(bot_id));
        Ok(trace_id)
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
    detail: Value,
) -> NewTrace {
    let received = Step::new(StepName::Received, "replay", TraceStatus::Ok, now, now, detail);
    NewTrace {
        id,
        message_id,
        bot_id,
        channel_id: Some(channel_id),
        replay_of: Some(source),
        status: TraceStatus::Pending,
        open_sinks: 1,
        summary: "replay".to_owned(),
        started_at: now,
        duration_ms: 0,
        steps: format!("[{}]", steps_text(&[received])),
    }
}
