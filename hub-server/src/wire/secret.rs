//! Strings that are only received.

use std::borrow::Cow;

use hub_core::{secret, text::chars_problem};
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// A secret of `MIN` to `MAX` characters in a request: write-only in the document, masked in `Debug`. One with a
/// lower bound is a password, whose length hub-core checks with the other rules.
#[derive(Debug, Clone)]
pub struct Secret<const MAX: usize, const MIN: usize = 0>(pub secret::Secret);

impl<const MAX: usize, const MIN: usize> Type for Secret<MAX, MIN> {
    scalar!();

    fn name() -> Cow<'static, str> {
        "secret".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            min_length: (MIN > 0).then_some(MIN),
            max_length: Some(MAX),
            write_only: true,
            ..MetaSchema::new_with_format("string", "password")
        }))
    }
}

impl<const MAX: usize, const MIN: usize> ParseFromJSON for Secret<MAX, MIN> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) => match chars_problem(&text, &(MIN..=MAX)) {
                Some(reason) if MIN == 0 => Err(ParseError::custom(reason)),
                _ => Ok(Self(text.into())),
            },
            // Without the value: a secret is not repeated in a response.
            _ => Err(ParseError::custom("must be a string")),
        }
    }
}

impl<const MAX: usize, const MIN: usize> ToJSON for Secret<MAX, MIN> {
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
