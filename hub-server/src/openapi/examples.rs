//! An example of every schema: the declared one, or one composed of the examples of its fields.
//!
//! A new text field needs a line here; a test names it.

use serde_json::{Map, Value, json};

/// Examples of texts, by name or by `Schema.name`.
const TEXTS: &[(&str, &str)] = &[
    ("Ability.scope", "message:read"),
    ("AiTestError.class", "auth"),
    ("AiTestError.message", "the endpoint refused the key"),
    ("OauthError.error", "invalid_grant"),
    ("OauthError.error_description", "the code is unknown"),
    ("AppTool.name", "weather"),
    ("AppTool.description", "The weather in a city"),
    ("BotTool.name", "weather"),
    ("BotTool.description", "The weather in a city"),
    ("ChannelMessage.type", "message"),
    ("ChannelMessage.name", "message"),
    ("CreatedApp.name", "Weather"),
    ("CreatedApp.description", "Tells the weather."),
    ("DebuggedError.kind", "timeout"),
    ("DebuggedError.message", "the plugin exceeded its time limit"),
    ("DebuggedLog.text", "order 42"),
    ("DebuggedAnswer.body", "{\"reply\":\"On its way.\"}"),
    ("ErrorBody.message", "the body is invalid"),
    ("ErrorDetail.reason", "must be at most 64 characters"),
    ("Item.text", "order 42"),
    ("MockResponse.body", "{\"reply\":\"On its way.\"}"),
    ("PendingVersion.name", "tagger"),
    ("PendingVersion.description", "Marks orders."),
    ("PluginDetail.name", "tagger"),
    ("PluginDetail.description", "Marks orders."),
    ("Quoted.text", "order 42"),
    ("StepFetch.error", "not in @connect: example.com"),
    ("StepLog.text", "order 42"),
    ("SetAppTool.name", "weather"),
    ("SetAppTool.description", "The weather in a city"),
    ("AppEvent.status", "delivered"),
    ("AiSink.error_reply", "The shop is not available at the moment."),
    ("AiSink.warning", "no global model is configured: messages wait until an administrator sets one"),
    ("Channel.name", "orders"),
    ("CreatedChannel.name", "orders"),
    ("access_token", "huba_0000000000000000000000000000000000000000000000"),
    ("api_key", "hubc_0000000000000000000000000000000000000000000000"),
    ("api_key_prefix", "hubc_0000"),
    ("app_name", "Weather"),
    ("app_slug", "weather"),
    ("app_token", "huba_0000000000000000000000000000000000000000000000"),
    ("app_token_prefix", "huba_0000"),
    ("approved_version", "1.0.0"),
    ("author", "ada"),
    ("avatar_url", ""),
    ("base_url", "https://models.example/v1"),
    ("bot_id", "bot_01K9ZC3V5T8QK4X7M2N6P0RSWA"),
    ("bot_name", "Shop"),
    ("channel_name", "orders"),
    ("client_id", "app_01K9ZC3V5T8QK4X7M2N6P0RSWA"),
    ("client_secret", "huby_0000000000000000000000000000000000000000000000"),
    ("code", "hubo_0000000000000000000000000000000000000000000000"),
    ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
    ("code_challenge_method", "S256"),
    ("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
    ("command", "/weather"),
    ("connects[]", "api.example"),
    ("consent", "hubn_0000000000000000000000000000000000000000000000"),
    ("content", "order 42"),
    ("content_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ("content_type", "image/png"),
    ("contextToken", "AAdf83…"),
    ("context_token", "AAdf83…"),
    ("current_password", "correct horse battery"),
    ("description", "Marks orders."),
    ("diff", "+ tagged(\"order\");"),
    ("event_type", "message"),
    ("events[]", "message"),
    ("exchange", "hubx_0000000000000000000000000000000000000000000000"),
    ("external_id", "1"),
    ("field", "webhook.url"),
    ("file_name", "picture.png"),
    ("flow_id", "hubf_0000000000000000000000000000000000000000000000"),
    ("from_user_id", "user_ada"),
    ("from_user_name", "Ada"),
    ("grant_type", "authorization_code"),
    ("group_id", ""),
    ("handle", "orders"),
    ("header_name", "X-Webhook-Secret"),
    ("hint", "hub-cli bots list"),
    ("homepage", "https://weather.example"),
    ("hub_version", "0.1.0"),
    ("icon_url", "https://weather.example/icon.png"),
    ("key_header", "api-key"),
    ("latest_version", "1.0.0"),
    ("level", "log"),
    ("listing_reason", ""),
    ("matches[]", "*"),
    ("message", "the request did not succeed"),
    ("method", "POST"),
    ("model", "small-1"),
    ("name", "Shop"),
    ("network", "sim"),
    ("ChannelMessages.next_cursor", "OGY3ZGExMjNtc2dfMQ"),
    ("network_id", "7301"),
    ("new_password", "a better passphrase"),
    ("oauth_redirect", "https://weather.example/setup?state=s"),
    ("old_password", "correct horse battery"),
    ("owner_name", "ada"),
    ("password", "correct horse battery"),
    ("path", "/bot/v1/messages/send"),
    ("poll_secret", "hubp_0000000000000000000000000000000000000000000000"),
    ("poller_node", "node_01K9ZC3V5T8QK4X7M2N6P0RSWA"),
    ("preview", "order 42"),
    ("provider", "sim"),
    ("qr_svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
    ("qr_text", "https://chat.example/login?code=4d1f"),
    ("reason", "the code expired"),
    ("recipient", "user_ada"),
    ("redirect_to", "https://weather.example/oauth/callback?code=hubo_0&state=s"),
    ("redirect_uri", "https://weather.example/oauth/callback"),
    ("redirect_uris[]", "https://weather.example/oauth/callback"),
    ("remark", "a friend"),
    ("replaces", "0.9.0"),
    ("request_body", "{\"content\":\"hello\"}"),
    ("request_id", "01K9ZC3V5T8QK4X7M2N6P0RSWA"),
    ("response_body", "{\"ok\":true}"),
    ("response_type", "code"),
    ("scope", "message:read message:write"),
    ("scopes[]", "message:read"),
    ("script", "// ==UserScript==\n// @name tagger\n// ==/UserScript==\nfunction onRequest() {}\n"),
    ("secret", "at-least-sixteen-characters"),
    ("sessionID", "user_ada"),
    ("session_id", "user_ada"),
    ("setup_url", "https://weather.example/setup"),
    ("slug", "weather"),
    ("stack", "at onRequest (tagger.js:4)"),
    ("state", "s"),
    ("status", "queued"),
    ("summary", "status 200"),
    ("system_prompt", "You answer for a shop."),
    ("ticket", "VGlja2V0"),
    ("to_user_id", "user_ada"),
    ("token", "hubr_0000000000000000000000000000000000000000000000"),
    ("token_type", "bearer"),
    ("type", "message"),
    ("typing_ticket", "VGlja2V0"),
    ("upload_id", "med_01K9ZC3V5T8QK4X7M2N6P0RSWA"),
    ("upload_url", "https://hub.example.com/api/v1/files/upload?ticket=t"),
    ("url", "https://example.com/hook"),
    ("user_id", "user_ada"),
    ("user_name", "Ada"),
    ("verify_code", "42"),
    ("version", "1.0.0"),
    ("warnings[]", "the plugin sets a header that the hub sets itself"),
    ("webhook_secret", "hubh_0000000000000000000000000000000000000000000000"),
    ("webhook_url", "https://weather.example/hub"),
    ("words", "Read what people write to this bot"),
    ("wx_id", "wxid_bot_1"),
    ("X-Request-Id", "01K9ZC3V5T8QK4X7M2N6P0RSWA"),
];

/// Examples of numbers for which 1 is a bad example.
const NUMBERS: &[(&str, i64)] = &[
    ("at_ms", 12),
    ("body_bytes", 1_048_576),
    ("created_at", 1_790_000_000),
    ("duration_ms", 12),
    ("frame_bytes", 65_536),
    ("lane_hold_s", 60),
    ("last_msg_at", 1_790_000_000),
    ("max_history", 20),
    ("max_tokens", 1024),
    ("memory_bytes", 262_144),
    ("response_status", 200),
    ("schedule_s[]", 30),
    ("size", 1001),
    ("status", 200),
    ("status_code", 200),
    ("TestedFilter.passed", 0),
    ("text_bytes", 65_536),
    ("timeout_ms", 10_000),
    ("timestamp", 1_790_000_000),
    ("timestamp_ms", 1_790_000_000_000),
    ("wait_ms", 2_000),
];

/// Fields that contradict the rest of their example, which is of a success.
const OMITTED: &[&str] = &[
    "AiTest.error",
    "AppEvent.error",
    "BotHealth.last_error",
    "Debugged.error",
    "ErrorResponse.ok",
    "ListedTrace.message",
    "ListedTrace.replay_of",
    "ListedTrace.steps",
    "Media.error",
    "Message.status_reason",
    "SendMedia.url",
    "TraceDetail.next_attempt_at",
    "TraceDetail.replay_of",
    "error_code",
    "listing_reason",
    "send_disabled_reason",
    "status_reason",
    "verify_code",
    "webhook_disabled_reason",
];

/// Gives every schema of the document its example.
pub(super) fn fill(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object() else { return };
    let whole = Schemas(schemas);
    let examples: Vec<(String, Value)> =
        schemas.keys().map(|name| (name.clone(), whole.of_schema(name, &mut Vec::new()))).collect();
    for (name, mut example) in examples {
        // Linters that take an `id` for that of a schema reject one inside a list in the example of a list.
        if let Some(items) = example.pointer_mut("/data/items") {
            with_other_ids(items);
        }
        document["components"]["schemas"][name]["example"] = example;
    }
}

fn with_other_ids(value: &mut Value) {
    match value {
        Value::String(text) if is_id(text) => {
            text.pop();
            text.push('B');
        }
        Value::Array(items) => items.iter_mut().for_each(with_other_ids),
        Value::Object(fields) => fields.values_mut().for_each(with_other_ids),
        _ => {}
    }
}

fn is_id(text: &str) -> bool {
    text.split_once('_').is_some_and(|(kind, ulid)| kind.len() <= 4 && ulid.len() == 26)
}

/// A text without an example; it never leaves this crate, since a test looks for it.
pub(super) const UNKNOWN: &str = "an example is missing";

struct Schemas<'a>(&'a Map<String, Value>);

impl Schemas<'_> {
    /// The example of a schema by name; `above` are the schemas that contain it.
    fn of_schema(&self, name: &str, above: &mut Vec<String>) -> Value {
        let Some(schema) = self.0.get(name) else { return Value::Null };
        above.push(name.to_owned());
        let example = match schema.get("example") {
            Some(example) => self.tidied(name, schema, example),
            None => self.of(name, "", schema, above).unwrap_or_default(),
        };
        above.pop();
        example
    }

    /// The declared example, without empty fields and without masked secrets.
    fn tidied(&self, name: &str, schema: &Value, example: &Value) -> Value {
        let Some(fields) = example.as_object() else { return example.clone() };
        let mut tidy = Map::new();
        for (field, value) in fields {
            let property = &schema["properties"][field];
            let stars = value == "***" && property["format"] == "password";
            let inner = reference(property);
            let value = match inner.and_then(|inner| Some((inner, self.0.get(inner)?))) {
                _ if stars => text(name, field),
                Some((inner, schema)) if value.is_object() => self.tidied(inner, schema, value),
                _ => value.clone(),
            };
            if !value.is_null() || field == "next_cursor" {
                tidy.insert(field.clone(), value);
            }
        }
        Value::Object(tidy)
    }

    /// The example of a field, or of a whole schema if `field` is empty. `None` if it would be infinite.
    fn of(&self, name: &str, field: &str, schema: &Value, above: &mut Vec<String>) -> Option<Value> {
        if let Some(example) = schema.get("example").or_else(|| schema["enum"].get(0)) {
            return Some(example.clone());
        }
        if let Some(inner) = reference(schema) {
            let is_above = above.iter().any(|one| one == inner);
            return (!is_above).then(|| self.of_schema(inner, above));
        }
        if let Some(first) = schema["anyOf"].get(0) {
            return self.of(name, field, first, above);
        }
        Some(match schema["type"].as_str() {
            Some("object") if schema["properties"].is_object() => self.of_fields(name, schema, above),
            Some("object") if schema["additionalProperties"].is_object() => match (name, field) {
                ("AppConfig", "config") => json!({ "repository": "acme/site" }),
                (_, "config") => json!({ "repository": "***" }),
                _ => json!({ "content-type": "application/json" }),
            },
            Some("object") => json!({}),
            Some("array") => {
                let item = self.of(name, &format!("{field}[]"), &schema["items"], above);
                item.into_iter().collect()
            }
            Some("boolean") => true.into(),
            Some("integer") => number(name, field),
            Some("number") => json!(0.7),
            // The last page.
            Some("string") if field == "next_cursor" && schema["nullable"] == true => Value::Null,
            Some("string") => text(name, field),
            // Any JSON.
            _ => json!({ "type": "object" }),
        })
    }

    fn of_fields(&self, name: &str, schema: &Value, above: &mut Vec<String>) -> Value {
        let mut fields = Map::new();
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_left_out = OMITTED.iter().any(|out| out == field || *out == format!("{name}.{field}"));
            if !is_left_out && let Some(example) = self.of(name, field, property, above) {
                fields.insert(field.clone(), example);
            }
        }
        fields.into()
    }
}

/// The name of the schema of a reference.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str())?;
    reference.strip_prefix("#/components/schemas/")
}

fn found<T: Copy>(table: &[(&str, T)], schema: &str, field: &str) -> Option<T> {
    let qualified = format!("{schema}.{field}");
    let by = |wanted: &str| table.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    by(&qualified).or_else(|| by(field))
}

pub(super) fn text(schema: &str, field: &str) -> Value {
    found(TEXTS, schema, field).unwrap_or(UNKNOWN).into()
}

fn number(schema: &str, field: &str) -> Value {
    found(NUMBERS, schema, field).unwrap_or(1).into()
}
