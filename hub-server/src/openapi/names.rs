//! Names of the schemas, from which generators derive types.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::visit;

const SCHEMAS: &str = "#/components/schemas/";

/// Names of generic types become plain names: `Envelope_Page_Bot` is `BotPageResponse`, `Page_Bot` is `BotPage`,
/// `Envelope_Bot` is `BotResponse`.
pub(super) fn readable(name: &str) -> String {
    if let Some(inner) = name.strip_prefix("Envelope_").or_else(|| name.strip_prefix("Bare_")) {
        return format!("{}Response", readable(inner));
    }
    match name.strip_prefix("Page_").or_else(|| name.strip_prefix("CountedPage_")) {
        Some(inner) => format!("{}Page", readable(inner)),
        None => name.trim_end_matches("View").to_owned(),
    }
}

pub(super) fn rename_schemas(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for name in schemas.keys() {
        let new = readable(name);
        // A view keeps its name if the plain one is taken.
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
            && let Some(name) = reference.strip_prefix(SCHEMAS)
            && let Some(new) = names.get(name)
        {
            *reference = format!("{SCHEMAS}{new}");
        }
    });
}

/// Inline schemas of operations get a name: otherwise each generator invents another one.
pub(super) fn name_inline_schemas(document: &mut Value) {
    let mut found = Map::new();
    let schemas = document["components"]["schemas"].clone();
    let Some(paths) = document["paths"].as_object_mut() else { return };
    for operation in paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        if let Some(body) = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut) {
            name_form(body, &schemas, &mut found);
        }
        let id = operation["operationId"].as_str().unwrap_or_default();
        let id = id[..1].to_uppercase() + &id[1..];
        for (status, answer) in operation["responses"].as_object_mut().into_iter().flatten() {
            let name = if status == "200" { format!("{id}Response") } else { format!("{id}Error") };
            let description = answer["description"].clone();
            if let Some(schema) = answer.pointer_mut("/content/application~1json/schema")
                && schema.get("anyOf").is_some()
            {
                let mut named = std::mem::replace(schema, json!({ "$ref": format!("{SCHEMAS}{name}") }));
                named["description"] = description;
                found.insert(name.clone(), named);
            }
        }
    }
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.extend(found);
    }
}

/// The form alternative of a JSON body: named after it, with the same bounds of texts.
fn name_form(body: &mut Map<String, Value>, schemas: &Value, found: &mut Map<String, Value>) {
    let of_json = body.get("application/json").and_then(|media| media["schema"]["$ref"].as_str());
    let Some(json_name) = of_json.and_then(|reference| reference.strip_prefix(SCHEMAS)).map(str::to_owned)
    else {
        return;
    };
    let Some(form) = body.get_mut("multipart/form-data") else { return };
    let name = format!("{json_name}Form");
    let mut schema = std::mem::replace(&mut form["schema"], json!({ "$ref": format!("{SCHEMAS}{name}") }));
    schema["description"] = "The same fields as a form, which can contain a file.".into();
    let likewise = &schemas[&json_name];
    for (field, own) in schema["properties"].as_object_mut().into_iter().flatten() {
        let other = &likewise["properties"][field];
        if other.is_object() {
            own.clone_from(other);
        }
    }
    if let Some(example) = likewise.get("example") {
        schema["example"] = example.clone();
    }
    found.insert(name, schema);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_names_become_readable() {
        for (name, expected) in [
            ("Envelope_Page_BotView", "BotPageResponse"),
            ("Page_BotView", "BotPage"),
            ("CountedPage_BotView", "BotPage"),
            ("Envelope_BotView", "BotResponse"),
            ("BotView", "Bot"),
            ("ErrorResponse", "ErrorResponse"),
        ] {
            assert_eq!(readable(name), expected);
        }
    }
}
