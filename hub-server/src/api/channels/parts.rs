//! Wire types that requests and responses share.

use hub_core::channels::sinks;
use poem_openapi::{Enum, Object};

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

/// Schedule of retries.
#[derive(Debug, Clone, Object)]
#[oai(deny_unknown_fields)]
pub struct Retry {
    /// Seconds before each retry, 1 to 20 entries; after the last one the delivery is dead.
    #[oai(validator(min_items = 1, max_items = 20))]
    pub schedule_s: Vec<u32>,
}
