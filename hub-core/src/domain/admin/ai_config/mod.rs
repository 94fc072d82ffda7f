//! The administrator's AI endpoint, used by channels whose source is `global`.
//!
//! Its key is sealed at rest and sent only to that endpoint: calls to a channel's own endpoint never contain it.

use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ai_trial::{AiTest, TEST_DEADLINE, TestCall};
use crate::{
    access::Actor,
    ai::{self, Endpoint},
    context::Context,
    egress::Egress,
    error::{Error, Problems, Result},
    model::{audit::Action, cause::Cause, sinks::Change},
    secret::{MASK, Sealer, Secret},
    store::ai::AiConfigRow,
    time::Timestamp,
};

const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";
const DEFAULT_MODEL: &str = "gpt-4o-mini";
const MAX_MODEL: usize = 200;
const MAX_MODELS: usize = 100;
const MAX_PROMPT: usize = 32 * 1024;
const MAX_TOKENS: u32 = 131_072;
const MAX_KEY: usize = 4096;
/// Associated data of the sealed key.
const KEY_PLACE: &str = "ai_config.api_key";

/// The stored endpoint, without the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AiConfigSettings {
    /// Whether channels may use it.
    pub enabled: bool,
    /// Base URL, with or without `/chat/completions`; a query is kept.
    pub base_url: String,
    /// Header of the key; empty for `Authorization: Bearer`.
    pub key_header: String,
    /// The model of channels that name none.
    pub model: String,
    /// Other models that channels may name.
    pub models: Vec<String>,
    /// System prompt before the prompt of the channel.
    pub system_prompt: String,
    /// Longest answer in tokens, which also caps the setting of a channel; `None` for no limit.
    pub max_tokens: Option<u32>,
    /// Tokens that one channel may use per day (UTC); `None` for no limit.
    pub daily_tokens: Option<u64>,
}

impl Default for AiConfigSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            base_url: DEFAULT_BASE_URL.to_owned(),
            key_header: String::new(),
            model: DEFAULT_MODEL.to_owned(),
            models: Vec::new(),
            system_prompt: String::new(),
            max_tokens: None,
            daily_tokens: None,
        }
    }
}

/// The endpoint as shown to administrators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AiConfig {
    /// Everything but the key.
    pub settings: AiConfigSettings,
    /// The key's mask with its last four characters; `None` when there is no key.
    pub api_key: Option<String>,
    /// Time of the last change; `None` when it was never set.
    pub updated_at: Option<Timestamp>,
}

/// A new AI endpoint of the hub.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
#[api(name = "SetAiConfig", input, default, checked, example = {
    "api_key": "sk-example",
    "base_url": "https://api.example.com/v1",
    "daily_tokens": 100_000,
    "model": "example-model",
    "models": ["example-model-large"],
})]
pub struct AiConfigUpdate {
    /// Whether channels may use it; `true` if absent.
    pub enabled: bool,
    /// Base URL of an OpenAI-compatible service, with or without `/chat/completions`; OpenAI's if absent. It may have a
    /// query such as `?api-version=`. A private address has to be allowed by the operator (setting `egress_allow`).
    #[api(length = 0..=2048)]
    pub base_url: String,
    /// Header of the key, for example `api-key`; `Authorization: Bearer` if absent or empty.
    #[api(length = 0..=128)]
    pub key_header: String,
    /// The key. If it is absent or begins with `***`, the stored one is kept; `null` removes it.
    #[api(chars = 0..=MAX_KEY)]
    pub api_key: Change<Secret>,
    /// The model of channels without one; `gpt-4o-mini` if absent.
    #[api(line = 1..=MAX_MODEL)]
    pub model: String,
    /// Other models that channels may use; none if absent.
    #[api(items = ..=MAX_MODELS, line = 1..=MAX_MODEL)]
    pub models: Vec<String>,
    /// System prompt before the prompt of the channel; none if absent.
    #[api(chars = 0..=MAX_PROMPT)]
    pub system_prompt: String,
    /// Maximum tokens of a response, for all channels; no limit if absent.
    #[api(range = 1..=MAX_TOKENS)]
    pub max_tokens: Option<u32>,
    /// Tokens per channel and day (UTC); no limit if absent.
    #[api(range = 1..=u32::MAX)]
    pub daily_tokens: Option<u64>,
}

impl Default for AiConfigUpdate {
    /// Enabled, because an endpoint is set to be used.
    fn default() -> Self {
        let stored = AiConfigSettings::default();
        Self {
            enabled: true,
            base_url: stored.base_url,
            key_header: stored.key_header,
            api_key: Change::Keep,
            model: stored.model,
            models: stored.models,
            system_prompt: stored.system_prompt,
            max_tokens: stored.max_tokens,
            daily_tokens: stored.daily_tokens,
        }
    }
}

/// The endpoint with its opened key, ready for calls.
#[derive(Debug, Clone)]
pub struct GlobalAi {
    /// Everything but the key.
    pub settings: AiConfigSettings,
    /// The key.
    pub api_key: Option<Secret>,
}

impl GlobalAi {
    /// Opens the stored endpoint and its key.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it cannot be read, or its key was sealed under another key.
    pub(crate) fn open(row: AiConfigRow, sealer: &Sealer) -> Result<Self> {
        let api_key = row.api_key.map(|sealed| sealer.open(KEY_PLACE, &sealed)).transpose()?;
        let settings = serde_json::from_str(&row.settings).map_err(Error::internal)?;
        Ok(Self { settings, api_key })
    }

    /// Whether a stored endpoint is enabled.
    pub(crate) fn is_enabled(row: &AiConfigRow) -> bool {
        serde_json::from_str::<AiConfigSettings>(&row.settings).is_ok_and(|settings| settings.enabled)
    }

