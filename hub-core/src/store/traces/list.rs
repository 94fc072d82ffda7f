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
        list_ids::{self, Of, is_channel_or_bot},
    },
    text::json,
};

/// The condition for the ids of a [`TraceQuery`], on SQLite and on PostgreSQL.
const AMONG: [&str; 2] = dialects![" AND t.id", in 11];

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

    /// Whether all traces of the bot are looked at, in the indexes of its channels.
    fn is_of_bot(&self) -> bool {
        self.channel_id.is_none() && !self.has_few() && !self.is_undelivered()
    }

    /// The statement that reads an index until the last trace that a page looks at, and the one after it, on SQLite and on
    /// PostgreSQL. `None` if all filters have an index.
    fn scan_statement(&self) -> Option<[String; 2]> {
        self.status.filter(|_| !self.has_few())?;
        if self.is_of_bot() {
            return Some(self.of_bot("", "LIMIT $5 + 2", "LIMIT 2 OFFSET $5"));
        }
        let rows = if self.is_undelivered() {
            undelivered!()
        } else {
            concat!(
                "SELECT t.id FROM traces t WHERE ",
                is_channel_or_bot!("t", "$6"),
                " AND t.id > $3 AND t.id < $4
                    AND EXISTS (SELECT 1 FROM channels c WHERE c.id = $6 AND c.bot_id = $1)"
            )
        };
        let scan = format!("{rows} ORDER BY 1 {} LIMIT 2 OFFSET $5", self.order());
        Some([scan.clone(), scan])
    }

    const fn order(&self) -> &'static str {
        if self.oldest_first { "ASC" } else { "DESC" }
    }

    /// Ids of the bot's traces: the first ones with these filters of each of its channels, and of all these the first ones.
    fn of_bot(&self, filters: &str, first_of_each: &str, first_of_all: &str) -> [String; 2] {
        let order = self.order();
        let bot = " AND b.id = $1 AND (CAST($2 AS TEXT) IS NULL OR b.owner_id = $2)";
        let source = format!(
            "SELECT t.id FROM traces t WHERE {} AND t.id > $3 AND t.id < $4{filters} ORDER BY t.id {order}
             {first_of_each}",
            is_channel_or_bot!("t", "b.id")
        );
        list_ids::of_each(Of::BotsAndChannels, bot, &source, &format!("{order} {first_of_all}"))
    }

    /// The statement for the ids of a page, on SQLite and on PostgreSQL.
    fn statement(&self) -> [String; 2] {
        let filters = given(&[
            (self.status.is_some(), " AND t.status = $7"),
            (self.is_undelivered(), concat!(" AND t.id IN (", undelivered!(), ")")),
            (self.message_id.is_some(), " AND t.message_id = $8"),
            (self.since.is_some(), " AND t.started_at >= $9"),
            (self.until.is_some(), " AND t.started_at < $10"),
        ]);
        if self.is_of_bot() {
            return self.of_bot(&filters, "LIMIT $5", "LIMIT $5");
        }
        // What names few traces is read, not all of a channel: an expression keeps its index out of the plan.
        let channel = match self.channel_id {
            None => "",
            Some(_) if self.has_few() || self.is_undelivered() => " AND t.channel_id || '' = $6",
            Some(_) => concat!(" AND ", is_channel_or_bot!("t", "$6")),
        };
        AMONG.map(|among| {
            let among = if self.ids.is_empty() { "" } else { among };
            format!(
                "SELECT t.id FROM traces t JOIN bots b ON b.id = t.bot_id WHERE t.bot_id || '' = $1
                 AND (CAST($2 AS TEXT) IS NULL OR b.owner_id = $2) AND t.id > $3 AND t.id < $4{channel}{filters}{among}
                 ORDER BY t.id {} LIMIT $5",
                self.order()
            )
        })
    }
}

impl Traces<'_> {
    /// Reads traces of a bot that the scope may see, newest first unless the query says otherwise. With a status it
    /// looks at [`MAX_SCANNED`] traces (for those that failed or were skipped: at as many of these), and at those
    /// whose ids do not show whether they are within the time.
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
            let [sqlite, postgres] = statement.map(AssertSqlSafe);
            let ends: Vec<TraceId> = sql!(self.0, values:
                sqlite, postgres;
                bot_id, scope.owner(), after_certain, before_certain, i64::from(MAX_SCANNED) - 1, query.channel_id,
                query.status
            )?;
            if let [last, next] = ends[..] {
                *(if query.oldest_first { &mut before } else { &mut after }) = next.to_string();
                scanned = Some(last.to_string());
            }
        }
        let [sqlite, postgres] = query.statement().map(AssertSqlSafe);
        let ids: Vec<TraceId> = sql!(self.0, values:
            sqlite, postgres;
            bot_id, scope.owner(), after, before, i64::from(page.limit()) + 1, query.channel_id,
            query.status, query.message_id, query.since, query.until, json(&query.ids)
        )?;
        let mut rows = self.listed(&ids).await?;
        if query.oldest_first {
            rows.reverse();
        }
        Ok(Found { rows, scanned })
    }
}
