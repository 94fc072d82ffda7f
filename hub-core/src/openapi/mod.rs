//! The records of the API as schemas of its OpenAPI document, for the server: with the feature `openapi`, a record
//! that derives [`Api`] implements the traits of poem-openapi.

use std::{
    collections::{BTreeMap, HashSet},
    ops::RangeInclusive,
    sync::{Mutex, PoisonError},
};

pub use hub_macros::Api;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::{Map, Value};

use crate::{error::Problems, secret::Secret};

mod scalars;

pub use scalars::{ConfigValue, ConfigValues, JsonObject};

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

/// A field of a schema.
#[derive(Debug)]
#[must_use]
pub enum Field {
    /// A field of the record.
    Named(Box<Named>),
    /// The fields of another record.
    Flat(fn(&mut Registry) -> MetaSchema),
    /// The word of a variant: the only required field.
    #[expect(missing_docs, reason = "its name, its text and its words")]
    Tag { name: &'static str, doc: &'static str, words: &'static [&'static str] },
}

/// A field with its schema.
#[derive(Debug)]
pub struct Named {
    name: &'static str,
    is_required: bool,
    schema: MetaSchemaRef,
    doc: &'static str,
    register: fn(&mut Registry),
    /// The record of which a field of the same name has the text.
    like: Option<fn(&mut Registry) -> MetaSchema>,
    /// The value of the field where a request leaves it out.
    absent: Option<Value>,
}

impl Field {
    /// A field of this type.
    pub fn new<T: Type>(name: &'static str, doc: &'static str) -> Self {
        Self::Named(Box::new(Named {
            name,
            is_required: T::IS_REQUIRED,
            schema: T::schema_ref(),
            doc,
            register: T::register,
            like: None,
            absent: None,
        }))
    }

    /// The fields of a record in place of one.
    pub fn flat<T: Type>() -> Self {
        Self::Flat(Registry::create_fake_schema::<T>)
    }

    /// The word of a variant.
    pub fn tag(name: &'static str, doc: &'static str, words: &'static [&'static str]) -> Self {
        Self::Tag { name, doc, words }
    }

    fn with(mut self, change: impl FnOnce(&mut Named)) -> Self {
        if let Self::Named(named) = &mut self {
            change(named);
        }
        self
    }

    fn bounded(self, bounds: MetaSchema) -> Self {
        self.with(|named| {
            named.schema = bound_each(std::mem::replace(&mut named.schema, any_schema()), bounds);
        })
    }

    /// Bounds the number of entries of a list.
    pub fn items(self, bounds: RangeInclusive<usize>) -> Self {
        let (min_items, max_items) = lengths(&bounds);
        let bounds = MetaSchema { min_items, max_items, ..MetaSchema::ANY };
        self.with(|named| {
            named.schema = std::mem::replace(&mut named.schema, any_schema()).merge(bounds);
        })
    }

    /// Bounds the number of characters of a text, or of each of a list.
    pub fn chars(self, bounds: RangeInclusive<usize>) -> Self {
        let (min_length, max_length) = lengths(&bounds);
        self.bounded(MetaSchema { min_length, max_length, ..MetaSchema::ANY })
    }

    /// Bounds a number, or each of a list.
    pub fn range(self, bounds: RangeInclusive<f64>) -> Self {
        let (minimum, maximum) = (Some(*bounds.start()), Some(*bounds.end()));
        let [minimum, maximum] = [minimum, maximum].map(|bound| bound.filter(|bound| bound.is_finite()));
        self.bounded(MetaSchema { minimum, maximum, ..MetaSchema::ANY })
    }

    /// Bounds the number of entries of an object.
    pub fn properties(self, bounds: RangeInclusive<usize>) -> Self {
        let (min_properties, max_properties) = lengths(&bounds);
        self.bounded(MetaSchema { min_properties, max_properties, ..MetaSchema::ANY })
    }

    /// Restricts the characters of a text, with an example of one.
    pub fn pattern(self, pattern: &str, example: &'static str) -> Self {
        let (pattern, example) = (Some(pattern.to_owned()), Some(example.into()));
        self.bounded(MetaSchema { pattern, example, ..MetaSchema::ANY })
    }

    /// Says whether a request has to contain it.
    pub fn required(self, is_required: bool) -> Self {
        self.with(|named| {
            named.is_required = is_required;
        })
    }

    /// Takes the text of the record's field of the same name, unless the field has one.
    pub fn like<T: Type>(self) -> Self {
        self.with(|named| {
            named.like = Some(Registry::create_fake_schema::<T>);
        })
    }

    /// Names the value of the field where a request leaves it out.
    pub fn absent(self, value: impl ToJSON) -> Self {
        self.with(|named| {
            named.absent = value.to_json();
        })
    }
}

