//! PostgreSQL: one large statement for messages, outcomes, replies, and sends that complete their messages. It takes for
//! granted that the leases are held, the channels' settings are the same and no message is a repeat. If that is not so it
//! stores nothing, and is sent again after the database was asked.
//!
//! Statements that read rows of the large one follow in the same transaction: tries, other outcomes of sends,
//! what attempts showed of webhooks, and costs.

use std::collections::HashSet;

use sqlx::PgConnection;

use self::existing_rows::ExistingRows;
use super::{Hot, Written};
use crate::{
    error::{Error, ErrorCode, Result},
    id::TraceId,
    store::{
        conn::Conn,
        deliveries::Finished,
        due::{Due, Reading},
        fault::{classify, is_constraint},
        sending::{self, Settled},
    },
};

mod existing_rows;
mod follow_up;
mod statement;

/// Times that the statement is sent, each but the first after the database was asked.
const MOST_TRIES: usize = 3;

/// Outcomes that are stored by one statement, which changes each row once: those of different traces.
#[derive(Debug, Default)]
struct StatementRound<'h> {
    finished: Vec<&'h Finished>,
    sends: Vec<&'h Settled>,
    traces: HashSet<TraceId>,
}

impl<'h> StatementRound<'h> {
    /// All outcomes of deliveries, and of sends those that complete a message. There is at least one round.
    fn all(finished: &[&'h Finished], sends: &[&'h Settled]) -> Vec<Self> {
        let mut rounds = vec![Self::default()];
        for one in finished {
            Self::of(&mut rounds, Some(one.trace.id)).finished.push(one);
        }
        for one in sends.iter().filter(|one| one.is_whole()) {
            Self::of(&mut rounds, one.trace.as_ref().map(|trace| trace.id)).sends.push(one);
        }
        rounds
    }

    /// The first round without a trace.
    fn of(rounds: &mut Vec<Self>, trace: Option<TraceId>) -> &mut Self {
        let Some(trace) = trace else { return &mut rounds[0] };
        let place = rounds.iter().position(|round| !round.traces.contains(&trace)).unwrap_or(rounds.len());
        if place == rounds.len() {
            rounds.push(Self::default());
        }
        rounds[place].traces.insert(trace);
        &mut rounds[place]
    }
}

/// Writes commands in one transaction.
///
/// # Errors
/// Nothing is stored: the database does not answer, or refuses a command.
pub(in crate::store) async fn commit(conn: &mut PgConnection, hot: &Hot, now: Reading) -> Result<Written> {
    let (mut known, mut failure) = (ExistingRows::default(), None);
    for _ in 0..MOST_TRIES {
        match transaction(conn, hot, now, &known).await {
            Ok(Some(written)) => return Ok(written),
            Ok(None) => {}
            Err(error) if is_constraint(&error) && !hot.accepts.is_empty() => failure = Some(error),
            Err(error) => return Err(error),
        }
        known = ExistingRows::ask(conn, &hot.accepts).await?;
    }
    Err(failure.unwrap_or_else(|| Error::new(ErrorCode::Unavailable, "the leases change all the time")))
}

/// Writes commands; `None`, and nothing stored, when something is not as it was taken for granted.
async fn transaction(
    conn: &mut PgConnection,
    hot: &Hot,
    now: Reading,
    known: &ExistingRows,
) -> Result<Option<Written>> {
    failpoint!("commit.begin");
    let finished: Vec<&Finished> = hot.finished.iter().map(|one| &**one).collect();
    let (_, sends) = sending::leading_outcomes(&hot.settled);
    let is_one = StatementRound::all(&finished, &sends).len() == 1
        && !follow_up::is_needed(hot)
        && !hot.is_around_step(now);
    if is_one {
        failpoint!("commit.before");
        return write(conn, hot, known).await;
    }
    execute(conn, "BEGIN").await?;
    let written = write_all(conn, hot, now, known).await;
    let end = if matches!(written, Ok(Some(_))) { "COMMIT" } else { "ROLLBACK" };
    let ended = execute(conn, end).await;
    // What failed says more than that undoing it failed.
    let written = written?;
    ended.map(|()| written)
}

/// As [`write`], in a transaction that has begun, by the clock of due times in the store.
async fn write_all(
    conn: &mut PgConnection,
    hot: &Hot,
    now: Reading,
    known: &ExistingRows,
) -> Result<Option<Written>> {
    let written = if hot.is_around_step(now) {
        let noted = Due(Conn::Postgres(&mut *conn)).noted().await?;
        write(conn, &hot.following(noted, now), known).await?
    } else {
        write(conn, hot, known).await?
    };
    failpoint!("commit.before");
    Ok(written)
}

async fn write(conn: &mut PgConnection, hot: &Hot, known: &ExistingRows) -> Result<Option<Written>> {
    let judged = known.judge(&hot.accepts);
    let inserted = known.new_messages(&judged.valid);
    let finished: Vec<&Finished> = hot.finished.iter().map(|one| &**one).collect();
    let (leading, sends) = sending::leading_outcomes(&hot.settled);
    let mut stored = statement::Stored::default();
    for (place, round) in StatementRound::all(&finished, &sends).iter().enumerate() {
        let batches = if place == 0 { &*judged.valid } else { &[] };
        if batches.is_empty() && round.finished.is_empty() && round.sends.is_empty() {
            continue;
        }
        failpoint!("accept.messages");
        let Some(more) = statement::run(conn, batches, &inserted, round).await? else { return Ok(None) };
        stored.seqs.extend(more.seqs);
        stored.permits.extend(more.permits);
        stored.finished.extend(more.finished);
        stored.items.extend(more.items);
    }
    let mut conn = Conn::Postgres(conn);
    if follow_up::is_needed(hot) {
        follow_up::note(&mut conn, &hot.finished, &stored.finished).await?;
    }
    let begun = follow_up::begin(&mut conn, &hot.begun).await?;
    let others: Vec<&Settled> = sends.into_iter().filter(|one| !one.is_whole()).collect();
    stored.items.extend(follow_up::settle(&mut conn, &others).await?);
    let settled = sending::answers(&stored.items, hot.settled.iter().map(|one| one.id), leading);
    let accepted = judged.answers(&inserted, &stored.seqs);
    Ok(Some(Written { accepted, permits: stored.permits, begun, settled, flushed: false }))
}

async fn execute(conn: &mut PgConnection, statement: &'static str) -> Result<()> {
    sqlx::raw_sql(statement).execute(conn).await.map(drop).map_err(classify)
}
