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
#[api(name = "IlinkSink", example = { "enabled": false, "idle_days": 30, "max_clients": 5 })]
pub struct IlinkSettings {
    /// Whether clients may log in and receive messages.
    pub enabled: bool,
    /// Clients that may be logged in at the same time.
    pub max_clients: u32,
    /// Days after its last request when a client is logged out.
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
        let in_range = |value: u32, max: u32| (1..=max).contains(&value);
        problems.check(in_range(self.max_clients, MAX_CLIENTS), "max_clients", "must be from 1 to 20");
        problems.check(in_range(self.idle_days, MAX_IDLE_DAYS), "idle_days", "must be from 1 to 365");
        problems.finish()
    }
}
