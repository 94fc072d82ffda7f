//! Settings of the AI sink.

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    ai,
    egress::Egress,
    error::{Problems, Result},
    model::sinks::Change,
    secret::Secret,
    words::words,
};

const MAX_MODEL: usize = 200;
const MAX_PROMPT: usize = 32 * 1024;
const MAX_HISTORY: u32 = 100;
const MAX_TOKENS: u32 = 131_072;
const MAX_TIMEOUT_MS: u32 = 120_000;
const MAX_KEY: usize = 4096;
const MAX_ERROR_REPLY: usize = 1000;

words! {
    /// The model endpoint that is used.
    #[derive(Default)]
    pub enum AiSource {
        /// The endpoint that the administrator configured, with its key.
        #[default]
        Global = "global",
        /// An endpoint of the channel; never called with the administrator's key.
        Custom = "custom",
    }
}

/// The AI sink as stored: without its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, hub_macros::Api)]
#[serde(default)]
pub struct AiSettings {
    /// Whether a model responds to messages.
    pub enabled: bool,
    /// The endpoint that is used.
    pub source: AiSource,
    /// Base URL of a custom endpoint.
    #[api(with(Option<String>, crate::openapi::unless_empty))]
    pub base_url: String,
    /// Header of the key; absent for `Authorization: Bearer`.
    #[api(with(Option<String>, crate::openapi::unless_empty))]
    pub key_header: String,
    /// Name of the model; absent for the default of the global endpoint.
    #[api(with(Option<String>, crate::openapi::unless_empty))]
    pub model: String,
    /// System prompt.
    pub system_prompt: String,
    /// Turns of the conversation that the model receives.
    pub max_history: u32,
    /// Maximum tokens of a response; absent for the model's default.
    pub max_tokens: Option<u32>,
    /// Sampling temperature; absent for the model's default.
    pub temperature: Option<f64>,
    /// Whether the reasoning of the model is removed from the response.
    pub hide_thinking: bool,
    /// Whether Markdown is removed from the response.
    pub strip_markdown: bool,
    /// Longest silence of the model, and longest run of a tool, in milliseconds.
    pub timeout_ms: u32,
    /// Whether the model may use tools of installed apps.
    pub tools: bool,
    /// Text that the sender receives if the model fails permanently or returns an empty response; absent for none.
    #[api(with(Option<String>, crate::openapi::unless_empty))]
    pub error_reply: String,
}

impl Default for AiSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            source: AiSource::default(),
            base_url: String::new(),
            key_header: String::new(),
            model: String::new(),
            system_prompt: String::new(),
            max_history: 20,
            max_tokens: None,
            temperature: None,
            hide_thinking: true,
            strip_markdown: false,
            timeout_ms: 60_000,
            tools: false,
            error_reply: String::new(),
        }
    }
}

/// A new configuration of the AI sink.
#[derive(Debug, Clone, PartialEq, Deserialize, hub_macros::Api)]
#[serde(default, deny_unknown_fields)]
#[api(name = "SetAi", input, checked, like = AiSettings, example = {
    "api_key": "sk-example",
    "base_url": "https://api.example.com/v1",
    "enabled": true,
    "max_history": 20,
    "model": "example-model",
    "source": "custom",
    "system_prompt": "Answer in one sentence.",
})]
#[expect(missing_docs, reason = "the other fields are those of `AiSettings`")]
pub struct AiUpdate {
    /// Whether a model responds to messages; `true` if absent.
    pub enabled: bool,
    /// The endpoint to use; the administrator's if absent.
    #[serde(deserialize_with = "source_or_older")]
    #[api(from(AiSourceChoice, AiSource::from))]
    pub source: AiSource,
    /// Base URL of a custom endpoint, with or without `/chat/completions`; it may have a query such as `?api-version=`.
    /// Private addresses are rejected.
    #[api(chars = 0..=2048)]
    pub base_url: String,
    /// Header of the key, for example `api-key`; `Authorization: Bearer` if absent or empty.
    #[api(chars = 0..=128)]
    pub key_header: String,
    /// Key of a custom endpoint. If absent, it is kept; `null` removes it.
    #[api(chars = 0..=MAX_KEY)]
    pub api_key: Change<Secret>,
    /// Name of the model; required for a custom endpoint.
    #[api(chars = 0..=MAX_MODEL)]
    pub model: String,
    #[api(chars = 0..=MAX_PROMPT)]
    pub system_prompt: String,
    #[api(range = 1..=MAX_HISTORY)]
    pub max_history: u32,
    #[api(range = 1..=MAX_TOKENS)]
    pub max_tokens: Option<u32>,
    #[api(range = 0.0..=2.0)]
    pub temperature: Option<f64>,
    pub hide_thinking: bool,
    pub strip_markdown: bool,
    /// Longest silence of the model, and longest run of a tool, in milliseconds; 60000 if absent. A response takes at
    /// most 10 minutes in total.
    #[api(range = 1..=MAX_TIMEOUT_MS)]
    pub timeout_ms: u32,
    pub tools: bool,
    /// Text that the sender receives if the model fails permanently (for example with 401) or returns an empty
    /// response; nothing if absent or empty.
    #[api(chars = 0..=MAX_ERROR_REPLY)]
    pub error_reply: String,
}

