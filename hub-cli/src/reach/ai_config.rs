//! The AI endpoint of the hub.

use hub_core::{
    access::Actor,
    admin::ai_config::{AiConfig, AiConfigSettings, AiConfigUpdate, AiTest},
    channels::sinks::Change,
    secret::Secret,
};
use serde_json::{Value, json};

use super::Reach;
use crate::exit::Failure;

impl Reach {
    /// The endpoint, without its key.
    pub async fn ai_config(&self) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => Ok(config_document(&hub.ai_config().get(&Actor::Operator).await?)),
            Self::Remote(remote) => remote.call("GET", "/api/admin/ai-config", &[], &Value::Null).await,
        }
    }

    /// Replaces the endpoint.
    pub async fn set_ai_config(
        &self,
        settings: AiConfigSettings,
        api_key: Change<Secret>,
    ) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => {
                let AiConfigSettings {
                    enabled,
                    base_url,
                    model,
                    models,
                    system_prompt,
                    max_tokens,
                    daily_tokens,
                } = settings;
                let update = AiConfigUpdate {
                    enabled,
                    base_url,
                    api_key,
                    model,
                    models,
                    system_prompt,
                    max_tokens,
                    daily_tokens,
                };
                Ok(config_document(&hub.ai_config().set(&Actor::Operator, update).await?))
            }
            Self::Remote(remote) => {
                let mut body = settings_document(&settings);
                match api_key {
                    Change::Set(key) => body["api_key"] = key.expose().into(),
                    Change::Clear => body["api_key"] = Value::Null,
                    Change::Keep => {}
                }
                remote.call("PUT", "/api/admin/ai-config", &[], &body).await
            }
        }
    }

    /// Asks the endpoint's model a question.
    pub async fn test_ai_config(&self) -> Result<Value, Failure> {
        match self {
            Self::Local(hub) => Ok(test_document(&hub.ai_config().test(&Actor::Operator).await?)),
            Self::Remote(remote) => remote.call("POST", "/api/admin/ai-config/test", &[], &Value::Null).await,
        }
    }
}

fn settings_document(settings: &AiConfigSettings) -> Value {
    json!({
        "enabled": settings.enabled,
        "base_url": settings.base_url,
        "model": settings.model,
        "models": settings.models,
        "system_prompt": settings.system_prompt,
        "max_tokens": settings.max_tokens,
        "daily_tokens": settings.daily_tokens,
    })
}

fn config_document(config: &AiConfig) -> Value {
    let mut document = settings_document(&config.settings);
    document["api_key"] = json!(config.api_key);
    document["updated_at"] = json!(config.updated_at);
    document
}

fn test_document(test: &AiTest) -> Value {
    let (answer, error) = match &test.outcome {
        Ok(answer) => (Some(answer), None),
        Err(error) => (None, Some(error)),
    };
    json!({
        "ok": error.is_none(),
        "model": test.model,
        "duration_ms": u64::try_from(test.took.as_millis()).unwrap_or(u64::MAX),
        "answer": answer.map(|answer| &answer.text),
        "usage": answer.and_then(|answer| answer.usage),
        "error": error.map(|(class, message)| json!({ "class": class, "message": message })),
    })
}
