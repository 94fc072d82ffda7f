//! The list of a bot's traces.

use sqlx::AssertSqlSafe;

use super::{TraceRow, Traces};
use crate::{
    access::Scope,
    error::Result,
    id::{BotId, TraceId},
    model::trace::{TraceQuery, TraceStatus},
    page::{Found, MAX_SCANNED, PageRequest},
    store::{
        CLOCK_SKEW,
        conn::{dialects, sql},
        given,
    },
    text::json,
};

/// The condition for the ids of a [`TraceQuery`], on SQLite and on PostgreSQL.
pub(in crate::store) const AMONG: [&str; 2] = dialects![" AND t.id", in 11];

/// The ids of a bot's traces that failed or were skipped.
macro_rules! undelivered {
    () => {
        "SELECT u.trace_id FROM undelivered u WHERE u.bot_id = $1 AND u.status = $7
            AND u.trace_id > $3 AND u.trace_id < $4"
    };
}

impl TraceQuery {
    /// Between which ids the rows of a page are that may be, or that are for certain, within the time; both bounds are
    /// excluded.
    fn bounds(&self, page: &PageRequest, is_certain: bool) -> (String, String) {
        let [since, until] = if is_certain {
            [self.since.map(|at| at + CLOCK_SKEW), self.until.map(|at| at - CLOCK_SKEW)]
        } else {
            [self.since.map(|at| at - CLOCK_SKEW), self.until.map(|at| at + CLOCK_SKEW)]
        };
        let since = since.map_or(TraceId::from_u128(0), TraceId::first_at).to_string();
        let until = until.map_or(TraceId::MAX, TraceId::first_at).to_string();
        match page.after().map(str::to_owned) {
            Some(after) if self.oldest_first => (since.max(after), until),
            Some(after) => (since, until.min(after)),
            None => (since, until),
        }
    }

    /// Whether it names the traces or their message: these are few, and all of them are read, rather than all of the
    /// bot.
    fn has_few(&self) -> bool {
        self.message_id.is_some() || !self.ids.is_empty()
    }

    /// Whether a table lists the traces of the status.
    fn is_undelivered(&self) -> bool {
        matches!(self.status, Some(TraceStatus::Error | TraceStatus::Skipped)) && !self.has_few()
    }

    /// The statement that reads an index until the last trace that a page looks at, and the one after it. `None` if all
    /// filters have an index.
    pub(in crate::store) fn scan_statement(&self) -> Option<String> {
        self.status.filter(|_| !self.has_few())?;
        let rows = match self.channel_id {
            _ if self.is_undelivered() => undelivered!(),
            Some(_) => {
                "SELECT t.id FROM traces t WHERE t.channel_id = $6 AND t.id > $3 AND t.id < $4
                    AND EXISTS (SELECT 1 FROM channels c WHERE c.id = $6 AND c.bot_id = $1)"
            }
            None => "SELECT t.id FROM traces t WHERE t.bot_id = $1 AND t.id > $3 AND t.id < $4",
        };
        let order = if self.oldest_first { "ASC" } else { "DESC" };
        Some(format!("{rows} ORDER BY 1 {order} LIMIT 2 OFFSET $5"))
    }

    /// The statement for a page.
    pub(in crate::store) fn statement(&self, ids: &'static str) -> String {
        let by_id = self.has_few() || self.is_undelivered();
        let bot = if by_id { "t.bot_id || '' = $1" } else { "t.bot_id = $1" };
        let filters = given(&[
            (self.channel_id.is_some(), " AND t.channel_id = $6"),
            (self.status.is_some(), " AND t.status = $7"),
            (self.is_undelivered(), concat!(" AND t.id IN (", undelivered!(), ")")),
            (self.message_id.is_some(), " AND t.message_id = $8"),
            (self.since.is_some(), " AND t.started_at >= $9"),
            (self.until.is_some(), " AND t.started_at < $10"),
            (!self.ids.is_empty(), ids),
        ]);
        let order = if self.oldest_first { "ASC" } else { "DESC" };
        format!(
            "{} WHERE {bot} AND (CAST($2 AS TEXT) IS NULL OR b.owner_id = $2) AND t.id > $3 AND t.id < $4{filters}
             ORDER BY t.id {order} LIMIT $5",
            select_trace!("'[]'", "CAST(NULL AS BIGINT)", "CAST(NULL AS TEXT)")
        )
    }
}

impl Traces<'_> {
    /// Traces of a bot that the scope may see, newest first unless the query says otherwise. With a status it looks at
    /// [`MAX_SCANNED`] traces (for those that failed or were skipped: at as many of these), and at those whose ids do
    /// not tell whether they are within the time.
    pub async fn list(
        &mut self,
        scope: Scope,
        bot_id: BotId,
        query: &TraceQuery,
        page: &PageRequest,
    ) -> Result<Found<TraceRow>> {
        let (mut after, mut before) = query.bounds(page, false);
        let mut scanned = None;
        if let Some(statement) = query.scan_statement() {
            let (after_certain, before_certain) = query.bounds(page, true);
            let ends: Vec<TraceId> = sql!(self.0, values:
                AssertSqlSafe(statement);
                bot_id, scope.owner(), after_certain, before_certain, i64::from(MAX_SCANNED) - 1, query.channel_id,
                query.status
            )?;
            if let [last, next] = ends[..] {
                *(if query.oldest_first { &mut before } else { &mut after }) = next.to_string();
                scanned = Some(last.to_string());
            }
        }
        let rows = sql!(self.0, all:
            AssertSqlSafe(query.statement(AMONG[0])), AssertSqlSafe(query.statement(AMONG[1]));
            bot_id, scope.owner(), after, before, i64::from(page.limit()) + 1, query.channel_id,
            query.status, query.message_id, query.since, query.until, json(&query.ids)
        )?;
        Ok(Found { rows, scanned })
    }
}
