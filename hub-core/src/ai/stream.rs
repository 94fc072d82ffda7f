//! From bytes to a completion: server-sent events, and the pieces that they carry.

use serde_json::Value;

use super::{
    AiFault, AiFaultClass, Completion, ToolCall,
    client::error_message,
    wire::{Answer, Choice, Delta, ToolCallDelta},
};

/// Most tools that a model may ask for in one answer.
const MAX_TOOL_CALLS: usize = 16;

/// Cuts a byte stream into the data of its events (WHATWG HTML, server-sent events). Its memory is bounded by its
/// input.
///
/// Own code and not `sse-stream` or `eventsource-stream`: those pull from a `Stream`, while the egress client pushes
/// bytes, and they drop the last event of servers that omit the empty line at the end.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// A line that is not complete.
    line: Vec<u8>,
    /// The data lines of an event that is not complete.
    data: Option<String>,
    /// Whether the last byte was a CR: a LF behind it belongs to the same line end.
    after_cr: bool,
}

impl Events {
    /// Takes bytes and gives the data of every event that they complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut complete = Vec::new();
        for &byte in bytes {
            let is_second_half = byte == b'\n' && self.after_cr;
            self.after_cr = byte == b'\r';
            match byte {
                _ if is_second_half => {}
                b'\n' | b'\r' => complete.extend(self.end_line()),
                _ => self.line.push(byte),
            }
        }
        complete
    }

    /// The data of the event that the end of the stream completes: some servers omit the last empty line.
    pub(super) fn end(mut self) -> Option<String> {
        let last = self.end_line();
        last.or(self.data)
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.data.take();
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        // Comments and other fields say nothing here.
        let value = line.strip_prefix("data:").or_else(|| (line == "data").then_some(""))?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match &mut self.data {
            None => self.data = Some(value.to_owned()),
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
        }
        None
    }
}

/// A completion that grows.
#[derive(Debug, Default)]
pub(super) struct Growing {
    completion: Completion,
    /// Whether the endpoint said that nothing follows.
    done: bool,
}

impl Growing {
    /// Takes the data of one event; `true` when nothing follows.
    pub(super) fn take_event(&mut self, data: &str) -> Result<bool, AiFault> {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
        } else if !data.is_empty() {
            let piece: Answer = serde_json::from_str(data)
                .map_err(|_| AiFault::not_understood("an event of the stream is no chat completion"))?;
            self.take_answer(piece)?;
        }
        Ok(self.done)
    }

    /// Takes a whole answer, or a piece of one.
    pub(super) fn take_answer(&mut self, answer: Answer) -> Result<(), AiFault> {
        if let Some(error) = answer.error.filter(|error| !error.is_null()) {
            let mut fault = AiFault::new(AiFaultClass::Cut, "the endpoint broke off with an error");
            fault.told = Some(error_message(&error));
            return Err(fault);
        }
        if let Some(usage) = answer.usage {
            self.completion.usage = Some(usage);
        }
        // Only one answer was asked for.
        let choices = answer.choices.unwrap_or_default();
        for choice in choices.into_iter().filter(|choice| choice.index == 0) {
            self.take_choice(choice)?;
        }
        Ok(())
    }

    fn take_choice(&mut self, choice: Choice) -> Result<(), AiFault> {
        if choice.finish_reason.is_some() {
            self.completion.finish_reason = choice.finish_reason;
        }
        let Some(Delta { content, reasoning_content, tool_calls }) = choice.delta else { return Ok(()) };
        if let Some(content) = content {
            push_content(&mut self.completion.text, &content);
        }
        self.completion.thinking.push_str(&reasoning_content.unwrap_or_default());
        for call in tool_calls.into_iter().flatten() {
            self.take_tool_call(call)?;
        }
        Ok(())
    }

    fn take_tool_call(&mut self, piece: ToolCallDelta) -> Result<(), AiFault> {
        let calls = &mut self.completion.tool_calls;
        let place = piece.index.unwrap_or(calls.len());
        if place > calls.len() || place >= MAX_TOOL_CALLS {
            return Err(AiFault::not_understood("the model requested too many tools, or skipped one"));
        }
        if place == calls.len() {
            let empty = ToolCall { id: String::new(), name: String::new(), arguments: String::new() };
            calls.push(empty);
        }
        let call = &mut calls[place];
        if let Some(id) = piece.id.filter(|id| !id.is_empty()) {
            call.id = id;
        }
        if let Some(function) = piece.function {
            call.name.push_str(&function.name.unwrap_or_default());
            call.arguments.push_str(&function.arguments.unwrap_or_default());
        }
        Ok(())
    }

    /// Whether nothing of the answer is missing.
    pub(super) const fn is_whole(&self) -> bool {
        self.done || self.completion.finish_reason.is_some()
    }

    /// The completion, if it is complete: a truncated response is not sent.
    pub(super) fn finish(self) -> Result<Completion, AiFault> {
        let is_whole = self.is_whole();
        let mut completion = self.completion;
        if !is_whole {
            let message = "the response is incomplete";
            return Err(AiFault::new(AiFaultClass::Cut, message));
        }
        for (place, call) in completion.tool_calls.iter_mut().enumerate() {
            if call.name.is_empty() {
                return Err(AiFault::not_understood("the model requested a tool without a name"));
            }
            if call.id.is_empty() {
                call.id = format!("call_{place}");
            }
        }
        Ok(completion)
    }
}

