//! OpenAI-compatible chat completions: one call to a model, its answer read as a stream, its faults sorted.
//!
//! A leaf, like [`egress`](crate::egress), over which every call goes: it knows nothing of settings or the store.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::secret::Secret;

mod answer;
mod calls;
mod client;
mod dialect;
mod endpoint;
mod fault;
mod lenient;
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

/// Longest time for all calls to the model and its tools that one message needs.
pub const MAX_TIME: Duration = Duration::from_secs(10 * 60);

/// Limits of time of one call.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest silence: before the first byte, and between two pieces.
    pub silence: Duration,
    /// Longest time of the whole call.
    pub total: Duration,
}

/// The endpoint of a model and its credentials.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Base URL, with or without `/chat/completions`; a query is kept.
    pub base_url: String,
    /// The key; endpoints in the own network often want none.
    pub api_key: Option<Secret>,
    /// Header of the key; empty for `Authorization: Bearer`.
    pub key_header: String,
}

/// What a model is asked.
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
    /// Tools that the model may ask for.
    pub tools: Vec<Tool>,
}

impl Prompt {
    /// How many images it shows.
    pub fn images(&self) -> usize {
        self.messages.iter().map(Message::images).sum()
    }
}

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The answer, or why the model refuses one; may hold what the model thought aloud between marks such as `<think>`.
    pub text: String,
    /// What it thought, where the endpoint tells the two apart.
    pub thinking: String,
    /// Tools it wants to be called before it goes on.
    pub tool_calls: Vec<ToolCall>,
    /// Why it ended: `stop`, `length`, `tool_calls`, …
    pub finish_reason: Option<String>,
    /// What it cost, when the endpoint says so.
    pub usage: Option<Usage>,
    /// The content of the message as it came, where that is not a text.
    pub content: Option<Value>,
    /// Other members of the message, which the endpoint wants back with the results of tools.
    pub extra: Map<String, Value>,
    /// Parts of the request that were left out, because the endpoint refuses them.
    pub left_out: Vec<&'static str>,
}

#[cfg(test)]
mod shape_tests;
