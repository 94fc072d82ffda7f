//! The finishing pass: what all operations share, and corrections for generators and linters.

use std::collections::BTreeSet;

use poem::http::StatusCode;
use serde_json::{Map, Value, json};

use super::{
    Guarded, examples, failures, links,
    names::{name_inline_schemas, rename_schemas},
    visit,
};
use crate::{api::TAG_ORDER, envelope::FAILURES, parameters, webhook_payload, wire::is_strict};

/// Of operations whose parameters may exceed the limit.
const TARGET_TOO_LONG: (StatusCode, &str) =
    (StatusCode::URI_TOO_LONG, "The parameters are too long: `INVALID_PARAMS`.");

/// Errors that only a broken client causes: 408, 414, 431.
const RULE_OF_HTTP: &str = "The request violates HTTP.";

pub(super) fn finish(document: &mut Value, guarded: &Guarded) {
    document["openapi"] = "3.0.3".into();
    document["info"]["license"] = json!({ "name": "MIT OR Apache-2.0", "url": "https://spdx.org/licenses/" });
    document["info"]["contact"] = json!({ "name": "The operator of this hub" });
    if let Some(tags) = document["tags"].as_array_mut() {
        tags.sort_by_key(|tag| TAG_ORDER.iter().position(|name| tag["name"] == *name));
    }
    normalize(document);
    rename_schemas(document);
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, operations) in paths {
            for (method, operation) in operations.as_object_mut().into_iter().flatten() {
                finish_operation(path, method, operation, guarded);
                describe_parameters(operation);
                admit_empty_parameters(operation);
            }
        }
    }
    // The path and method of an operation in the document exist.
    let shared = FAILURES.iter().filter(|(status, _)| *status != StatusCode::METHOD_NOT_ALLOWED);
    let shared = shared.chain([&TARGET_TOO_LONG]);
    let failures = shared.map(|(status, text)| (response_name(*status), failure(*status, text)));
    document["components"]["responses"] = Value::Object(failures.collect());
    for (name, schema) in webhook_payload::schemas() {
        document["components"]["schemas"][name] = schema;
    }
    document["x-webhooks"] = webhook_payload::webhooks();
    name_inline_schemas(document);
    drop_unused_schemas(document);
    admit_null(document);
    refuse_unknown_fields(document);
    examples::fill(document);
    links::add(document);
}

/// The names of the schemas that request bodies contain.
fn sent(document: &Value) -> BTreeSet<String> {
    let mut sent = BTreeSet::new();
    let schemas = &document["components"]["schemas"];
    let operations =
        document["paths"].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_object);
    for operation in operations.flat_map(Map::values) {
        super::reached(&operation["requestBody"], schemas, &mut sent);
    }
    sent
}

/// Requests reject unknown fields, except those that programs of other hubs send. A form may have others.
fn refuse_unknown_fields(document: &mut Value) {
    for name in sent(document).into_iter().filter(|name| is_strict(name) && !name.ends_with("Form")) {
        let schema = &mut document["components"]["schemas"][name];
        if schema["type"] == "object" && schema.get("additionalProperties").is_none() {
            schema["additionalProperties"] = false.into();
        }
    }
}

/// In a request, `null` is the same as an absent field.
fn admit_null(document: &mut Value) {
    let schemas = document["components"]["schemas"].clone();
    for name in sent(document) {
        let schema = &mut document["components"]["schemas"][name];
        let required = schema.get("required").cloned().unwrap_or_default();
        let fields = schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
        for (field, property) in fields {
            let is_optional = !required.as_array().is_some_and(|names| names.iter().any(|one| one == field));
            let is_plain = ["default", "enum"].iter().all(|word| property.get(word).is_none());
            if !is_optional || !is_plain || property["format"] == "binary" {
                continue;
            }
            if let Some(inner) = examples::reference(property) {
                // `nullable` is valid next to a type only (OpenAPI 3.0.3, Schema Object).
                property["type"] = schemas[inner]["type"].clone();
            }
            if property["type"].is_string() {
                property["nullable"] = true.into();
            }
        }
    }
}

/// Schemas that types brought along and no operation uses.
fn drop_unused_schemas(document: &mut Value) {
    loop {
        let text = document.to_string();
        let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
        let before = schemas.len();
        schemas.retain(|name, _| text.contains(&format!("\"#/components/schemas/{name}\"")));
        if schemas.len() == before {
            return;
        }
    }
}

/// Errors refer to the shared responses; those that an operation cannot return are removed.
fn finish_operation(path: &str, method: &str, operation: &mut Value, guarded: &Guarded) {
    let operation_id = operation["operationId"].as_str().unwrap_or_default().to_owned();
    if !guarded.get(&*operation_id).copied().unwrap_or(false) {
        operation["security"] = json!([]);
    }
    let statuses = FAILURES.iter().chain([&TARGET_TOO_LONG]).map(|(status, _)| *status);
    let (possible, impossible): (Vec<_>, Vec<_>) =
        statuses.partition(|status| failures::can_happen(path, method, operation, *status));
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for status in impossible {
        responses.remove(status.as_str());
    }
    for status in possible {
        responses.insert(status.as_str().to_owned(), shared_response(status));
    }
    if responses.contains_key("303") {
        // Linters require a success response next to a redirect, and cannot know that there is none.
        responses.insert("default".to_owned(), failure(StatusCode::BAD_REQUEST, RULE_OF_HTTP));
    }
    if responses.contains_key("101") && !responses.contains_key("200") {
        // They require a 2xx next to a change of protocols, too, and there is one, which this hub does not use
        // itself.
        responses.insert(
            "200".to_owned(),
            json!({ "description": "Behind a proxy that speaks HTTP/2 with the client, where a WebSocket \
                begins with this status (RFC 8441)." }),
        );
    }
    if operation_id == "exchangeAppCode" {
        oauth_failures(responses);
    }
    for response in responses.values_mut().filter_map(Value::as_object_mut) {
        if response.get("description").is_some_and(|text| text == "") {
            response.insert("description".to_owned(), "Success.".into());
        }
    }
}

