//! The endpoint that answers for a channel, and its settings.

use std::borrow::Cow;

use super::{AiFault, Endpoint};
use crate::{
    admin::ai_config::GlobalAi,
    delivery::{channels::ChannelRuntime, work_store::WorkContext},
    model::{cause::Cause, sinks::AiSource},
    store::ai::Conversation,
};

/// Endpoint, model and limits for the answers of a channel.
pub(in crate::engine::delivery) struct Setup {
    /// Source of the endpoint: `global` or `custom`.
    pub source: &'static str,
    pub endpoint: Endpoint,
    pub model: String,
    pub system_prompt: String,
    pub max_tokens: Option<u32>,
}

/// Reason why no model is called.
pub(in crate::engine::delivery) enum Refusal {
    /// The settings cannot be read now.
    Later(String),
    /// No endpoint is set; lasts until the administrator sets one.
    NoEndpoint,
    Permanent(Cow<'static, str>),
}

impl Refusal {
    fn permanent(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Permanent(message.into())
    }
}

impl Setup {
    pub async fn of(
        ctx: &WorkContext,
        channel: &ChannelRuntime,
        conversation: &Conversation,
    ) -> Result<Self, Refusal> {
        match channel.ai.source {
            AiSource::Custom => Ok(Self::custom(channel)),
            AiSource::Global => Self::global(ctx, channel, conversation).await,
        }
    }

    /// The channel's own endpoint, with its own key or none: never the administrator's.
    fn custom(channel: &ChannelRuntime) -> Self {
        let ai = &channel.ai;
        Self {
            source: "custom",
            endpoint: Endpoint {
                base_url: ai.base_url.clone(),
                api_key: channel.ai_api_key.clone(),
                key_header: ai.key_header.clone(),
            },
            model: ai.model.clone(),
            system_prompt: ai.system_prompt.clone(),
            max_tokens: ai.max_tokens,
        }
    }

    async fn global(
        ctx: &WorkContext,
        channel: &ChannelRuntime,
        conversation: &Conversation,
    ) -> Result<Self, Refusal> {
        let row = ctx.store.ai_config().await;
        let row = row.map_err(|error| Refusal::Later(error.to_string()))?;
        let global = GlobalAi::open(row.ok_or(Refusal::NoEndpoint)?, &ctx.sealer)
            .map_err(|error| Refusal::permanent(error.to_string()))?;
        let settings = &global.settings;
        if !settings.enabled {
            return Err(Refusal::NoEndpoint);
        }
        let ai = &channel.ai;
        let Some(model) = settings.model_for(&ai.model) else {
            let cause = Cause::ModelNotOffered { model: ai.model.clone() };
            return Err(Refusal::permanent(cause.to_string()));
        };
        let used = u64::try_from(conversation.tokens_today).unwrap_or(0);
        if settings.daily_tokens.is_some_and(|most| used >= most) {
            return Err(Refusal::permanent(Cause::TokensUsedUp.to_string()));
        }
        let prompts = [&settings.system_prompt, &ai.system_prompt];
        let prompts: Vec<&str> =
            prompts.map(|prompt| prompt.trim()).into_iter().filter(|p| !p.is_empty()).collect();
        Ok(Self {
            source: "global",
            endpoint: global.endpoint(),
            model: model.to_owned(),
            system_prompt: prompts.join("\n\n"),
            max_tokens: [settings.max_tokens, ai.max_tokens].into_iter().flatten().min(),
        })
    }

    /// Returns the message of the endpoint about a fault, if the channel's owner may read it. A message of the
    /// administrator's provider is about the administrator's account.
    pub fn endpoint_message<'f>(&self, fault: &'f AiFault) -> Option<&'f str> {
        fault.endpoint_message.as_deref().filter(|_| self.source == "custom")
    }
}
