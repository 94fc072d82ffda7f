//! Frames of the WebSocket of a channel, in both spellings. Unknown fields are ignored.

use hub_core::{
    Error,
    bots::{Attachment, BotStatus, NewSend, Sent},
    channels::log::Listener,
    id::MessageId,
    network::TextFormat,
    secret::Secret,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Longest request id that is echoed.
const MAX_REQUEST_ID: usize = 128;

/// A frame that a client sent.
#[derive(Debug, Deserialize)]
pub(super) struct Frame {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(rename = "reqID", alias = "req_id", alias = "reqId", default)]
    request_id: Value,
    #[serde(default)]
    data: Value,
}

/// Request of a client.
#[derive(Debug)]
pub(super) enum Command {
    Send {
        message: Box<NewSend>,
        idempotency_key: Option<String>,
    },
    Typing {
        to_user_id: Option<String>,
        ticket: Option<String>,
        on: bool,
    },
    Config,
    Ping,
    Ack(i64),
    /// A type that the hub does not know.
    Unknown(String),
}

#[derive(Deserialize)]
struct SendText {
    #[serde(default)]
    to_user_id: Option<String>,
    #[serde(default)]
    recipient: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    text: Option<String>,
    /// A file; the text is then its caption.
    #[serde(default)]
    media: Option<SendMedia>,
    #[serde(default)]
    context_token: Option<Secret>,
    #[serde(default)]
    reply_to: Option<MessageId>,
    #[serde(default)]
    format: TextFormat,
    #[serde(default)]
    idempotency_key: Option<String>,
}

