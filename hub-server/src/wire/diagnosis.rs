//! Problems of a body, field by field. poem-openapi stops at the first error and does not name the field, so a
//! rejected body is compared with the schema of its type again, all fields at once.

use std::borrow::Cow;

use hub_core::{
    error::Problems,
    input::{items_problem, range_problem},
    text::chars_problem,
};
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};
use regex::Regex;
use serde_json::{Map, Value};

use super::json::{element, member};

/// Reports every place where `value` does not match the schema of `T`, under the path that a caller would write.
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
                    if is_strict(name)
                        && let Value::Object(object) = value
                    {
                        self.unknown_fields(&schema, object, path);
                    }
                }
            }
        }
    }

    fn note(&mut self, path: &str, reason: impl Into<Cow<'static, str>>) {
        let path = if path.is_empty() { "body" } else { path };
        self.problems.add(path.to_owned(), reason);
    }

    fn schema(&mut self, schema: &MetaSchema, value: &Value, path: &str) {
        if value.is_null() && schema.nullable {
            return;
        }
        schema.all_of.iter().for_each(|part| self.reference(part, value, path));
        if !schema.any_of.is_empty() && !schema.any_of.iter().any(|one| may_be(one, value)) {
            let types: Vec<_> = schema.any_of.iter().filter_map(type_of).map(with_article).collect();
            self.note(path, format!("must be {}", types.join(" or ")));
            return;
        }
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
            Value::Array(items) => self.array(schema, items, path),
            Value::Object(object) => self.object(schema, object, path),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn text(&mut self, schema: &MetaSchema, text: &str, path: &str) {
        let (min, max) = (schema.min_length.unwrap_or(0), schema.max_length.unwrap_or(usize::MAX));
        if let Some(reason) = chars_problem(text, &(min..=max)) {
            self.note(path, reason);
        } else if let Some(pattern) = &schema.pattern
            && Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text))
        {
            let like = schema.example.as_ref().and_then(Value::as_str);
            let like = like.map(|example| format!(", for example {example}")).unwrap_or_default();
            self.note(path, format!("must match {pattern}{like}"));
        }
    }

    fn number(&mut self, schema: &MetaSchema, number: f64, path: &str) {
        let (least, most) = schema.format.and_then(range).unzip();
        let (min, max) = (schema.minimum.or(least), schema.maximum.or(most));
        let bounds = min.unwrap_or(f64::NEG_INFINITY)..=max.unwrap_or(f64::INFINITY);
        if let Some(reason) = range_problem(number, &bounds) {
            self.note(path, reason);
        }
    }

    fn array(&mut self, schema: &MetaSchema, items: &[Value], path: &str) {
        let bounds = schema.min_items.unwrap_or(0)..=schema.max_items.unwrap_or(usize::MAX);
        if let Some(reason) = items_problem(items.len(), &bounds) {
            self.note(path, reason);
        }
        if let Some(schema) = &schema.items {
            for (index, item) in items.iter().enumerate() {
                self.reference(schema, item, &element(path, index));
            }
        }
    }

    fn object(&mut self, schema: &MetaSchema, object: &Map<String, Value>, path: &str) {
        let bounds = 0..=schema.max_properties.unwrap_or(usize::MAX);
        if let Some(reason) = items_problem(object.len(), &bounds) {
            self.note(path, reason);
        }
        for (name, property) in &schema.properties {
            let is_required = schema.required.contains(name);
            match object.get(*name) {
                // A missing and a null optional field are the same to poem-openapi.
                None | Some(Value::Null) if !is_required => {}
                None => self.note(&member(path, name), "must be set"),
                Some(value) => self.reference(property, value, &member(path, name)),
            }
        }
        if let Some(others) = &schema.additional_properties {
            let listed = |name: &str| schema.properties.iter().any(|(property, _)| *property == name);
            for (name, value) in object.iter().filter(|(name, _)| !listed(name)) {
                self.reference(others, value, &member(path, name));
            }
        }
    }

    fn unknown_fields(&mut self, schema: &MetaSchema, object: &Map<String, Value>, path: &str) {
        let known = |name: &str| schema.properties.iter().any(|(property, _)| *property == name);
        for name in object.keys().filter(|name| !known(name)) {
            self.note(&member(path, name), "is not a field of this request");
        }
    }
}

/// Bodies that ignore unknown fields: programs of other hubs send them with additional fields.
const LENIENT: [&str; 7] =
    ["BotSend", "BotTool", "ChannelSend", "ChannelTyping", "ExchangeCode", "ExchangeCodeOlder", "SetTools"];

/// Whether the type of a request rejects unknown fields.
pub(crate) fn is_strict(name: &str) -> bool {
    !LENIENT.contains(&name)
}

/// Returns the smallest and the largest integer of a format. A JSON number that exceeds 64 bits is not an integer
/// here.
fn range(format: &str) -> Option<(f64, f64)> {
    Some(match format {
        "uint8" => (0.0, u8::MAX.into()),
        "uint16" => (0.0, u16::MAX.into()),
        "uint32" => (0.0, u32::MAX.into()),
        "uint64" => (0.0, f64::MAX),
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        _ => return None,
    })
}

/// The type of a schema that is not a reference.
fn type_of(schema: &MetaSchemaRef) -> Option<&'static str> {
    match schema {
        MetaSchemaRef::Inline(schema) => Some(schema.ty),
        MetaSchemaRef::Reference(_) => None,
    }
}

/// Whether a value has the type of a schema; `true` for a reference.
fn may_be(schema: &MetaSchemaRef, value: &Value) -> bool {
    type_of(schema).is_none_or(|ty| is_of_type(ty, value))
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
