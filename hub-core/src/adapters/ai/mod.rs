//! OpenAI-compatible chat completions: one call to a model, its streamed answer, and the classification of its
//! errors.
//!
//! The module uses [`egress`](crate::egress) for every call and knows neither settings nor the store.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::secret::Secret;

mod answer;
mod calls;
mod client;
mod dialect;
mod endpoint;
mod fault;
mod lenient_json;
mod reader;
mod text;
mod thinking;
mod tools;
mod wire;

pub use answer::{MAX_ANSWER, MAX_THINKING};
pub use client::{MAX_RESPONSE, complete};
pub use dialect::Dialects;
pub(crate) use endpoint::{checked_base_url, checked_key_header};
pub use fault::{AiFault, AiFaultClass};
#[cfg(any(test, feature = "testing"))]
pub use reader::read_answer;
pub use text::strip_markdown;
pub use thinking::without_thinking;
pub use tools::{NoTools, ToolScope, Tools};
pub use wire::{Content, ImageUrl, Message, Part, Role, Tool, ToolCall, Usage};

/// Maximum time for all calls to the model and its tools that one message needs.
pub const MAX_TIME: Duration = Duration::from_secs(10 * 60);

/// Time limits of one call.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest silence: before the first byte, and between two parts.
    pub silence: Duration,
    /// Longest time of the whole call.
    pub total: Duration,
}

/// The endpoint of a model and its credentials.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Base URL, with or without `/chat/completions`; a query is kept.
    pub base_url: String,
    /// The key; endpoints in a private network often need none.
    pub api_key: Option<Secret>,
    /// Header of the key; empty for `Authorization: Bearer`.
    pub key_header: String,
}

/// Input of a call to a model.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Name of the model.
    pub model: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// Longest answer in tokens; `None` for the model's default.
    pub max_tokens: Option<u32>,
    /// Sampling temperature; `None` for the model's default.
    pub temperature: Option<f64>,
    /// Tools that the model may call.
    pub tools: Vec<Tool>,
}

impl Prompt {
    /// Returns the number of images in the conversation.
    pub fn images(&self) -> usize {
        self.messages.iter().map(Message::images).sum()
    }
}

/// Response of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The answer or the refusal. It may contain reasoning between marks such as `<think>`.
    pub text: String,
    /// Reasoning, where the endpoint separates it from the answer.
    pub thinking: String,
    /// Tools that the model calls before it continues.
    pub tool_calls: Vec<ToolCall>,
    /// Finish reason: `stop`, `length`, `tool_calls`, …
    pub finish_reason: Option<String>,
    /// Consumed tokens, when the endpoint reports them.
    pub usage: Option<Usage>,
    /// The content of the message, unchanged, where it is not a text.
    pub content: Option<Value>,
    /// Other members of the message, which the endpoint requires back with the results of tools.
    pub extra: Map<String, Value>,
    /// Parts of the request that were left out because the endpoint rejects them.
    pub left_out: Vec<&'static str>,
}

#[cfg(test)]
mod shape_tests;
