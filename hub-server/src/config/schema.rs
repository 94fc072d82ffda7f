//! The JSON Schema of `hub.toml`, for editors that complete and check it.

use serde_json::{Map, Value, json};

use super::setting::{SETTINGS, Setting};

/// The schema, made of the table of settings.
pub fn schema() -> Value {
    let mut properties = Map::new();
    for setting in SETTINGS {
        let mut property = shape(setting);
        property["description"] = setting.help.into();
        properties.insert(setting.name.to_owned(), property);
        if setting.in_file {
            let file = json!({ "type": "string", "description": format!("A file with {}", setting.name) });
            properties.insert(format!("{}_file", setting.name), file);
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of Message Hub",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// The form of a value, from its form in help.
fn shape(setting: &Setting) -> Value {
    match setting.value {
        "true|false" => json!({ "type": "boolean" }),
        "COUNT" | "BYTES" | "PER_MINUTE" => json!({ "type": "integer", "minimum": 1 }),
        "TIME" => json!({ "type": "string", "pattern": "^[0-9]+[smhd]$" }),
        list if list.ends_with(",…") => {
            json!({ "type": ["string", "array"], "items": { "type": "string" } })
        }
        "DIR|URL" => json!({ "type": "string" }),
        words if words.contains('|') => json!({ "enum": words.split('|').collect::<Vec<_>>() }),
        _ => json!({ "type": "string" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_file_matches_the_schema() {
        let schema = schema();
        let mut shown = super::super::sources::default_table();
        // An empty text means no value.
        shown.retain(|_, value| value.as_str() != Some(""));
        assert!(shown.len() > 20, "{shown:?}");
        for (key, value) in &shown {
            let wanted = &schema["properties"][key];
            let is = match value {
                toml::Value::Boolean(_) => "boolean",
                toml::Value::Integer(_) => "integer",
                toml::Value::Array(_) => "array",
                _ => "string",
            };
            let fits = match wanted["type"].as_array() {
                Some(types) => types.iter().any(|one| one == is),
                None => {
                    wanted["type"] == is
                        || wanted["enum"].as_array().is_some_and(|e| e.contains(&json!(value.as_str())))
                }
            };
            assert!(fits, "{key}: {value} is none of {wanted}");
        }
        assert_eq!(schema["properties"]["secret_key_file"]["type"], "string");
    }
}
