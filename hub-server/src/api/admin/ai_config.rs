//! The administrator's AI endpoint.

use hub_core::{
    Hub,
    admin::{
        ai_config::{AiConfig, AiConfigUpdate},
        ai_trial::AiTest,
    },
    openapi::Api,
    time::Timestamp,
};
use poem::{Request, web::Data};
use poem_openapi::OpenApi;

use crate::{
    api::Tag,
    credentials::Administrator,
    envelope::{ApiResult, ok},
    serve::ClientGone,
    wire::{Body, view},
};

/// The administrator's AI endpoint.
#[derive(Debug, Clone, Copy)]
pub struct AiConfigApi;

view! {
    /// The AI endpoint of the hub, without its key.
    #[derive(Debug, Api)]
    #[api(example = {
    "api_key": "***mple",
    "base_url": "https://api.example.com/v1",
    "daily_tokens": 100_000,
    "enabled": true,
    "key_header": "",
    "model": "example-model",
    "models": [
        "example-model-large"
    ],
    "system_prompt": "",
    "updated_at": "2025-11-21T09:30:00.000Z"
})]
    pub struct AiConfigView from config: AiConfig {
        /// Whether channels may use it.
        pub enabled: bool = config.settings.enabled,
        /// Base URL, with or without `/chat/completions`.
        pub base_url: String = config.settings.base_url,
        /// Header of the key; empty for `Authorization: Bearer`.
        pub key_header: String = config.settings.key_header,
        /// `***` and the last four characters of the key; absent without a key. Sending it back changes nothing.
        pub api_key: Option<String>,
        /// The model of channels without one.
        pub model: String = config.settings.model,
        /// Other models that channels may use.
        pub models: Vec<String> = config.settings.models,
        /// System prompt before the prompt of the channel.
        pub system_prompt: String = config.settings.system_prompt,
        /// Maximum tokens of a response, for all channels; absent for no limit.
        pub max_tokens: Option<u32> = config.settings.max_tokens,
        /// Tokens per channel and day (UTC); absent for no limit.
        pub daily_tokens: Option<u64> = config.settings.daily_tokens,
        /// When it was last changed; absent if it was never set.
        pub updated_at: Option<Timestamp>,
    }
}

/// Result of the test.
#[derive(Debug, Api)]
#[api(example = {
    "answer": "Yes.",
    "duration_ms": 640,
    "model": "example-model",
    "ok": true,
    "usage": {
        "completion_tokens": 2,
        "prompt_tokens": 15
    }
})]
pub struct AiTestView {
    /// Whether the model responded.
    pub ok: bool,
    /// The model.
    pub model: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Beginning of the response.
    pub answer: Option<String>,
    /// Token usage, if the endpoint reports it.
    pub usage: Option<AiUsageView>,
    /// Error of the test.
    pub error: Option<AiTestError>,
}

/// Tokens of a response.
#[derive(Debug, Api)]
pub struct AiUsageView {
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Completion tokens.
    pub completion_tokens: u64,
}

/// Error of a model call.
#[derive(Debug, Api)]
pub struct AiTestError {
    /// Class: `refused` (4xx), `rate_limited`, `failed` (5xx), `not_understood`, `cut`, `bad_url`, or that of a
    /// connection: `blocked_address`, `dns`, `connect`, `tls`, `timeout`, `too_large`, `broken`. Of a channel also
    /// `not_asked`: no model was called.
    pub class: String,
    /// Message, including that of the endpoint.
    pub message: String,
}

impl From<AiTest> for AiTestView {
    fn from(AiTest { model, took, outcome }: AiTest) -> Self {
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let (answer, error) = match outcome {
            Ok(answer) => (Some(answer), None),
            Err((class, message)) => (None, Some(AiTestError { class: class.to_owned(), message })),
        };
        let usage = answer.as_ref().and_then(|answer| answer.usage).map(|usage| AiUsageView {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
        });
        Self {
            ok: error.is_none(),
            model,
            duration_ms,
            answer: answer.map(|answer| answer.text),
            usage,
            error,
        }
    }
}

#[OpenApi(tag = "Tag::Admin")]
impl AiConfigApi {
    /// Shows the AI endpoint of the hub
    ///
    /// Channels whose AI sink has the source `global` use it. The key is never shown.
    #[oai(path = "/api/admin/ai-config", method = "get", operation_id = "getAiConfig")]
    async fn get(&self, hub: Data<&Hub>, admin: Administrator) -> ApiResult<AiConfigView> {
        ok(hub.ai_config().get(&admin.0).await?.into())
    }

