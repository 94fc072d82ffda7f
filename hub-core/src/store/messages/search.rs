//! Messages of all bots of an owner: ids by an index in the order of the list, then filters without an index.

use sqlx::AssertSqlSafe;

use super::{Messages, Row, contains};
use crate::{
    error::Result,
    id::{MessageId, UserId, kind},
    model::{
        id_search::Named,
        message::{Message, MessageSearch, Outcome},
    },
    page::{PageRequest, Scan},
    store::{
        CLOCK_SKEW,
        conn::{dialect, sql},
        given,
        list_ids::{self, Of, newest},
    },
    text::json,
};

const OF_BOT: &str = newest!("id", "messages x WHERE x.bot_id = b.id");
const OF_PERSON: &str = newest!("id", "messages x WHERE x.bot_id = b.id AND x.peer = $6");
const OF_CHANNEL: &str = newest!("message_id", "traces x WHERE x.channel_id = $7");
const UNDELIVERED: &str = newest!("message_id", "undelivered x WHERE x.bot_id = b.id AND x.status = $8");
const UNDELIVERED_OF_CHANNEL: &str =
    newest!("message_id", "undelivered x WHERE x.channel_id = $7 AND x.status = $8");
/// Deliveries, and sends: of these only a few are open per person.
const OPEN: &str = concat!(
    "SELECT d.id FROM (",
    newest!("message_id", "deliveries x WHERE x.bot_id = b.id AND x.state IN ('pending', 'parked')"),
    ") AS d UNION SELECT o.message_id FROM outbox o
        WHERE o.bot_id = b.id AND o.state IN ('queued', 'sending') AND o.message_id > $3 AND o.message_id < $4"
);
const MESSAGE: &str = "SELECT x.id FROM messages x WHERE x.bot_id = b.id AND x.id = $9";
const MESSAGE_OF_TRACE: &str = "SELECT x.message_id AS id FROM traces x WHERE x.bot_id = b.id AND x.id = $9";

/// Returns the statement that reads the candidates of a search.
fn source(search: &MessageSearch) -> &'static str {
    let status = search.outcome.filter(|outcome| matches!(outcome, Outcome::Failed | Outcome::Skipped));
    match search.named() {
        Some(Named::Message(_)) => MESSAGE,
        Some(Named::Trace(_)) => MESSAGE_OF_TRACE,
        None if status.is_some() && search.channel_id.is_some() => UNDELIVERED_OF_CHANNEL,
        None if status.is_some() => UNDELIVERED,
        None if search.outcome == Some(Outcome::InFlight) => OPEN,
        None if search.channel_id.is_some() => OF_CHANNEL,
        None if search.filter.user_id.is_some() => OF_PERSON,
        None => OF_BOT,
    }
}

/// The statement of [`Messages::search`], on SQLite and on PostgreSQL: the newest ids of each bot, and of these the
/// newest.
fn candidates_statement(search: &MessageSearch, has_owner: bool) -> [String; 2] {
    list_ids::statement(Of::Bots, source(search), has_owner, search.bot_id.is_some())
}

/// Whether a search has filters that its candidates do not satisfy already.
pub(super) fn is_filtered(search: &MessageSearch) -> bool {
    let filter = &search.filter;
    let is_of_person = source(search) == OF_PERSON;
    search.named().is_none()
        && (filter.direction.is_some()
            || filter.since.is_some()
            || filter.until.is_some()
            || filter.q.is_some()
            || search.outcome.is_some()
            || filter.user_id.is_some() && !is_of_person)
}

/// The statement that keeps the matching ones of those `among` ids. A message has an outcome if the newest trace of a
/// channel has its status.
fn matching_statement(search: &MessageSearch, among: &str, like: &str) -> String {
    let filter = &search.filter;
    let filters = given(&[
        (filter.direction.is_some(), " AND m.direction = $2"),
        (filter.user_id.is_some(), " AND m.peer = $3"),
        (filter.since.is_some(), " AND m.created_at >= $4"),
        (filter.until.is_some(), " AND m.created_at < $5"),
        (
            search.outcome.is_some(),
            " AND EXISTS (SELECT 1 FROM traces t WHERE t.message_id = m.id AND t.status = $7
                AND (CAST($8 AS TEXT) IS NULL OR t.channel_id = $8)
                AND NOT EXISTS (SELECT 1 FROM traces n
                    WHERE n.message_id = t.message_id AND n.channel_id = t.channel_id AND n.id > t.id))",
        ),
    ]);
    let text =
        filter.q.as_ref().map_or_else(String::new, |_| format!(" AND m.content {like} $6 ESCAPE '\\'"));
    format!("SELECT m.id FROM messages m WHERE m.id{among}{filters}{text} ORDER BY m.id DESC")
}

impl Messages<'_> {
    /// Scans the messages of an owner's bots, newest first: returns the ids of a part of an index, and which of them
    /// match. The caller has authorized the request.
    pub async fn search(
        &mut self,
        owner: Option<UserId>,
        search: &MessageSearch,
        page: &PageRequest,
        max: u32,
    ) -> Result<(Scan<kind::Message>, Vec<MessageId>)> {
        let is_filtered = is_filtered(search);
        let mut scan = Scan::new(page, is_filtered, max);
        let filter = &search.filter;
        let since = filter.since.map_or(MessageId::from_u128(0), |at| MessageId::first_at(at - CLOCK_SKEW));
        let until = filter.until.map_or(MessageId::MAX, |at| MessageId::first_at(at + CLOCK_SKEW));
        let before = page.before(MessageId::MAX).min(until.to_string());
        let status = search.outcome.map(Outcome::status);
        let [sqlite, postgres] = candidates_statement(search, owner.is_some());
        scan.read(sql!(self.0, values:
            AssertSqlSafe(sqlite), AssertSqlSafe(postgres);
            owner, search.bot_id, since, &before, scan.wanted(), &filter.user_id, search.channel_id, status,
            filter.q.as_deref().map(str::trim)
        )?);
        if !is_filtered || scan.ids().is_empty() {
            let all = scan.ids().to_vec();
            return Ok((scan, all));
        }
        let matching = sql!(self.0, values:
            AssertSqlSafe(matching_statement(search, dialect!(sqlite in 1), "LIKE")),
            AssertSqlSafe(matching_statement(search, dialect!(postgres in 1), "ILIKE"));
            json(scan.ids()), filter.direction, &filter.user_id, filter.since, filter.until,
            filter.q.as_deref().map(contains), status, search.channel_id
        )?;
        Ok((scan, matching))
    }

    /// Reads messages by their ids, newest first, with the channels that received each of them. The caller has
    /// authorized the request.
    pub async fn listed(&mut self, ids: &[MessageId]) -> Result<Vec<Message>> {
        let rows: Vec<Row> = sql!(self.0, all:
            [columns!(), "WHERE id", in 1, " ORDER BY id DESC"]; json(ids)
        )?;
        self.with_channels(rows).await
    }
}
