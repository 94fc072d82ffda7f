//! The body of a request.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Completion;

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// Author of the message.
    pub role: Role,
    /// Content; `null` where the model only called tools.
    pub content: Option<Content>,
    /// Tools that the model calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call that a tool result belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Other members that the endpoint sent with it.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The operator of the bot.
    System,
    /// The operator, under the name that newer OpenAI models use.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

/// Content of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// A text.
    Text(String),
    /// Texts and images.
    Parts(Vec<Part>),
    /// Content that an endpoint sent, unchanged.
    Raw(Value),
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    ImageUrl {
        /// Its URL.
        image_url: ImageUrl,
    },
}

/// URL of an image; here always a data URL.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImageUrl {
    /// `data:image/png;base64,…`
    pub url: String,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", content = "function", rename_all = "snake_case")]
pub enum Tool {
    /// A function.
    Function {
        /// 1 to 64 of `a-zA-Z0-9_-`.
        name: String,
        /// Description for the model.
        description: String,
        /// JSON Schema of its arguments.
        parameters: Value,
    },
}

/// A call of a tool by the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(into = "WireToolCall")]
pub struct ToolCall {
    /// Id of the call, chosen by the model.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Its arguments: a JSON text, unchecked, as the model wrote it.
    pub arguments: String,
    /// Other members of the call, which the endpoint wants back.
    pub extra: Map<String, Value>,
    /// Other members of its `function`.
    pub function_extra: Map<String, Value>,
}

#[derive(Serialize)]
struct WireToolCall {
    id: String,
    r#type: &'static str,
    function: WireFunction,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Serialize)]
struct WireFunction {
    name: String,
    arguments: String,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl From<ToolCall> for WireToolCall {
    fn from(ToolCall { id, name, arguments, extra, function_extra }: ToolCall) -> Self {
        let function = WireFunction { name, arguments, extra: function_extra };
        Self { id, r#type: "function", function, extra }
    }
}

impl Message {
    fn new(role: Role, content: Option<Content>) -> Self {
        Self { role, content, tool_calls: Vec::new(), tool_call_id: None, extra: Map::new() }
    }

    /// Creates a text message.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, Some(Content::Text(text.into())))
    }

    /// Creates a message of the user with images.
    pub fn parts(parts: Vec<Part>) -> Self {
        Self::new(Role::User, Some(Content::Parts(parts)))
    }

    /// Returns the number of images in the message.
    pub fn images(&self) -> usize {
        let Some(Content::Parts(parts)) = &self.content else { return 0 };
        parts.iter().filter(|part| matches!(part, Part::ImageUrl { .. })).count()
    }

    /// Returns the message with its texts alone, for a model that cannot read images.
    #[must_use]
    pub fn without_images(&self) -> Self {
        let Some(Content::Parts(parts)) = &self.content else { return self.clone() };
        let texts = parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::ImageUrl { .. } => None,
        });
        let content = Some(Content::Text(texts.collect::<Vec<_>>().join("\n")));
        Self { content, ..self.clone() }
    }

    /// Creates the message in which the model calls tools, unchanged.
    pub fn asking(completion: Completion) -> Self {
        let Completion { text, content, tool_calls, extra, .. } = completion;
        let text = (!text.is_empty()).then_some(Content::Text(text));
        Self { tool_calls, extra, ..Self::new(Role::Assistant, content.map(Content::Raw).or(text)) }
    }

    /// Creates the result of a tool call.
    pub fn of_tool(call: &ToolCall, answer: String) -> Self {
        Self { tool_call_id: Some(call.id.clone()), ..Self::text(Role::Tool, answer) }
    }

    /// Whether it belongs to a dialogue with tools.
    pub(super) fn is_about_tools(&self) -> bool {
        self.tool_call_id.is_some() || !self.tool_calls.is_empty()
    }

    /// Removes the members that the endpoint added.
    pub(super) fn remove_extra(&mut self) {
        self.extra.clear();
        for call in &mut self.tool_calls {
            call.extra.clear();
            call.function_extra.clear();
        }
    }

    /// Names of the members that the endpoint added.
    pub(super) fn extra_names(&self) -> impl Iterator<Item = &String> {
        let calls =
            self.tool_calls.iter().flat_map(|call| call.extra.keys().chain(call.function_extra.keys()));
        self.extra.keys().chain(calls)
    }

    /// Puts a text before its own.
    pub(super) fn prepend(&mut self, before: &str) {
        match &mut self.content {
            Some(Content::Text(text)) => *text = format!("{before}\n\n{text}"),
            Some(Content::Parts(parts)) => parts.insert(0, Part::Text { text: before.to_owned() }),
            Some(Content::Raw(_)) | None => {}
        }
    }
}

/// A request. `None` and empty members are left out, because endpoints reject members that they do not support.
#[derive(Debug, Serialize)]
pub(super) struct Request<'p> {
    pub model: &'p str,
    pub messages: Cow<'p, [Message]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The name of `max_tokens` that newer OpenAI models require.
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

/// What a call to a model cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, hub_macros::Api)]
#[serde(default)]
#[api(name = "ModelUsage")]
pub struct Usage {
    /// Tokens that the model read.
    pub prompt_tokens: u64,
    /// Tokens that the model wrote.
    pub completion_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
    }
}