words! {
    /// The model endpoint to use.
    enum AiSourceChoice {
        /// The endpoint that the administrator configured, with its key.
        Global = "global",
        /// Alias of `global`, for older clients.
        Builtin = "builtin",
        /// An endpoint of the channel; never called with the administrator's key.
        Custom = "custom",
    }
}

impl From<AiSourceChoice> for AiSource {
    fn from(choice: AiSourceChoice) -> Self {
        match choice {
            AiSourceChoice::Global | AiSourceChoice::Builtin => Self::Global,
            AiSourceChoice::Custom => Self::Custom,
        }
    }
}

fn source_or_older<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<AiSource, D::Error> {
    AiSourceChoice::deserialize(deserializer).map(AiSource::from)
}

impl Default for AiUpdate {
    /// On: who configures an AI sink wants it.
    fn default() -> Self {
        let stored = AiSettings::default();
        Self {
            enabled: true,
            source: stored.source,
            base_url: stored.base_url,
            key_header: stored.key_header,
            api_key: Change::Keep,
            model: stored.model,
            system_prompt: stored.system_prompt,
            max_history: stored.max_history,
            max_tokens: stored.max_tokens,
            temperature: stored.temperature,
            hide_thinking: stored.hide_thinking,
            strip_markdown: stored.strip_markdown,
            timeout_ms: stored.timeout_ms,
            tools: stored.tools,
            error_reply: stored.error_reply,
        }
    }
}

impl AiUpdate {
    /// Checks everything, and gives what is to be stored.
    ///
    /// # Errors
    /// `INVALID_PARAMS` naming every bad field, relative to this update.
    pub fn validate(&self, egress: &Egress) -> Result<AiSettings> {
        let mut problems = Problems::default();
        let base_url = self.checked_base_url(egress, &mut problems);
        let key_header = ai::checked_key_header(&self.key_header, &mut problems);
        let needs_model = self.enabled && self.source == AiSource::Custom;
        problems.check(!needs_model || !self.model.is_empty(), "model", "must be set for a custom endpoint");
        let has_control = self.model.chars().any(char::is_control);
        problems.check(!has_control, "model", "must not contain control characters");
        self.check_bounds(&mut problems);
        if let Change::Set(key) = &self.api_key {
            let key = key.expose();
            let is_visible = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
            problems.check(is_visible, "api_key", "must be visible ASCII without spaces");
        }
        problems.check(!self.error_reply.contains('\0'), "error_reply", "must not contain NUL");
        problems.finish()?;
        Ok(AiSettings {
            enabled: self.enabled,
            source: self.source,
            base_url,
            key_header,
            model: self.model.clone(),
            system_prompt: self.system_prompt.clone(),
            max_history: self.max_history,
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            hide_thinking: self.hide_thinking,
            strip_markdown: self.strip_markdown,
            timeout_ms: self.timeout_ms,
            tools: self.tools,
            error_reply: self.error_reply.clone(),
        })
    }

    fn checked_base_url(&self, egress: &Egress, problems: &mut Problems) -> String {
        if self.base_url.is_empty() {
            let needed = self.enabled && self.source == AiSource::Custom;
            problems.check(!needed, "base_url", "must be set for a custom endpoint");
            return String::new();
        }
        ai::checked_base_url(&self.base_url, egress, problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::EgressConfig;

    fn validate(json: &str) -> Result<AiSettings> {
        let update: AiUpdate = serde_json::from_str(json).unwrap();
        update.validate(&Egress::new(EgressConfig::default()).unwrap())
    }

    #[test]
    fn good_settings_are_stored_without_the_key() {
        assert_eq!(validate("{}").unwrap(), AiSettings { enabled: true, ..AiSettings::default() });
        assert_eq!(validate(r#"{"source":"builtin"}"#).unwrap().source, AiSource::Global, "an older word");
        let json = r#"{"source":"custom","base_url":"https://ai.example/v1/","api_key":"sk-1","model":"m","temperature":2}"#;
        let settings = validate(json).unwrap();
        assert_eq!(settings.base_url, "https://ai.example/v1");
        assert!(!serde_json::to_string(&settings).unwrap().contains("sk-1"));
    }

    #[test]
    fn every_bad_field_is_named() {
        let json = r#"{"source":"custom","base_url":"http://[::1]/v1","api_key":"a b","max_history":0,
            "max_tokens":0,"temperature":2.1,"timeout_ms":120001}"#;
        let error = validate(json).unwrap_err();
        let fields: Vec<_> = error.details().iter().map(|detail| detail.field.as_ref()).collect();
        assert_eq!(
            fields,
            ["base_url", "model", "max_history", "max_tokens", "temperature", "timeout_ms", "api_key"]
        );
        for json in [
            r#"{"source":"custom","model":"m"}"#,
            r#"{"base_url":"https://ai.example/v1?key=1"}"#,
            r#"{"base_url":"ftp://ai.example/"}"#,
        ] {
            assert_eq!(validate(json).unwrap_err().details()[0].field, "base_url", "{json}");
        }
        for unknown in [r#"{"url":"x"}"#, r#"{"source":"mine"}"#, r#"{"max_history":-1}"#] {
            assert!(serde_json::from_str::<AiUpdate>(unknown).is_err(), "{unknown}");
        }
    }
}
