//! Reads a response as a completion: one reader for everything that OpenAI-compatible endpoints send.
//!
//! The first bytes decide the format of a response, not its headers. Only the text, the tool calls and the finish
//! reason of a choice are read. The other members of the message are kept to be sent back, and everything else is
//! ignored, whatever its type.

use serde_json::{Map, Value};

use super::{
    AiFault, AiFaultClass, Completion, Usage,
    calls::Calls,
    lenient_json::{self, is_something},
};
use crate::egress::EgressFault;

/// Maximum size of the text and the tool arguments of one answer, in bytes.
pub const MAX_ANSWER: usize = 256 * 1024;
/// Maximum size of the reasoning and of unknown members of the message, in bytes.
pub const MAX_THINKING: usize = 4 * 1024 * 1024;
/// Members with reasoning. Of non-streamed ones the first counts: some endpoints send two.
const THINKING: [&str; 4] = ["reasoning_content", "reasoning", "thinking", "reasoning_text"];
/// Types of content parts with reasoning.
const THINKING_PARTS: [&str; 4] = ["thinking", "reasoning", "redacted_thinking", "thought"];
/// Members of a message that are read; the others are kept.
const READ: [&str; 8] =
    ["role", "content", "tool_calls", "function_call", "refusal", "audio", "text", "tool_call_id"];
/// Finish reasons of an incomplete answer.
const BROKEN_ENDS: [&str; 4] = ["error", "network_error", "insufficient_system_resource", "model_error"];

/// A completion that is still being received.
#[derive(Debug, Default)]
pub(super) struct PartialCompletion {
    text: String,
    thinking: String,
    refusal: String,
    calls: Calls,
    /// Number of lists of calls so far.
    lists: u64,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    extra: Map<String, Value>,
    /// Whole content that is not text, unchanged.
    content: Option<Value>,
    /// Index of the choice that is read: only one answer was requested.
    choice: Option<u64>,
    /// Whether the endpoint reported the end.
    done: bool,
    /// Beginning of text received in place of events.
    noise: String,
    /// Bytes kept of text and calls, and of everything else.
    kept: (usize, usize),
    /// Whether anything that looks like an answer was received.
    pub(super) began: bool,
}

/// Member of a choice that contained the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageMember {
    Delta,
    Message,
}

impl PartialCompletion {
    /// Takes the data of one event. Returns `true` when nothing follows.
    pub(super) fn take_event(&mut self, data: &str) -> Result<bool, AiFault> {
        let mut data = data.trim();
        // Some proxies add a second `data:` prefix.
        while let Some(inner) = data.strip_prefix("data:") {
            data = inner.trim_start();
        }
        if data.trim_matches(['"', '[', ']']).eq_ignore_ascii_case("done") {
            self.done = true;
        } else if data.starts_with(['{', '[']) {
            match lenient_json::parse_all(data) {
                Ok(values) => values.iter().try_for_each(|value| self.take_value(value))?,
                // Some servers leave out the empty line between events.
                Err(_) if data.contains('\n') => return self.take_lines(data),
                Err(_) => return Err(AiFault::not_understood("an event of the stream is no JSON")),
            }
        } else if self.noise.len() < lenient_json::MAX_WORDS {
            self.noise.push_str(data);
        }
        Ok(self.done)
    }

