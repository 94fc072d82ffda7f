//! The tools as a model reads them before it calls them. The rules are those of the Bot API, which validates every
//! call.

use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

pub(super) const SEND_MESSAGE: &str = "send_message";
/// Lists the contacts of the bot.
pub(super) const LIST_CONTACTS: &str = "list_contacts";
pub(super) const GET_BOT_INFO: &str = "get_bot_info";

/// Instructions that a client may give its model.
pub(super) const INSTRUCTIONS: &str = "These tools act for one chat bot. People write to it on a chat network, and \
    the network permits replies only for a limited time after a person's last message: WINDOW_CLOSED says that the person \
    has to write first.";

pub(super) static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let read_only = || ToolAnnotations::new().read_only(true).open_world(false);
    vec![
        Tool::new(
            SEND_MESSAGE,
            "Sends a message as the bot, to a person or to the owner of the bot's account. Needs the scope \
             message:write.",
            object(&send_arguments()),
        )
        .with_title("Send a message")
        .with_raw_output_schema(object(&sent()))
        .with_annotations(ToolAnnotations::new().read_only(false).destructive(false).idempotent(false)),
        Tool::new(
            LIST_CONTACTS,
            "Lists the contacts of the bot, most recently active first. Requires the scope contact:read.",
            object(&json!({ "type": "object", "properties": {
                "limit": { "type": "integer", "minimum": 1, "maximum": 200, "description": "Maximum number of contacts; 50 if absent." },
                "cursor": { "type": "string", "description": "next_cursor of the previous page." },
            } })),
        )
        .with_title("List contacts")
        .with_raw_output_schema(object(&contacts()))
        .with_annotations(read_only()),
        Tool::new(
            GET_BOT_INFO,
            "Shows the bot: its name, its account on the chat network, and whether it is online. Needs the scope \
             bot:read.",
            object(&json!({ "type": "object", "properties": {} })),
        )
        .with_title("Show the bot")
        .with_raw_output_schema(object(&bot()))
        .with_annotations(read_only()),
    ]
});

fn send_arguments() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({ "type": "object", "properties": {
        "to_user_id": text("user_id of the recipient; the owner of the bot's account if absent."),
        "content": text("The text, at most 64 KiB; the caption of a file."),
        "url": text("Public URL of a file that the hub downloads."),
        "base64": text("A file as base64, instead of url."),
        "filename": text("File name."),
        "trace_id": text("Trace id of the message that this one replies to."),
    } })
}

fn sent() -> Value {
    json!({ "type": "object", "required": ["success", "message_id", "trace_id"], "properties": {
        "success": { "type": "boolean" },
        "message_id": { "type": "string" },
        "client_id": { "type": "string", "description": "Network id of the message." },
        "trace_id": { "type": "string", "description": "Id of the trace of the send." },
    } })
}

fn contacts() -> Value {
    json!({ "type": "object", "required": ["contacts", "next_cursor"], "properties": {
        "contacts": { "type": "array", "items": { "type": "object", "required": ["user_id"], "properties": {
            "user_id": { "type": "string" },
            "user_name": { "type": "string" },
            "remark": { "type": "string", "description": "Remark of the owner." },
            "last_message_at": { "type": "string" },
            "message_count": { "type": "integer" },
        } } },
        "next_cursor": { "type": ["string", "null"], "description": "null on the last page." },
    } })
}

fn bot() -> Value {
    json!({ "type": "object", "required": ["bot_id", "name", "status"], "properties": {
        "bot_id": { "type": "string" },
        "name": { "type": "string" },
        "status": { "type": "string" },
        "wx_id": { "type": "string", "description": "Id of the account on the chat network." },
        "created_at": { "type": "string" },
    } })
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}
