//! Frames of the sockets of apps: flat objects. Fields that the hub does not know are ignored.

use hub_core::{
    Error,
    apps::sockets::{AppListener, SocketScope},
    bots::Sent,
    id::{AppEventId, InstallationId},
};
use serde_json::{Map, Value, json};

use crate::{
    api::bot_api::BotSend,
    envelope::ApiError,
    wire::{Text, read},
};

/// Longest request id that is echoed.
const MAX_REQUEST_ID: usize = 128;
/// Longest idempotency key of a send, in bytes.
const MAX_KEY: usize = 255;

/// A frame that an app sent.
#[derive(Debug)]
pub(super) struct Frame(Map<String, Value>);

/// Request of an app.
#[derive(Debug)]
pub(super) enum Command {
    /// Send a message.
    Send,
    /// Check that the hub is there.
    Ping,
    /// Acknowledge an event.
    Ack(AppEventId),
    /// A type that the hub does not know.
    Unknown(String),
}

impl Frame {
    /// Reads a text.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for anything but a JSON object with a `type`.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let bad = |reason: String| Error::invalid("frame", reason);
        let frame: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| bad(format!("is not a JSON object: {error}")))?;
        let frame = Self(frame);
        if frame.text("type").is_none() {
            return Err(bad("must have a type".to_owned()));
        }
        Ok(frame)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The id to echo: a text or a number, unchanged.
    pub(super) fn request_id(&self) -> Option<Value> {
        let id = self.0.get("req_id").or_else(|| self.0.get("reqID"))?;
        match id {
            Value::String(text) if text.len() <= MAX_REQUEST_ID => Some(id.clone()),
            Value::Number(_) => Some(id.clone()),
            _ => None,
        }
    }

    /// The request in the frame.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for an acknowledgement without the id of an event.
    pub(super) fn command(&self) -> Result<Command, Error> {
        match self.text("type").unwrap_or_default() {
            "send" => Ok(Command::Send),
            "ping" => Ok(Command::Ping),
            "ack" => {
                let id = self.text("id").or_else(|| self.text("event_id")).and_then(|id| id.parse().ok());
                id.map(Command::Ack).ok_or_else(|| Error::invalid("id", "must be the id of an event"))
            }
            other => Ok(Command::Unknown(other.chars().take(64).collect())),
        }
    }

    /// The sending installation, on the socket of a whole app.
    ///
    /// # Errors
    /// `INVALID_PARAMS` if the frame names none.
    pub(super) fn installation(&self) -> Result<InstallationId, Error> {
        let id = self.text("installation_id").and_then(|id| id.parse().ok());
        id.ok_or_else(|| Error::invalid("installation_id", "must name the installation that sends"))
    }

    /// The message, as in the Bot API, and its idempotency key.
    ///
    /// # Errors
    /// `INVALID_PARAMS` without a recipient, and for what the Bot API rejects.
    pub(super) fn message(&self) -> Result<(BotSend, Option<String>), Error> {
        let mut fields = self.0.clone();
        // `type` is the frame's here.
        fields.remove("type");
        match fields.remove("msg_type") {
            None | Some(Value::Null) => {}
            Some(kind) => drop(fields.insert("type".to_owned(), kind)),
        }
        let message: BotSend = read(&Value::Object(fields)).map_err(ApiError::into_inner)?;
        let named = |to: &Option<Text<0, 1024>>| to.as_ref().is_some_and(|to| !to.is_empty());
        if !named(&message.to) && !named(&message.to_user_id) {
            return Err(Error::invalid("to", "is required"));
        }
        let key = self.text("idempotency_key");
        if key.is_some_and(|key| key.len() > MAX_KEY) {
            return Err(Error::invalid("idempotency_key", format!("may have {MAX_KEY} bytes")));
        }
        Ok((message, key.map(str::to_owned)))
    }
}

/// A frame with an id to echo.
fn answer(kind: &str, request_id: Option<&Value>) -> Map<String, Value> {
    let mut frame = Map::from_iter([("type".to_owned(), kind.into())]);
    if let Some(id) = request_id {
        frame.insert("req_id".to_owned(), id.clone());
    }
    frame
}

