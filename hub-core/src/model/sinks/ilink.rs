//! Settings of the iLink sink.

use serde::{Deserialize, Serialize};

use crate::error::{Problems, Result};

/// Most clients of a channel.
const MAX_CLIENTS: u32 = 20;
/// Longest idle limit in days.
const MAX_IDLE_DAYS: u32 = 365;

/// The iLink sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[serde(default, deny_unknown_fields)]
#[api(name = "IlinkSink", checked, set("SetIlink", "A new configuration of the iLink sink."), example = { "enabled": true, "idle_days": 30, "max_clients": 5 })]
pub struct IlinkSettings {
    /// Whether clients may log in and receive messages.
    #[api(absent = true)]
    pub enabled: bool,
    /// Clients that may be logged in at the same time. A lower number logs no client out.
    #[api(range = 1..=MAX_CLIENTS)]
    pub max_clients: u32,
    /// Days after its last request when a client is logged out.
    #[api(range = 1..=MAX_IDLE_DAYS)]
    pub idle_days: u32,
}

impl Default for IlinkSettings {
    fn default() -> Self {
        Self { enabled: false, max_clients: 5, idle_days: 30 }
    }
}

impl IlinkSettings {
    /// Checks both limits.
    ///
    /// # Errors
    /// `INVALID_PARAMS` naming each that is out of range.
    pub fn validate(&self) -> Result<()> {
        let mut problems = Problems::default();
        self.check_bounds(&mut problems);
        problems.finish()
    }
}
