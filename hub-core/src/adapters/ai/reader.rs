//! The response while it comes: what it is, and its pieces.

use std::{ops::ControlFlow, sync::Arc};

use http::{HeaderMap, StatusCode, header};
use tokio::sync::Notify;

use super::{
    AiFault, AiFaultClass, Completion,
    answer::PartialCompletion,
    lenient_json::{self, page_words},
};
use crate::{
    egress::{EgressFault, Reader},
    sse::Events,
};

/// Largest event, and largest answer that is one JSON text, in bytes.
const MAX_EVENT: usize = 4 * 1024 * 1024;
/// Most that is read of a response that is neither JSON nor a stream, in bytes.
const MAX_OTHER: usize = 64 * 1024;
/// Bytes that tell what a response is.
const SIGN: usize = 7;

/// Reads the response of an endpoint.
#[derive(Debug, Default)]
pub(super) struct AnswerReader {
    status: StatusCode,
    headers: HeaderMap,
    form: Form,
    growing: PartialCompletion,
    /// The body, where it is not a stream.
    body: Vec<u8>,
    fault: Option<AiFault>,
    /// Notified of every piece.
    pub(super) alive: Arc<Notify>,
}

/// The form of a response.
#[derive(Debug, Default)]
enum Form {
    #[default]
    Unknown,
    Events(Events),
    /// One JSON text, or several after each other.
    Json,
    /// A page, or a text.
    Other,
}

impl Reader for AnswerReader {
    fn begin(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.status = status;
        self.headers = headers.clone();
        self.alive.notify_one();
    }

    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        self.alive.notify_one();
        if let Form::Events(_) = self.form {
            return self.take_events(piece);
        }
        self.body.extend_from_slice(piece);
        if matches!(self.form, Form::Unknown) {
            self.form = self.recognize(false);
            if let Form::Events(_) = self.form {
                let body = std::mem::take(&mut self.body);
                return self.take_events(&body);
            }
        }
        let limit =
            if matches!(self.form, Form::Json) && self.status.is_success() { MAX_EVENT } else { MAX_OTHER };
        if self.body.len() <= limit {
            return ControlFlow::Continue(());
        }
        if self.status.is_success() && !self.is_page() {
            let message = format!("the response is larger than {limit} bytes");
            self.fault = Some(AiFault::new(AiFaultClass::Egress(EgressFault::TooLarge), message));
        }
        ControlFlow::Break(())
    }
}

