//! The records of the API as schemas of its OpenAPI document, for the server: with the feature `openapi`, a record
//! that derives [`Api`](hub_macros::Api) implements the traits of poem-openapi.

use std::ops::RangeInclusive;

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::{Map, Value};

mod scalars;

/// A field of a schema.
pub(crate) enum Field {
    Named {
        name: &'static str,
        is_required: bool,
        schema: fn() -> MetaSchemaRef,
        /// What the field adds to the schema of its type.
        own: Box<MetaSchema>,
        register: fn(&mut Registry),
    },
    /// The fields of another record.
    Flat(fn(&mut Registry) -> MetaSchema),
}

impl Field {
    pub(crate) fn new<T: Type>(name: &'static str, doc: &'static str) -> Self {
        let own = Box::new(MetaSchema { description: described(doc), ..MetaSchema::ANY });
        Self::Named { name, is_required: T::IS_REQUIRED, schema: T::schema_ref, own, register: T::register }
    }

    pub(crate) fn flat<T: Type>() -> Self {
        Self::Flat(Registry::create_fake_schema::<T>)
    }

    /// Bounds the length of a list.
    pub(crate) fn items(mut self, bounds: RangeInclusive<usize>) -> Self {
        if let Self::Named { own, .. } = &mut self {
            (own.min_items, own.max_items) = (Some(*bounds.start()), Some(*bounds.end()));
        }
        self
    }
}

/// The schema of a record.
pub(crate) fn object_schema(
    registry: &mut Registry,
    doc: &'static str,
    fields: Vec<Field>,
    example: Option<Value>,
) -> MetaSchema {
    let mut schema = MetaSchema { description: described(doc), example, ..MetaSchema::new("object") };
    for field in fields {
        match field {
            Field::Named { name, is_required, schema: of_type, own, register } => {
                register(registry);
                schema.properties.push((name, of_type().merge(*own)));
                schema.required.extend(is_required.then_some(name));
            }
            Field::Flat(of_type) => {
                let MetaSchema { properties, required, additional_properties, .. } = of_type(registry);
                schema.properties.extend(properties);
                schema.required.extend(required);
                schema.additional_properties = additional_properties;
            }
        }
    }
    schema
}

/// The schema of a closed list of words.
pub(crate) fn list_schema(doc: &'static str, words: impl Iterator<Item = &'static str>) -> MetaSchema {
    let enum_items = words.map(Value::from).collect();
    MetaSchema { description: described(doc), enum_items, ..MetaSchema::new("string") }
}

fn described(doc: &'static str) -> Option<&'static str> {
    Some(doc).filter(|doc| !str::is_empty(doc))
}

/// Adds a field to a record's JSON; one that is absent is left out.
pub(crate) fn write(object: &mut Map<String, Value>, name: &str, value: &impl ToJSON) {
    if let Some(value) = value.to_json().filter(|_| !value.is_none()) {
        object.insert(name.to_owned(), value);
    }
}

/// Adds the fields of another record.
pub(crate) fn write_all(object: &mut Map<String, Value>, record: &impl ToJSON) {
    if let Some(Value::Object(fields)) = record.to_json() {
        object.extend(fields);
    }
}

/// Any JSON.
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

/// A text for which empty means that there is none.
pub(crate) fn unless_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !str::is_empty(text))
}

/// The fields of an object in a request.
pub(crate) fn fields<T: Type>(value: Option<Value>) -> Result<Map<String, Value>, ParseError<T>> {
    match value {
        Some(Value::Object(fields)) => Ok(fields),
        other => Err(ParseError::expected_type(other.unwrap_or_default())),
    }
}

/// Reads a field of an object in a request.
pub(crate) fn read<F: ParseFromJSON, T: Type>(
    fields: &mut Map<String, Value>,
    name: &str,
) -> Result<F, ParseError<T>> {
    F::parse_from_json(fields.remove(name)).map_err(ParseError::propagate)
}

/// Checks the length of a list.
pub(crate) fn within<F, T: Type>(
    bounds: RangeInclusive<usize>,
) -> impl Fn(Vec<F>) -> Result<Vec<F>, ParseError<T>> {
    move |list| {
        let (least, most) = (bounds.start(), bounds.end());
        let is_within = bounds.contains(&list.len());
        is_within
            .then_some(list)
            .ok_or_else(|| ParseError::custom(format!("must have {least} to {most} entries")))
    }
}

/// Rejects the fields that are left.
pub(crate) fn no_others<T: Type>(fields: &Map<String, Value>) -> Result<(), ParseError<T>> {
    match fields.keys().next() {
        Some(name) => Err(ParseError::custom(format!("unknown field `{name}`"))),
        None => Ok(()),
    }
}

/// The result of reading a record that is only returned.
pub(crate) fn unread<T: Type>() -> ParseResult<T> {
    Err(ParseError::custom("is only returned"))
}

/// The parts of `Type` that are the same for every type of hub-core.
macro_rules! itself {
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
        crate::openapi::itself!();

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
                registry::MetaSchemaRef,
                types::{ParseFromJSON, ParseResult, ToJSON, Type},
            };

            impl Type for $type {
                crate::openapi::itself!();

                fn name() -> ::std::borrow::Cow<'static, str> {
                    <$shown>::name()
                }

                fn schema_ref() -> MetaSchemaRef {
                    <$shown>::schema_ref()
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

/// Implements the traits for a record, for the derive.
macro_rules! record {
    (
        $type:ident, $name:literal, $doc:literal, [$($field:expr),*], $example:expr,
        |$record:ident, $object:ident| $write:block, |$value:ident| $read:block
    ) => {
        const _: () = {
            use ::poem_openapi::{
                registry::Registry,
                types::{IsObjectType, ParseFromJSON, ParseResult, ToJSON, Type},
            };
            use ::serde_json::{Map, Value};

            impl Type for $type {
                crate::openapi::itself!($name);

                fn register(registry: &mut Registry) {
                    registry.create_schema::<Self, _>($name.to_owned(), |registry| {
                        crate::openapi::object_schema(registry, $doc, vec![$($field),*], $example)
                    });
                }
            }

            impl IsObjectType for $type {}

            impl ToJSON for $type {
                fn to_json(&self) -> Option<Value> {
                    let ($record, mut object) = (self, Map::new());
                    let $object = &mut object;
                    $write
                    Some(Value::Object(object))
                }
            }

            impl ParseFromJSON for $type {
                fn parse_from_json($value: Option<Value>) -> ParseResult<Self> {
                    $read
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
                crate::openapi::itself!($name);

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

pub(crate) use {itself, list, record, shown_as};
