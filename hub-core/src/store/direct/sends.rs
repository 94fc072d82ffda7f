//! Sends to people: replies, begun sends and their outcomes.

use std::{
    collections::{HashMap, HashSet},
    str::FromStr,
    sync::{Arc, Weak},
};

use rusqlite::types::Type;

use super::sqlite::{Direct, bind};
use crate::{
    error::Result,
    id::OutboxId,
    secret::Sealed,
    store::{
        deliveries::Finished,
        fault::classify_direct,
        outbox::{self, NewOutbound},
        sending::{
            self, Begun, ItemState, Permit, Settled,
            at_once::{self, Candidate, Permits},
        },
        traces::merge,
    },
    time::Timestamp,
};

impl Direct {
    pub(super) fn enqueue_replies(&self, finished: &[&Finished], caller: &Weak<()>) -> Result<Permits> {
        let rows: Vec<&NewOutbound> = finished.iter().flat_map(|one| &one.replies).collect();
        if rows.is_empty() {
            return Ok(Permits::new());
        }
        failpoint!("finish.replies", called by caller);
        failpoint!("enqueue.items", called by caller);
        let new = self.store(&self.texts.reply, &outbox::message_rows(&rows))?;
        let new: Vec<&NewOutbound> =
            rows.into_iter().zip(new).filter(|(_, is_new)| *is_new).map(|(reply, _)| reply).collect();
        let (mut permits, mut begun) = (Permits::new(), HashSet::new());
        for candidate in at_once::candidates(finished, &new) {
            failpoint!("finish.window", called by caller);
            if let Some(permit) = self.permit(&candidate)? {
                permits.insert(candidate.delivery, permit);
                begun.insert(candidate.reply.message_id);
            }
        }
        self.store(&self.texts.part, &outbox::part_rows(&new, &begun))?;
        Ok(permits)
    }

    fn permit(&self, candidate: &Candidate<'_>) -> Result<Option<Permit>> {
        let mut statement = self.prepare(&self.texts.permit)?;
        bind(&mut statement, candidate)?;
        let mut rows = statement.raw_query();
        let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Permit> {
            let window_opened_at = Timestamp::from_millis(row.get(1)?);
            Ok(Permit { context_token: Sealed::from(row.get::<_, String>(0)?), window_opened_at })
        };
        rows.next().and_then(|row| row.map(read).transpose()).map_err(classify_direct)
    }

    pub(super) fn begin(&self, begun: &[Arc<Begun>], caller: &Weak<()>) -> Result<Vec<bool>> {
        if begun.is_empty() {
            return Ok(Vec::new());
        }
        failpoint!("outbox.begin", called by caller);
        let (leading, rows) = sending::begin_rows(begun);
        let marked = self.ids(sending::BEGIN[0], &rows)?;
        let answers = sending::answers(&marked, begun.iter().map(|one| one.id), leading);
        failpoint!("outbox.window", called by caller);
        if let Some(rows) = sending::counted_sends(begun, &answers) {
            self.with_rows(sending::COUNT_SENDS[0], &rows)?;
        }
        Ok(answers)
    }

    pub(super) fn settle(&self, settled: &[Arc<Settled>], caller: &Weak<()>) -> Result<Vec<bool>> {
        if settled.is_empty() {
            return Ok(Vec::new());
        }
        failpoint!("outbox.settle", called by caller);
        let (leading, outcomes) = sending::leading_outcomes(settled);
        let stored = outcomes.iter().zip(self.store(&self.texts.item, &outcomes)?);
        let stored: Vec<OutboxId> = stored.filter(|(_, stored)| *stored).map(|(one, _)| one.id).collect();
        let answers = sending::answers(&stored, settled.iter().map(|one| one.id), leading);
        let stored: Vec<&Settled> =
            settled.iter().zip(&answers).filter(|(_, stored)| **stored).map(|(one, _)| &**one).collect();
        if stored.is_empty() {
            return Ok(answers);
        }
        failpoint!("outbox.message", called by caller);
        let mut messages = self.prepare(sending::SETTLE_MESSAGES[0])?;
        let states = messages.query_map([sending::message_rows(&stored)], |row| {
            Ok((parsed(row, 0, |id| id.parse().ok())?, parsed(row, 1, ItemState::parse)?))
        });
        let states: rusqlite::Result<HashMap<_, _>> = states.and_then(Iterator::collect);
        let gained = sending::gained(&stored, &states.map_err(classify_direct)?);
        failpoint!("trace.update", called by caller);
        self.store(&self.texts.trace, &merge(&gained.iter().collect::<Vec<_>>()))?;
        Ok(answers)
    }

    /// Runs a statement with rows as JSON.
    fn with_rows(&self, statement: &str, rows: &str) -> Result<()> {
        self.prepare(statement)?.execute([rows]).map(drop).map_err(classify_direct)
    }

    /// Runs a statement with rows as JSON; returns the ids that it returns.
    fn ids<T: FromStr>(&self, statement: &str, rows: &str) -> Result<Vec<T>> {
        let mut statement = self.prepare(statement)?;
        let ids = statement.query_map([rows], |row| parsed(row, 0, |id| id.parse().ok()));
        ids.and_then(Iterator::collect).map_err(classify_direct)
    }
}

/// A value that is stored as text.
fn parsed<T>(
    row: &rusqlite::Row<'_>,
    place: usize,
    parse: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text = row.get_ref(place)?.as_str()?;
    parse(text).ok_or_else(|| rusqlite::Error::InvalidColumnType(place, text.to_owned(), Type::Text))
}