impl AnswerReader {
    /// Decides by the first bytes; the header helps only where they are those of neither form.
    fn recognize(&self, is_over: bool) -> Form {
        let is_start = |byte: &u8| !byte.is_ascii_whitespace();
        let body = self.body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&self.body);
        let body = body.iter().position(is_start).map_or(&[][..], |start| &body[start..]);
        let fields: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
        let content_type = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_declared =
            content_type.is_some_and(|value| value.to_ascii_lowercase().contains("event-stream"));
        match body.first() {
            // It may become the `[DONE]` of a stream.
            Some(b'[') if body.len() == 1 && !is_over => Form::Unknown,
            Some(b'{' | b'[') if !body.starts_with(b"[D") => Form::Json,
            Some(b'<') => Form::Other,
            _ if !self.status.is_success() => Form::Other,
            _ if fields.iter().any(|field| body.starts_with(field)) => Form::Events(Events::new(MAX_EVENT)),
            _ if body.len() < SIGN && !is_over => Form::Unknown,
            Some(_) if is_declared => Form::Events(Events::new(MAX_EVENT)),
            None if is_declared && is_over => Form::Events(Events::new(MAX_EVENT)),
            _ => Form::Other,
        }
    }

    fn is_page(&self) -> bool {
        self.body.trim_ascii_start().starts_with(b"<")
    }

    fn take_events(&mut self, piece: &[u8]) -> ControlFlow<()> {
        match self.grow(piece) {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(fault) => {
                self.fault = Some(fault);
                ControlFlow::Break(())
            }
        }
    }

    fn grow(&mut self, piece: &[u8]) -> Result<bool, AiFault> {
        let Form::Events(events) = &mut self.form else { return Ok(false) };
        let complete = events
            .feed(piece)
            .map_err(|error| AiFault::new(AiFaultClass::Egress(EgressFault::TooLarge), error.to_string()))?;
        for event in complete {
            if self.growing.take_event(&event)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes what came after the last whole piece, when nothing follows.
    fn take_rest(&mut self) {
        if matches!(self.form, Form::Unknown) {
            self.form = self.recognize(true);
        }
        if let Form::Events(events) = &mut self.form {
            let body = std::mem::take(&mut self.body);
            let last = events.feed(&body).unwrap_or_default().into_iter().chain(events.pending());
            // Half an event is a cut, which shows in what is missing.
            last.for_each(|event| _ = self.growing.take_event(&event));
        }
    }

    /// Whether the answer is whole although the connection did not end well.
    pub(super) fn is_whole(&mut self) -> bool {
        // Of a refusal the status is enough.
        if self.fault.is_some() || !self.status.is_success() {
            return true;
        }
        self.take_rest();
        if matches!(self.form, Form::Json) {
            return lenient_json::parse(&String::from_utf8_lossy(&self.body)).is_ok();
        }
        self.growing.is_whole()
    }

    /// The completion, after everything came.
    pub(super) fn finish(mut self) -> Result<Completion, AiFault> {
        if !self.status.is_success() {
            return Err(AiFault::refused(self.status, self.headers, &self.body));
        }
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.take_rest();
        match self.form {
            Form::Events(_) | Form::Unknown => {}
            Form::Json => self.take_json()?,
            Form::Other => return Err(self.other()),
        }
        self.growing.finish()
    }

    fn take_json(&mut self) -> Result<(), AiFault> {
        let body = String::from_utf8_lossy(&self.body);
        let body = body.trim_start_matches('\u{feff}');
        let (values, rest) = match lenient_json::parse_all(body) {
            Ok(values) => (values, None),
            Err((values, error)) => (values, Some(error)),
        };
        values.iter().try_for_each(|value| self.growing.take_value(value))?;
        match rest {
            // Whatever follows the end is of no interest.
            Some(_) if self.growing.is_whole() => Ok(()),
            Some(error) if error.is_eof() && self.growing.began => Ok(()),
            Some(error) => {
                let message =
                    if error.is_eof() { "the response is cut off" } else { "the response is not valid JSON" };
                Err(AiFault { endpoint_message: self.said(), ..AiFault::not_understood(message) })
            }
            None if !self.growing.began => {
                let message = "the response is not a chat completion";
                Err(AiFault { endpoint_message: self.said(), ..AiFault::not_understood(message) })
            }
            // Several values are a stream, which says when it ends.
            None if values.len() > 1 => Ok(()),
            None => {
                self.growing.end();
                Ok(())
            }
        }
    }

    fn other(&self) -> AiFault {
        let message = if self.is_page() {
            "the response is a web page and not a chat completion; check the base URL"
        } else if self.body.trim_ascii().is_empty() {
            "the response is empty"
        } else {
            "the response is a text and not a chat completion"
        };
        AiFault { endpoint_message: self.said(), ..AiFault::not_understood(message) }
    }

    fn said(&self) -> Option<String> {
        Some(page_words(&String::from_utf8_lossy(&self.body))).filter(|words| !words.is_empty())
    }
}

/// Reads a response that is there, in pieces of any size.
///
/// # Errors
/// As [`complete`](super::complete).
#[cfg(any(test, feature = "testing"))]
pub fn read_answer(status: u16, content_type: &str, pieces: &[&[u8]]) -> Result<Completion, AiFault> {
    let mut reader = AnswerReader::default();
    let value = http::HeaderValue::try_from(content_type);
    let headers = value.into_iter().map(|value| (header::CONTENT_TYPE, value)).collect();
    reader.begin(StatusCode::from_u16(status).unwrap_or_default(), &headers);
    for piece in pieces {
        if reader.take(piece).is_break() {
            break;
        }
    }
    reader.finish()
}
