//! JSON objects whose members are defined by another standard.

use std::borrow::Cow;

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// A JSON object with any members.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonObject(pub Value);

impl Type for JsonObject {
    scalar!();

    fn name() -> Cow<'static, str> {
        "object".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        let any = MetaSchemaRef::Inline(Box::new(MetaSchema::ANY));
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            additional_properties: Some(Box::new(any)),
            ..MetaSchema::new("object")
        }))
    }
}

impl ParseFromJSON for JsonObject {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(value @ Value::Object(_)) => Ok(Self(value)),
            other => Err(ParseError::expected_type(other.unwrap_or_default())),
        }
    }
}

impl ToJSON for JsonObject {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.clone())
    }
}
