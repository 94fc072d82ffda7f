//! The OpenAPI document: what the endpoints say of themselves, and a finishing pass over it.
//!
//! The finished document is committed as `openapi/hub.json` and `openapi/hub.yaml`; a test compares it and,
//! with `HUB_UPDATE_OPENAPI=1`, writes it.

use std::collections::BTreeMap;

use poem::http::StatusCode;
use poem_openapi::{OpenApi, OpenApiService};
use serde_json::{Map, Value, json};

use crate::{
    api::{self, Api, TAG_ORDER},
    envelope::FAILURES,
    webhook_payload,
};

/// The endpoints as an OpenAPI service. Stateless: a pure function, so that the document needs no hub.
pub fn service() -> OpenApiService<Api, ()> {
    OpenApiService::new(api::all(), "Message Hub", env!("CARGO_PKG_VERSION")).description(
        "A hub between people's chat bot accounts and programs: webhooks, WebSocket clients and AI models.\n\n\
         Every answer under `/api` is `{success: true, data}` or `{success: false, error}`. Lists are pages: \
         `limit` and `cursor` in, `items` and `next_cursor` out, newest first. Bodies are JSON of at most 1 MiB, \
         of 16 KiB without a credential. A request that breaks a rule of HTTP, or whose head is too long or comes too \
         slowly, is answered with 400, 408, 414 or 431 in the same envelope, and its connection ends.",
    )
}

/// The finished document, for a hub that people reach at `public_url`.
pub fn document(public_url: &str) -> Value {
    let mut document: Value =
        serde_json::from_str(&service().spec()).expect("poem-openapi writes the document as JSON");
    finish(&mut document, &operations::<Api>());
    document["servers"] = json!([{ "url": public_url.trim_end_matches('/') }]);
    document.sort_all_objects();
    document
}

/// The document as it is committed: of no hub in particular.
pub fn committed() -> (String, String) {
    let document = document("/");
    let json = serde_json::to_string_pretty(&document).expect("a value has only text keys");
    let yaml = serde_norway::to_string(&document).expect("a value has only text keys");
    (json + "\n", yaml)
}

/// Whether an operation has a security requirement, by operation id.
type Guarded = BTreeMap<&'static str, bool>;

fn operations<A: OpenApi>() -> Guarded {
    let operations = A::meta().into_iter().flat_map(|api| api.paths).flat_map(|path| path.operations);
    operations
        .filter_map(|operation| Some((operation.operation_id?, !operation.security.is_empty())))
        .collect()
}

fn finish(document: &mut Value, guarded: &Guarded) {
    document["openapi"] = "3.0.3".into();
    if let Some(tags) = document["tags"].as_array_mut() {
        tags.sort_by_key(|tag| TAG_ORDER.iter().position(|name| tag["name"] == *name));
    }
    rename_schemas(document);
    if let Some(paths) = document["paths"].as_object_mut() {
        for (method, operation) in paths.values_mut().filter_map(Value::as_object_mut).flatten() {
            finish_operation(method, operation, guarded);
        }
    }
    let failures = FAILURES.iter().map(|(status, text)| (response_name(*status), failure(*status, text)));
    document["components"]["responses"] = Value::Object(failures.collect());
    document["x-webhooks"] = webhook_payload::webhooks();
    normalize(document);
}

/// Failures point to the shared responses; those that cannot happen on an operation are left out.
fn finish_operation(method: &str, operation: &mut Value, guarded: &Guarded) {
    let needs_credential =
        operation["operationId"].as_str().and_then(|id| guarded.get(id)).copied().unwrap_or(false);
    let has_body = operation.get("requestBody").is_some();
    let has_parameters = operation.get("parameters").is_some();
    let is_health = operation["tags"][0] == "Health";
    let redirects = !operation["responses"]["303"].is_null();
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for (status, _) in FAILURES {
        let can_happen = match status {
            StatusCode::BAD_REQUEST => has_body || has_parameters,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                needs_credential || has_body || has_parameters
            }
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNSUPPORTED_MEDIA_TYPE => has_body,
            // The path and method of an operation in the document exist.
            StatusCode::METHOD_NOT_ALLOWED => false,
            StatusCode::CONFLICT => method != "get" || redirects,
            StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE => true,
            // Health is asked without limits, and asks nobody.
            _ => !is_health,
        };
        if responses.remove(status.as_str()).is_some() && can_happen {
            let reference = format!("#/components/responses/{}", response_name(status));
            responses.insert(status.as_str().to_owned(), json!({ "$ref": reference }));
        }
    }
    for response in responses.values_mut().filter_map(Value::as_object_mut) {
        if response.get("description").is_some_and(|text| text == "") {
            response.insert("description".to_owned(), "Success.".into());
        }
    }
}

/// `400 Bad Request` becomes `BadRequest`.
fn response_name(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("Failure").split(' ').collect()
}

fn failure(status: StatusCode, text: &str) -> Value {
    let mut response = json!({
        "description": text,
        "headers": { "X-Request-Id": {
            "description": "Id of the request, as in the body.", "schema": { "type": "string" },
        } },
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/ErrorResponse" } } },
    });
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        response["headers"]["Retry-After"] = json!({
            "description": "Seconds to wait before the next try.",
            "schema": { "type": "integer", "format": "int32", "minimum": 1 },
        });
    }
    response
}

