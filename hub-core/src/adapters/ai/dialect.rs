//! The parts of a request that endpoints and models refuse, learned from their refusals.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{
    AiFault, AiFaultClass, Endpoint, Message, Prompt, Role,
    wire::{Request, StreamOptions},
};
use crate::time::Instant;

/// Life of a dialect: models are replaced behind their names.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// Dialects that are remembered. When there are more, all are forgotten and learned again.
const MAX_REMEMBERED: usize = 1_000;

/// A part of a request that an endpoint may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
enum Part {
    StreamOptions = 1,
    Stream = 1 << 1,
    /// Sent as `max_completion_tokens` instead.
    MaxTokens = 1 << 2,
    MaxCompletionTokens = 1 << 3,
    Temperature = 1 << 4,
    /// Sent as a message of the role `developer` instead.
    SystemRole = 1 << 5,
    /// Sent in the first message of the person instead.
    DeveloperRole = 1 << 6,
    Images = 1 << 7,
    /// Members that the endpoint sent with earlier messages.
    MessageMembers = 1 << 8,
    Tools = 1 << 9,
}

/// In the order in which a refusal is searched for them: the more specific words first.
const PARTS: [(Part, &str); 10] = [
    (Part::StreamOptions, "stream_options"),
    (Part::MaxTokens, "max_tokens"),
    (Part::MaxCompletionTokens, "max_completion_tokens"),
    (Part::Temperature, "temperature"),
    (Part::Images, "images"),
    (Part::MessageMembers, "message_members"),
    (Part::DeveloperRole, "developer_role"),
    (Part::SystemRole, "system_role"),
    (Part::Stream, "stream"),
    (Part::Tools, "tools"),
];

/// Words with which something is refused for what it is, not for its value.
const UNSUPPORTED: [&str; 23] = [
    "support",
    "unknown",
    "unrecognized",
    "unexpected",
    "extra input",
    "extra_forbidden",
    "not permitted",
    "not allowed",
    "not enabled",
    "not available",
    "not implemented",
    "not accept",
    "deprecated",
    "disabled",
    "unavailable",
    "no endpoints found",
    "must be verified",
    "requires",
    "cannot use",
    "can't use",
    "additional propert",
    "不支持",
    "不允许",
];

/// The parts that an endpoint refuses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dialect(u16);

impl Dialect {
    fn refuses(self, part: Part) -> bool {
        self.0 & part as u16 != 0
    }

    /// The request as the endpoint takes it.
    pub(super) fn request(self, prompt: &Prompt) -> Request<'_> {
        let stream = !self.refuses(Part::Stream);
        let renamed = self.refuses(Part::MaxTokens);
        let limit = |is_sent: bool| prompt.max_tokens.filter(|_| is_sent);
        Request {
            model: &prompt.model,
            messages: self.messages(prompt),
            stream,
            stream_options: (stream && !self.refuses(Part::StreamOptions))
                .then_some(StreamOptions { include_usage: true }),
            max_tokens: limit(!renamed),
            max_completion_tokens: limit(renamed && !self.refuses(Part::MaxCompletionTokens)),
            temperature: prompt.temperature.filter(|_| !self.refuses(Part::Temperature)),
            tools: if self.refuses(Part::Tools) && !has_dialogue(prompt) { &[] } else { &prompt.tools },
        }
    }

    fn messages(self, prompt: &Prompt) -> Cow<'_, [Message]> {
        let touched = [Part::Images, Part::MessageMembers, Part::SystemRole, Part::DeveloperRole];
        if !touched.into_iter().any(|part| self.refuses(part)) {
            return Cow::Borrowed(&prompt.messages);
        }
        let mut messages: Vec<Message> = prompt
            .messages
            .iter()
            .map(
                |message| if self.refuses(Part::Images) { message.without_images() } else { message.clone() },
            )
            .collect();
        if self.refuses(Part::MessageMembers) {
            messages.iter_mut().for_each(Message::remove_extra);
        }
        if self.refuses(Part::DeveloperRole) {
            fold_system(&mut messages);
        } else if self.refuses(Part::SystemRole) {
            for message in messages.iter_mut().filter(|message| message.role == Role::System) {
                message.role = Role::Developer;
            }
        }
        Cow::Owned(messages)
    }

    /// Whether a refusal names a part that is still sent; it is left out from then on.
    pub(super) fn learn(&mut self, refused: &AiFault, prompt: &Prompt) -> bool {
        let AiFaultClass::Status(status @ (400 | 404 | 405 | 415 | 422 | 500 | 501)) = refused.class else {
            return false;
        };
        let refusal = Refusal::of(refused, status);
        let named =
            PARTS.iter().find(|(part, _)| self.is_sent(*part, prompt) && refusal.names(*part, prompt));
        let Some((part, _)) = named else { return false };
        self.0 |= *part as u16;
        if *part == Part::SystemRole && !refusal.suggests_developer() {
            self.0 |= Part::DeveloperRole as u16;
        }
        true
    }

    fn is_sent(self, part: Part, prompt: &Prompt) -> bool {
        if self.refuses(part) {
            return false;
        }
        match part {
            Part::StreamOptions => !self.refuses(Part::Stream),
            Part::Stream => true,
            Part::MaxTokens => prompt.max_tokens.is_some(),
            Part::MaxCompletionTokens => prompt.max_tokens.is_some() && self.refuses(Part::MaxTokens),
            Part::Temperature => prompt.temperature.is_some(),
            Part::SystemRole => prompt.messages.iter().any(|message| message.role == Role::System),
            Part::DeveloperRole => self.refuses(Part::SystemRole),
            Part::Images => prompt.images() > 0,
            Part::MessageMembers => {
                prompt.messages.iter().any(|message| message.extra_names().next().is_some())
            }
            Part::Tools => !prompt.tools.is_empty() && !has_dialogue(prompt),
        }
    }

    /// Names of the parts of this prompt that are left out or renamed.
    pub(super) fn left_out(self, prompt: &Prompt) -> Vec<&'static str> {
        let all_sent = Self::default();
        let parts = PARTS.iter().filter(|(part, _)| match part {
            Part::DeveloperRole => false,
            Part::MaxCompletionTokens => self.refuses(*part) && prompt.max_tokens.is_some(),
            // Only numbers that the hub would like to have.
            Part::StreamOptions => self.refuses(*part) && !self.refuses(Part::Stream),
            part => self.refuses(*part) && all_sent.is_sent(*part, prompt),
        });
        parts.map(|(_, name)| *name).collect()
    }
}

