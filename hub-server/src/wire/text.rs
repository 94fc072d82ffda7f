//! Strings that are strings.

use std::borrow::Cow;

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// A text of `MIN` to `MAX` characters. Unlike poem-openapi's `String` it takes no numbers and no booleans.
/// What the text means is checked in hub-core; the bounds here are in the document and stop the absurd early.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text<const MIN: usize, const MAX: usize>(pub String);

impl<const MIN: usize, const MAX: usize> std::ops::Deref for Text<MIN, MAX> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MIN: usize, const MAX: usize> From<Text<MIN, MAX>> for String {
    fn from(text: Text<MIN, MAX>) -> Self {
        text.0
    }
}

impl<const MIN: usize, const MAX: usize> Type for Text<MIN, MAX> {
    scalar!();

    fn name() -> Cow<'static, str> {
        "text".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            min_length: (MIN > 0).then_some(MIN),
            max_length: Some(MAX),
            ..MetaSchema::new("string")
        }))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<const MIN: usize, const MAX: usize> ParseFromParameter for Text<MIN, MAX> {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        let length = text.chars().count();
        if length < MIN {
            Err(ParseError::custom(format!("must be at least {MIN} characters")))
        } else if length > MAX {
            Err(ParseError::custom(format!("must be at most {MAX} characters")))
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl<const MIN: usize, const MAX: usize> ParseFromJSON for Text<MIN, MAX> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) => Self::parse_from_parameter(&text),
            other => Err(ParseError::expected_type(other.unwrap_or_default())),
        }
    }
}

impl<const MIN: usize, const MAX: usize> ToJSON for Text<MIN, MAX> {
    fn to_json(&self) -> Option<Value> {
        Some(Value::String(self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_strings_within_the_bounds_are_texts() {
        type T = Text<2, 3>;
        for good in ["ab", "äöü", "💬💬"] {
            assert_eq!(T::parse_from_json(Some(json!(good))).unwrap().0, good);
        }
        for bad in [json!("a"), json!("abcd"), json!(12), json!(true), json!(null), json!(["ab"])] {
            assert!(T::parse_from_json(Some(bad)).is_err());
        }
    }
}
