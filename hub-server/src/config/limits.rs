//! How much of a node callers may take: connections that wait for messages, and requests.

use std::num::NonZeroU32;

use hub_core::config::HubConfig;

use super::{Reader, values::read_connections};
use crate::rate_limit::RateLimitSettings;

/// The hub's defaults with these caps on clients and on messages to people.
pub(super) fn clients(reader: &mut Reader) -> HubConfig {
    let mut hub = HubConfig::default();
    let mut read = |name, cap: &mut usize| {
        *cap = reader.value(name, &cap.to_string(), read_connections).unwrap_or(*cap);
    };
    read("max_sockets", &mut hub.max_sockets);
    read("max_sockets_per_channel", &mut hub.max_sockets_per_channel);
    read("max_sockets_per_user", &mut hub.max_sockets_per_user);
    read("max_polls", &mut hub.max_polls);
    read("max_polls_per_channel", &mut hub.max_polls_per_channel);
    hub.sends_per_five_minutes =
        reader.number("sends_per_five_minutes", "12", "a number of messages, 0 for no limit");
    hub
}

/// Requests in a time, per kind.
pub(super) fn rates(reader: &mut Reader) -> RateLimitSettings {
    let limits = RateLimitSettings::default();
    let mut rate = |name, default: NonZeroU32| {
        let rate = reader.number(name, &default.to_string(), "a number of requests from 1 on");
        rate.unwrap_or(default)
    };
    RateLimitSettings {
        default: rate("rate_default", limits.default),
        sends: rate("rate_sends", limits.sends),
        auth_per_ip: rate("rate_auth_per_ip", limits.auth_per_ip),
        auth_per_account: rate("rate_auth_per_account", limits.auth_per_account),
        debug: rate("rate_debug", limits.debug),
        bad_credentials: rate("rate_bad_credentials", limits.bad_credentials),
        ..limits
    }
}
