//! How each operation is called rightly.

use serde_json::{Value, json};

use super::stage::{PASSWORD, Stage};

/// How one operation is called rightly.
pub struct Entry {
    pub operation: &'static str,
    /// A right body; null when it takes none.
    pub body: fn(&Stage) -> Value,
    /// What a right call is answered with here.
    pub answers: u16,
}

const fn entry(operation: &'static str, body: fn(&Stage) -> Value, answers: u16) -> Entry {
    Entry { operation, body, answers }
}

fn none(_: &Stage) -> Value {
    Value::Null
}

/// In the order of calling: what deletes stands last.
pub const TABLE: &[Entry] = &[
    entry("getHealth", none, 200),
    entry("getReadiness", none, 200),
    entry("register", |_| json!({ "username": "carol", "password": "another long password" }), 200),
    entry("login", |_| json!({ "username": "bob", "password": PASSWORD }), 200),
    entry("getMe", none, 200),
    entry("listSessions", none, 200),
    entry("listBots", none, 200),
    entry("getBot", none, 200),
    entry("getBotStatus", none, 200),
    entry("startBind", |_| json!({ "network": "sim" }), 200),
    entry("confirmBind", |stage| json!({ "bind_id": stage.bind, "wait_ms": 0 }), 200),
    entry("reconnectBot", none, 200),
    entry("sendMessage", |_| json!({ "content": "hello" }), 409),
    entry("listMessages", none, 200),
    entry("listContacts", none, 200),
    entry("setContactRemark", |_| json!({ "remark": "a friend" }), 200),
    entry("listTraces", none, 200),
    entry("getTrace", none, 200),
    entry("replayTrace", |_| json!({}), 200),
    entry("listChannels", none, 200),
    entry("createChannel", |_| json!({ "name": "second" }), 200),
    entry("getChannel", none, 200),
    entry("updateChannel", |_| json!({ "name": "renamed" }), 200),
    entry("setChannelFilter", |_| json!({ "keywords": ["order"] }), 200),
    entry("setWebSocketSink", |_| json!({ "enabled": true }), 200),
    entry("setWebhookSink", |_| json!({ "enabled": true, "url": "http://receiver.test/hook" }), 200),
    entry("setAiSink", |_| json!({ "enabled": false }), 200),
    entry("regenerateChannelKey", none, 200),
    entry("deleteChannel", none, 200),
    entry("deleteBot", none, 200),
    entry("deleteSession", none, 200),
    entry("logout", none, 200),
];
