//! Messages and what follows from them.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
};

use rusqlite::{OptionalExtension, params};

use super::Direct;
use crate::{
    error::Result,
    store::{
        app_events,
        fan_out::{self, Consequences},
        fault::classify_direct,
        inbox::{self, Accept, Accepted, CheckedBatches, Current, Seqs},
        media,
        rows::values,
        traces::NewTrace,
    },
};

impl Direct {
    pub(super) fn accept(&self, batches: &[Arc<Accept>], caller: &Weak<()>) -> Result<Vec<Accepted>> {
        if batches.is_empty() {
            return Ok(Vec::new());
        }
        let judged = self.judge(batches, caller)?;
        failpoint!("accept.messages", called by caller);
        let rows = judged.rows();
        let stored = self.store(insert_messages, &rows)?;
        let inserted: HashSet<_> =
            rows.iter().zip(stored).filter(|(_, stored)| *stored).map(|(row, _)| row.id).collect();
        failpoint!("accept.numbers", called by caller);
        let mut seqs = Seqs::new();
        let mut last =
            self.prepare("UPDATE channels SET last_seq = last_seq + ?2 WHERE id = ?1 RETURNING last_seq")?;
        for (channel, messages) in inbox::taken(&judged.valid, &inserted) {
            let count = i64::try_from(messages.len()).unwrap_or(0);
            let row = last.query_row(params![channel.text().as_str(), count], |row| row.get(0));
            if let Some(last) = row.optional().map_err(classify_direct)? {
                inbox::number(&mut seqs, channel, &messages, last);
            }
        }
        failpoint!("accept.work", called by caller);
        failpoint!("accept.rows", called by caller);
        let rows = Consequences::new(&judged.valid, &inserted, &seqs);
        self.store(insert_log, &rows.log)?;
        self.store(insert_deliveries, &rows.deliveries)?;
        self.store(insert_traces, &rows.traces)?;
        self.store(fan_out::update_contacts, &rows.contacts)?;
        self.store(fan_out::update_cursors, &rows.cursors)?;
        self.store(media::insert_inbound, &rows.files)?;
        self.store(app_events::insert, &rows.events)?;
        self.store(insert_event_deliveries, &rows.events)?;
        Ok(judged.answers(&inserted, &seqs))
    }

    /// Accepts or rejects each batch by its lease and by the revision of the channels' settings.
    pub(in crate::store::hot) fn judge<'b>(
        &self,
        batches: &'b [Arc<Accept>],
        caller: &Weak<()>,
    ) -> Result<CheckedBatches<'b>> {
        failpoint!("commit.accepts", called by caller);
        failpoint!("accept.leases", called by caller);
        let mut current = Current::new();
        let mut lease = self.prepare("SELECT lease_fence, config_rev FROM bots WHERE id = ?1")?;
        for bot in batches.iter().map(|batch| batch.bot_id) {
            let row = lease.query_row([bot.text().as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
            current.extend(row.optional().map_err(classify_direct)?.map(|row| (bot, row)));
        }
        Ok(CheckedBatches::new(batches, &current))
    }
}

pub(in crate::store::hot) fn insert_messages(rows: &str) -> String {
    format!("{} ON CONFLICT (bot_id, dedupe_key) DO NOTHING", inbox::insert_statement(rows))
}

pub(in crate::store::hot) fn insert_log(rows: &str) -> String {
    fan_out::insert_log("seq", rows)
}

pub(in crate::store::hot) fn insert_deliveries(rows: &str) -> String {
    fan_out::insert_deliveries("seq", rows)
}

/// Without the expression of the row: as the table has a trigger, SQLite would first write rows of a SELECT to a temporary
/// table.
pub(in crate::store::hot) fn insert_traces(_: &str) -> String {
    format!("INSERT INTO traces {}", values::<NewTrace>())
}

fn insert_event_deliveries(rows: &str) -> String {
    app_events::insert_deliveries(rows, "app_events")
}
