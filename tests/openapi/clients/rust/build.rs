//! Generates the client from the committed document. The generator supports one type for the body of an operation,
//! one for its responses and one for its errors, and no WebSockets: the document is reduced to that first.

use std::{env, error::Error, fs, path::Path};

use openapiv3::OpenAPI;
use progenitor::{GenerationSettings, Generator, InterfaceStyle};
use serde_json::{Map, Value};

const DOCUMENT: &str = "../../../../openapi/hub.json";
const JSON: &str = "application/json";

fn main() -> Result<(), Box<dyn Error>> {
    // The directory of this run: a shared target directory may hold a build script that another checkout compiled.
    let path = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(DOCUMENT);
    println!("cargo:rerun-if-changed={}", path.display());
    let mut document: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    reduce(&mut document);
    let document: OpenAPI = serde_json::from_value(document)?;
    // With positional arguments, a new optional parameter would break programs.
    let mut settings = GenerationSettings::default();
    settings.with_interface(InterfaceStyle::Builder);
    let client = Generator::new(&settings).generate_tokens(&document)?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("client.rs"), client.to_string())?;
    Ok(())
}

fn reduce(document: &mut Value) {
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    for operations in paths.filter_map(Value::as_object_mut) {
        operations.retain(|_, operation| has_response(&operation["responses"]));
        for operation in operations.values_mut() {
            keep_json(operation.pointer_mut("/requestBody/content"));
            let Some(responses) = operation["responses"].as_object_mut() else { continue };
            responses.retain(|status, response| match status.as_bytes() {
                [b'2', ..] => true,
                [b'4' | b'5', ..] => is_hub_error(response),
                // Redirects, and `default`, which would include successes.
                _ => false,
            });
            responses.values_mut().for_each(|response| keep_json(response.get_mut("content")));
        }
    }
    let schemas = document["components"]["schemas"].as_object_mut().into_iter().flat_map(Map::values_mut);
    schemas.filter_map(Value::as_object_mut).for_each(keep_snake_case);
}

/// Neither a WebSocket nor only a redirect.
fn has_response(responses: &Value) -> bool {
    let mut statuses = responses.as_object().into_iter().flat_map(Map::keys);
    responses.get("101").is_none() && statuses.any(|status| status.starts_with('2'))
}

/// Not an error of RFC 6749: those become unexpected responses.
fn is_hub_error(response: &Value) -> bool {
    let schema = response.pointer("/content/application~1json/schema/$ref");
    response.get("$ref").is_some()
        || schema.is_some_and(|schema| schema == "#/components/schemas/ErrorResponse")
}

fn keep_json(content: Option<&mut Value>) {
    let Some(content) = content.and_then(Value::as_object_mut) else { return };
    if content.contains_key(JSON) {
        content.retain(|media, _| media == JSON);
    }
}

/// Removes the camel case spelling of a field that also has one in snake case: both become the same name in Rust.
fn keep_snake_case(schema: &mut Map<String, Value>) {
    let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    let snake: Vec<_> =
        fields.keys().filter(|name| name.contains('_')).map(|name| name.replace('_', "")).collect();
    let is_kept = |name: &str| name.contains('_') || !snake.contains(&name.to_lowercase());
    fields.retain(|name, _| is_kept(name));
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name.as_str().is_some_and(is_kept));
    }
}
