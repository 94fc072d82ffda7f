//! What happened to a message: its steps, each with its time, without secrets.

mod bodies;
mod bulk;
mod expand;
mod explain;
mod open_deliveries;
#[cfg(test)]
mod open_deliveries_tests;
mod replay;
mod search;
mod wait;

pub use bulk::{BulkOptions, MAX_REPLAYED, ReplaySelection};
pub use expand::{EXPANDED_BYTES, Expand, ExpandedTrace};
pub use explain::{
    Check, CheckName, Explanation, Finding, OfBot, OfChannel, OfHub, OfPlugin, OfSink, OfTrace, Remedy,
    ReplyDelay, Verdict, WebhookField, WebhookSetting,
};
pub use replay::{ReplayOptions, ReplayTo};
pub use search::MAX_STEPS_SCANNED;

pub use crate::model::{
    cause::{Cause, FilterPart, FilterParts, Sentence},
    replay::{BulkReplay, RefusedReplay},
    sinks::{SinkId, SinkKind},
    trace::{
        DeliveryState, PackedSteps, Step, StepChanges, StepDetail, StepError, StepFetch, StepKind, StepLog,
        StepName, StepPhases, Trace, TraceQuery, TraceSearch, TraceStatus,
    },
};
use crate::{
    access::Actor,
    context::Context,
    error::{Error, Result},
    id::{BotId, TraceId},
    page::{Page, PageRequest},
    store::{
        outbox::NewOutbound,
        traces::{NewTrace, TraceUpdate},
    },
};

/// The trace of a send that was just accepted.
pub(crate) fn of_send(outbound: &NewOutbound, id: TraceId, kind: StepKind) -> NewTrace {
    let detail = sent(outbound);
    let accepted = Step::new(StepName::Received, kind, TraceStatus::Ok, outbound.now, outbound.now, detail);
    NewTrace {
        id,
        message_id: outbound.message_id,
        bot_id: outbound.bot_id,
        channel_id: outbound.channel_id,
        replay_of: None,
        status: TraceStatus::Pending,
        open_sinks: 0,
        summary: Cause::QueuedForChat.to_string(),
        started_at: outbound.now,
        duration_ms: 0,
        steps: PackedSteps::new(id, &[accepted]),
    }
}

fn sent(outbound: &NewOutbound) -> StepDetail {
    StepDetail {
        to: Some(outbound.peer.clone()),
        parts: Some(outbound.parts.len() as u64),
        ..StepDetail::default()
    }
}

/// What a send that was just accepted adds to the trace it belongs to.
pub(crate) fn with_send(outbound: &NewOutbound, id: TraceId, kind: StepKind) -> TraceUpdate {
    let now = outbound.now;
    let detail = StepDetail { message_id: Some(outbound.message_id), ..sent(outbound) };
    let accepted = Step::new(StepName::Reply, kind, TraceStatus::Pending, now, now, detail);
    TraceUpdate {
        id,
        status: None,
        ended: 0,
        summary: None,
        attempts: None,
        ended_at: now,
        steps: PackedSteps::new(id, &[accepted]),
    }
}

/// Traces: every operation takes the actor of the caller.
#[derive(Debug, Clone, Copy)]
pub struct Traces<'h> {
    ctx: &'h Context,
}

impl<'h> Traces<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// Traces of a bot, newest first unless the query says otherwise, without their steps. A page of a query with a
    /// status looks at [`MAX_SCANNED`](crate::page::MAX_SCANNED) traces: it may have fewer items than its limit, or
    /// none, and a cursor.
    ///
    /// # Errors
    /// `NOT_FOUND` when the bot is not the actor's; `INVALID_PARAMS` when `until` is before `since`.
    pub async fn list(
        &self,
        actor: &Actor,
        bot_id: BotId,
        query: &TraceQuery,
        page: &PageRequest,
    ) -> Result<Page<Trace>> {
        let page = self.expanded(actor, bot_id, query, page, Expand::default()).await?;
        Ok(page.map(|expanded| expanded.trace))
    }

    /// One trace with its steps.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none under this bot that the actor may see.
    pub async fn get(&self, actor: &Actor, bot_id: BotId, id: TraceId) -> Result<Trace> {
        self.find(actor, Some(bot_id), id).await?.ok_or_else(|| Error::not_found("trace"))
    }

    /// One trace with its steps, whatever its bot.
    pub async fn find(&self, actor: &Actor, bot_id: Option<BotId>, id: TraceId) -> Result<Option<Trace>> {
        let row = self.ctx.store.read().await?.traces().find(actor.scope()?, bot_id, id).await?;
        let mut found = row.map(Trace::from);
        self.make_bodies(found.as_mut_slice()).await?;
        Ok(found)
    }
}
