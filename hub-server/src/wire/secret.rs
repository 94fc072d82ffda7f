//! Strings that come in and never go out.

use std::borrow::Cow;

use hub_core::secret;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// A secret of at most `MAX` characters in a request: write-only in the document, stars in `Debug`.
#[derive(Debug, Clone)]
pub struct Secret<const MAX: usize>(pub secret::Secret);

impl<const MAX: usize> Type for Secret<MAX> {
    scalar!();

    fn name() -> Cow<'static, str> {
        "secret".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            max_length: Some(MAX),
            write_only: true,
            ..MetaSchema::new_with_format("string", "password")
        }))
    }
}

impl<const MAX: usize> ParseFromJSON for Secret<MAX> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) if text.chars().count() > MAX => {
                Err(ParseError::custom(format!("must be at most {MAX} characters")))
            }
            Some(Value::String(text)) => Ok(Self(text.into())),
            // Without the value: what was meant to be a secret is not repeated in an answer.
            _ => Err(ParseError::custom("must be a string")),
        }
    }
}

impl<const MAX: usize> ToJSON for Secret<MAX> {
    /// Only examples in the document are ever written.
    fn to_json(&self) -> Option<Value> {
        Some("***".into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_read_and_never_written() {
        let secret = Secret::<8>::parse_from_json(Some(json!("abcdefgh"))).unwrap();
        assert_eq!(secret.0.expose(), "abcdefgh");
        assert_eq!(secret.to_json(), Some(json!("***")));
        assert!(!format!("{secret:?}").contains("abc"));
        for bad in [json!("abcdefghi"), json!(12_345_678), json!(null)] {
            let error = Secret::<8>::parse_from_json(Some(bad)).unwrap_err();
            assert!(!error.message().contains("678"), "{}", error.message());
        }
    }
}
