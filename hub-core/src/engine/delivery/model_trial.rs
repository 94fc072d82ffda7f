//! Test of a channel's AI sink: one question to its model, with its settings. Only the usage is stored.

use std::time::Duration;

use super::{
    channels,
    sink::ai::setup::{Refusal, Setup},
};
use crate::{
    access::Actor,
    admin::ai_trial::{AiTest, TEST_DEADLINE, TestCall},
    channels::Channels,
    context::Context,
    error::{Error, ErrorCode, Result},
    id::{BotId, ChannelId},
    store::ai::{AiUsage, ConversationQuery},
};

/// The class of an error because of which no model was called.
const NOT_ASKED: &str = "not_asked";

/// Asks the model of a channel one question, whether the sink is on or off. The tokens count as those of the channel.
///
/// # Errors
/// `NOT_FOUND` unless the channel is the caller's; `UNAVAILABLE` when the settings cannot be read. A model that does
/// not respond is no error: the result contains the reason.
pub async fn test_model(
    ctx: &Context,
    actor: &Actor,
    bot_id: BotId,
    channel_id: ChannelId,
) -> Result<AiTest> {
    Channels::new(ctx).get(actor, bot_id, channel_id).await?;
    let work = ctx.for_work();
    let channels = channels::load(&work, bot_id).await?.channels;
    let channel = channels.into_iter().find(|channel| channel.id == channel_id);
    let channel = channel.ok_or_else(|| Error::not_found("channel"))?;
    let now = ctx.store.now();
    let query = ConversationQuery {
        bot_id,
        channel_id,
        peer: String::new(),
        message_id: ctx.ids.next(),
        later_answers: false,
        limit: 0,
        replies_since: now,
        day: now.as_days(),
    };
    // No one is on the other side: only the tokens of this day matter.
    let conversation = ctx.store.read().await?.ai().conversation(&query).await?;
    let setup = match Setup::of(&work, &channel, &conversation).await {
        Ok(setup) => setup,
        Err(Refusal::Later(reason)) => return Err(Error::new(ErrorCode::Unavailable, reason)),
        Err(refusal) => {
            let reason = match refusal {
                Refusal::Permanent(reason) => reason.into_owned(),
                _ => "this hub has no AI endpoint; the administrator can configure one".to_owned(),
            };
            let (model, took) = (channel.ai.model.clone(), Duration::ZERO);
            return Ok(AiTest { model, took, outcome: Err((NOT_ASKED, reason)) });
        }
    };
    let call = TestCall {
        endpoint: &setup.endpoint,
        model: &setup.model,
        system_prompt: &setup.system_prompt,
        max_tokens: setup.max_tokens,
        temperature: channel.ai.temperature,
        deadline: TEST_DEADLINE.min(Duration::from_millis(u64::from(channel.ai.timeout_ms))),
        dialects: &ctx.node.dialects,
        shows_refusal: setup.source == "custom",
    };
    let tested = call.run(&ctx.egress, &ctx.clock).await;
    if let Some(usage) = tested.outcome.as_ref().ok().and_then(|answer| answer.usage) {
        ctx.node.counters.count_tokens(usage);
        let number = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let used = AiUsage {
            channel_id,
            day: now.as_days(),
            source: setup.source,
            calls: 1,
            prompt_tokens: number(usage.prompt_tokens),
            completion_tokens: number(usage.completion_tokens),
        };
        ctx.store.write(move |tx| Box::pin(async move { tx.ai().add_usage(&used).await })).await?;
    }
    Ok(tested)
}
