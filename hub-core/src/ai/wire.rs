//! The bodies, as far as they are used. What an endpoint adds to them is ignored.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What; `null` where the model only asked for tools.
    pub content: Option<Content>,
    /// The tools it asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool's answer belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The operator of the bot.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool that the model asked for.
    Tool,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// A text.
    Text(String),
    /// Texts and images.
    Parts(Vec<Part>),
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// A text.
    Text {
        /// It.
        text: String,
    },
    /// An image.
    ImageUrl {
        /// Where it is.
        image_url: ImageUrl,
    },
}

/// Where an image is; here always in the URL itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImageUrl {
    /// `data:image/png;base64,…`
    pub url: String,
}

/// A tool that the model may ask for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", content = "function", rename_all = "snake_case")]
pub enum Tool {
    /// A function.
    Function {
        /// 1 to 64 of `a-zA-Z0-9_-`.
        name: String,
        /// What it does.
        description: String,
        /// JSON Schema of its arguments.
        parameters: Value,
    },
}

/// A tool that the model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "WireToolCall")]
pub struct ToolCall {
    /// The model's handle of the call.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Its arguments: a JSON text, as the model wrote it, which may be anything.
    pub arguments: String,
}

#[derive(Serialize)]
struct WireToolCall {
    id: String,
    r#type: &'static str,
    function: WireFunction,
}

#[derive(Serialize)]
struct WireFunction {
    name: String,
    arguments: String,
}

impl From<ToolCall> for WireToolCall {
    fn from(ToolCall { id, name, arguments }: ToolCall) -> Self {
        Self { id, r#type: "function", function: WireFunction { name, arguments } }
    }
}

impl Message {
    /// A message that is a text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: Some(Content::Text(text.into())), tool_calls: Vec::new(), tool_call_id: None }
    }

    /// A message of the person with images.
    pub fn parts(parts: Vec<Part>) -> Self {
        Self {
            role: Role::User,
            content: Some(Content::Parts(parts)),
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    /// How many images it shows.
    pub fn images(&self) -> usize {
        let Some(Content::Parts(parts)) = &self.content else { return 0 };
        parts.iter().filter(|part| matches!(part, Part::ImageUrl { .. })).count()
    }

    /// As its texts alone, for a model that sees nothing.
    #[must_use]
    pub fn without_images(&self) -> Self {
        let Some(Content::Parts(parts)) = &self.content else { return self.clone() };
        let texts = parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::ImageUrl { .. } => None,
        });
        let content = Some(Content::Text(texts.collect::<Vec<_>>().join("\n")));
        Self {
            role: self.role,
            content,
            tool_calls: self.tool_calls.clone(),
            tool_call_id: self.tool_call_id.clone(),
        }
    }

    /// What the model said when it asked for tools.
    pub fn asking(text: String, tool_calls: Vec<ToolCall>) -> Self {
        let content = (!text.is_empty()).then_some(Content::Text(text));
        Self { role: Role::Assistant, content, tool_calls, tool_call_id: None }
    }

    /// What a tool answered.
    pub fn of_tool(call: &ToolCall, answer: String) -> Self {
        Self { tool_call_id: Some(call.id.clone()), ..Self::text(Role::Tool, answer) }
    }
}

/// A request. What is `None` or empty is left out: endpoints refuse what they do not know.
#[derive(Debug, Serialize)]
pub(super) struct Request<'p> {
    pub model: &'p str,
    pub messages: Cow<'p, [Message]>,
    pub stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The name of `max_tokens` that newer models of OpenAI insist on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "<[Tool]>::is_empty")]
    pub tools: &'p [Tool],
}

#[derive(Debug, Serialize)]
pub(super) struct StreamOptions {
    pub include_usage: bool,
}

/// What an answer cost, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Usage {
    /// What the model read.
    pub prompt_tokens: u64,
    /// What it wrote.
    pub completion_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
    }
}

/// A whole answer, or one piece of a stream: they differ in whether a choice has a `message` or a `delta`.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub choices: Option<Vec<Choice>>,
    pub usage: Option<Usage>,
    pub error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub index: u32,
    #[serde(alias = "message")]
    pub delta: Option<Delta>,
    pub finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta {
    pub content: Option<Value>,
    /// The names under which endpoints tell what a model thinks.
    #[serde(alias = "reasoning")]
    pub reasoning_content: Option<String>,
    pub tool_calls: Option<Vec<ToolCallDelta>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolCallDelta {
    /// Left out in whole answers.
    pub index: Option<usize>,
    pub id: Option<String>,
    pub function: Option<FunctionDelta>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionDelta {
    pub name: Option<String>,
    pub arguments: Option<String>,
}
