//! Typed ids in paths and bodies.

use std::borrow::Cow;

use hub_core::id::{self, Kind, kind};
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type},
};
use serde_json::Value;

use super::scalar;

/// An id of an object of kind `K`. In a path, any other text is `NOT_FOUND`. Path arguments bind by position, and the
/// distinct types turn swapped ones into that error.
#[derive(Debug, PartialEq, Eq)]
pub struct Id<K>(pub id::Id<K>)
where
    K: Kind;

// Derived, these would demand it of the kind.
impl<K: Kind> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Kind> Copy for Id<K> {}

/// Id of a user.
pub type UserId = Id<kind::User>;
/// Id of a session.
pub type SessionId = Id<kind::Session>;
/// Id of a user's API key.
pub type KeyId = Id<kind::Key>;
/// Id of an entry of the audit log.
pub type AuditId = Id<kind::Audit>;
/// Id of a passkey.
pub type PasskeyId = Id<kind::Passkey>;
/// Id of a bind.
pub type BindId = Id<kind::Bind>;
/// Id of a bot.
pub type BotId = Id<kind::Bot>;
/// Id of a channel.
pub type ChannelId = Id<kind::Channel>;
/// Id of a message.
pub type MessageId = Id<kind::Message>;
/// Id of a file.
pub type MediaId = Id<kind::Media>;
/// Id of a delivery.
pub type DeliveryId = Id<kind::Delivery>;
/// Id of a plugin.
pub type PluginId = Id<kind::Plugin>;
/// Id of a version of a plugin.
pub type PluginVersionId = Id<kind::PluginVersion>;
/// Id of an app.
pub type AppId = Id<kind::App>;
/// Id of an event for an app.
pub type AppEventId = Id<kind::AppEvent>;
/// Id of a call of an app.
pub type AppCallId = Id<kind::AppCall>;
/// Id of an app on a bot.
pub type InstallationId = Id<kind::Installation>;
/// Id of a trace.
pub type TraceId = Id<kind::Trace>;
/// Id of a connection.
pub type SocketId = Id<kind::Socket>;
/// Id of an iLink client.
pub type IlinkClientId = Id<kind::IlinkClient>;
/// Id of a replay of many traces.
pub type ReplayId = Id<kind::Replay>;

impl<K: Kind> From<id::Id<K>> for Id<K> {
    fn from(id: id::Id<K>) -> Self {
        Self(id)
    }
}

impl<K: Kind> Type for Id<K> {
    scalar!();

    fn name() -> Cow<'static, str> {
        format!("{} id", K::NOUN).into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            pattern: Some(format!("^{}[0-7][0-9A-HJKMNP-TV-Z]{{25}}$", K::PREFIX)),
            example: Some(format!("{}01K9ZC3V5T8QK4X7M2N6P0RSWA", K::PREFIX).into()),
            ..MetaSchema::new("string")
        }))
    }
}

impl<K: Kind> ParseFromParameter for Id<K> {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        text.parse().map(Self).map_err(|error: hub_core::Error| ParseError::custom(error.message()))
    }
}

impl<K: Kind> ParseFromJSON for Id<K> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(text)) => Self::parse_from_parameter(&text),
            other => Err(ParseError::expected_type(other.unwrap_or_default())),
        }
    }
}

impl<K: Kind> ToJSON for Id<K> {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_an_id() {
        let MetaSchemaRef::Inline(schema) = BotId::schema_ref() else { panic!("inline") };
        let example = schema.example.unwrap();
        assert!(BotId::parse_from_json(Some(example.clone())).is_ok());
        assert!(ChannelId::parse_from_json(Some(example)).is_err());
    }
}