impl Named {
    /// The text of the field, of the record `record`.
    fn text(&self, record: &'static str) -> &'static str {
        /// Texts that are composed: each is kept once.
        static COMPOSED: Mutex<BTreeMap<(&str, &str), &str>> = Mutex::new(BTreeMap::new());

        if self.like.is_none() && self.absent.is_none() {
            return self.doc;
        }
        let mut composed = COMPOSED.lock().unwrap_or_else(PoisonError::into_inner);
        composed.entry((record, self.name)).or_insert_with(|| {
            let of_record = || self.like.and_then(|schema| text_of(schema, self.name));
            let text =
                Some(self.doc).filter(|doc| !str::is_empty(doc)).or_else(of_record).unwrap_or_default();
            self.absent.as_ref().and_then(shown).map_or(text, |value| with_default(text, &value).leak())
        })
    }
}

/// The text of a field of another record.
fn text_of(schema: fn(&mut Registry) -> MetaSchema, field: &str) -> Option<&'static str> {
    let schema = schema(&mut Registry::new());
    let (_, field) = schema.properties.into_iter().find(|(name, _)| *name == field)?;
    match field {
        MetaSchemaRef::Inline(schema) => schema.description,
        MetaSchemaRef::Reference(_) => None,
    }
}

/// A default as texts name it.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(format!("`{value}`")),
        Value::Number(value) => Some(value.to_string()),
        Value::String(value) if !str::is_empty(value) => Some(format!("`{value}`")),
        _ => None,
    }
}

/// Adds the default to the first sentence of a text.
fn with_default(text: &str, value: &str) -> String {
    let first = text.find(". ").unwrap_or_else(|| text.trim_end_matches('.').len());
    let (first, rest) = text.split_at(first);
    format!("{first}; {value} if absent{rest}")
}

fn any_schema() -> MetaSchemaRef {
    MetaSchemaRef::Inline(Box::new(MetaSchema::ANY))
}

/// Bounds a value, or each of a list.
fn bound_each(schema: MetaSchemaRef, bounds: MetaSchema) -> MetaSchemaRef {
    match schema {
        MetaSchemaRef::Inline(mut schema) if schema.ty == "array" => {
            schema.items = schema.items.map(|items| Box::new(bound_each(*items, bounds)));
            MetaSchemaRef::Inline(schema)
        }
        schema => schema.merge(bounds),
    }
}

/// The least and the greatest length, where they say something.
fn lengths(bounds: &RangeInclusive<usize>) -> (Option<usize>, Option<usize>) {
    let (min, max) = (*bounds.start(), *bounds.end());
    (Some(min).filter(|min| *min > 0), Some(max).filter(|max| *max < usize::MAX))
}

/// The schema of a record.
pub fn object_schema(
    registry: &mut Registry,
    name: &'static str,
    doc: &'static str,
    fields: Vec<Field>,
    example: Option<Value>,
) -> MetaSchema {
    let mut schema = MetaSchema { description: described(doc), example, ..MetaSchema::new("object") };
    let mut tag = None;
    for field in fields {
        match field {
            Field::Named(field) => {
                (field.register)(registry);
                let own = MetaSchema { description: described(field.text(name)), ..MetaSchema::ANY };
                schema.required.extend(field.is_required.then_some(field.name));
                schema.properties.push((field.name, field.schema.merge(own)));
            }
            Field::Flat(of_type) => {
                let MetaSchema { properties, required, additional_properties, .. } = of_type(registry);
                schema.properties.extend(properties);
                schema.required.extend(required);
                schema.additional_properties = additional_properties;
            }
            Field::Tag { name, doc, words } => {
                let list = list_schema(doc, words.iter().copied());
                schema.properties.push((name, MetaSchemaRef::Inline(Box::new(list))));
                tag = Some(name);
            }
        }
    }
    // Variants share fields, and a record may have a field of one that it contains.
    let mut seen = HashSet::new();
    schema.properties.retain(|(name, _)| seen.insert(*name));
    if let Some(tag) = tag {
        schema.required = vec![tag];
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
                registry::MetaSchemaRef,
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
