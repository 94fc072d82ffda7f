//! Ids, times and secrets as strings of the document.

use std::borrow::Cow;

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::itself;
use crate::{
    id::{Id, Kind},
    secret::ShownOnce,
    time::Timestamp,
};

/// In a path, any other text is `NOT_FOUND`. Path arguments bind by position, and the distinct types turn swapped ones
/// into that error.
impl<K: Kind> Type for Id<K> {
    itself!();

    fn name() -> Cow<'static, str> {
        format!("{} id", K::NOUN).into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            pattern: Some(format!("^{}[0-7][0-9A-HJKMNP-TV-Z]{{25}}$", K::PREFIX)),
            example: Some(format!("{}01K9ZC3V5T8QK4X7M2N6P0RSWA", K::PREFIX).into()),
            ..MetaSchema::new("string")
        }))
    }
}

impl<K: Kind> ParseFromParameter for Id<K> {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        text.parse().map_err(|error: crate::Error| ParseError::custom(error.message()))
    }
}

impl Type for Timestamp {
    itself!();

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

impl ParseFromParameter for Timestamp {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        text.parse().map_err(|_| ParseError::custom("must be an RFC 3339 time"))
    }
}

macro_rules! json_texts {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<$($generics)*> ParseFromJSON for $type {
            fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
                match value {
                    Some(Value::String(text)) => Self::parse_from_parameter(&text),
                    other => Err(ParseError::expected_type(other.unwrap_or_default())),
                }
            }
        }

        impl<$($generics)*> ToJSON for $type {
            fn to_json(&self) -> Option<Value> {
                Some(self.to_string().into())
            }
        }
    )*};
}
json_texts!([K: Kind] Id<K>, [] Timestamp);

impl Type for ShownOnce {
    itself!();

    fn name() -> Cow<'static, str> {
        "secret shown once".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        let schema = MetaSchema { read_only: true, ..MetaSchema::new_with_format("string", "password") };
        MetaSchemaRef::Inline(Box::new(schema))
    }
}

impl ToJSON for ShownOnce {
    fn to_json(&self) -> Option<Value> {
        Some(self.expose().into())
    }
}

impl ParseFromJSON for ShownOnce {
    fn parse_from_json(_: Option<Value>) -> ParseResult<Self> {
        super::unread()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{BotId, ChannelId};

    #[test]
    fn the_example_is_an_id() {
        let MetaSchemaRef::Inline(schema) = BotId::schema_ref() else { panic!("inline") };
        let example = schema.example.unwrap();
        assert!(BotId::parse_from_json(Some(example.clone())).is_ok());
        assert!(ChannelId::parse_from_json(Some(example)).is_err());
    }
}
