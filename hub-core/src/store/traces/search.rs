//! Traces of all bots of an owner: ids by an index in the order of the list, then filters without an index.

use sqlx::AssertSqlSafe;

use super::{TraceRow, Traces};
use crate::{
    error::Result,
    id::{TraceId, UserId, kind},
    model::{
        id_search::Named,
        trace::{TraceSearch, TraceStatus},
    },
    page::{PageRequest, Scan},
    store::{
        CLOCK_SKEW,
        conn::{dialect, sql},
        given,
        list_ids::{self, Of, is_channel_or_bot, newest},
        messages::contains,
    },
    text::json,
};

const OF_BOT: &str = newest!("id", concat!("traces x WHERE ", is_channel_or_bot!("x", "b.id")));
const OF_CHANNEL: &str = newest!("id", concat!("traces x WHERE ", is_channel_or_bot!("x", "$6")));
const UNDELIVERED: &str = newest!("trace_id", "undelivered x WHERE x.bot_id = b.id AND x.status = $7");
const REPLAYS: &str = newest!("id", "traces x WHERE x.bot_id || '' = b.id AND x.replay_of = $8");
const OF_MESSAGE: &str = newest!("id", "traces x WHERE x.bot_id || '' = b.id AND x.message_id = $9");
const OF_REPLAY: &str = newest!(
    "trace_id",
    "replay_traces x WHERE (SELECT y.bot_id FROM traces y WHERE y.id = x.trace_id) = b.id AND x.replay_id = $11"
);
const TRACE: &str = "SELECT x.id FROM traces x WHERE x.bot_id || '' = b.id AND x.id = $10";

/// Returns the statement that reads the candidates of a search.
fn source(search: &TraceSearch) -> &'static str {
    let is_undelivered = matches!(search.status, Some(TraceStatus::Error | TraceStatus::Skipped));
    match search.named() {
        Some(Named::Trace(_)) => TRACE,
        Some(Named::Message(_)) => OF_MESSAGE,
        None if search.message_id.is_some() => OF_MESSAGE,
        None if search.replay_of.is_some() => REPLAYS,
        None if search.replay_id.is_some() => OF_REPLAY,
        None if is_undelivered => UNDELIVERED,
        None if search.channel_id.is_some() => OF_CHANNEL,
        None => OF_BOT,
    }
}

/// The statement of [`Traces::search`] that reads an index, on SQLite and on PostgreSQL: the newest ids of each bot,
/// and of these the newest.
fn candidates_statement(search: &TraceSearch, has_owner: bool) -> [String; 2] {
    let source = source(search);
    let of = if source == OF_BOT { Of::BotsAndChannels } else { Of::Bots };
    list_ids::statement(of, source, has_owner, search.bot_id.is_some())
}

/// Whether a search has filters that its candidates do not satisfy already.
fn is_filtered(search: &TraceSearch) -> bool {
    let from = source(search);
    let is_by = |source: &str| from == source;
    search.named().is_none()
        && (search.since.is_some()
            || search.until.is_some()
            || search.q.is_some()
            || search.reads_steps()
            || search.channel_id.is_some() && !is_by(OF_CHANNEL)
            || search.status.is_some() && !is_by(UNDELIVERED)
            || search.replay_of.is_some() && !is_by(REPLAYS)
            || search.replay_id.is_some() && !is_by(OF_REPLAY))
}

/// Builds the statement that filters those `among` ids by all filters that do not need steps.
fn matching_statement(search: &TraceSearch, [among, like]: [&str; 2]) -> String {
    let filters = given(&[
        (search.channel_id.is_some(), " AND t.channel_id = $2"),
        (search.status.is_some(), " AND t.status = $3"),
        (search.replay_of.is_some(), " AND t.replay_of = $4"),
        (search.since.is_some(), " AND t.started_at >= $5"),
        (search.until.is_some(), " AND t.started_at < $6"),
        (
            search.replay_id.is_some(),
            " AND EXISTS (SELECT 1 FROM replay_traces r WHERE r.replay_id = $8 AND r.trace_id = t.id)",
        ),
    ]);
    let text = if search.q.is_some() {
        format!(
            " AND EXISTS (SELECT 1 FROM messages m WHERE m.id = t.message_id AND m.content {like} $7 ESCAPE '\\')"
        )
    } else {
        String::new()
    };
    format!("SELECT t.id FROM traces t WHERE t.id{among}{filters}{text} ORDER BY t.id DESC")
}

