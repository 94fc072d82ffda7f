//! Instants.

use std::borrow::Cow;

use hub_core::time::Timestamp;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// An instant: RFC 3339 in UTC with milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Timestamp);

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl Type for Time {
    scalar!();

    fn name() -> Cow<'static, str> {
        "time".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            example: Some("2026-11-21T09:30:00.000Z".into()),
            ..MetaSchema::new_with_format("string", "date-time")
        }))
    }
}

impl ParseFromParameter for Time {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        text.parse().map(Self).map_err(|_| ParseError::custom("must be an RFC 3339 time"))
    }
}

impl ParseFromJSON for Time {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) => Self::parse_from_parameter(&text),
            other => Err(ParseError::expected_type(other.unwrap_or_default())),
        }
    }
}

impl ToJSON for Time {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.to_string().into())
    }
}
