//! JSON objects that are passed on as they are.

use std::{borrow::Cow, marker::PhantomData};

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
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

/// The JSON of a `T` as it is stored.
#[derive(Debug)]
pub struct Stored<T> {
    json: Value,
    of: PhantomData<fn() -> T>,
}

impl<T> From<Value> for Stored<T> {
    fn from(json: Value) -> Self {
        Self { json, of: PhantomData }
    }
}

impl<T: Type> Type for Stored<T> {
    scalar!();

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn schema_ref() -> MetaSchemaRef {
        T::schema_ref()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

impl<T: Type> ParseFromJSON for Stored<T> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        Ok(value.unwrap_or_default().into())
    }
}

impl<T: Type> ToJSON for Stored<T> {
    fn to_json(&self) -> Option<Value> {
        Some(self.json.clone())
    }
}
