//! The log of calls to the Bot API and to `/mcp`: the edge records every call of a known app with its bodies, after
//! the response, including errors.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, combinators::BoxBody};
use hub_core::{
    Hub,
    apps::{MAX_LOGGED_BODY, NewAppCall},
    bots::Attachment,
    id::InstallationId,
    secret::MASK,
};
use hyper::body::{Body, Frame, SizeHint};
use poem::{Request, Response, http::StatusCode};
use serde_json::{Value, json};

use crate::paths::is_app_call;

/// Maximum size of a body that is logged, in bytes; of a longer one only the length.
const MAX_LOGGED: usize = 64 * 1024;

/// Fields of which only the length is logged: files, and context tokens.
const CONFIDENTIAL: [&str; 2] = ["base64", "context_token"];

/// The details of a call, collected while it is served.
#[derive(Debug, Clone)]
pub(crate) struct CallNote(Arc<Mutex<CallDetails>>);

#[derive(Debug, Default)]
struct CallDetails {
    installation: Option<InstallationId>,
    body: Vec<u8>,
    length: usize,
    /// The fields of a form: its bytes are not logged.
    said: Option<Value>,
}

impl CallNote {
    /// Begins the record of a call of an app; `None` for every other request.
    pub(crate) fn begin(request: &mut Request) -> Option<Self> {
        if !is_app_call(request.uri().path()) {
            return None;
        }
        let note = Self(Arc::default());
        let inner: BoxBody<Bytes, std::io::Error> = request.take_body().into();
        let body =
            if inner.is_end_stream() { inner } else { NotedBody { inner, note: note.clone() }.boxed() };
        request.set_body(poem::Body::from(body));
        request.set_data(note.clone());
        Some(note)
    }

    pub(crate) fn is_of(&self, installation: InstallationId) {
        self.known().installation = Some(installation);
    }

    /// Sets the fields of a form; of its file, everything except the bytes.
    pub(crate) fn said(&self, mut texts: Value, file: Option<&Attachment>) {
        if let Some(Attachment::Bytes { file_name, content_type, bytes }) = file {
            texts["file"] = json!({ "name": file_name, "type": content_type, "bytes": bytes.len() });
        }
        self.known().said = Some(texts);
    }

    /// Records the response; nothing for a call without a known caller. A socket is not a call.
    pub(crate) async fn finish(
        self,
        hub: &Hub,
        method: &str,
        path: &str,
        response: &mut Response,
        took: Duration,
    ) {
        let (installation, request_body) = {
            let mut known = self.known();
            let shown = match known.said.take() {
                Some(said) => without_confidential(said),
                None => shown(&std::mem::take(&mut known.body), known.length),
            };
            (known.installation, shown)
        };
        let Some(installation_id) = installation else { return };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return;
        }
        // Responses of the Bot API are complete before they are sent.
        let answer = response.take_body().into_bytes().await.unwrap_or_default();
        let json = serde_json::from_slice::<Value>(&answer).unwrap_or_default();
        let trace_id = trace_of(&json).and_then(|id| id.parse().ok());
        hub.apps().note_call(NewAppCall {
            installation_id,
            trace_id,
            method: method.to_owned(),
            path: path.to_owned(),
            request_body,
            status: response.status().as_u16(),
            response_body: shown_response(&answer, json),
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
        response.set_body(answer);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, CallDetails> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The trace in a response of the Bot API or of a tool.
fn trace_of(answer: &Value) -> Option<&str> {
    let of_tool = || answer.pointer("/result/structuredContent/trace_id");
    answer.get("trace_id").or_else(of_tool)?.as_str()
}

/// A response as it is logged: its beginning. Values of a configuration are masked.
fn shown_response(answer: &[u8], mut json: Value) -> String {
    let Some(config) = json.get_mut("config").and_then(Value::as_object_mut) else {
        return String::from_utf8_lossy(&answer[..answer.len().min(MAX_LOGGED_BODY)]).into_owned();
    };
    config.values_mut().for_each(|value| *value = MASK.into());
    json.to_string()
}

/// A body as it is logged.
pub(crate) fn shown(body: &[u8], length: usize) -> String {
    if length == 0 {
        return String::new();
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(json) if length == body.len() => without_confidential(json),
        _ => format!("({length} bytes)"),
    }
}

/// A call of the Bot API or of a tool, with the lengths of its files and context tokens.
fn without_confidential(mut json: Value) -> String {
    for place in ["", "/params/arguments"] {
        let Some(fields) = json.pointer_mut(place) else { continue };
        for field in CONFIDENTIAL {
            if let Some(Value::String(text)) = fields.get_mut(field) {
                *text = format!("({} characters)", text.chars().count());
            }
        }
    }
    json.to_string()
}

/// A body whose beginning is recorded while the handler reads it.
struct NotedBody {
    inner: BoxBody<Bytes, std::io::Error>,
    note: CallNote,
}

impl Body for NotedBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(piece) = frame.data_ref()
        {
            let mut known = self.note.known();
            let room = MAX_LOGGED - known.body.len().min(MAX_LOGGED);
            known.body.extend_from_slice(&piece[..piece.len().min(room)]);
            known.length += piece.len();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_permissions_are_recorded_by_their_length() {
        let show = |text: &str| shown(text.as_bytes(), text.len());
        assert_eq!(
            show(r#"{"content":"hi","base64":"QUJD","context_token":"secret"}"#),
            r#"{"base64":"(4 characters)","content":"hi","context_token":"(6 characters)"}"#
        );
        assert_eq!(
            show(r#"{"method":"tools/call","params":{"arguments":{"base64":"QUJD"}}}"#),
            r#"{"method":"tools/call","params":{"arguments":{"base64":"(4 characters)"}}}"#
        );
        assert_eq!(show(""), "");
        assert_eq!(show("{\"content\":"), "(11 bytes)");
        assert_eq!(shown(b"[1]", 100_000), "(100000 bytes)");
    }

    #[test]
    fn a_configuration_is_recorded_by_its_names() {
        let show =
            |text: &str| shown_response(text.as_bytes(), serde_json::from_str(text).unwrap_or_default());
        assert_eq!(
            show(r#"{"ok":true,"config":{"token":"ghp_x","":"y"}}"#),
            r#"{"config":{"":"***","token":"***"},"ok":true}"#
        );
        for other in [r#"{"ok":true,"config":"none"}"#, r#"{ "tool_count": 1 }"#, "not JSON"] {
            assert_eq!(show(other), other);
        }
    }
}
