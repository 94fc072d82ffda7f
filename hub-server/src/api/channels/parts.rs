//! Wire types that requests and responses share.

use hub_core::channels::sinks;
use poem_openapi::Enum;

/// The model endpoint to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
#[oai(rename_all = "snake_case")]
pub enum AiSourceChoice {
    /// The endpoint that the administrator configured, with its key.
    Global,
    /// Alias of `global`, for older clients.
    Builtin,
    /// An endpoint of the channel; never called with the administrator's key.
    Custom,
}

impl From<AiSourceChoice> for sinks::AiSource {
    fn from(source: AiSourceChoice) -> Self {
        match source {
            AiSourceChoice::Global | AiSourceChoice::Builtin => Self::Global,
            AiSourceChoice::Custom => Self::Custom,
        }
    }
}