/// Whether tools were used already: without them the model would not understand the conversation.
fn has_dialogue(prompt: &Prompt) -> bool {
    prompt.messages.iter().any(Message::is_about_tools)
}

/// Moves what the operator says into the first message of the person.
fn fold_system(messages: &mut Vec<Message>) {
    let mut said = Vec::new();
    messages.retain(|message| {
        let is_system = message.role == Role::System;
        if let (true, Some(super::Content::Text(text))) = (is_system, &message.content) {
            said.push(text.clone());
        }
        !is_system
    });
    if let Some(first) = messages.iter_mut().find(|message| message.role == Role::User) {
        first.prepend(&said.join("\n\n"));
    }
}

/// The words of an endpoint about a part that it does not take.
struct Refusal<'f> {
    /// The words of the error, in lower case.
    words: String,
    names: &'f [String],
    /// Whether the words speak of something that is not taken at all.
    is_unsupported: bool,
    /// Whether the status says that the request is wrong; others have other reasons more often.
    is_about_request: bool,
}

impl<'f> Refusal<'f> {
    fn of(fault: &'f AiFault, status: u16) -> Self {
        let words = fault.endpoint_message.as_deref().unwrap_or_default().to_lowercase();
        let is_unsupported = UNSUPPORTED.iter().any(|word| words.contains(word))
            || fault.names.iter().any(|name| UNSUPPORTED.iter().any(|word| name.contains(word)));
        Self { words, names: &fault.names, is_unsupported, is_about_request: status != 500 }
    }

    fn names(&self, part: Part, prompt: &Prompt) -> bool {
        let says = |word: &str| self.words.contains(word);
        let is_param = |param: &str| self.names.iter().any(|name| name == param);
        // A name alone may be in any sentence; as the parameter of the error it is the reason.
        let unsupported = |word: &str| says(word) && self.is_unsupported;
        match part {
            Part::StreamOptions => is_param("stream_options") || says("stream_options"),
            Part::MaxTokens => {
                says("max_completion_tokens")
                    || (self.is_unsupported && (is_param("max_tokens") || says("max_tokens")))
            }
            Part::MaxCompletionTokens => {
                self.is_unsupported && (is_param("max_completion_tokens") || says("max_completion_tokens"))
            }
            Part::Temperature => is_param("temperature") || (self.is_about_request && says("temperature")),
            // Some answer 415, 500 or 501 to an image, and most of them name it.
            Part::Images => {
                let wants_text =
                    ["must be a string", "expected a string", "valid string", "expected string", "图片"];
                says("image")
                    || unsupported("multimodal")
                    || unsupported("vision")
                    || wants_text.iter().any(|words| says(words))
            }
            Part::MessageMembers => prompt.messages.iter().flat_map(Message::extra_names).any(|name| {
                self.is_about_request && (says(&name.to_lowercase()) || is_param(&name.to_lowercase()))
            }),
            Part::SystemRole => {
                let is_about_role =
                    ["role", "instruction", "message", "prompt"].iter().any(|word| says(word));
                says("roles must alternate")
                    || unsupported("developer instruction")
                    || (unsupported("system") && is_about_role)
                    || (says("invalid")
                        && (says("role: system") || says("role: 'system'") || says("role 'system'")))
            }
            Part::DeveloperRole => says("developer") || says("roles must alternate"),
            Part::Stream => {
                let wants_stream =
                    ["only support stream", "only supports stream", "enable_stream", "must be true"];
                let without = self.is_unsupported || says("must be false") || says("verified to stream");
                (is_param("stream") || (says("stream") && without))
                    && !wants_stream.iter().any(|words| says(words))
            }
            Part::Tools => {
                let words = ["tool", "function call", "function_call", "functions", "工具"];
                is_param("tools") || is_param("tool_choice") || words.iter().any(|word| unsupported(word))
            }
        }
    }

    fn suggests_developer(&self) -> bool {
        self.words.contains("developer") && !self.words.contains("developer instruction")
    }
}

/// The dialects of endpoints and their models. Clones share them; nothing outlives the process.
#[derive(Debug, Clone, Default)]
pub struct Dialects(Arc<Mutex<HashMap<ModelKey, (Dialect, Instant)>>>);

/// The URL of an endpoint and the name of a model.
type ModelKey = (String, String);

impl Dialects {
    pub(super) fn of(&self, endpoint: &Endpoint, model: &str, now: Instant) -> Dialect {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(&(endpoint.base_url.clone(), model.to_owned()));
        let fresh = found.filter(|(_, learned)| now.since(*learned) < REMEMBERED);
        fresh.map(|(dialect, _)| *dialect).unwrap_or_default()
    }

    pub(super) fn remember(&self, endpoint: &Endpoint, model: &str, dialect: Dialect, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert((endpoint.base_url.clone(), model.to_owned()), (dialect, now));
    }
}
