//! Sends to people: begun tries and their outcomes.

use std::sync::{Arc, Weak};

use rusqlite::types::Type;

use super::Direct;
use crate::{
    error::Result,
    id::OutboxId,
    store::sending::{self, Begun, ItemState, Settled},
};

impl Direct {
    pub(super) fn begin(&self, begun: &[Arc<Begun>], caller: &Weak<()>) -> Result<Vec<bool>> {
        if begun.is_empty() {
            return Ok(Vec::new());
        }
        failpoint!("outbox.begin", called by caller);
        let (leading, tries) = sending::leading_tries(begun);
        let marked = tries.iter().zip(self.store(sending::begin_items, &tries)?);
        let marked: Vec<OutboxId> = marked.filter(|(_, marked)| *marked).map(|(one, _)| one.id).collect();
        let answers = sending::answers(&marked, begun.iter().map(|one| one.id), leading);
        for shown in sending::shown(begun, &answers) {
            if self.store(sending::number_shown, &[&shown])? == [true] {
                self.store(sending::show, &[shown])?;
            }
        }
        failpoint!("outbox.window", called by caller);
        self.store(sending::count_sends, &sending::counted_sends(begun, &answers))?;
        Ok(answers)
    }

    pub(super) fn settle(&self, settled: &[Arc<Settled>], caller: &Weak<()>) -> Result<Vec<bool>> {
        if settled.is_empty() {
            return Ok(Vec::new());
        }
        failpoint!("outbox.settle", called by caller);
        let (leading, outcomes) = sending::leading_outcomes(settled);
        let stored = outcomes.iter().zip(self.store(sending::settle_items, &outcomes)?);
        let stored: Vec<OutboxId> = stored.filter(|(_, stored)| *stored).map(|(one, _)| one.id).collect();
        let answers = sending::answers(&stored, settled.iter().map(|one| one.id), leading);
        let stored: Vec<&Settled> =
            settled.iter().zip(&answers).filter(|(_, stored)| **stored).map(|(one, _)| &**one).collect();
        failpoint!("outbox.message", called by caller);
        let messages = sending::settled_messages(&stored);
        let states = self.returned(sending::settle_messages, &messages, |row| {
            Ok((parsed(row, 0, |id| id.parse().ok())?, parsed(row, 1, ItemState::parse)?))
        })?;
        self.store(sending::settle_windows, &sending::windows(&stored))?;
        let gained = sending::gained(&stored, &states.into_iter().collect());
        self.update_traces(&gained.iter().collect::<Vec<_>>(), caller)?;
        Ok(answers)
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
