//! The statements whose cost must not grow with the tables, for tests that read their plans.

use super::{
    accounts, ai, app_calls, app_codes, app_events, audit, binds, bots, contacts, idempotency, ilink, leases,
    media, messages, qr_logins, revocations, sending, sign_in_flows, stats, traces,
};
use crate::{
    id::{BotId, ChannelId, MessageId, ReplayId, TraceId},
    model::{
        message::{Direction, MessageFilter, MessageSearch, Outcome},
        trace::{TraceQuery, TraceSearch, TraceStatus},
    },
    time::Timestamp,
};

/// A statement in both dialects.
#[derive(Debug, Clone)]
pub struct Planned {
    /// What it does.
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

/// Everything that deletes by age.
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

/// What a node reads again and again, however many idle bots it has.
pub fn rounds() -> Vec<Planned> {
    vec![
        both("bots with deliveries", leases::BOTS_WITH_DELIVERIES),
        both("bots with items to send", leases::BOTS_WITH_ITEMS),
        both("people with items to send", sending::PEOPLE),
        planned("items of people", sending::OPEN[0], sending::OPEN[1]),
    ]
}

/// Every list of a table that grows, under the filters that have an index.
pub fn lists() -> Vec<Planned> {
    let mut lists = vec![
        both("contacts", contacts::PAGE),
        both("API calls of apps", app_calls::PAGE),
        both("events of apps", app_events::PAGE),
        both("audit log of a user", audit::PAGE_OF_USER),
        both("bots", bots::page_statement(false, false)),
        both("bots of an owner", bots::page_statement(true, false)),
    ];
    let of_actor = audit::AuditFilter { actor: Some(String::new()), ..audit::AuditFilter::default() };
    let of_target = audit::AuditFilter { target: Some(String::new()), ..audit::AuditFilter::default() };
    for (name, filter) in [("all", audit::AuditFilter::default()), ("actor", of_actor), ("target", of_target)]
    {
        lists.push(both(&format!("audit log: {name}"), filter.statement()));
    }
    let epoch = Some(Timestamp::from_millis(0));
    let all = TraceQuery::default;
    for (name, filter) in [
        ("all", all()),
        ("oldest first", TraceQuery { oldest_first: true, ..all() }),
        ("within a time", TraceQuery { since: epoch, until: epoch, ..all() }),
        ("failed", TraceQuery { status: Some(TraceStatus::Error), ..all() }),
        ("pending", TraceQuery { status: Some(TraceStatus::Pending), ..all() }),
        (
            "pending in a channel",
            TraceQuery { status: Some(TraceStatus::Pending), channel_id: Some(ChannelId::MAX), ..all() },
        ),
        ("channel", TraceQuery { channel_id: Some(ChannelId::MAX), ..all() }),
        ("message", TraceQuery { message_id: Some(MessageId::MAX), ..all() }),
        ("ids", TraceQuery { ids: vec![TraceId::MAX], ..all() }),
    ] {
        let [sqlite, postgres] = filter.statement();
        lists.push(planned(&format!("traces: {name}"), sqlite, postgres));
        lists.extend(
            filter
                .scan_statement()
                .map(|[sqlite, postgres]| planned(&format!("traces: {name} (end)"), sqlite, postgres)),
        );
    }
    let all = MessageFilter::default;
    for (name, filter) in [
        ("all", all()),
        ("within a time", MessageFilter { since: epoch, until: epoch, ..all() }),
        ("direction", MessageFilter { direction: Some(Direction::Inbound), ..all() }),
        ("person", MessageFilter { user_id: Some(String::new()), ..all() }),
        ("text", MessageFilter { q: Some(String::new()), ..all() }),
    ] {
        for (what, [sqlite, postgres]) in
            [("", messages::page_statement(&filter)), (" (end)", messages::scan_statement(&filter))]
        {
            lists.push(planned(&format!("messages: {name}{what}"), sqlite, postgres));
        }
    }
    let all = MessageSearch::default;
    let filtered = |filter| MessageSearch { filter, ..all() };
    for (name, search) in [
        ("all", all()),
        ("bot", MessageSearch { bot_id: Some(BotId::MAX), ..all() }),
        ("person", filtered(MessageFilter { user_id: Some(String::new()), ..MessageFilter::default() })),
        ("text", filtered(MessageFilter { q: Some(String::new()), ..MessageFilter::default() })),
        ("channel", MessageSearch { channel_id: Some(ChannelId::MAX), ..all() }),
        ("failed", MessageSearch { outcome: Some(Outcome::Failed), ..all() }),
        ("in flight", MessageSearch { outcome: Some(Outcome::InFlight), ..all() }),
        ("skipped", MessageSearch { outcome: Some(Outcome::Skipped), ..all() }),
        (
            "failed in a channel",
            MessageSearch { outcome: Some(Outcome::Failed), channel_id: Some(ChannelId::MAX), ..all() },
        ),
    ] {
        let [sqlite, postgres] = messages::candidates_statement(&search, true);
        lists.push(planned(&format!("messages of all bots: {name}"), sqlite, postgres));
    }
    let all = TraceSearch::default;
    for (name, search) in [
        ("all", all()),
        ("bot", TraceSearch { bot_id: Some(BotId::MAX), ..all() }),
        ("channel", TraceSearch { channel_id: Some(ChannelId::MAX), ..all() }),
        ("failed", TraceSearch { status: Some(TraceStatus::Error), ..all() }),
        ("message", TraceSearch { message_id: Some(MessageId::MAX), ..all() }),
        ("replays", TraceSearch { replay_of: Some(TraceId::MAX), ..all() }),
        ("of a replay", TraceSearch { replay_id: Some(ReplayId::MAX), ..all() }),
        ("text", TraceSearch { q: Some(String::new()), ..all() }),
    ] {
        let [sqlite, postgres] = traces::candidates_statement(&search, true);
        lists.push(planned(&format!("traces of all bots: {name}"), sqlite, postgres));
    }
    lists
}
