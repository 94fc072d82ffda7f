//! One call over the guarded client.

use std::{borrow::Cow, ops::ControlFlow, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::Value;

use super::{
    AiFault, AiFaultClass, Completion, Endpoint, MAX_ANSWER, PATH, Prompt,
    stream::{Events, Growing},
    wire::{Answer, Message, Request, StreamOptions},
};
use crate::egress::{Call, Egress, EgressError, Reader};

/// Most that is kept of what an endpoint says when it refuses, in bytes.
const MAX_ERROR_DETAIL: usize = 2 * 1024;

/// Asks a model, within `deadline` over everything. The answer is read as a stream; an endpoint that answers
/// whole is understood too. Of what endpoints differ in, a refusal teaches: a field that it names is left out or
/// renamed, the images of a model that sees nothing are left out, and the call is made once more.
///
/// # Errors
/// [`AiFault`].
pub async fn complete(
    egress: &Egress,
    endpoint: &Endpoint,
    prompt: &Prompt,
    deadline: Duration,
) -> Result<Completion, AiFault> {
    let url = format!("{}{PATH}", endpoint.base_url.trim_end_matches('/'));
    let url = egress
        .check_url(&url)
        .map_err(|error| AiFault::new(AiFaultClass::BadUrl, error.message().to_owned()))?;
    let headers = headers(endpoint)?;
    let mut dialect = Dialect::default();
    loop {
        let call = Call {
            method: Method::POST,
            url: url.clone(),
            headers: headers.clone(),
            body: Bytes::from(crate::text::json(&dialect.request(prompt))),
            deadline,
            max_answer: MAX_ANSWER,
        };
        match ask(egress, call).await {
            Err(refused) if dialect.learn(&refused, prompt) => {}
            answered => return answered,
        }
    }
}

/// What an endpoint does not know of the newest form of requests, and what its model does not.
#[derive(Debug, Default)]
struct Dialect {
    no_stream_options: bool,
    max_completion_tokens: bool,
    no_images: bool,
}

impl Dialect {
    fn request<'p>(&self, prompt: &'p Prompt) -> Request<'p> {
        Request {
            model: &prompt.model,
            messages: if self.no_images {
                prompt.messages.iter().map(Message::without_images).collect()
            } else {
                Cow::Borrowed(&prompt.messages)
            },
            stream: true,
            stream_options: (!self.no_stream_options).then_some(StreamOptions { include_usage: true }),
            max_tokens: prompt.max_tokens.filter(|_| !self.max_completion_tokens),
            max_completion_tokens: prompt.max_tokens.filter(|_| self.max_completion_tokens),
            temperature: prompt.temperature,
            tools: &prompt.tools,
        }
    }

    /// Whether a refusal says something new.
    fn learn(&mut self, refused: &AiFault, prompt: &Prompt) -> bool {
        let (AiFaultClass::Status(status), Some(told)) = (refused.class, &refused.told) else {
            return false;
        };
        // Some answer 415, 500 or 501 to an image, and all of them name what they do not take.
        let is_about_images = matches!(status, 400 | 404 | 415 | 422 | 500 | 501)
            && told.to_ascii_lowercase().contains("image")
            && prompt.images() > 0;
        if is_about_images {
            return !std::mem::replace(&mut self.no_images, true);
        }
        if !matches!(status, 400 | 422) {
            return false;
        }
        let news = |known: &mut bool, word: &str| !std::mem::replace(known, told.contains(word)) && *known;
        news(&mut self.no_stream_options, "stream_options")
            || news(&mut self.max_completion_tokens, "max_completion_tokens")
    }
}

fn headers(endpoint: &Endpoint) -> Result<HeaderMap, AiFault> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    let agent = HeaderValue::from_static(concat!("message-hub/", env!("CARGO_PKG_VERSION")));
    headers.insert(header::USER_AGENT, agent);
    if let Some(key) = &endpoint.api_key {
        let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose()))
            .map_err(|_| AiFault::new(AiFaultClass::BadUrl, "the key cannot be sent in a header"))?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(headers)
}