/// The greeting. Its fields are in `data`, where clients of the older hub look, and next to `type`.
pub(super) fn init(listener: &AppListener) -> Value {
    let state = listener.state();
    let data = match listener.scope() {
        SocketScope::Installation(id) => {
            json!({ "installation_id": id, "bot_id": state.bot_id, "app_name": state.name,
            "app_slug": state.slug })
        }
        SocketScope::App(id) => {
            json!({ "app_id": id, "app_name": state.name, "app_slug": state.slug, "scope": "app" })
        }
    };
    let mut frame = answer("init", None);
    frame.extend(data.as_object().cloned().unwrap_or_default());
    frame.insert("data".to_owned(), data);
    Value::Object(frame)
}

pub(super) fn pong(request_id: Option<&Value>) -> Value {
    Value::Object(answer("pong", request_id))
}

pub(super) fn sent(request_id: Option<&Value>, sent: &Sent) -> Value {
    let mut frame = answer("ack", request_id);
    frame.insert("ok".to_owned(), true.into());
    frame.insert("message_id".to_owned(), sent.message_id.to_string().into());
    frame.insert("client_id".to_owned(), sent.client_id.clone().into());
    frame.insert("trace_id".to_owned(), sent.trace_id.to_string().into());
    Value::Object(frame)
}

pub(super) fn error(request_id: Option<&Value>, error: &Error) -> Value {
    let mut frame = answer("error", request_id);
    frame.insert("error".to_owned(), error.message().into());
    frame.insert("code".to_owned(), error.code().as_str().into());
    Value::Object(frame)
}

/// A type that the hub does not know.
pub(super) fn unknown(request_id: Option<&Value>, kind: &str) -> Value {
    let mut frame = answer("error", request_id);
    frame.insert("error".to_owned(), format!("there is no frame of the type {kind}").into());
    frame.insert("code".to_owned(), "unknown_type".into());
    Value::Object(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Frame {
        Frame::read(text).unwrap()
    }

    #[test]
    fn frames_are_read_flat_and_a_send_is_the_bot_apis() {
        let send =
            frame(r#"{"type":"send","req_id":"1","to":"ann","content":"hi","msg_type":"text","more":[]}"#);
        assert!(matches!(send.command().unwrap(), Command::Send));
        assert_eq!(send.request_id(), Some("1".into()));
        let (message, key) = send.message().unwrap();
        assert_eq!((message.to.as_deref(), key), (Some("ann"), None));
        let file = frame(
            r#"{"type":"send","to":"ann","msg_type":"image","content":"https://x/y","idempotency_key":"k"}"#,
        );
        let (message, key) = file.message().unwrap();
        assert!(message.kind.is_some());
        assert_eq!(key.as_deref(), Some("k"));
        assert!(matches!(frame(r#"{"type":"ping"}"#).command().unwrap(), Command::Ping));
        let id = AppEventId::from_u128(7);
        for name in ["id", "event_id"] {
            let ack = frame(&json!({ "type": "ack", name: id }).to_string());
            assert!(matches!(ack.command().unwrap(), Command::Ack(named) if named == id));
        }
        assert!(
            matches!(frame(r#"{"type":"nothing"}"#).command().unwrap(), Command::Unknown(kind) if kind == "nothing")
        );
    }

    #[test]
    fn a_malformed_frame_is_refused() {
        for text in ["", "7", "[]", "{}", r#"{"type":7}"#, r#"{"type":""}"#, "{\"type\":\"ping\"} x"] {
            assert!(Frame::read(text).is_err(), "{text}");
        }
        for (text, field) in [
            (r#"{"type":"send","content":"hi"}"#, "to"),
            (r#"{"type":"send","to":"","content":"hi"}"#, "to"),
            (r#"{"type":"send","to":"ann","content":7}"#, "content"),
            (r#"{"type":"send","to":"ann","content":"x","msg_type":"sticker"}"#, "type"),
        ] {
            let error = frame(text).message().unwrap_err();
            assert_eq!(error.details()[0].field, field, "{text}: {}", error.message());
        }
        for text in [r#"{"type":"ack"}"#, r#"{"type":"ack","id":7}"#, r#"{"type":"ack","id":"msg_1"}"#] {
            assert!(frame(text).command().is_err(), "{text}");
        }
        assert!(frame(r#"{"type":"send"}"#).installation().is_err());
        let long = json!({ "type": "ping", "req_id": "x".repeat(200) }).to_string();
        assert_eq!(frame(&long).request_id(), None);
    }
}
