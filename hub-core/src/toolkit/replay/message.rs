//! The message of a trace, as its channel got it.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    bots::Message,
    model::trace::{StepName, Trace},
    redact::{self, MASK},
    replay::Recording,
    time::Timestamp,
};

/// Fields of a message that its payload is built from. Deserializes messages of the API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RecordedMessage {
    /// Text.
    pub content: String,
    /// Id of the sender.
    pub from_user_id: String,
    /// Their name; empty when unknown.
    pub user_name: String,
    /// Conversation; empty when the network has no label for it.
    pub session_id: String,
    /// Kind, as the network's number.
    pub msg_type: i64,
    /// Time at which the hub received it.
    pub created_at: Timestamp,
}

impl From<Message> for RecordedMessage {
    fn from(message: Message) -> Self {
        Self {
            msg_type: message.kind.msg_type(),
            content: message.content,
            from_user_id: message.from_user_id,
            user_name: message.user_name,
            session_id: message.session_id,
            created_at: message.created_at,
        }
    }
}

impl Recording {
    /// A trace with its message. The request is in the trace; if a plugin changed it, or it was cut, the payload is
    /// built from the message.
    pub fn new(trace: Trace, message: Option<&RecordedMessage>) -> Self {
        let mut recording = Self { trace, message: None };
        recording.message = recording.sent_payload().or_else(|| Some(payload(&recording.trace, message?)));
        recording
    }

    /// The body of the request, where no plugin had a hand in it.
    fn sent_payload(&self) -> Option<Value> {
        let untouched = |step: &crate::model::trace::Step| {
            step.name != StepName::PluginOnRequest || step.detail.changes.is_none()
        };
        let request = self.request()?;
        if redact::is_cut(&request.body) || !self.trace.steps.iter().all(untouched) {
            return None;
        }
        serde_json::from_str(&request.body).ok().filter(|body: &Value| body["type"] == "message")
    }
}

/// The payload of a message. The context token is not included.
fn payload(trace: &Trace, message: &RecordedMessage) -> Value {
    json!({
        "type": "message",
        "content": message.content,
        "sender": { "user_id": message.from_user_id, "user_name": message.user_name },
        "sessionID": message.session_id,
        "contextToken": MASK,
        "msg_type": message.msg_type,
        "timestamp": message.created_at.as_seconds(),
        "bot_id": trace.bot_id,
        "channel_id": trace.channel_id,
        "id": trace.message_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trace::StepChanges;
    use crate::replay::recording::tests::{FIRST, recording};

    fn message() -> RecordedMessage {
        serde_json::from_value(json!({
            "id": "msg_01KAJ6Z8QH0000000000000000", "content": "as it came", "from_user_id": "u", "user_name": "Ada",
            "session_id": "s", "msg_type": 1, "created_at": "2026-01-02T03:04:05.678Z", "status": "received",
        }))
        .unwrap()
    }

    #[test]
    fn the_payload_is_what_was_sent_unless_a_plugin_changed_it() {
        let mut trace = recording(FIRST, "order 42").trace;
        trace.steps[2].detail.body =
            Some(json!({ "type": "message", "content": "as it was sent" }).to_string());
        let made = Recording::new(trace.clone(), Some(&message()));
        assert_eq!(made.message.unwrap()["content"], "as it was sent");
        trace.steps[0].name = StepName::PluginOnRequest;
        trace.steps[0].detail.changes = Some(StepChanges::default());
        let made = Recording::new(trace.clone(), Some(&message())).message.unwrap();
        assert_eq!((&made["content"], &made["contextToken"]), (&json!("as it came"), &json!(MASK)));
        assert_eq!(made["timestamp"], 1_767_323_045);
        assert_eq!(Recording::new(trace, None).message, None);
    }
}