/// Texts, or lists of parts that hold texts.
fn push_content(text: &mut String, content: &Value) {
    match content {
        Value::String(piece) => text.push_str(piece),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).for_each(|piece| text.push_str(piece));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The same events whatever the pieces are that they come in.
    fn events(stream: &str) -> Vec<String> {
        let whole = {
            let mut events = Events::default();
            let mut complete = events.feed(stream.as_bytes());
            complete.extend(events.end());
            complete
        };
        let mut events = Events::default();
        let mut complete: Vec<String> =
            stream.as_bytes().iter().flat_map(|byte| events.feed(&[*byte])).collect();
        complete.extend(events.end());
        assert_eq!(complete, whole, "byte by byte");
        whole
    }

    #[test]
    fn events_are_split_as_in_the_standard() {
        for (stream, expected) in [
            ("data: a\n\ndata: b\n\n", vec!["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", vec!["a", "b", "c"]),
            ("data:a\ndata: b\n\n", vec!["a\nb"]),
            (": comment\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", vec!["a"]),
            ("\n\n\ndata: a\n\n\n\n", vec!["a"]),
            ("data: last", vec!["last"]),
            ("data: last\n", vec!["last"]),
            ("data\n\n", vec![""]),
            ("\u{feff}data: a\n\n", vec!["a"]),
            ("data: é🙂\n\n", vec!["é🙂"]),
            ("nothing", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(events(stream), expected, "{stream:?}");
        }
        let mut broken = Events::default();
        assert_eq!(broken.feed(b"data: a\xff\n\n"), ["a\u{fffd}"]);
    }

    fn grow(events: &[Value]) -> Result<Completion, AiFault> {
        let mut growing = Growing::default();
        for event in events {
            let text = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
            if growing.take_event(&text)? {
                break;
            }
        }
        growing.finish()
    }

    fn delta(delta: &Value) -> Value {
        json!({ "id": "x", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta }] })
    }

    #[test]
    fn pieces_become_a_completion() {
        let grown = grow(&[
            delta(&json!({ "role": "assistant", "content": "" })),
            delta(&json!({ "reasoning_content": "hm, " })),
            delta(&json!({ "reasoning": "yes" })),
            delta(&json!({ "content": "Hel" })),
            delta(&json!({ "content": [{ "type": "text", "text": "lo" }] })),
            json!({ "choices": [{ "index": 1, "delta": { "content": "another answer" } }] }),
            json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }),
            json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 } }),
            json!("[DONE]"),
            json!("what follows is not read"),
        ]);
        let usage = Some(super::super::Usage { prompt_tokens: 3, completion_tokens: 2 });
        let expected = Completion {
            text: "Hello".to_owned(),
            thinking: "hm, yes".to_owned(),
            tool_calls: Vec::new(),
            finish_reason: Some("stop".to_owned()),
            usage,
        };
        assert_eq!(grown, Ok(expected));
    }

    #[test]
    fn tool_calls_are_joined_from_their_pieces() {
        let call = |index: usize, id: &str, name: &str, arguments: &str| {
            delta(&json!({ "tool_calls": [{ "index": index, "id": id, "type": "function",
                "function": { "name": name, "arguments": arguments } }] }))
        };
        let grown = grow(&[
            call(0, "a", "wea", ""),
            call(0, "", "ther", "{\"ci"),
            call(0, "", "", "ty\":1}"),
            call(1, "", "time", "{}"),
            json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }),
        ]);
        let tool = |id: &str, name: &str, arguments: &str| ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        assert_eq!(
            grown.unwrap().tool_calls,
            [tool("a", "weather", "{\"city\":1}"), tool("call_1", "time", "{}")]
        );
        for bad in [call(1, "a", "x", ""), call(99_999_999, "a", "x", "")] {
            let fault = grow(&[bad, json!("[DONE]")]).unwrap_err();
            assert_eq!(fault.class, AiFaultClass::NotUnderstood);
        }
        let many: Vec<Value> = (0..=MAX_TOOL_CALLS).map(|n| call(n, "a", "x", "")).collect();
        assert_eq!(grow(&many).unwrap_err().class, AiFaultClass::NotUnderstood);
        let nameless = grow(&[call(0, "a", "", "{}"), json!("[DONE]")]).unwrap_err();
        assert_eq!(nameless.class, AiFaultClass::NotUnderstood);
    }

    #[test]
    fn a_truncated_stream_is_an_error() {
        let piece = delta(&json!({ "content": "Hel" }));
        assert_eq!(grow(std::slice::from_ref(&piece)).unwrap_err().class, AiFaultClass::Cut);
        assert_eq!(grow(&[]).unwrap_err().class, AiFaultClass::Cut);
        let error = json!({ "error": { "message": "overloaded", "type": "server_error" } });
        let fault = grow(&[piece.clone(), error]).unwrap_err();
        assert_eq!((fault.class, fault.told.as_deref()), (AiFaultClass::Cut, Some("overloaded")));
        assert!(!fault.permanent);
        for garbage in ["{", "7", "[]", "\"x\"", "{\"choices\":7}", "<html>"] {
            let fault = grow(&[piece.clone(), json!(garbage)]).unwrap_err();
            assert_eq!(fault.class, AiFaultClass::NotUnderstood, "{garbage}");
        }
        let whole =
            grow(&[piece, json!({ "choices": [{ "delta": {}, "finish_reason": "length" }] })]).unwrap();
        assert_eq!((whole.text.as_str(), whole.finish_reason.as_deref()), ("Hel", Some("length")));
    }
}