#[derive(Deserialize)]
struct SendMedia {
    #[serde(default)]
    upload_id: Option<String>,
    #[serde(default)]
    url: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SendTyping {
    to_user_id: Option<String>,
    ticket: Option<String>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct Ack {
    #[serde(alias = "seq_id")]
    seq: i64,
}

impl Frame {
    /// Reads a text.
    ///
    /// # Errors
    /// `INVALID_PARAMS` for anything but a JSON object with a `type`.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let bad = |reason: String| Error::invalid("frame", reason);
        let frame: Self =
            serde_json::from_str(text).map_err(|error| bad(format!("is not a JSON object: {error}")))?;
        if frame.kind.is_empty() {
            return Err(bad("must have a type".to_owned()));
        }
        Ok(frame)
    }

    /// The id to echo: a text or a number, unchanged.
    pub(super) fn request_id(&self) -> Option<Value> {
        match &self.request_id {
            Value::String(text) if text.len() <= MAX_REQUEST_ID => Some(self.request_id.clone()),
            Value::Number(_) => Some(self.request_id.clone()),
            _ => None,
        }
    }

    /// Whether the response is a `send_ack`.
    pub(super) fn is_send(&self) -> bool {
        self.kind == "send_text"
    }

    /// The request in the frame.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on `data` if it does not match the type.
    pub(super) fn command(self) -> Result<Command, Error> {
        let Self { kind, data, .. } = self;
        match kind.as_str() {
            "send_text" => {
                let send: SendText = parse(data)?;
                // In the older dialect an empty text means no recipient.
                let to = send.to_user_id.or(send.recipient.filter(|recipient| !recipient.is_empty()));
                let message = NewSend {
                    to_user_id: to,
                    content: send.content.or(send.text).unwrap_or_default(),
                    media: send.media.map(|file| Attachment::either(file.upload_id, file.url)).transpose()?,
                    context_token: send.context_token,
                    reply_to: send.reply_to,
                    format: send.format,
                    ..NewSend::default()
                };
                Ok(Command::Send { message: Box::new(message), idempotency_key: send.idempotency_key })
            }
            "send_typing" => {
                let typing: SendTyping = if data.is_null() { SendTyping::default() } else { parse(data)? };
                let on = match typing.status.as_deref() {
                    None | Some("typing") => true,
                    Some("cancel") => false,
                    Some(_) => return Err(Error::invalid("data.status", "must be typing or cancel")),
                };
                Ok(Command::Typing { to_user_id: typing.to_user_id, ticket: typing.ticket, on })
            }
            "get_config" => Ok(Command::Config),
            "ping" => Ok(Command::Ping),
            "ack" => Ok(Command::Ack(parse::<Ack>(data)?.seq)),
            _ => Ok(Command::Unknown(kind.chars().take(64).collect())),
        }
    }
}

fn parse<T: for<'de> Deserialize<'de>>(data: Value) -> Result<T, Error> {
    serde_json::from_value(data).map_err(|error| Error::invalid("data", format!("is invalid: {error}")))
}

/// A frame with an id to echo in both spellings.
fn answer(kind: &str, request_id: Option<&Value>, data: Value) -> Value {
    let mut frame = Map::new();
    frame.insert("type".to_owned(), kind.into());
    if let Some(id) = request_id {
        frame.insert("reqID".to_owned(), id.clone());
        frame.insert("req_id".to_owned(), id.clone());
    }
    frame.insert("data".to_owned(), data);
    Value::Object(frame)
}

pub(super) fn init(listener: &Listener) -> Value {
    let state = listener.state();
    answer(
        "init",
        None,
        json!({
            "channel_id": listener.channel_id(),
            "channel_name": state.name,
            "bot_id": listener.bot_id(),
            "bot_status": state.bot_status.as_str(),
            "last_seq": listener.newest(),
            "since": listener.position(),
        }),
    )
}

/// One frame per dialect.
pub(super) fn status(listener: &Listener, status: BotStatus) -> [Value; 2] {
    let data = json!({ "bot_id": listener.bot_id(), "status": status.as_str() });
    [answer("status", None, data.clone()), answer("bot_status", None, data)]
}

/// `gone`: these messages are not retained any more; otherwise they follow from the store.
pub(super) fn lagged(from: i64, to: i64, gone: bool) -> Value {
    answer("lagged", None, json!({ "from": from, "to": to, "gone": gone }))
}

pub(super) fn config(request_id: Option<&Value>, config: Value) -> Value {
    answer("config", request_id, config)
}

pub(super) fn pong(request_id: Option<&Value>) -> Value {
    match request_id {
        Some(id) => json!({ "type": "pong", "reqID": id, "req_id": id }),
        None => json!({ "type": "pong" }),
    }
}

pub(super) fn sent(request_id: Option<&Value>, sent: &Sent) -> Value {
    let data = json!({
        "req_id": request_id,
        "success": true,
        "message_id": sent.message_id,
        "client_id": sent.message_id,
        "status": sent.status,
        "trace_id": sent.trace_id,
    });
    answer("send_ack", request_id, data)
}

pub(super) fn not_sent(request_id: Option<&Value>, error: &Error) -> Value {
    let data = json!({
        "req_id": request_id,
        "success": false,
        "message_id": null,
        "error": error.message(),
        "code": error.code().as_str(),
    });
    answer("send_ack", request_id, data)
}

pub(super) fn error(request_id: Option<&Value>, code: &str, message: &str) -> Value {
    answer("error", request_id, json!({ "code": code, "message": message }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Command {
        Frame::read(text).unwrap().command().unwrap()
    }

    #[test]
    fn both_dialects_are_read() {
        for text in [
            r#"{"type":"send_text","reqID":"1","data":{"to_user_id":"u","content":"hi","context_token":"t"}}"#,
            r#"{"type":"send_text","req_id":1,"data":{"recipient":"u","text":"hi","more":[]},"more":{}}"#,
        ] {
            let Command::Send { message, .. } = command(text) else { panic!("{text}") };
            assert_eq!((message.to_user_id.as_deref(), message.content.as_str()), (Some("u"), "hi"));
            assert!(Frame::read(text).unwrap().request_id().is_some());
        }
        let Command::Send { message, .. } =
            command(r#"{"type":"send_text","data":{"recipient":"","text":"x"}}"#)
        else {
            panic!("a send");
        };
        assert_eq!(message.to_user_id, None);
        let file = r#"{"type":"send_text","data":{"text":"look","media":{"upload_id":"med_1","more":1}}}"#;
        let Command::Send { message, .. } = command(file) else { panic!("a send") };
        assert!(matches!(message.media, Some(Attachment::Upload(id)) if id == "med_1"));
        assert!(matches!(command(r#"{"type":"send_typing"}"#), Command::Typing { on: true, .. }));
        let cancel = command(r#"{"type":"send_typing","data":{"ticket":"t","status":"cancel"}}"#);
        assert!(matches!(cancel, Command::Typing { on: false, ticket: Some(_), .. }));
        assert!(matches!(command(r#"{"type":"ack","data":{"seq":7}}"#), Command::Ack(7)));
        assert!(matches!(command(r#"{"type":"ack","data":{"seq_id":8}}"#), Command::Ack(8)));
        assert!(matches!(command(r#"{"type":"nothing"}"#), Command::Unknown(kind) if kind == "nothing"));
    }

    #[test]
    fn a_malformed_frame_is_refused() {
        for text in ["", "7", "[]", "{}", r#"{"type":7}"#, r#"{"type":""}"#, "{\"type\":\"ping\"} x"] {
            assert!(Frame::read(text).is_err(), "{text}");
        }
        for text in [
            r#"{"type":"send_text"}"#,
            r#"{"type":"send_text","data":{"content":7}}"#,
            r#"{"type":"send_text","data":{"media":{}}}"#,
            r#"{"type":"send_text","data":{"media":{"upload_id":"med_1","url":"http://x/"}}}"#,
            r#"{"type":"send_text","data":{"media":"med_1"}}"#,
            r#"{"type":"ack","data":{}}"#,
            r#"{"type":"ack","data":{"seq":"1"}}"#,
            r#"{"type":"send_typing","data":{"status":"often"}}"#,
        ] {
            assert!(Frame::read(text).unwrap().command().is_err(), "{text}");
        }
        let long = json!({ "type": "ping", "reqID": "x".repeat(200) }).to_string();
        assert_eq!(Frame::read(&long).unwrap().request_id(), None);
    }
}
