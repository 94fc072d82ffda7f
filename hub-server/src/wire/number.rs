//! Integers within bounds.

use std::borrow::Cow;

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// An integer from `MIN` to `MAX` in the document. hub-core checks the bounds together with the other rules of the
/// request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> From<Number<MIN, MAX>> for u32 {
    fn from(number: Number<MIN, MAX>) -> Self {
        number.0
    }
}

impl<const MIN: u32, const MAX: u32> Number<MIN, MAX> {
    fn checked(number: Option<u64>) -> ParseResult<Self> {
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.map(Self).ok_or_else(|| ParseError::custom(format!("must be from {MIN} to {MAX}")))
    }
}

impl<const MIN: u32, const MAX: u32> Type for Number<MIN, MAX> {
    scalar!();

    fn name() -> Cow<'static, str> {
        "number".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            minimum: Some(MIN.into()),
            maximum: Some(MAX.into()),
            ..MetaSchema::new_with_format("integer", "uint32")
        }))
    }
}

impl<const MIN: u32, const MAX: u32> ParseFromParameter for Number<MIN, MAX> {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        Self::checked(text.parse().ok())
    }
}

impl<const MIN: u32, const MAX: u32> ParseFromJSON for Number<MIN, MAX> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        Self::checked(value.and_then(|value| value.as_u64()))
    }
}

impl<const MIN: u32, const MAX: u32> ToJSON for Number<MIN, MAX> {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_integers_are_numbers() {
        type N = Number<1, 72>;
        for good in [1, 72] {
            assert_eq!(N::parse_from_json(Some(json!(good))).unwrap().0, good);
            assert_eq!(N::parse_from_parameter(&good.to_string()).unwrap().0, good);
        }
        for bad in [json!(-1), json!(1.5), json!("1"), json!(null), json!(u64::MAX)] {
            assert!(N::parse_from_json(Some(bad)).is_err());
        }
        for bad in ["-1", "", "x", "4294967297"] {
            let error = N::parse_from_parameter(bad).unwrap_err();
            assert!(error.message().contains("from 1 to 72"), "{bad}");
        }
    }
}
