//! The statements of retention and of the rounds of nodes, whose cost must not grow with the tables, for tests that read
//! their plans. [`recording`](super::recording) is for those of lists.

use super::{
    accounts, ai, app_calls, app_codes, app_events, audit, binds, idempotency, ilink, leases, media,
    qr_logins, revocations, sending, sign_in_flows, stats, traces,
};

/// A statement in both dialects.
#[derive(Debug, Clone)]
pub struct Planned {
    /// Short description.
    pub name: String,
    /// For SQLite.
    pub sqlite: String,
    /// For PostgreSQL.
    pub postgres: String,
}

fn planned(name: &str, sqlite: impl Into<String>, postgres: impl Into<String>) -> Planned {
    Planned { name: name.to_owned(), sqlite: sqlite.into(), postgres: postgres.into() }
}

fn both(name: &str, sql: impl Into<String>) -> Planned {
    let sql = sql.into();
    planned(name, sql.clone(), sql)
}

/// Returns the statements that delete by age.
pub fn retention() -> Vec<Planned> {
    vec![
        both("traces: the end of a piece", traces::DELETE_BEFORE[0]),
        both("traces: a piece", traces::DELETE_BEFORE[1]),
        both("messages: the end of a piece", sending::DELETE_MESSAGES[0]),
        planned("messages: a piece", sending::DELETE_MESSAGES[1], sending::DELETE_MESSAGES[2]),
        both("API calls of apps", app_calls::DELETE_BEFORE),
        both("events of apps", app_events::DELETE_BEFORE),
        both("authorization codes of apps", app_codes::DELETE_BEFORE),
        both("the audit log", audit::DELETE_BEFORE),
        both("usage of AI models", ai::DELETE_USAGE),
        both("sessions", accounts::DELETE_ENDED_SESSIONS),
        both("one-time tokens", accounts::DELETE_EXPIRED_ONE_TIME),
        both("idempotency keys", idempotency::DELETE_EXPIRED),
        both("revocations", revocations::DELETE_BEFORE),
        both("sign-in ceremonies", sign_in_flows::DELETE_EXPIRED),
        both("QR logins", qr_logins::DELETE_EXPIRED),
        both("iLink logins", ilink::DELETE_EXPIRED_LOGINS),
        both("binds", binds::DELETE_ENDED),
        planned("files without a message", media::LOOSE[0], media::LOOSE[1]),
        both("tallies", stats::DELETE_FOLDED),
    ]
}

/// Returns the statements that a node repeats, however many idle bots it has.
pub fn rounds() -> Vec<Planned> {
    vec![
        both("bots with deliveries", leases::BOTS_WITH_DELIVERIES),
        both("bots with items to send", leases::BOTS_WITH_ITEMS),
        both("people with items to send", sending::PEOPLE),
        planned("items of people", sending::OPEN[0], sending::OPEN[1]),
    ]
}