    fn take_lines(&mut self, data: &str) -> Result<bool, AiFault> {
        for line in data.lines() {
            if self.take_event(line)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes a whole answer, a part of one, or a list of either.
    pub(super) fn take_value(&mut self, value: &Value) -> Result<(), AiFault> {
        lenient_json::objects(Some(value)).try_for_each(|answer| self.take_answer(answer))
    }

    fn take_answer(&mut self, answer: &Map<String, Value>) -> Result<(), AiFault> {
        let has_choices =
            |answer: &Map<String, Value>| lenient_json::objects(answer.get("choices")).next().is_some();
        let is_native = |answer: &Map<String, Value>| answer.get("message").is_some_and(Value::is_object);
        let inner = lenient_json::unwrapped(answer, |answer| has_choices(answer) || is_native(answer));
        self.take_usage(inner.get("usage").or_else(|| answer.get("x_groq")?.get("usage")));
        if has_choices(inner) {
            self.began = true;
            self.take_choices(inner)?;
        } else if is_native(inner) {
            self.began = true;
            self.take_native(inner)?;
        }
        // An error after the end does not invalidate the answer.
        let has_error = lenient_json::error_in(answer).is_some()
            || (!has_choices(inner) && !is_native(inner) && lenient_json::describes_error(answer));
        if has_error && !self.is_whole() {
            return Err(AiFault::reported_in_answer(&Value::Object(answer.clone())));
        }
        Ok(())
    }

    fn take_choices(&mut self, answer: &Map<String, Value>) -> Result<(), AiFault> {
        let choices: Vec<_> = lenient_json::objects(answer.get("choices")).collect();
        let index = |choice: &Map<String, Value>| lenient_json::number(choice.get("index"));
        let first = choices.iter().find(|choice| index(choice) == Some(0)).or(choices.first());
        let wanted = *self.choice.get_or_insert_with(|| first.and_then(|choice| index(choice)).unwrap_or(0));
        let ours = choices.iter().enumerate().find(|(place, choice)| match index(choice) {
            Some(index) => index == wanted,
            None => *place == 0,
        });
        let Some((_, choice)) = ours else { return Ok(()) };
        self.take_usage(choice.get("usage"));
        let object =
            |name: &str| choice.get(name).and_then(Value::as_object).filter(|object| !object.is_empty());
        match (object("delta"), object("message")) {
            (Some(delta), Some(message)) => {
                self.take_message(delta, MessageMember::Delta)?;
                self.take_message(message, MessageMember::Message)?;
            }
            (Some(delta), None) => self.take_message(delta, MessageMember::Delta)?,
            (None, Some(message)) => self.take_message(message, MessageMember::Message)?,
            // Text completions.
            (None, None) => {
                let text = choice.get("text").or_else(|| choice.get("content")).and_then(Value::as_str);
                self.push_text(text.unwrap_or_default())?;
            }
        }
        self.take_end(choice.get("finish_reason"));
        Ok(())
    }

    /// An answer or a piece in the form of Ollama's own interface.
    fn take_native(&mut self, answer: &Map<String, Value>) -> Result<(), AiFault> {
        if let Some(message) = answer.get("message").and_then(Value::as_object) {
            self.take_message(message, MessageMember::Delta)?;
        }
        let count = |name: &str| lenient_json::number(answer.get(name));
        if let (Some(prompt_tokens), Some(completion_tokens)) =
            (count("prompt_eval_count"), count("eval_count"))
        {
            self.usage = Some(Usage { prompt_tokens, completion_tokens });
        }
        self.take_end(answer.get("done_reason").or_else(|| answer.get("finish_reason")));
        self.done |= answer.get("done") == Some(&Value::Bool(true));
        Ok(())
    }

    fn take_end(&mut self, reason: Option<&Value>) {
        if let Some(reason) = lenient_json::text(reason).filter(|reason| reason != "null") {
            self.finish_reason = Some(reason);
        }
    }

    fn take_usage(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.and_then(Value::as_object) else { return };
        let count = |names: [&str; 2]| names.iter().find_map(|name| lenient_json::number(usage.get(*name)));
        let (read, written) =
            (count(["prompt_tokens", "input_tokens"]), count(["completion_tokens", "output_tokens"]));
        if read.is_some() || written.is_some() {
            let (prompt_tokens, completion_tokens) = (read.unwrap_or(0), written.unwrap_or(0));
            self.usage = Some(Usage { prompt_tokens, completion_tokens });
        }
    }

    fn take_message(&mut self, message: &Map<String, Value>, member: MessageMember) -> Result<(), AiFault> {
        if member == MessageMember::Message {
            self.forget_what_is_repeated(message);
        }
        let thinking =
            THINKING.iter().find_map(|name| message.get(*name)?.as_str().filter(|text| !text.is_empty()));
        match thinking {
            Some(thinking) => self.push_thinking(thinking)?,
            None => {
                for detail in lenient_json::objects(message.get("reasoning_details")) {
                    let text = detail.get("text").or_else(|| detail.get("summary")).and_then(Value::as_str);
                    self.push_thinking(text.unwrap_or_default())?;
                }
            }
        }
        if let Some(content) = message.get("content") {
            if member == MessageMember::Message && content.is_array() {
                self.content = Some(content.clone());
            }
            self.take_content(content, 0)?;
        } else if let Some(text) = message.get("text").and_then(Value::as_str) {
            self.push_text(text)?;
        }
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            self.refusal.push_str(refusal);
            self.keep(refusal.len())?;
        }
        for calls in ["tool_calls", "function_call"].iter().filter_map(|name| message.get(*name)) {
            self.lists += 1;
            let bytes = self.calls.take(calls, self.lists)?;
            self.keep(bytes)?;
        }
        self.take_extra(message, member)
    }

    /// Clears the parts so far if the message repeats them: in a stream, a message may be either a repetition or
    /// another part.
    fn forget_what_is_repeated(&mut self, message: &Map<String, Value>) {
        let content = message.get("content").and_then(Value::as_str).unwrap_or_default();
        if !self.text.is_empty() && content.starts_with(&self.text) {
            self.text.clear();
            self.thinking.clear();
        }
        if message.get("tool_calls").is_some_and(is_something) && !self.calls.is_empty() {
            self.calls.clear();
        }
    }

    /// Takes a content: a text, or parts of any kind.
    fn take_content(&mut self, content: &Value, depth: u32) -> Result<(), AiFault> {
        match content {
            Value::String(text) => self.push_text(text),
            Value::Number(number) => self.push_text(&number.to_string()),
            Value::Array(parts) if depth < 4 => {
                parts.iter().try_for_each(|part| self.take_content(part, depth + 1))
            }
            Value::Object(part) if depth < 4 => {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
                if THINKING_PARTS.contains(&kind) {
                    let mut thought = String::new();
                    collect_texts(content, &mut thought, 0);
                    return self.push_thinking(&thought);
                }
                if let Some(refusal) = part.get("refusal").and_then(Value::as_str) {
                    self.refusal.push_str(refusal);
                    return self.keep(refusal.len());
                }
                match ["text", "content", "value"].iter().find_map(|name| part.get(*name)) {
                    Some(inner) => self.take_content(inner, depth + 1),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Keeps members that are not read: endpoints require them back with the results of tools.
    fn take_extra(&mut self, message: &Map<String, Value>, member: MessageMember) -> Result<(), AiFault> {
        for (name, value) in message.iter().filter(|(name, _)| !READ.contains(&name.as_str())) {
            if !is_something(value) && !value.is_boolean() {
                continue;
            }
            self.kept.1 += match value {
                Value::String(text) => text.len(),
                other => other.to_string().len(),
            };
            let is_thinking = THINKING.contains(&name.as_str());
            match (self.extra.get_mut(name), value) {
                (Some(Value::String(known)), Value::String(more)) if member == MessageMember::Delta => {
                    // Pieces of a text follow each other; a constant is repeated.
                    if is_thinking || known != more {
                        known.push_str(more);
                    }
                }
                (Some(Value::Array(known)), Value::Array(more)) if member == MessageMember::Delta => {
                    known.extend(more.iter().cloned());
                }
                _ => _ = self.extra.insert(name.clone(), value.clone()),
            }
        }
        self.keep(0)
    }

    fn push_text(&mut self, text: &str) -> Result<(), AiFault> {
        self.text.push_str(text);
        self.keep(text.len())
    }

    fn push_thinking(&mut self, text: &str) -> Result<(), AiFault> {
        self.thinking.push_str(text);
        self.kept.1 += text.len();
        self.keep(0)
    }

    fn keep(&mut self, bytes: usize) -> Result<(), AiFault> {
        self.kept.0 += bytes;
        let limit = match self.kept {
            (text, _) if text > MAX_ANSWER => MAX_ANSWER,
            (_, rest) if rest > MAX_THINKING => MAX_THINKING,
            _ => return Ok(()),
        };
        let message = format!("the text of the response is larger than {limit} bytes");
        Err(AiFault::new(AiFaultClass::Egress(EgressFault::TooLarge), message))
    }

    /// Whether the answer is complete.
    pub(super) fn is_whole(&self) -> bool {
        match self.finish_reason.as_deref() {
            Some(reason) => !BROKEN_ENDS.contains(&reason.to_ascii_lowercase().as_str()),
            None => self.done,
        }
    }

    /// Marks the end of the response: a whole answer without a finish reason is complete, too.
    pub(super) fn end(&mut self) {
        self.done = true;
    }

    /// Returns the completion if it is complete: a truncated response is not sent.
    ///
    /// # Errors
    /// [`AiFaultClass::Cut`] with the text that the endpoint sent in place of the rest.
    pub(super) fn finish(self) -> Result<Completion, AiFault> {
        let said = Some(lenient_json::page_words(&self.noise)).filter(|words| !words.is_empty());
        if !self.began && !self.noise.is_empty() && !self.is_whole() {
            let message = "the stream holds no chat completion";
            return Err(AiFault { endpoint_message: said, ..AiFault::not_understood(message) });
        }
        if !self.is_whole() {
            let message = match self.finish_reason {
                Some(reason) => format!("the endpoint broke off the response: {reason}"),
                None if self.text.is_empty() => "the response is incomplete".to_owned(),
                None => format!(
                    "the response is incomplete: it ended after {} characters",
                    self.text.chars().count()
                ),
            };
            let mut fault = AiFault::new(AiFaultClass::Cut, message);
            fault.endpoint_message = said;
            return Err(fault);
        }
        let is_refusal = self.text.trim().is_empty() && !self.refusal.is_empty();
        Ok(Completion {
            text: if is_refusal { self.refusal } else { self.text },
            thinking: self.thinking,
            tool_calls: self.calls.finish()?,
            finish_reason: self.finish_reason,
            usage: self.usage,
            content: self.content,
            extra: self.extra,
            left_out: Vec::new(),
        })
    }
}

/// Joins the texts in a part, whatever their names are.
fn collect_texts(value: &Value, out: &mut String, depth: u32) {
    match value {
        Value::String(text) => out.push_str(text),
        Value::Array(parts) if depth < 4 => parts.iter().for_each(|part| collect_texts(part, out, depth + 1)),
        Value::Object(part) if depth < 4 => {
            let names = ["thinking", "text", "reasoning", "content", "summary"];
            names
                .iter()
                .filter_map(|name| part.get(*name))
                .for_each(|inner| collect_texts(inner, out, depth + 1));
        }
        _ => {}
    }
}
