//! Ids of plugins and versions in paths.

use hub_core::plugins::PluginRef;
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromParameter, ParseResult, Type},
};

use crate::wire::scalar;

/// Id of a plugin, which means its current version, or of one of its versions. In a path, any other id is
/// `NOT_FOUND`.
#[derive(Debug, Clone, Copy)]
pub struct Target(pub PluginRef);

impl Type for Target {
    scalar!();

    fn name() -> std::borrow::Cow<'static, str> {
        "plugin or plugin version id".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            pattern: Some("^pl[gv]_[0-7][0-9A-HJKMNP-TV-Z]{25}$".to_owned()),
            ..MetaSchema::new("string")
        }))
    }
}

impl ParseFromParameter for Target {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        text.parse().map(Self).map_err(|error: hub_core::Error| ParseError::custom(error.message()))
    }
}