/// The token endpoint returns the errors of RFC 6749, section 5.2, except for unreadable requests.
fn oauth_failures(responses: &mut Map<String, Value>) {
    let [oauth, ours] =
        ["OauthError", "ErrorResponse"].map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
    let answer = |description: &str, schema: Value| json!({ "description": description, "content": { "application/json": { "schema": schema } } });
    let either = json!({ "anyOf": [oauth.clone(), ours] });
    let wrong = answer("The request, the code or its verifier is invalid.", either);
    let unknown = answer("The app is unknown, or its secret is wrong.", oauth);
    responses.extend([("400".to_owned(), wrong), ("401".to_owned(), unknown)]);
}

fn shared_response(status: StatusCode) -> Value {
    json!({ "$ref": format!("#/components/responses/{}", response_name(status)) })
}

/// `400 Bad Request` becomes `BadRequest`.
fn response_name(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("Failure").split(' ').collect()
}

fn failure(status: StatusCode, text: &str) -> Value {
    let mut response = json!({
        "description": text,
        "headers": { "X-Request-Id": {
            "description": "Id of the request, as in the body.",
            "schema": { "type": "string" }, "example": examples::text("", "X-Request-Id"),
        } },
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/ErrorResponse" } } },
    });
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        response["headers"]["Retry-After"] = json!({
            "description": "Seconds to wait before the next attempt.", "example": 1,
            "schema": { "type": "integer", "format": "int32", "minimum": 1 },
        });
    }
    response
}

/// Says of parameters that an empty one is as an absent one.
fn admit_empty_parameters(operation: &mut Value) {
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let is_optional = parameter["in"] == "query" && parameter["required"] != true;
        if is_optional && !parameters::CREDENTIALS.contains(&name) {
            parameter["allowEmptyValue"] = true.into();
        }
    }
}

/// Descriptions of parameters that many operations have; others have their own.
fn describe_parameters(operation: &mut Value) {
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        if parameter["description"].as_str().is_some_and(|text| !text.is_empty()) {
            continue;
        }
        let text = match parameter["name"].as_str().unwrap_or_default() {
            "limit" => "Maximum number of items per page.",
            "cursor" => "Cursor from the previous page's `next_cursor`.",
            "Idempotency-Key" => {
                "The same request with the same key within 24 hours returns the first response."
            }
            "provider" => "Name of the external provider.",
            "userId" => "Id of the person on the chat network.",
            _ => match parameter["schema"]["pattern"].as_str().unwrap_or_default() {
                pattern if pattern.starts_with("^app_") => "Id of the app.",
                pattern if pattern.starts_with("^bot_") => "Id of the bot.",
                pattern if pattern.starts_with("^ch_") => "Id of the channel.",
                pattern if pattern.starts_with("^key_") => "Id of the API key.",
                pattern if pattern.starts_with("^msg_") => "Id of the message.",
                pattern if pattern.starts_with("^pky_") => "Id of the passkey.",
                pattern if pattern.starts_with("^plg_") => "Id of the plugin.",
                pattern if pattern.starts_with("^pl[gv]_") => "Id of the plugin, or of one of its versions.",
                pattern if pattern.starts_with("^rpl_") => "Id of the replay.",
                pattern if pattern.starts_with("^ses_") => "Id of the session.",
                pattern if pattern.starts_with("^tr_") => "Id of the trace.",
                pattern if pattern.starts_with("^usr_") => "Id of the user.",
                _ => continue,
            },
        };
        parameter["description"] = text.into();
    }
}

/// Text next to a reference in `allOf` is moved to where generators look for it: next to the `allOf`.
fn hoist(object: &mut Map<String, Value>) {
    let Some(Value::Array(parts)) = object.get_mut("allOf") else { return };
    if !parts.iter().any(|part| part.get("$ref").is_some()) {
        return;
    }
    let is_beside = |part: &Value| {
        part.as_object().is_some_and(|part| part.keys().all(|key| key == "description" || key == "default"))
    };
    let beside: Vec<Value> = parts.extract_if(.., |part| is_beside(part)).collect();
    for part in beside {
        if let Value::Object(part) = part {
            object.extend(part);
        }
    }
}

/// Corrections for single generators.
fn normalize(document: &mut Value) {
    visit(document, &mut |object| {
        if let Some(json) = object.remove("application/json; charset=utf-8") {
            object.insert("application/json".to_owned(), json);
        }
        hoist(object);
        for bound in ["minimum", "maximum"] {
            // An integral bound of an integer is written as an integer.
            #[expect(clippy::cast_possible_truncation, reason = "bounds of integers are small and whole")]
            if let Some(number) = object.get(bound).and_then(Value::as_f64)
                && number.fract() == 0.0
                && object.get("type").is_some_and(|kind| kind == "integer")
            {
                object.insert(bound.to_owned(), (number as i64).into());
            }
        }
        let (format, max): (_, Option<u32>) = match object.get("format").and_then(Value::as_str) {
            Some("uint8") => ("int32", Some(u8::MAX.into())),
            Some("uint16") => ("int32", Some(u16::MAX.into())),
            Some("uint32") => ("int64", Some(u32::MAX)),
            Some("uint64") => ("int64", None),
            _ => return,
        };
        object.insert("format".to_owned(), format.into());
        object.entry("minimum").or_insert(0.into());
        if let Some(max) = max {
            object.entry("maximum").or_insert(max.into());
        }
    });
}
