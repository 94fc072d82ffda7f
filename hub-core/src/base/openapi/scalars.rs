//! Ids, times and secrets as strings of the document.

use std::{borrow::Cow, collections::BTreeMap};

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::itself;
use crate::{
    id::{Id, Kind},
    input::Change,
    secret::{Secret, ShownOnce},
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

/// A secret in a request.
impl Type for Secret {
    itself!();

    fn name() -> Cow<'static, str> {
        "secret".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        let schema = MetaSchema { write_only: true, ..MetaSchema::new_with_format("string", "password") };
        MetaSchemaRef::Inline(Box::new(schema))
    }
}

impl ParseFromJSON for Secret {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) => Ok(text.into()),
            // Without the value: a secret is not repeated in a response.
            _ => Err(ParseError::custom("must be a text")),
        }
    }
}

impl<T: Type> Type for Change<T> {
    const IS_REQUIRED: bool = false;
    type RawValueType = T::RawValueType;
    type RawElementValueType = T::RawElementValueType;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn schema_ref() -> MetaSchemaRef {
        T::schema_ref()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn as_raw_value(&self) -> Option<&Self::RawValueType> {
        self.apply(None).and_then(T::as_raw_value)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self::RawElementValueType> + 'a> {
        Box::new(self.apply(None).into_iter().flat_map(T::raw_element_iter))
    }
}

impl<T: ParseFromJSON> ParseFromJSON for Change<T> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            None => Ok(Self::Keep),
            Some(Value::Null) => Ok(Self::Clear),
            value => T::parse_from_json(value).map(Self::Set).map_err(ParseError::propagate),
        }
    }
}

/// A JSON object with any members.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonObject(pub Value);

impl JsonObject {
    /// The object.
    pub fn into_value(self) -> Value {
        self.0
    }
}

impl Type for JsonObject {
    itself!();

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

/// Maximum length of a text in the document, in characters. `apps` bounds the whole configuration: 16 KiB with names.
const MAX_LENGTH: usize = 16_383;

/// A text, a number or a boolean, read as text. It may be a secret: masked in `Debug`.
#[derive(Debug, Clone)]
pub struct ConfigValue(pub Secret);

impl Type for ConfigValue {
    itself!();

    fn name() -> Cow<'static, str> {
        "config value".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        let text = MetaSchema { max_length: Some(MAX_LENGTH), ..MetaSchema::new("string") };
        let any_of = [text, MetaSchema::new("number"), MetaSchema::new("boolean")];
        let any_of = any_of.map(|schema| MetaSchemaRef::Inline(Box::new(schema))).into();
        MetaSchemaRef::Inline(Box::new(MetaSchema { any_of, ..MetaSchema::ANY }))
    }
}

impl ParseFromJSON for ConfigValue {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) => Ok(Self(text.into())),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(Self(value.to_string().into())),
            // Without the value: a secret is not repeated in a response.
            _ => Err(ParseError::custom("must be a text, a number or a boolean")),
        }
    }
}

impl ToJSON for ConfigValue {
    /// Only examples in the document are ever written.
    fn to_json(&self) -> Option<Value> {
        Some(self.0.expose().into())
    }
}

/// The values of a configuration in a request.
pub type ConfigValues = BTreeMap<String, ConfigValue>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::id::{BotId, ChannelId};

    #[test]
    fn the_example_is_an_id() {
        let MetaSchemaRef::Inline(schema) = BotId::schema_ref() else { panic!("inline") };
        let example = schema.example.unwrap();
        assert!(BotId::parse_from_json(Some(example.clone())).is_ok());
        assert!(ChannelId::parse_from_json(Some(example)).is_err());
    }

    #[test]
    fn texts_numbers_and_booleans_are_read_as_texts() {
        for (value, text) in [
            (json!("ghp_x"), "ghp_x"),
            (json!(""), ""),
            (json!(8080), "8080"),
            (json!(-0.5), "-0.5"),
            (json!(true), "true"),
        ] {
            assert_eq!(ConfigValue::parse_from_json(Some(value)).unwrap().0.expose(), text);
        }
        for bad in [json!(null), json!(["ghp_x"]), json!({ "token": "ghp_x" })] {
            let error = ConfigValue::parse_from_json(Some(bad)).unwrap_err();
            assert!(!error.message().contains("ghp_x"), "{}", error.message());
        }
    }
}
