//! Schemas of records, put together from their fields.

use std::{
    collections::{BTreeMap, HashSet},
    ops::RangeInclusive,
    sync::{Mutex, PoisonError},
};

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types::{ToJSON, Type},
};
use serde_json::Value;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_in_the_first_sentence() {
        for (text, with) in [
            ("Whether it runs.", "Whether it runs; `true` if absent."),
            (
                "Clients at a time. A lower number logs none out.",
                "Clients at a time; `true` if absent. A lower number logs none out.",
            ),
        ] {
            assert_eq!(with_default(text, &shown(&true.into()).unwrap()), with);
        }
        assert_eq!(shown(&Value::Null), None);
        assert_eq!(shown(&"".into()), None);
    }

    #[test]
    fn bounds_of_texts_are_those_of_each_entry_of_a_list() {
        let field = Field::new::<Vec<String>>("words", "Words.").items(0..=3).chars(1..=64).required(false);
        let schema = object_schema(&mut Registry::new(), "Words", "", vec![field], None);
        let [(_, MetaSchemaRef::Inline(words))] = &*schema.properties else { panic!("inline") };
        assert_eq!((words.max_items, words.min_items, words.max_length), (Some(3), None, None));
        let Some(MetaSchemaRef::Inline(word)) = words.items.as_deref() else { panic!("inline") };
        assert_eq!((word.min_length, word.max_length), (Some(1), Some(64)));
        assert!(schema.required.is_empty());
    }
}