    /// Replaces the AI endpoint of the hub
    ///
    /// Channels use it from the next message on.
    #[oai(path = "/api/admin/ai-config", method = "put", operation_id = "setAiConfig")]
    async fn set(
        &self,
        hub: Data<&Hub>,
        admin: Administrator,
        body: Body<AiConfigUpdate>,
    ) -> ApiResult<AiConfigView> {
        ok(hub.ai_config().set(&admin.0, body.0).await?.into())
    }

    /// Tests the AI endpoint of the hub
    ///
    /// With the current settings, whether it is on or off, within 30 seconds. An error of the endpoint is part of the
    /// response; `CONFLICT` if none was ever set.
    #[oai(path = "/api/admin/ai-config/test", method = "post", operation_id = "testAiConfig")]
    async fn test(&self, hub: Data<&Hub>, admin: Administrator, request: &Request) -> ApiResult<AiTestView> {
        let config = hub.ai_config();
        ok(ClientGone::of(request).while_connected(config.test(&admin.0)).await?.into())
    }
}

#[cfg(test)]
mod tests {
    use poem::http::Method;
    use serde_json::{Value, json};

    use crate::testing::{App, Caller, Reply};

    async fn put(caller: &Caller<'_>, body: &Value) -> Reply {
        caller.send(Method::PUT, PATH, |request| request.body_json(body)).await
    }

    const PATH: &str = "/api/admin/ai-config";
    const KEY: &str = "sk-a-key-of-the-administrator";

    #[tokio::test]
    async fn administrators_set_the_endpoint_and_never_see_its_key() {
        let app = App::new().await;
        let ada = app.user("ada").await;
        let fresh = ada.get(PATH).await.data().clone();
        assert_eq!(
            (&fresh["enabled"], fresh.get("api_key"), fresh.get("updated_at")),
            (&json!(false), None, None)
        );
        ada.post(&format!("{PATH}/test"), &json!({})).await.error(409, "CONFLICT");
        let body =
            json!({ "base_url": "https://ai.example/v1/", "api_key": KEY, "model": "m", "models": ["l"] });
        let set = put(&ada, &body).await.data().clone();
        assert_eq!((&set["base_url"], &set["api_key"]), (&json!("https://ai.example/v1"), &json!("***ator")));
        let back = json!({ "base_url": "https://ai.example/v1", "api_key": set["api_key"], "model": "m" });
        assert_eq!(put(&ada, &back).await.data()["api_key"], "***ator");
        let shown = ada.get(PATH).await;
        assert!(!shown.json.to_string().contains(KEY));
        let cleared = put(&ada, &json!({ "api_key": null })).await.data().clone();
        assert_eq!((cleared.get("api_key"), &cleared["model"]), (None, &json!("gpt-4o-mini")));
    }

    #[tokio::test]
    async fn a_test_of_an_endpoint_that_may_not_be_called_says_so() {
        let app = App::new().await;
        let ada = app.user("ada").await;
        put(&ada, &json!({ "base_url": "http://ai.invalid/v1", "api_key": KEY })).await.data();
        let result = ada.post(&format!("{PATH}/test"), &json!({})).await.data().clone();
        assert_eq!((&result["ok"], &result["error"]["class"]), (&json!(false), &json!("dns")), "{result}");
        assert!(!result.to_string().contains(KEY));
    }

    #[tokio::test]
    async fn members_and_strangers_are_refused_and_bad_fields_named() {
        let app = App::new().await;
        let (ada, eve) = (app.user("ada").await, app.user("eve").await);
        eve.get(PATH).await.error(403, "FORBIDDEN");
        put(&eve, &json!({ "api_key": KEY })).await.error(403, "FORBIDDEN");
        eve.post(&format!("{PATH}/test"), &json!({})).await.error(403, "FORBIDDEN");
        app.stranger().get(PATH).await.error(401, "UNAUTHORIZED");
        let bad = json!({ "base_url": "http://127.0.0.1:11434/v1", "model": "", "daily_tokens": 0 });
        let refused = put(&ada, &bad).await;
        refused.error(400, "INVALID_PARAMS");
        let details = refused.json["error"]["details"].as_array().unwrap();
        let fields: Vec<_> = details.iter().map(|detail| detail["field"].as_str().unwrap()).collect();
        assert_eq!(fields, ["base_url", "model", "daily_tokens"]);
        put(&ada, &json!({ "url": "x" })).await.error(400, "INVALID_PARAMS");
        assert_eq!(ada.get(PATH).await.data()["enabled"], false);
    }
}