/// Names made from generic types become names people would choose: `Envelope_Page_Bot` is the
/// `BotPageResponse`, `Page_Bot` the `BotPage`, `Envelope_Bot` the `BotResponse`.
fn readable(name: &str) -> String {
    if let Some(inner) = name.strip_prefix("Envelope_") {
        return format!("{}Response", readable(inner));
    }
    match name.strip_prefix("Page_") {
        Some(inner) => format!("{}Page", readable(inner)),
        None => name.trim_end_matches("View").to_owned(),
    }
}

fn rename_schemas(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for name in schemas.keys() {
        let new = readable(name);
        // A view keeps its name where the plain one is taken.
        let is_free = !schemas.contains_key(&new) && !names.values().any(|taken| *taken == new);
        names.insert(name.clone(), if is_free { new } else { name.clone() });
    }
    let old = std::mem::take(schemas);
    schemas.extend(old.into_iter().map(|(name, mut schema)| {
        // The title repeats the old name.
        schema.as_object_mut().and_then(|schema| schema.remove("title"));
        (names[&name].clone(), schema)
    }));
    visit(document, &mut |object| {
        if let Some(Value::String(reference)) = object.get_mut("$ref")
            && let Some(name) = reference.strip_prefix("#/components/schemas/")
            && let Some(new) = names.get(name)
        {
            *reference = format!("#/components/schemas/{new}");
        }
    });
}

/// Small things some generators stumble over.
fn normalize(document: &mut Value) {
    visit(document, &mut |object| {
        if let Some(json) = object.remove("application/json; charset=utf-8") {
            object.insert("application/json".to_owned(), json);
        }
        for bound in ["minimum", "maximum"] {
            // A whole bound of an integer is written as one.
            #[expect(clippy::cast_possible_truncation, reason = "bounds of integers are small and whole")]
            if let Some(number) = object.get(bound).and_then(Value::as_f64)
                && number.fract() == 0.0
                && object.get("type").is_some_and(|kind| kind == "integer")
            {
                object.insert(bound.to_owned(), (number as i64).into());
            }
        }
        match object.get("format").and_then(Value::as_str) {
            Some("uint8" | "uint16" | "int8" | "int16") => {
                object.insert("format".to_owned(), "int32".into());
            }
            Some("uint32" | "uint64") => {
                object.insert("format".to_owned(), "int64".into());
                object.entry("minimum").or_insert(0.into());
            }
            _ => {}
        }
    });
}

/// Shows every object of a document to `act`, the outer before the inner.
fn visit(value: &mut Value, act: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            act(object);
            object.values_mut().for_each(|inner| visit(inner, act));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| visit(inner, act)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;

    #[test]
    fn the_committed_document_is_this_one() {
        let (json, yaml) = committed();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi");
        for (name, text) in [("hub.json", json), ("hub.yaml", yaml)] {
            let path = folder.join(name);
            if std::env::var_os("HUB_UPDATE_OPENAPI").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(found == text, "openapi/{name} is out of date; run the tests with HUB_UPDATE_OPENAPI=1");
        }
    }

    #[test]
    fn every_operation_is_named_tagged_and_described() {
        let document = document("/");
        let mut ids = BTreeSet::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let place = format!("{method} {path}");
                let id = operation["operationId"].as_str().unwrap_or_default();
                assert!(id.starts_with(|c: char| c.is_ascii_lowercase()), "{place}: operationId {id:?}");
                assert!(id.chars().all(|c| c.is_ascii_alphanumeric()), "{place}: operationId {id:?}");
                assert!(ids.insert(id.to_owned()), "{place}: {id} is used twice");
                let tag = operation["tags"][0].as_str().unwrap_or_default();
                assert!(TAG_ORDER.contains(&tag), "{place}: tag {tag:?}");
                assert!(!operation["summary"].as_str().unwrap_or_default().is_empty(), "{place}: no summary");
                for (status, response) in operation["responses"].as_object().unwrap() {
                    let described = response.get("$ref").is_some()
                        || response["description"].as_str().is_some_and(|text| !text.is_empty());
                    assert!(described, "{place}: {status} says nothing");
                }
            }
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_paths_stand_once() {
        let mut document = document("/");
        let paths: Vec<_> = Api::meta().into_iter().flat_map(|api| api.paths).map(|path| path.path).collect();
        assert_eq!(
            paths.iter().collect::<BTreeSet<_>>().len(),
            paths.len(),
            "a path is split over two impls"
        );
        let copy = document.clone();
        visit(&mut document, &mut |object| {
            if let Some(Value::String(reference)) = object.get("$ref") {
                let pointer = reference.trim_start_matches('#');
                assert!(copy.pointer(pointer).is_some(), "{reference} leads nowhere");
            }
        });
    }

    #[test]
    fn generic_names_become_readable() {
        for (name, expected) in [
            ("Envelope_Page_BotView", "BotPageResponse"),
            ("Page_BotView", "BotPage"),
            ("Envelope_BotView", "BotResponse"),
            ("BotView", "Bot"),
            ("ErrorResponse", "ErrorResponse"),
        ] {
            assert_eq!(readable(name), expected);
        }
    }
}
