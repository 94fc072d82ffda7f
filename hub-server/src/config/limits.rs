//! Limits and options of the domain: connections that wait for messages, and requests.

use hub_core::config::HubConfig;

use super::{
    Reader,
    providers::read_providers,
    values::{read_bots, read_connections, read_registration},
};
use crate::rate_limit::RateLimitSettings;

pub(super) fn hub(reader: &mut Reader, development: bool) -> HubConfig {
    let mut hub = HubConfig::default();
    hub.registration = reader.value("registration", read_registration);
    hub.setup_token_required = !development;
    hub.node_name = reader.text("node_name");
    hub.max_sockets = reader.value("max_sockets", read_connections);
    hub.max_sockets_per_channel = reader.value("max_sockets_per_channel", read_connections);
    hub.max_sockets_per_user = reader.value("max_sockets_per_user", read_connections);
    hub.max_polls = reader.value("max_polls", read_connections);
    hub.max_polls_per_channel = reader.value("max_polls_per_channel", read_connections);
    hub.max_bots_per_user = reader.value("max_bots_per_user", read_bots);
    let sends = reader.number("sends_per_five_minutes", "a number of messages, 0 for no limit");
    hub.sends_per_five_minutes = Some(sends);
    hub.providers = read_providers(reader);
    hub
}

/// Requests in a time, per kind.
pub(super) fn rates(reader: &mut Reader) -> RateLimitSettings {
    let mut rate = |name| reader.number(name, "a number of requests from 1 on");
    RateLimitSettings {
        default: rate("rate_default"),
        sends: rate("rate_sends"),
        auth_per_ip: rate("rate_auth_per_ip"),
        auth_per_account: rate("rate_auth_per_account"),
        debug: rate("rate_debug"),
        bad_credentials: rate("rate_bad_credentials"),
        ..RateLimitSettings::default()
    }
}
