//! OpenAI-compatible chat completions: one call to a model, its answer read as a stream, its faults sorted.
//!
//! A leaf, like [`egress`](crate::egress), over which every call goes: it knows nothing of settings or the store.

use std::borrow::Cow;

use http::HeaderMap;

use crate::{egress::EgressFault, secret::Secret};

mod client;
mod stream;
mod text;
mod tools;
mod wire;

pub use client::complete;
pub use text::{strip_markdown, without_thinking};
pub use tools::{NoTools, ToolScope, Tools};
pub use wire::{Content, ImageUrl, Message, Part, Role, Tool, ToolCall, Usage};

/// The largest answer of a model that is read, framing included, in bytes.
pub const MAX_ANSWER: usize = 256 * 1024;
/// The path behind the base URL.
const PATH: &str = "/chat/completions";

/// The endpoint of a model and its credentials.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Base URL, up to and without `/chat/completions`.
    pub base_url: String,
    /// Sent as `Authorization: Bearer`; endpoints in the own network often want none.
    pub api_key: Option<Secret>,
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
    /// The answer; may hold what the model thought aloud between `<think>` and `</think>`.
    pub text: String,
    /// What it thought, where the endpoint tells the two apart.
    pub thinking: String,
    /// Tools it wants to be called before it goes on.
    pub tool_calls: Vec<ToolCall>,
    /// Why it ended: `stop`, `length`, `tool_calls`, …
    pub finish_reason: Option<String>,
    /// What it cost, when the endpoint says so.
    pub usage: Option<Usage>,
}

/// A call to a model that brought no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", class.as_str())]
pub struct AiFault {
    /// What kind.
    pub class: AiFaultClass,
    /// A sentence for the trace. What the endpoint itself said is not part of it.
    pub message: Cow<'static, str>,
    /// The response of the endpoint, at most 2 KiB, for its owner.
    pub told: Option<String>,
    /// Whether another try is of no use.
    pub permanent: bool,
    /// Headers of the answer, which may ask for a pause.
    pub headers: Box<HeaderMap>,
}

/// The kinds of [`AiFault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AiFaultClass {
    /// No answer came, or not all of it.
    Egress(EgressFault),
    /// The base URL may not be called.
    BadUrl,
    /// Another status than 2xx.
    Status(u16),
    /// An answer that is no chat completion.
    NotUnderstood,
    /// The stream ended, or told of an error, before the answer was whole.
    Cut,
}

impl AiFaultClass {
    /// The name in traces and counters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Egress(fault) => fault.as_str(),
            Self::BadUrl => "bad_url",
            Self::Status(429) => "rate_limited",
            Self::Status(400..=499) => "refused",
            Self::Status(_) => "failed",
            Self::NotUnderstood => "not_understood",
            Self::Cut => "cut",
        }
    }
}

impl AiFault {
    pub(crate) fn new(class: AiFaultClass, message: impl Into<Cow<'static, str>>) -> Self {
        // What is too large once is too large again, at a price; a bad URL stays one.
        let permanent = matches!(class, AiFaultClass::BadUrl | AiFaultClass::Egress(EgressFault::TooLarge));
        Self { class, message: message.into(), told: None, permanent, headers: Box::default() }
    }

    fn not_understood(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(AiFaultClass::NotUnderstood, message)
    }
}
