//! The records of the API as schemas of its OpenAPI document, for the server: with the feature `openapi`, a record
//! that derives [`Api`] implements the traits of poem-openapi.

pub use hub_macros::Api;
use poem_openapi::types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type};
use serde_json::{Map, Value};

use crate::{error::Problems, secret::Secret};

mod scalars;
mod schema;

pub use scalars::{ConfigValue, ConfigValues, JsonObject};
pub(crate) use schema::list_schema;
pub use schema::{Field, Named, object_schema};

/// A record in the request that sets it: an absent field has its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Set<T>(pub T);

/// A value of a field that a request sets.
pub trait Settable {
    /// The type of the field in the request.
    type Set;

    /// The value that it sets.
    fn of_set(set: Self::Set) -> Self;
}

impl<T: Settable> Settable for Option<T> {
    type Set = Option<T::Set>;

    fn of_set(set: Self::Set) -> Self {
        set.map(T::of_set)
    }
}

impl<T: Settable> Settable for Vec<T> {
    type Set = Vec<T::Set>;

    fn of_set(set: Self::Set) -> Self {
        set.into_iter().map(T::of_set).collect()
    }
}

/// The fields of a record in an object of a request.
pub trait Fields: Type {
    /// Removes them from the object.
    ///
    /// # Errors
    /// A field that is missing or has another type.
    fn take(object: &mut Map<String, Value>) -> ParseResult<Self>
    where
        Self: Sized;
}

/// Adds a field to a record's JSON; one that is absent is left out.
pub fn write(object: &mut Map<String, Value>, name: &str, value: &impl ToJSON) {
    if let Some(value) = value.to_json().filter(|_| !value.is_none()) {
        object.insert(name.to_owned(), value);
    }
}

/// Adds the fields of another record.
pub fn write_all(object: &mut Map<String, Value>, record: &impl ToJSON) {
    if let Some(Value::Object(fields)) = record.to_json() {
        object.extend(fields);
    }
}

pub(crate) type Any = poem_openapi::types::Any<Value>;

pub(crate) fn one_any(value: &Value) -> Any {
    poem_openapi::types::Any(value.clone())
}

#[expect(clippy::ref_option, reason = "it is given the field")]
pub(crate) fn any(value: &Option<Value>) -> Option<Any> {
    value.as_ref().map(one_any)
}

/// JSON that is kept as a text.
pub(crate) fn parsed(json: &str) -> Any {
    poem_openapi::types::Any(serde_json::from_str(json).unwrap_or_default())
}

/// A secret that is shown to its owner.
#[expect(clippy::ref_option, reason = "it is given the field")]
pub(crate) fn exposed(secret: &Option<Secret>) -> Option<String> {
    secret.as_ref().map(|secret| secret.expose().to_owned())
}

/// A text for which empty means that there is none.
pub(crate) fn unless_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !str::is_empty(text))
}

/// An object in a request.
///
/// # Errors
/// If the value is absent or not an object.
pub fn object<T: Type>(value: Option<Value>) -> Result<Map<String, Value>, ParseError<T>> {
    match value {
        Some(Value::Object(fields)) => Ok(fields),
        other => Err(ParseError::expected_type(other.unwrap_or_default())),
    }
}

/// Reads a field of an object in a request.
///
/// # Errors
/// If the field is missing or has another type.
pub fn read<F: ParseFromJSON, T: Type>(
    fields: &mut Map<String, Value>,
    name: &str,
) -> Result<F, ParseError<T>> {
    F::parse_from_json(fields.remove(name)).map_err(ParseError::propagate)
}

/// Rejects a field that is another value than a text or a list of texts: poem-openapi reads numbers as texts.
///
/// # Errors
/// If the field has such a value.
pub fn only_texts<T: Type>(fields: &Map<String, Value>, name: &str) -> Result<(), ParseError<T>> {
    fn is_text(value: &Value) -> bool {
        value.is_string() || value.is_null()
    }
    let is_fine = match fields.get(name) {
        Some(Value::Array(items)) => items.iter().all(Value::is_string),
        Some(value) => is_text(value),
        None => true,
    };
    is_fine.then_some(()).ok_or_else(|| ParseError::custom(format!("{name} must be a text")))
}

