//! JSON that is passed on as it is stored.

use std::{borrow::Cow, marker::PhantomData};

use poem_openapi::{
    registry::{MetaSchemaRef, Registry},
    types::{ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// The JSON of a `T` as it is stored.
#[derive(Debug)]
pub struct Stored<T> {
    json: Value,
    of: PhantomData<fn() -> T>,
}

impl<T> From<Value> for Stored<T> {
    fn from(json: Value) -> Self {
        Self { json, of: PhantomData }
    }
}

impl<T: Type> Type for Stored<T> {
    scalar!();

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn schema_ref() -> MetaSchemaRef {
        T::schema_ref()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

impl<T: Type> ParseFromJSON for Stored<T> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        Ok(value.unwrap_or_default().into())
    }
}

impl<T: Type> ToJSON for Stored<T> {
    fn to_json(&self) -> Option<Value> {
        Some(self.json.clone())
    }
}
