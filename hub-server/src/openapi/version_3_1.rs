//! The same document for tools that read OpenAPI 3.1, whose schemas are plain JSON Schema.

use serde_json::{Value, json};

use super::visit;

/// A finished 3.0 document as 3.1: `webhooks` at the top level, `null` as a type, examples in a list.
pub(super) fn derive(document: &Value) -> Value {
    let mut document = document.clone();
    document["openapi"] = "3.1.1".into();
    if let Some(root) = document.as_object_mut()
        && let Some(webhooks) = root.remove("x-webhooks")
    {
        root.insert("webhooks".to_owned(), webhooks);
    }
    visit(&mut document, &mut |object| {
        if object.remove("nullable").is_some_and(|nullable| nullable == true)
            && let Some(kind) = object.get("type").cloned()
        {
            match object.remove("allOf") {
                // A reference would reject what the type next to it admits.
                Some(Value::Array(mut parts)) => {
                    object.remove("type");
                    parts.push(json!({ "type": "null" }));
                    object.insert("anyOf".to_owned(), parts.into());
                }
                _ => drop(object.insert("type".to_owned(), json!([kind, "null"]))),
            }
        }
        // Parameters, headers and media types have a schema next to their example, and keep it.
        let is_schema = ["type", "allOf", "anyOf", "enum"].iter().any(|word| object.contains_key(*word));
        if is_schema
            && !object.contains_key("schema")
            && let Some(example) = object.remove("example")
        {
            object.insert("examples".to_owned(), json!([example]));
        }
    });
    document.sort_all_objects();
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_3_0_become_those_of_3_1() {
        let older = json!({
            "openapi": "3.0.3",
            "x-webhooks": { "message": {} },
            "components": { "schemas": { "Page": { "properties": { "next_cursor": {
                "description": "Where to go on.", "type": "string", "nullable": true, "example": "a",
            }, "order": {
                "allOf": [{ "$ref": "#/components/schemas/Order" }], "type": "string", "nullable": true,
            } } } } },
            "paths": { "/": { "get": { "parameters": [{ "schema": { "type": "string" }, "example": "b" }] } } },
        });
        let newer = derive(&older);
        assert_eq!(newer["webhooks"], json!({ "message": {} }));
        assert_eq!(
            newer["components"]["schemas"]["Page"]["properties"]["next_cursor"],
            json!({ "description": "Where to go on.", "type": ["string", "null"], "examples": ["a"] })
        );
        assert_eq!(
            newer["components"]["schemas"]["Page"]["properties"]["order"],
            json!({ "anyOf": [{ "$ref": "#/components/schemas/Order" }, { "type": "null" }] })
        );
        assert_eq!(newer["paths"]["/"]["get"]["parameters"][0]["example"], "b");
    }
}
