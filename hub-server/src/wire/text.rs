//! Strings with bounds.

use std::borrow::Cow;

use hub_core::text::chars_problem;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// Upper bound of the setting `max_text`, and `maxLength` of texts to send.
pub const MAX_TEXT: usize = 1 << 20;

/// A text of `MIN` to `MAX` characters. Unlike poem-openapi's `String` it accepts no numbers and no booleans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text<const MIN: usize, const MAX: usize, const ENFORCED: bool = true>(pub String);

/// A text whose bounds hub-core checks together with the other rules of the request. They are in the document, and in
/// the diagnosis of a body that is rejected before hub-core reads it.
pub type Checked<const MIN: usize, const MAX: usize> = Text<MIN, MAX, false>;

impl<const MIN: usize, const MAX: usize, const ENFORCED: bool> std::ops::Deref for Text<MIN, MAX, ENFORCED> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MIN: usize, const MAX: usize, const ENFORCED: bool> From<Text<MIN, MAX, ENFORCED>> for String {
    fn from(text: Text<MIN, MAX, ENFORCED>) -> Self {
        text.0
    }
}

impl<const MIN: usize, const MAX: usize, const ENFORCED: bool> Type for Text<MIN, MAX, ENFORCED> {
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

impl<const MIN: usize, const MAX: usize, const ENFORCED: bool> ParseFromParameter
    for Text<MIN, MAX, ENFORCED>
{
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        match chars_problem(text, &(MIN..=MAX)) {
            Some(reason) if ENFORCED => Err(ParseError::custom(reason)),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl<const MIN: usize, const MAX: usize, const ENFORCED: bool> ParseFromJSON for Text<MIN, MAX, ENFORCED> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) => Self::parse_from_parameter(&text),
            other => Err(ParseError::expected_type(other.unwrap_or_default())),
        }
    }
}

impl<const MIN: usize, const MAX: usize, const ENFORCED: bool> ToJSON for Text<MIN, MAX, ENFORCED> {
    fn to_json(&self) -> Option<Value> {
        Some(Value::String(self.0.clone()))
    }
}

/// A [`Checked`] text whose characters the document restricts too.
macro_rules! patterned {
    ($(#[$doc:meta])* $name:ident = $min:literal..=$max:literal $pattern:literal, example $example:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(pub Checked<$min, $max>);

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

        impl std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Type for $name {
            scalar!();

            fn name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn schema_ref() -> MetaSchemaRef {
                Checked::<$min, $max>::schema_ref().merge(MetaSchema {
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
    /// The username of a new user.
    Username = 2..=32 "^[A-Za-z0-9_-]+$", example "ada"
}

patterned! {
    /// The number that a phone shows.
    Digits = 1..=16 "^[0-9]+$", example "42"
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
