//! The request that the hub sends to webhooks: documented as `x-webhooks`, since the document is OpenAPI 3.0, which
//! has no `webhooks`.

use serde_json::{Value, json};

pub(crate) fn webhooks() -> Value {
    json!({ "message": { "post": {
        "operationId": "receiveMessage",
        "tags": ["Channels"],
        "security": [],
        "summary": "A message arrived on a channel",
        "description": "Sent to the channel's webhook, at least once. `webhook-id` is the same on every attempt; \
            respond with 2xx to accept the message. With `auto_reply`, the text `reply` of a JSON object \
            in a 2xx response is sent to the sender, whatever its Content-Type is.",
        "parameters": headers(),
        "requestBody": { "required": true, "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/WebhookMessage" },
            "example": example(),
        } } },
        "responses": {
            "2XX": { "description": "The message was accepted." },
            "410": { "description": "The webhook is gone; it is switched off." },
            "429": { "description": "Too many requests; retried after `Retry-After`." },
            "503": { "description": "Not available; retried after `Retry-After`." },
            "default": { "description": "Retried on the channel's schedule." },
        },
    } } })
}

fn headers() -> Value {
    let header = |name: &str, required: bool, description: &str| {
        json!({
            "name": name, "in": "header", "required": required,
            "description": description, "schema": { "type": "string", "maxLength": 1024 },
        })
    };
    json!([
        header("webhook-id", true, "Id of the delivery: the same on every attempt."),
        header("webhook-timestamp", true, "Unix seconds of this attempt."),
        header(
            "webhook-signature",
            false,
            "Standard Webhooks signatures, separated by spaces. With a secret."
        ),
        header("X-Signature", false, "`sha256=` and the hex HMAC of the exact body. With method `hmac`."),
        header("X-Hub-Attempt", true, "1 for the first attempt, then 2, 3, …"),
    ])
}

/// The schemas of the section, by name.
pub(crate) fn schemas() -> [(&'static str, Value); 2] {
    [("WebhookMessage", schema()), ("WebhookSender", sender())]
}

fn sender() -> Value {
    json!({
        "type": "object",
        "description": "The sender of a message.",
        "required": ["user_id", "user_name"],
        "properties": {
            "user_id": { "type": "string", "description": "Id of the sender." },
            "user_name": { "type": "string", "description": "Display name; empty if unknown." },
        },
        "example": example()["sender"],
    })
}

fn schema() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "description": "A message, as sent to webhooks.",
        "example": example(),
        "required": [
            "type", "content", "sender", "sessionID", "contextToken", "msg_type", "timestamp", "bot_id", "channel_id",
            "id",
        ],
        "properties": {
            "type": { "type": "string", "enum": ["message"], "description": "Always `message`." },
            "content": text("Text; for files a short description."),
            "sender": { "$ref": "#/components/schemas/WebhookSender" },
            "sessionID": text("Id of the conversation."),
            "contextToken": text("Context token, for a reply to this message."),
            "msg_type": {
                "type": "integer", "format": "int32",
                "description": "1 text, 3 image, 34 voice, 43 video, 49 file, 0 other.",
            },
            "timestamp": { "type": "integer", "format": "int64", "description": "Unix seconds." },
            "bot_id": text("Id of the bot."),
            "channel_id": text("Id of the channel."),
            "id": text("Id of the message: the same on every attempt, with and without a secret."),
            "media": {
                "type": "array",
                "description": "Files, when there are any. A message without a text waits up to 5 seconds for \
                    its files before it is delivered; `url` works either way, and waits for the file, too.",
                "items": { "$ref": "#/components/schemas/Media" },
            },
        },
    })
}

fn example() -> Value {
    json!({
        "type": "message",
        "content": "order 42",
        "sender": { "user_id": "wxid_ada", "user_name": "Ada" },
        "sessionID": "wxid_ada",
        "contextToken": "AAdf83…",
        "msg_type": 1,
        "timestamp": 1_790_000_000,
        "bot_id": "bot_01K9ZC3V5T8QK4X7M2N6P0RSWA",
        "channel_id": "ch_01K9ZC3V5T8QK4X7M2N6P0RSWA",
        "id": "msg_01K9ZC3V5T8QK4X7M2N6P0RSWA",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_has_every_required_field() {
        let (schema, example) = (schema(), example());
        for field in schema["required"].as_array().unwrap() {
            assert!(example.get(field.as_str().unwrap()).is_some(), "{field}");
        }
    }
}