async fn ask(egress: &Egress, call: Call) -> Result<Completion, AiFault> {
    let mut reader = AnswerReader::default();
    match egress.read(call, &mut reader).await {
        Ok(()) => reader.finish(),
        // Nothing is missing but the end of the connection.
        Err(_) if reader.is_whole() => reader.finish(),
        Err(EgressError { fault, message, .. }) => Err(AiFault::new(AiFaultClass::Egress(fault), message)),
    }
}

/// How an answer is written.
#[derive(Debug, Default)]
enum Form {
    /// Not known to be any use.
    #[default]
    Other,
    /// Server-sent events.
    Events(Events),
    /// One JSON text.
    Json,
}

#[derive(Debug, Default)]
struct AnswerReader {
    status: StatusCode,
    headers: HeaderMap,
    form: Form,
    growing: Growing,
    /// The body, where it is not a stream.
    body: Vec<u8>,
    fault: Option<AiFault>,
}

impl Reader for AnswerReader {
    fn begin(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.status = status;
        self.headers = headers.clone();
        let content_type =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let essence = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        self.form = match &*essence {
            "text/event-stream" if status.is_success() => Form::Events(Events::default()),
            "application/json" => Form::Json,
            _ => Form::Other,
        };
    }

    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        let Form::Events(events) = &mut self.form else {
            self.body.extend_from_slice(piece);
            return ControlFlow::Continue(());
        };
        for event in events.feed(piece) {
            match self.growing.take_event(&event) {
                Ok(false) => {}
                Ok(true) => return ControlFlow::Break(()),
                Err(fault) => {
                    self.fault = Some(fault);
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }
}

impl AnswerReader {
    const fn is_whole(&self) -> bool {
        self.fault.is_none() && self.growing.is_whole()
    }

    fn finish(mut self) -> Result<Completion, AiFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if !self.status.is_success() {
            return Err(self.refused());
        }
        match self.form {
            Form::Events(events) => {
                if let Some(last) = events.end() {
                    self.growing.take_event(&last)?;
                }
            }
            Form::Json => {
                let answer: Answer = serde_json::from_slice(&self.body)
                    .map_err(|_| AiFault::not_understood("the response is not a chat completion"))?;
                if answer.choices.as_ref().is_none_or(Vec::is_empty) && answer.error.is_none() {
                    return Err(AiFault::not_understood("the response is not a chat completion"));
                }
                self.growing.take_answer(answer)?;
                // A whole answer that does not say why it ended has ended all the same.
                self.growing.take_event("[DONE]")?;
            }
            Form::Other => {
                let message = "the response is neither JSON nor an event stream";
                return Err(AiFault::not_understood(message));
            }
        }
        self.growing.finish()
    }

    fn refused(self) -> AiFault {
        let status = self.status.as_u16();
        let mut fault = AiFault::new(AiFaultClass::Status(status), format!("the endpoint answered {status}"));
        // A redirect is not followed, and what is refused for what it is, is refused again.
        fault.permanent = !matches!(status, 408 | 409 | 425 | 429 | 500..);
        let json = serde_json::from_slice::<Value>(&self.body);
        let told =
            json.map_or_else(|_| cut(&String::from_utf8_lossy(&self.body)), |json| error_message(&json));
        fault.told = Some(told).filter(|told| !told.is_empty());
        fault.headers = Box::new(self.headers);
        fault
    }
}

/// The words in an error object, wherever an endpoint puts them.
pub(super) fn error_message(json: &Value) -> String {
    let error = json.get("error").unwrap_or(json);
    let words = error.as_str().or_else(|| error["message"].as_str()).or_else(|| json["detail"].as_str());
    cut(words.unwrap_or(&json.to_string()))
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_ERROR_DETAIL)].to_owned()
}

#[cfg(test)]
mod tests;