/// Condition on the ids and operator for texts, on SQLite and on PostgreSQL.
const DIALECTS: [[&str; 2]; 2] = [[dialect!(sqlite in 1), "LIKE"], [dialect!(postgres in 1), "ILIKE"]];

/// Traces whose steps are read together: they may be long.
const STEPS_AT_ONCE: usize = 25;

impl Traces<'_> {
    /// Scans the traces of an owner's bots, newest first: returns the ids of a part of an index, and which of them
    /// match. The caller has authorized the request.
    pub async fn search(
        &mut self,
        owner: Option<UserId>,
        search: &TraceSearch,
        page: &PageRequest,
        max: u32,
    ) -> Result<(Scan<kind::Trace>, Vec<TraceId>)> {
        let is_filtered = is_filtered(search);
        let mut scan = Scan::new(page, is_filtered, max);
        let since = search.since.map_or(TraceId::from_u128(0), |at| TraceId::first_at(at - CLOCK_SKEW));
        let until = search.until.map_or(TraceId::MAX, |at| TraceId::first_at(at + CLOCK_SKEW));
        let before = page.before(TraceId::MAX).min(until.to_string());
        let (message, trace) = match search.named() {
            Some(Named::Message(id)) => (Some(id), None),
            Some(Named::Trace(id)) => (None, Some(id)),
            None => (search.message_id, None),
        };
        let [sqlite, postgres] = candidates_statement(search, owner.is_some());
        scan.read(sql!(self.0, values:
            AssertSqlSafe(sqlite), AssertSqlSafe(postgres);
            owner, search.bot_id, since, &before, scan.wanted(), search.channel_id, search.status, search.replay_of,
            message, trace, search.replay_id
        )?);
        if !is_filtered || scan.ids().is_empty() {
            let all = scan.ids().to_vec();
            return Ok((scan, all));
        }
        let [sqlite, postgres] = DIALECTS.map(|dialect| matching_statement(search, dialect));
        let mut matching: Vec<TraceId> = sql!(self.0, values:
            AssertSqlSafe(sqlite), AssertSqlSafe(postgres);
            json(scan.ids()), search.channel_id, search.status, search.replay_of, search.since, search.until,
            search.q.as_deref().map(contains), search.replay_id
        )?;
        if search.reads_steps() {
            matching = self.with_matching_steps(search, &matching).await?;
        }
        Ok((scan, matching))
    }

    async fn with_matching_steps(&mut self, search: &TraceSearch, ids: &[TraceId]) -> Result<Vec<TraceId>> {
        let mut matching = Vec::new();
        for ids in ids.chunks(STEPS_AT_ONCE) {
            let steps = self.steps_of(ids).await?;
            let matches = |id: &&TraceId| steps.get(id).is_some_and(|steps| search.matches_steps(steps));
            matching.extend(ids.iter().filter(matches));
        }
        Ok(matching)
    }

    /// Reads traces by their ids, newest first, without their steps. The caller has authorized the request.
    pub async fn listed(&mut self, ids: &[TraceId]) -> Result<Vec<TraceRow>> {
        sql!(self.0, all:
            [
                select_trace!("CAST(NULL AS TEXT)", "CAST(NULL AS BYTEA)", "CAST(NULL AS BIGINT)", "CAST(NULL AS TEXT)"),
                "WHERE t.id", in 1, " ORDER BY t.id DESC"
            ];
            json(ids)
        )
    }
}
