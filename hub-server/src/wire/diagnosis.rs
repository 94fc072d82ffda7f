//! What is wrong with a body, field by field. poem-openapi stops at the first error and does not name the
//! field, so a refused body is held against the schema of its type once more, all fields at a time.

use hub_core::error::Problems;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};
use serde_json::Value;

/// Notes every place where `value` does not fit the schema of `T`, under the path a caller would write.
pub(super) fn diagnose<T: Type>(value: &Value) -> Problems {
    let mut registry = Registry::new();
    T::register(&mut registry);
    let mut diagnosis = Diagnosis { registry, problems: Problems::default() };
    diagnosis.reference(&T::schema_ref(), value, "");
    diagnosis.problems
}

struct Diagnosis {
    registry: Registry,
    problems: Problems,
}

impl Diagnosis {
    fn reference(&mut self, reference: &MetaSchemaRef, value: &Value, path: &str) {
        match reference {
            MetaSchemaRef::Inline(schema) => self.schema(schema, value, path),
            MetaSchemaRef::Reference(name) => {
                if let Some(schema) = self.registry.schemas.get(name).cloned() {
                    self.schema(&schema, value, path);
                }
            }
        }
    }

    fn note(&mut self, path: &str, reason: impl Into<String>) {
        let path = if path.is_empty() { "body" } else { path };
        self.problems.add(path.to_owned(), reason.into());
    }

    fn schema(&mut self, schema: &MetaSchema, value: &Value, path: &str) {
        if value.is_null() && schema.nullable {
            return;
        }
        schema.all_of.iter().for_each(|part| self.reference(part, value, path));
        if !is_of_type(schema.ty, value) {
            self.note(path, format!("must be {}", with_article(schema.ty)));
            return;
        }
        if !schema.enum_items.is_empty() && !schema.enum_items.contains(value) {
            let allowed: Vec<String> = schema
                .enum_items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                .collect();
            self.note(path, format!("must be one of: {}", allowed.join(", ")));
        }
        match value {
            Value::String(text) => self.text(schema, text, path),
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or(f64::NAN), path),
            Value::Array(items) => {
                if let Some(schema) = &schema.items {
                    for (index, item) in items.iter().enumerate() {
                        self.reference(schema, item, &format!("{path}[{index}]"));
                    }
                }
            }
            Value::Object(object) => self.object(schema, object, path),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn text(&mut self, schema: &MetaSchema, text: &str, path: &str) {
        let length = text.chars().count();
        if let Some(min) = schema.min_length.filter(|min| length < *min) {
            self.note(path, format!("must be at least {min} characters"));
        }
        if let Some(max) = schema.max_length.filter(|max| length > *max) {
            self.note(path, format!("must be at most {max} characters"));
        }
    }

    fn number(&mut self, schema: &MetaSchema, number: f64, path: &str) {
        let min = schema.minimum.or_else(|| schema.format?.starts_with("uint").then_some(0.0));
        if let Some(min) = min.filter(|min| number < *min) {
            self.note(path, format!("must be at least {min}"));
        }
        if let Some(max) = schema.maximum.filter(|max| number > *max) {
            self.note(path, format!("must be at most {max}"));
        }
    }

    fn object(&mut self, schema: &MetaSchema, object: &serde_json::Map<String, Value>, path: &str) {
        let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for (name, property) in &schema.properties {
            let is_required = schema.required.contains(name);
            match object.get(*name) {
                // A missing and a null optional field are the same to poem-openapi.
                None | Some(Value::Null) if !is_required => {}
                None => self.note(&inside(name), "must be set"),
                Some(value) => self.reference(property, value, &inside(name)),
            }
        }
        if schema.additional_properties.is_none() && schema.all_of.is_empty() && schema.one_of.is_empty() {
            let known = |name: &str| schema.properties.iter().any(|(property, _)| *property == name);
            for name in object.keys().filter(|name| !known(name)) {
                self.note(&inside(name), "is not a field of this request");
            }
        }
    }
}

fn is_of_type(ty: &str, value: &Value) -> bool {
    match ty {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn with_article(ty: &str) -> String {
    let article = if matches!(ty, "integer" | "array" | "object") { "an" } else { "a" };
    format!("{article} {}", if ty == "string" { "text" } else { ty })
}
