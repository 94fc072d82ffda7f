//! Outcomes of deliveries.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
};

use super::{Direct, Statement};
use crate::{
    error::Result,
    secret::Sealed,
    store::{
        ai,
        deliveries::{self, Finished, Successes, count_statement, delete_statement, finish_statement},
        outbox::{self, NewOutbound},
        sending::{
            Permit,
            immediate_send::{self, PERMIT, Permits},
        },
        traces::{self, TraceUpdate, merge},
    },
    time::Timestamp,
};

impl Direct {
    /// Stores outcomes and what follows from them; returns the replies to send at once. An attempt under a lost lease
    /// stores nothing: the next holder attempts again. An outcome is stored once: if it arrives again because its commit was
    /// not acknowledged, the row may have changed since.
    pub(super) fn finish(&self, finished: &[Arc<Finished>], caller: &Weak<()>) -> Result<Permits> {
        if finished.is_empty() {
            return Ok(Permits::new());
        }
        failpoint!("commit.finished", called by caller);
        failpoint!("finish.state", called by caller);
        let (ended, others): (Vec<&Finished>, Vec<&Finished>) =
            finished.iter().map(|one| &**one).partition(|one| one.is_success());
        let mut stored = self.stored(delete_statement, ended)?;
        self.store(count_statement, &Successes::of(stored.iter().copied()))?;
        stored.extend(self.stored(finish_statement, others)?);
        failpoint!("finish.traces", called by caller);
        self.update_traces(&stored.iter().map(|one| &one.trace).collect::<Vec<_>>(), caller)?;
        let permits = self.enqueue_replies(&stored, caller)?;
        failpoint!("finish.health", called by caller);
        for health in stored.iter().filter_map(|one| one.health.as_ref()) {
            self.store(deliveries::raise_revisions, &[health])?;
            self.store(deliveries::note_health, &[health])?;
        }
        self.store(ai::add_usage, &stored.iter().filter_map(|one| one.usage.as_ref()).collect::<Vec<_>>())?;
        Ok(permits)
    }

    /// Runs a statement for each outcome; returns those for which it changed something.
    fn stored<'f>(&self, statement: Statement, outcomes: Vec<&'f Finished>) -> Result<Vec<&'f Finished>> {
        let stored = self.store(statement, &outcomes)?;
        Ok(outcomes.into_iter().zip(stored).filter(|(_, stored)| *stored).map(|(one, _)| one).collect())
    }

    pub(super) fn update_traces(&self, updates: &[&TraceUpdate], caller: &Weak<()>) -> Result<()> {
        failpoint!("trace.update", called by caller);
        self.store(update_traces, &merge(updates)).map(drop)
    }

    fn enqueue_replies(&self, finished: &[&Finished], caller: &Weak<()>) -> Result<Permits> {
        let replies: Vec<&NewOutbound> = finished.iter().flat_map(|one| &one.replies).collect();
        if replies.is_empty() {
            return Ok(Permits::new());
        }
        failpoint!("finish.replies", called by caller);
        failpoint!("enqueue.items", called by caller);
        let new = self.store(insert_replies, &outbox::message_rows(&replies))?;
        let new: Vec<&NewOutbound> =
            replies.into_iter().zip(new).filter(|(_, is_new)| *is_new).map(|(reply, _)| reply).collect();
        let (mut permits, mut begun) = (Permits::new(), HashSet::new());
        for candidate in immediate_send::candidates(finished, &new) {
            failpoint!("finish.window", called by caller);
            let (delivery, message) = (candidate.delivery, candidate.reply.message_id);
            for permit in self.returned(count_send, &[candidate], read_permit)? {
                permits.insert(delivery, permit);
                begun.insert(message);
            }
        }
        self.store(insert_parts, &outbox::part_rows(&new, &begun))?;
        let with_files: Vec<&NewOutbound> = new.into_iter().filter(|reply| reply.has_files()).collect();
        self.store(outbox::take_files, &outbox::part_rows(&with_files, &begun))?;
        Ok(permits)
    }
}

fn read_permit(row: &rusqlite::Row<'_>) -> rusqlite::Result<Permit> {
    let window_opened_at = Timestamp::from_millis(row.get(1)?);
    Ok(Permit { context_token: Sealed::from(row.get::<_, String>(0)?), window_opened_at })
}

pub(in crate::store::hot) fn update_traces(rows: &str) -> String {
    traces::update_traces(traces::SQLITE, rows)
}

fn insert_replies(rows: &str) -> String {
    outbox::insert_messages(rows, "")
}

fn insert_parts(rows: &str) -> String {
    outbox::insert_parts(rows, outbox::BEGUN)
}

fn count_send(rows: &str) -> String {
    format!("{} {PERMIT}", immediate_send::count_send(rows))
}
