//! Values of a configuration in a request.

use std::borrow::Cow;

use hub_core::secret;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// Maximum length of a text in the document, in characters. hub-core bounds the whole configuration: 16 KiB with names.
const MAX_LENGTH: usize = 16_383;

/// A text, a number or a boolean, read as text. It may be a secret: masked in `Debug`.
#[derive(Debug, Clone)]
pub struct ConfigValue(pub secret::Secret);

impl Type for ConfigValue {
    scalar!();

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
