//! Strings that are strings.

use std::borrow::Cow;

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::{diagnosis::length_problem, scalar};

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
        match length_problem(MIN, MAX, text) {
            Some(reason) => Err(ParseError::custom(reason)),
            None => Ok(Self(text.to_owned())),
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

/// A text whose characters the document restricts too. What it means is checked in hub-core, in better words than those
/// of a pattern.
macro_rules! patterned {
    ($(#[$doc:meta])* $name:ident = $min:literal..=$max:literal $pattern:literal, example $example:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(pub Text<$min, $max>);

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0.into()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Text(text.to_owned()))
            }
        }

        impl Type for $name {
            scalar!();

            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn schema_ref() -> MetaSchemaRef {
                Text::<$min, $max>::schema_ref().merge(MetaSchema {
                    pattern: Some($pattern.to_owned()),
                    example: Some($example.into()),
                    ..MetaSchema::ANY
                })
            }
        }

        impl ParseFromJSON for $name {
            fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
                Text::parse_from_json(value).map(Self).map_err(ParseError::propagate)
            }
        }

        impl ToJSON for $name {
            fn to_json(&self) -> Option<Value> {
                self.0.to_json()
            }
        }
    };
}

patterned! {
    /// The name that a new user signs in with.
    Username = 2..=32 "^[A-Za-z0-9_-]+$", example "ada"
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
