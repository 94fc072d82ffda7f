//! Secrets in responses.

use std::borrow::Cow;

use hub_core::secret::Secret;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// A new secret in the one response that shows it, or a secret in a response for the app that uses it; masked in
/// `Debug`, so that no log shows it.
#[derive(Debug, Clone)]
pub struct ShownOnce(pub Secret);

impl Type for ShownOnce {
    scalar!();

    fn name() -> Cow<'static, str> {
        "secret shown once".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        let schema = MetaSchema { read_only: true, ..MetaSchema::new_with_format("string", "password") };
        MetaSchemaRef::Inline(Box::new(schema))
    }
}

impl ParseFromJSON for ShownOnce {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) => Ok(Self(text.into())),
            _ => Err(ParseError::custom("must be a string")),
        }
    }
}

impl ToJSON for ShownOnce {
    fn to_json(&self) -> Option<Value> {
        Some(Value::String(self.0.expose().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn responses_show_the_secret_and_logs_do_not() {
        let secret = ShownOnce("hubc_abcdef".into());
        assert_eq!(secret.to_json(), Some(json!("hubc_abcdef")));
        assert!(!format!("{secret:?}").contains("abc"));
    }
}