    /// The endpoint and its credentials.
    pub(crate) fn endpoint(&self) -> Endpoint {
        let AiConfigSettings { base_url, key_header, .. } = self.settings.clone();
        Endpoint { base_url, api_key: self.api_key.clone(), key_header }
    }
}

impl AiConfigSettings {
    /// Returns the model for a channel that requests `wanted`; `None` when the channel may not use it.
    pub fn model_for<'s>(&'s self, wanted: &'s str) -> Option<&'s str> {
        match wanted {
            "" => Some(&self.model),
            wanted if wanted == self.model || self.models.iter().any(|model| model == wanted) => Some(wanted),
            _ => None,
        }
    }
}

impl AiConfigSettings {
    /// The entry of the audit log for a change of these settings.
    fn summary(&self, api_key: &Change<Secret>) -> Value {
        let key = match api_key {
            Change::Set(_) => "replaced",
            Change::Keep => "kept",
            Change::Clear => "cleared",
        };
        json!({ "enabled": self.enabled, "base_url": self.base_url, "model": self.model, "api_key": key })
    }
}

impl AiConfigUpdate {
    fn validate(self, egress: &Egress) -> Result<(AiConfigSettings, Change<Secret>)> {
        let mut problems = Problems::default();
        let base_url = ai::checked_base_url(&self.base_url, egress, &mut problems);
        let key_header = ai::checked_key_header(&self.key_header, &mut problems);
        self.check_bounds(&mut problems);
        let api_key = match self.api_key {
            Change::Set(key) if key.expose().starts_with(MASK) => Change::Keep,
            change => change,
        };
        if let Change::Set(key) = &api_key {
            let key = key.expose();
            let is_visible = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
            problems.check(is_visible, "api_key", "must be visible ASCII without spaces");
        }
        problems.finish()?;
        let settings = AiConfigSettings {
            enabled: self.enabled,
            base_url,
            key_header,
            model: self.model,
            models: self.models,
            system_prompt: self.system_prompt,
            max_tokens: self.max_tokens,
            daily_tokens: self.daily_tokens,
        };
        Ok((settings, api_key))
    }
}

/// Operations on the administrator's AI endpoint. Each takes the actor of the caller and requires an administrator.
#[derive(Debug, Clone, Copy)]
pub struct AiConfigs<'h> {
    ctx: &'h Context,
}

impl<'h> AiConfigs<'h> {
    pub(crate) fn new(ctx: &'h Context) -> Self {
        Self { ctx }
    }

    /// Returns the endpoint; disabled and with defaults when it was never set.
    ///
    /// # Errors
    /// `FORBIDDEN`.
    pub async fn get(&self, actor: &Actor) -> Result<AiConfig> {
        actor.admin()?;
        let row = self.ctx.store.read().await?.ai().config().await?;
        self.show(row)
    }

    /// Replaces the endpoint. Channels use it from their next message on.
    ///
    /// # Errors
    /// `FORBIDDEN`; `INVALID_PARAMS` with every bad field.
    pub async fn set(&self, actor: &Actor, update: AiConfigUpdate) -> Result<AiConfig> {
        actor.admin()?;
        let (settings, api_key) = update.validate(&self.ctx.egress)?;
        let noted = settings.summary(&api_key);
        let settings = serde_json::to_string(&settings).map_err(Error::internal)?;
        let new_key = match &api_key {
            Change::Set(key) => Some(self.ctx.sealer.seal(KEY_PLACE, key)),
            Change::Keep | Change::Clear => None,
        };
        let keeps = api_key == Change::Keep;
        let entry = self.ctx.audit(actor, Action::AiConfigChanged).detail(noted);
        let now = self.ctx.store.now();
        let row = self
            .ctx
            .store
            .write(move |tx| {
                async move {
                    let stored =
                        if keeps { tx.ai().config().await?.and_then(|row| row.api_key) } else { None };
                    let row = AiConfigRow { settings, api_key: new_key.or(stored), updated_at: now };
                    tx.ai().set_config(&row).await?;
                    tx.ai().wake_waiting(&Cause::NoEndpoint.to_string(), now).await?;
                    tx.audit().add(&entry).await?;
                    Ok(row)
                }
                .boxed()
            })
            .await?;
        self.show(Some(row))
    }

    /// Sends a test question to the endpoint's model with the current settings, whether enabled or not.
    ///
    /// # Errors
    /// `FORBIDDEN`; `CONFLICT` when no endpoint was ever set. Errors of the endpoint are part of the result.
    pub async fn test(&self, actor: &Actor) -> Result<AiTest> {
        actor.admin()?;
        let row = self.ctx.store.read().await?.ai().config().await?;
        let row = row.ok_or_else(|| Error::conflict("no AI endpoint is set"))?;
        let global = GlobalAi::open(row, &self.ctx.sealer)?;
        let call = TestCall {
            endpoint: &global.endpoint(),
            model: &global.settings.model,
            system_prompt: "",
            max_tokens: None,
            temperature: None,
            deadline: TEST_DEADLINE,
            dialects: &self.ctx.node.dialects,
            shows_refusal: true,
        };
        Ok(call.run(&self.ctx.egress, &self.ctx.clock).await)
    }

    fn show(self, row: Option<AiConfigRow>) -> Result<AiConfig> {
        let Some(row) = row else {
            return Ok(AiConfig { settings: AiConfigSettings::default(), api_key: None, updated_at: None });
        };
        let updated_at = Some(row.updated_at);
        let GlobalAi { settings, api_key } = GlobalAi::open(row, &self.ctx.sealer)?;
        Ok(AiConfig { settings, api_key: api_key.as_ref().map(Secret::masked), updated_at })
    }
}

#[cfg(test)]
mod tests;
