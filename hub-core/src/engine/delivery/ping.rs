//! Test of a channel's webhook: a generated message goes through the pipeline, plugins and signature included, and is
//! not stored.

use std::sync::Arc;

use super::{
    channels,
    job::Job,
    retry::Verdict,
    stage::{Concluded, Filtered, Outcome, Reply, ReplyContent},
};
use crate::{
    access::Actor,
    channels::Channels,
    context::Context,
    error::{Error, Result},
    id::{BotId, ChannelId},
    model::{
        cause::Cause,
        sinks::SinkId,
        trace::{Step, StepDetail, StepError, StepName, Trace, TraceStatus},
    },
    network::MessageKind,
    payload::Content,
    time::Timestamp,
};

/// Sender of the generated message.
const SENDER: &str = "ping";

/// Sends a text `ping` through a channel's webhook, once, whether the sink is on or off; returns the trace, with the duration
/// of the phases of the request. Replies of the receiver and the plugins are not sent; each is a step.
///
/// # Errors
/// `NOT_FOUND` unless the channel is the caller's; `INVALID_PARAMS` when it has no webhook. A receiver that refuses
/// is no error: the trace says so.
pub async fn ping(ctx: &Context, actor: &Actor, bot_id: BotId, channel_id: ChannelId) -> Result<Trace> {
    let known = Channels::new(ctx).get(actor, bot_id, channel_id).await?;
    if known.webhook.settings.url.is_empty() {
        return Err(Error::invalid("url", "the channel has no webhook"));
    }
    // A new connection, so that all phases are there to be measured.
    let ctx = Context { egress: ctx.egress.fresh(), ..ctx.clone() }.for_work();
    let channels = channels::load(&ctx, bot_id).await?.channels;
    let channel = channels.into_iter().find(|channel| channel.id == channel_id);
    let channel = channel.ok_or_else(|| Error::not_found("channel"))?;
    let (started_at, started) = (ctx.store.now(), ctx.clock.instant());
    let content = Content {
        message_id: ctx.ids.next(),
        from_user_id: SENDER.to_owned(),
        user_name: SENDER.to_owned(),
        peer: SENDER.to_owned(),
        session_id: SENDER.to_owned(),
        group_id: String::new(),
        kind: MessageKind::Text,
        text: "ping".to_owned(),
        items: "[]".to_owned(),
        has_media: false,
        quote: None,
        context_token: None,
        sent_at: started_at,
    };
    let job = Job {
        id: ctx.ids.next(),
        trace_id: ctx.ids.next(),
        bot_id,
        channel_id,
        sink: SinkId::Webhook,
        fence: 0,
        seq: 0,
        is_alone: true,
        attempts: 0,
        first_attempt: None,
        is_followed: false,
        target_url: None,
        channel_text: None,
        content: Arc::new(content),
        media: Vec::new(),
    };
    let prepared = Filtered { job: &job, channel }.draft().on_request(&ctx).await;
    let Concluded { outcome, replies, mut steps } =
        prepared.measured_attempt(&ctx).await.on_response(&ctx).await;
    steps.extend(replies.iter().map(|reply| unsent(reply, ctx.store.now())));
    let (status, summary) = match outcome {
        Outcome::Answer { verdict: Verdict::Success, summary, .. } => (TraceStatus::Ok, summary),
        Outcome::Skipped => (TraceStatus::Skipped, "a plugin skipped it".to_owned()),
        Outcome::Ignored { cause } => (TraceStatus::Skipped, cause.to_string()),
        Outcome::Waits { cause, .. } => (TraceStatus::Error, cause.to_string()),
        Outcome::Answer { summary, .. }
        | Outcome::PluginFailed { summary, .. }
        | Outcome::Failure { summary, .. } => (TraceStatus::Error, summary),
    };
    let duration_ms = ctx.clock.instant().since(started).as_millis();
    Ok(Trace {
        channel_id: Some(channel_id),
        status,
        summary,
        duration_ms: u64::try_from(duration_ms).unwrap_or(u64::MAX),
        attempts: 1,
        ..Trace::new(job.trace_id, job.content.message_id, bot_id, started_at, steps)
    })
}

/// The step of a reply that a message would get.
fn unsent(reply: &Reply, now: Timestamp) -> Step {
    let (status, detail) = match &reply.content {
        ReplyContent::Text(_) | ReplyContent::File(_) => {
            let reason = Cause::OnlyTest.to_string();
            (TraceStatus::Skipped, StepDetail { reason: Some(reason), ..StepDetail::default() })
        }
        ReplyContent::Unsendable(why) => (
            TraceStatus::Error,
            StepDetail { error: Some(StepError::new(why.to_string())), ..StepDetail::default() },
        ),
    };
    Step::new(StepName::Reply, reply.by, status, now, now, detail)
}
