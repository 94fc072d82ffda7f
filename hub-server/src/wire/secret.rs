//! Strings that must not be seen.

use std::borrow::Cow;

use hub_core::secret::Secret;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// A secret of at most `MAX` bytes: in a request what the caller sets, in an answer what is shown this once.
/// What it may contain is checked in hub-core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretText<const MAX: usize>(pub Secret);

impl<const MAX: usize> Type for SecretText<MAX> {
    scalar!();

    fn name() -> Cow<'static, str> {
        "secret".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            max_length: Some(MAX),
            ..MetaSchema::new_with_format("string", "password")
        }))
    }
}

impl<const MAX: usize> ParseFromJSON for SecretText<MAX> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) if text.len() <= MAX => Ok(Self(Secret::new(text))),
            Some(Value::String(_)) => Err(ParseError::custom(format!("must be at most {MAX} bytes"))),
            // The value itself stays out of the message.
            _ => Err(ParseError::custom("must be a text")),
        }
    }
}

impl<const MAX: usize> ToJSON for SecretText<MAX> {
    fn to_json(&self) -> Option<Value> {
        Some(Value::String(self.0.expose().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_read_and_not_printed() {
        let secret = SecretText::<8>::parse_from_json(Some(json!("s3cret"))).unwrap();
        assert_eq!(secret.0.expose(), "s3cret");
        assert!(!format!("{secret:?}").contains("s3cret"));
        for bad in [json!("123456789"), json!(12345), json!(null)] {
            let error = SecretText::<8>::parse_from_json(Some(bad)).unwrap_err();
            assert!(!error.message().contains("12345"));
        }
    }
}
