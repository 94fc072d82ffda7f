//! Values at the bounds that the OpenAPI document gives are within the bounds that the server enforces.

use hub_server::openapi;
use serde_json::{Value, json};

use super::{
    operation::operations,
    stage::{ORIGIN, Stage},
};

/// Limits in bytes: credentials, scripts, and the text of a message, whose limit is a setting.
const LIMITED_IN_BYTES: [&str; 6] = ["api_key", "content", "context_token", "from", "script", "secret"];
/// Fields of ASCII characters, next to addresses.
const ASCII: [&str; 4] = ["handle", "header_name", "key_header", "expression"];

#[tokio::test]
async fn values_at_the_documented_bounds_are_within_the_enforced_bounds() {
    let document = openapi::document(ORIGIN);
    let (mut tried, mut refused) = (0, Vec::new());
    for operation in operations() {
        let schema = &operation.described["requestBody"]["content"]["application/json"]["schema"];
        // Operations for programs of other hubs ignore additional fields, and their limits are those of the hub's own.
        if resolved(&document, schema)["additionalProperties"] != false {
            continue;
        }
        let stage = Stage::new().await;
        let body = (operation.entry().body)(&stage);
        let mut cases = Vec::new();
        at_bounds(&document, schema, &body, "", &mut cases);
        for (field, changed) in cases {
            let answer = stage.ask_with(&operation, "application/json", changed.to_string()).await;
            tried += 1;
            let details = answer.json["error"]["details"].as_array().cloned().unwrap_or_default();
            refused.extend(details.iter().filter_map(|detail| {
                let (named, reason) = (detail["field"].as_str()?, detail["reason"].as_str()?);
                // Other reasons are about the form of an address, a word, an id.
                let is_bound = [" bytes", " characters", "at most", "at least", " to "];
                let is_bound = is_bound.iter().any(|word| reason.contains(word))
                    && reason.contains(|character: char| character.is_ascii_digit());
                let is_tried = answer.status == 400 && named.starts_with(&field);
                (is_bound && is_tried).then(|| format!("{}: {named}: {reason}", operation.id))
            }));
        }
    }
    refused.dedup();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(tried > 200, "{tried} values");
}

/// The schema that a reference names.
fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    let found = reference.and_then(|path| document.pointer(path.trim_start_matches('#')));
    found.unwrap_or(schema)
}

/// Bodies that differ from `body` in one field, which is at a bound; with the path of the field.
fn at_bounds(document: &Value, schema: &Value, body: &Value, path: &str, cases: &mut Vec<(String, Value)>) {
    let schema = resolved(document, schema);
    let body = if body.is_object() { body } else { &schema["example"] };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let inner = resolved(document, property);
        let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let with = |value: Value| {
            let mut whole = body.as_object().cloned().unwrap_or_default();
            whole.insert(name.clone(), value);
            Value::Object(whole)
        };
        if inner["properties"].is_object() {
            let mut nested = Vec::new();
            at_bounds(document, inner, &body[name], &place, &mut nested);
            cases.extend(nested.into_iter().map(|(place, value)| (place, with(value))));
        } else {
            cases.extend(values(name, inner).into_iter().map(|value| (place.clone(), with(value))));
        }
    }
}

/// The values at the bounds of a schema.
fn values(name: &str, schema: &Value) -> Vec<Value> {
    let bound = |word: &str| schema[word].as_u64().and_then(|length| usize::try_from(length).ok());
    match schema["type"].as_str() {
        // With a wait the request ends when the clock moves, which it does not here.
        _ if !schema["enum"].is_null() || name == "wait_ms" => Vec::new(),
        Some("integer" | "number") => {
            ["minimum", "maximum"].into_iter().filter_map(|word| schema.get(word).cloned()).collect()
        }
        Some("string") if schema["pattern"].is_null() => {
            let bounds = [bound("minLength"), bound("maxLength")].into_iter().flatten();
            bounds.map(|length| json!(text(name, length))).collect()
        }
        Some("array") if schema["items"]["type"] == "string" => {
            let length = schema["items"]["maxLength"].as_u64().unwrap_or(1);
            let text = text(name, usize::try_from(length).unwrap());
            bound("maxItems").map(|count| json!(vec![text; count])).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A text of so many characters: of three bytes each, unless the limit is one of bytes.
fn text(name: &str, length: usize) -> String {
    if LIMITED_IN_BYTES.contains(&name) {
        return "a".repeat(length.min(65_536));
    }
    let is_address = ["url", "uri", "uris", "page"].iter().any(|end| name.ends_with(end));
    if is_address || ASCII.contains(&name) {
        return "a".repeat(length);
    }
    // A password must not be easy to guess.
    let letters: Vec<char> = "号角在黑暗中独奏直到天亮也没有人听见它的声音".chars().collect();
    (0..length).map(|n| letters[(n * n + n / 7) % letters.len()]).collect()
}

/// Generated clients send every parameter, and nothing for those that their caller left out.
#[tokio::test]
async fn empty_parameters_of_a_query_are_as_if_they_were_absent() {
    let stage = Stage::new().await;
    let (mut tried, mut lists) = (0, 0);
    for operation in operations().into_iter().filter(|operation| operation.method == "GET") {
        let described = operation.described["parameters"].as_array().cloned().unwrap_or_default();
        let optional = described.iter().filter(|one| one["in"] == "query" && one["required"] != true);
        let names: Vec<&str> = optional.filter_map(|one| one["name"].as_str()).collect();
        let path = stage.path(&operation);
        let all = &stage.credentials;
        let (header, value) = if operation.is_for_channels() {
            ("X-API-Key", all.channel_key.clone())
        } else if operation.is_for_whole_apps() {
            ("Authorization", format!("Bearer {}", all.app_secret))
        } else if operation.is_for_apps() {
            ("Authorization", format!("Bearer {}", all.app_token))
        } else if operation.is_administration() {
            ("Cookie", format!("session={}", all.admin))
        } else {
            ("Cookie", format!("session={}", stage.ada))
        };
        let get = async |query: &str| {
            let separator = if path.contains('?') { '&' } else { '?' };
            let path = if query.is_empty() { path.clone() } else { format!("{path}{separator}{query}") };
            stage.ask(&operation, &path, |request| request.header(header, &value)).await
        };
        // A poll waits for what does not come.
        let waits = if names.contains(&"timeout") { "timeout=0" } else { "" };
        let plain = get(waits).await;
        if names.is_empty() || !(200..300).contains(&plain.status) {
            continue;
        }
        for name in names.iter().filter(|name| **name != "timeout") {
            for empty in [format!("{name}="), (*name).to_owned(), format!("{name}=&{name}=")] {
                let answer = get(&format!("{waits}&{empty}")).await;
                assert_eq!(answer.status, plain.status, "{} {empty}: {}", operation.id, answer.json);
                tried += 1;
            }
        }
        lists += usize::from(names.contains(&"cursor"));
    }
    assert!(tried > 150 && lists > 15, "{tried} tried, of {lists} lists");
}
