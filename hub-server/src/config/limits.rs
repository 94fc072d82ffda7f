//! Limits and options of the domain: connections that wait for messages, and requests.

use hub_core::config::HubConfig;

use super::{
    Reader,
    providers::read_providers,
    values::{number_in, read_bots, read_connections, read_registration, time_in},
};
use crate::{rate_limit::RateLimitSettings, wire::MAX_TEXT};

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
    hub.sends_per_five_minutes =
        reader.number("sends_per_five_minutes", "a number of messages, 0 for no limit");
    hub.providers = read_providers(reader);
    amounts(reader, &mut hub);
    times(reader, &mut hub);
    hub
}

/// Sizes and counts of the delivery path.
fn amounts(reader: &mut Reader, hub: &mut HubConfig) {
    hub.max_text = reader.value("max_text", number_in(1_000..=MAX_TEXT));
    hub.max_outbox_per_peer = reader.value("max_outbox_per_peer", number_in(1..=10_000));
    hub.max_jobs = reader.value("max_jobs", number_in(100..=1_000_000));
    hub.max_in_flight = reader.value("max_in_flight", number_in(1..=10_000));
    hub.max_ai_in_flight = reader.value("max_ai_in_flight", number_in(1..=1_000));
}

/// Retention, lifetimes and waits.
fn times(reader: &mut Reader, hub: &mut HubConfig) {
    hub.message_retention = reader.value("message_retention", time_in("1h", "3650d"));
    hub.trace_retention = reader.value("trace_retention", time_in("1h", "3650d"));
    hub.audit_retention = reader.value("audit_retention", time_in("1d", "3650d"));
    hub.idempotency_lifetime = reader.value("idempotency_lifetime", time_in("1m", "30d"));
    hub.outbox_lifetime = reader.value("outbox_lifetime", time_in("1m", "30d"));
    hub.disable_failing_after = reader.value("disable_failing_after", time_in("1h", "365d"));
    hub.media.webhook_wait = reader.value("webhook_wait", time_in("0s", "1m"));
    hub.poll_grace = reader.value("poll_grace", time_in("0s", "1m"));
    hub.drain = reader.value("drain", time_in("0s", "5m"));
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

#[cfg(test)]
mod tests {
    use super::super::tests::load;

    /// Each setting with a value that is not its default, one below and one above its range, and what the range is.
    const CASES: [[&str; 5]; 14] = [
        ["message_retention", "3d", "59m", "3651d", "from 1h to 3650d"],
        ["trace_retention", "1d", "59m", "3651d", "from 1h to 3650d"],
        ["audit_retention", "30d", "23h", "3651d", "from 1d to 3650d"],
        ["idempotency_lifetime", "2h", "59s", "31d", "from 1m to 30d"],
        ["outbox_lifetime", "2h", "59s", "31d", "from 1m to 30d"],
        ["disable_failing_after", "1d", "59m", "366d", "from 1h to 365d"],
        ["webhook_wait", "0s", "-1s", "61s", "from 0s to 1m"],
        ["poll_grace", "2s", "2", "61s", "from 0s to 1m"],
        ["drain", "20s", "ms", "301s", "from 0s to 5m"],
        ["max_text", "2000", "999", "1048577", "from 1000 to 1048576"],
        ["max_outbox_per_peer", "10", "0", "10001", "from 1 to 10000"],
        ["max_jobs", "1000", "99", "1000001", "from 100 to 1000000"],
        ["max_in_flight", "64", "0", "10001", "from 1 to 10000"],
        ["max_ai_in_flight", "8", "0", "1001", "from 1 to 1000"],
    ];

    #[test]
    fn every_limit_is_set_by_a_flag_a_variable_and_a_key() {
        let default = load(&[], &[], None).unwrap().hub;
        for [name, value, ..] in CASES {
            let variable = format!("HUB_{}", name.to_uppercase());
            let file = format!("{name} = \"{value}\"");
            for config in [
                load(&[(name, value)], &[], None),
                load(&[], &[(&variable, value)], None),
                load(&[], &[], Some(&file)),
            ] {
                let (before, after) = (format!("{default:#?}"), format!("{:#?}", config.unwrap().hub));
                let changed: Vec<(&str, &str)> =
                    before.lines().zip(after.lines()).filter(|(before, after)| before != after).collect();
                let [(_, line)] = changed[..] else { panic!("{name} changes {changed:?}") };
                assert!(line.trim().starts_with(&format!("{name}: ")), "{name} changes {line}");
            }
        }
    }

    #[test]
    fn a_limit_outside_its_range_is_refused_with_its_name_and_range() {
        for [name, _, below, above, range] in CASES {
            for value in [below, above, "many"] {
                let problems = load(&[(name, value)], &[], None).unwrap_err().problems;
                let flag = format!("--{}: ", name.replace('_', "-"));
                assert!(
                    problems.len() == 1 && problems[0].starts_with(&flag) && problems[0].contains(range),
                    "{problems:?}"
                );
            }
        }
    }
}