/// Checks the bounds of a record.
///
/// # Errors
/// The first field that is out of them.
pub fn bounded<T: Type>(check: impl FnOnce(&mut Problems)) -> Result<(), ParseError<T>> {
    let mut problems = Problems::default();
    check(&mut problems);
    problems.finish().map_err(|error| ParseError::custom(error.message()))
}

/// Rejects the fields that are left.
///
/// # Errors
/// The first of them.
pub fn no_others<T: Type>(fields: &Map<String, Value>) -> Result<(), ParseError<T>> {
    match fields.keys().next() {
        Some(name) => Err(ParseError::custom(format!("unknown field `{name}`"))),
        None => Ok(()),
    }
}

/// The result of reading a record that is only returned.
///
/// # Errors
/// Always.
pub fn unread<T: Type>() -> ParseResult<T> {
    Err(ParseError::custom("is only returned"))
}

/// The parts of `Type` that are the same for every type that is read and written as itself.
#[doc(hidden)]
#[macro_export]
macro_rules! openapi_itself {
    () => {
        const IS_REQUIRED: bool = true;
        type RawValueType = Self;
        type RawElementValueType = Self;

        fn as_raw_value(&self) -> Option<&Self> {
            Some(self)
        }

        fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
            Box::new(std::iter::once(self))
        }
    };
    ($name:literal) => {
        $crate::openapi::itself!();

        fn name() -> std::borrow::Cow<'static, str> {
            $name.into()
        }

        fn schema_ref() -> ::poem_openapi::registry::MetaSchemaRef {
            ::poem_openapi::registry::MetaSchemaRef::Reference($name.to_owned())
        }
    };
}

/// A type that is returned as another one: `shown_as!(Type, Other, |value: &Type| other)`.
macro_rules! shown_as {
    ($type:ty, $shown:ty, $show:expr) => {
        const _: () = {
            use ::poem_openapi::{
                registry::{MetaSchemaRef, Registry},
                types::{ParseFromJSON, ParseResult, ToJSON, Type},
            };

            impl Type for $type {
                $crate::openapi::itself!();

                fn name() -> ::std::borrow::Cow<'static, str> {
                    <$shown>::name()
                }

                fn schema_ref() -> MetaSchemaRef {
                    <$shown>::schema_ref()
                }

                fn register(registry: &mut Registry) {
                    <$shown>::register(registry);
                }
            }

            impl ToJSON for $type {
                fn to_json(&self) -> Option<::serde_json::Value> {
                    let show: fn(&Self) -> $shown = $show;
                    show(self).to_json()
                }
            }

            impl ParseFromJSON for $type {
                fn parse_from_json(_: Option<::serde_json::Value>) -> ParseResult<Self> {
                    crate::openapi::unread()
                }
            }
        };
    };
}

/// Implements the traits for a list of [`words!`](crate::words), for the derive.
macro_rules! list {
    ($type:ident, $name:literal, $doc:literal) => {
        const _: () = {
            use ::poem_openapi::{
                registry::Registry,
                types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type},
            };
            use ::serde_json::Value;

            impl Type for $type {
                $crate::openapi::itself!($name);

                fn register(registry: &mut Registry) {
                    registry.create_schema::<Self, _>($name.to_owned(), |_| {
                        crate::openapi::list_schema($doc, Self::ALL.into_iter().map(Self::as_str))
                    });
                }
            }

            impl ToJSON for $type {
                fn to_json(&self) -> Option<Value> {
                    Some(self.as_str().into())
                }
            }

            impl ParseFromJSON for $type {
                fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
                    let value = value.unwrap_or_default();
                    let found = value.as_str().and_then(Self::parse);
                    found.ok_or_else(|| ParseError::expected_type(value))
                }
            }

            impl ParseFromParameter for $type {
                fn parse_from_parameter(word: &str) -> ParseResult<Self> {
                    let words = || Self::ALL.map(Self::as_str).join(", ");
                    Self::parse(word)
                        .ok_or_else(|| ParseError::custom(format!("must be one of: {}", words())))
                }
            }
        };
    };
}

pub use crate::openapi_itself as itself;
pub(crate) use {list, shown_as};
