//! Lists in pages.

use std::borrow::Cow;

use hub_core::page::{DEFAULT_LIMIT, MAX_LIMIT, PageRequest};
use poem_openapi::{
    Object,
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;
use crate::envelope::ApiError;

/// A page of a list.
#[derive(Debug, Object)]
pub struct Page<T: ParseFromJSON + ToJSON> {
    /// The items, newest first unless the operation says otherwise.
    pub items: Vec<T>,
    /// Cursor of the next page; `null` on the last one.
    pub next_cursor: NextCursor,
}

impl<T, W> From<hub_core::page::Page<T>> for Page<W>
where
    W: From<T> + ParseFromJSON + ToJSON,
{
    fn from(page: hub_core::page::Page<T>) -> Self {
        Self {
            items: page.items.into_iter().map(W::from).collect(),
            next_cursor: NextCursor(page.next_cursor),
        }
    }
}

/// A page of a list with the number of all its items.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub struct CountedPage<T: ParseFromJSON + ToJSON> {
    /// The items, newest first.
    pub items: Vec<T>,
    /// Cursor of the next page; `null` on the last one.
    pub next_cursor: NextCursor,
    /// Number of items on all pages, at most 1000: 1000 means 1000 or more. Only on the first page; absent if the
    /// filters would require to read more than a page reads.
    pub total: Option<u64>,
}

impl<T, W> From<hub_core::page::CountedPage<T>> for CountedPage<W>
where
    W: From<T> + ParseFromJSON + ToJSON,
{
    fn from(page: hub_core::page::CountedPage<T>) -> Self {
        Self {
            items: page.items.into_iter().map(W::from).collect(),
            next_cursor: NextCursor(page.next_cursor),
            total: page.total,
        }
    }
}

/// Query `limit`: maximum number of items per page.
#[derive(Debug, Clone, Copy)]
pub struct Limit(u32);

/// Query `cursor`: the `next_cursor` of the previous page.
#[derive(Debug, Clone)]
pub struct Cursor(String);

impl Limit {
    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Cursor {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads the two query arguments of a list. `list` names the list and its filters, as hub-core does for the cursors
/// that it creates.
///
/// # Errors
/// `INVALID_PARAMS` for a cursor of another list.
pub fn page_request(
    list: &str,
    limit: Option<Limit>,
    cursor: Option<&Cursor>,
) -> Result<PageRequest, ApiError> {
    let cursor = cursor.map(|cursor| cursor.0.as_str());
    Ok(PageRequest::parse(list, limit.map(|limit| limit.0), cursor)?)
}

impl Type for Limit {
    scalar!();

    fn name() -> Cow<'static, str> {
        "limit".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            minimum: Some(1.0),
            maximum: Some(f64::from(MAX_LIMIT)),
            default: Some(DEFAULT_LIMIT.into()),
            ..MetaSchema::new_with_format("integer", "int32")
        }))
    }
}

impl ParseFromParameter for Limit {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        match text.parse() {
            Ok(limit @ 1..=MAX_LIMIT) => Ok(Self(limit)),
            _ => Err(ParseError::custom(format!("must be between 1 and {MAX_LIMIT}"))),
        }
    }
}

impl Type for Cursor {
    scalar!();

    fn name() -> Cow<'static, str> {
        "cursor".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        let schema = MetaSchema {
            max_length: Some(MAX_CURSOR),
            // Base64url of the list and the position in it: a forged one is rejected.
            pattern: Some("^[A-Za-z0-9_-]+$".to_owned()),
            ..MetaSchema::new("string")
        };
        MetaSchemaRef::Inline(Box::new(schema))
    }
}

/// Maximum length of a cursor; ours are far shorter.
const MAX_CURSOR: usize = 512;

impl ParseFromParameter for Cursor {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        if text.len() > MAX_CURSOR {
            return Err(ParseError::custom("is not a cursor of this list"));
        }
        Ok(Self(text.to_owned()))
    }
}

/// The cursor in a page: always present, `null` at the end.
#[derive(Debug, Clone, Default)]
pub struct NextCursor(pub Option<String>);

impl Type for NextCursor {
    scalar!();

    fn name() -> Cow<'static, str> {
        "next cursor".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        let schema = MetaSchema { nullable: true, ..MetaSchema::new("string") };
        MetaSchemaRef::Inline(Box::new(schema))
    }
}

impl ParseFromJSON for NextCursor {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) => Ok(Self(Some(text))),
            Some(Value::Null) => Ok(Self(None)),
            other => Err(ParseError::expected_type(other.unwrap_or_default())),
        }
    }
}

impl ToJSON for NextCursor {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.clone().map_or(Value::Null, Value::String))
    }
}
