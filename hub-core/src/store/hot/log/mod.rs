//! The commit log of a SQLite file: what a commit of messages and outcomes would store in about thirty B-trees, it stores
//! in one row instead, and the tables follow ("flush") when a few dozen rows have gathered, after a second, or before
//! anything else is read or written. What ends before its flush is never stored as open: a delivery that worked at
//! the first attempt leaves its trace and a count. Under load the commit that fills the log flushes the oldest entries,
//! of which most has ended.
//!
//! A commit costs SQLite little per row and much per page, so small commits gain most by it. What is committed is in the
//! file, and the next process that opens the file flushes it: nothing depends on what is in memory here but the speed.
//!
//! Only the process that has claimed the file appends. Entries are applied in their order, by the statements that would
//! have stored their rows at once, so that the tables cannot tell the difference.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Weak,
};

use rusqlite::{OptionalExtension, params};

use self::entry::{Entry, Field, Kind, LastSeq, Outcome, Rows};
use super::{
    Direct, Hot, Written,
    sqlite::{accept, finish::update_traces},
};
use crate::{
    error::Result,
    id::{BotId, ChannelId},
    model::trace::DeliveryState,
    store::{
        deliveries::{Finished, Successes, count_statement, delete_statement, finish_statement},
        fan_out::{self, Consequences, ContactRow, CursorRow, DeliveryRow, LogRow},
        fault::classify_direct,
        inbox::{self, Accepted, MessageRow, Seqs},
        traces::{NewTrace, TraceUpdate},
    },
};

mod entry;
mod previous;

/// Rows of a log; a commit that reaches the limit flushes the oldest entries.
pub(in crate::store) const MOST_ROWS: usize = 4096;
/// Bytes of a log, with the same effect.
const MOST_BYTES: usize = 8 << 20;
/// Rows of a log whose flush costs little more per row than a larger one.
const ENOUGH_ROWS: usize = 64;

/// Entries of the file, as far as this process knows them.
#[derive(Debug, Default)]
pub(in crate::store) struct Tail {
    /// Number of the last entry, or 0. The file has another number after another process has flushed.
    last: i64,
    /// Entries of this process in order, each with its number of rows; they need not be read again.
    entries: VecDeque<(usize, Vec<u8>)>,
    /// Unique keys of the messages in the log, with their entries.
    messages: HashMap<(BotId, String), i64>,
    /// Last sequence numbers in the logs of channels.
    seqs: HashMap<ChannelId, i64>,
}

impl Tail {
    /// Whether its flush costs little more per row than a larger one.
    pub(in crate::store) fn is_long(&self) -> bool {
        self.size().0 >= ENOUGH_ROWS
    }

    pub(in crate::store) const fn is_empty(&self) -> bool {
        self.last == 0
    }

    /// After a commit whose outcome is unknown: the file has another last number, or none.
    pub(super) fn unknown() -> Self {
        Self { last: -1, ..Self::default() }
    }

    /// Its rows and bytes.
    fn size(&self) -> (usize, usize) {
        self.entries.iter().fold((0, 0), |(rows, bytes), (more, entry)| (rows + more, bytes + entry.len()))
    }

    /// Returns the number of oldest entries to flush.
    pub(super) fn excess(&self, most_rows: usize) -> usize {
        let (mut rows, mut bytes) = self.size();
        if rows < most_rows && bytes < MOST_BYTES {
            return 0;
        }
        let is_excess = |(fewer, entry): &&(usize, Vec<u8>)| {
            let is_excess = rows > kept(most_rows) || bytes > kept(MOST_BYTES);
            rows -= fewer;
            bytes -= entry.len();
            is_excess
        };
        self.entries.iter().take_while(is_excess).count()
    }

    /// Removes so many of the oldest entries.
    pub(super) fn remove(&mut self, count: usize) {
        self.entries.drain(..count);
        let removed = self.last - number(self.entries.len());
        self.messages.retain(|_, entry| *entry > removed);
    }
}

/// Amount that stays in a log that exceeded a limit. The more rows are flushed together, the more of them share a
/// page of an index in another order.
const fn kept(most: usize) -> usize {
    most / 2
}

/// Checks that this program can read an entry.
///
/// # Errors
/// `UNAVAILABLE` when it has neither this format nor the one before, or is corrupt.
pub(super) fn check(entry: Vec<u8>) -> Result<()> {
    Rows::default().read(&entry::current(entry)?)
}

impl Direct {
    /// The number of the last entry in the file, or 0.
    pub(super) fn last_entry(&self) -> Result<i64> {
        let mut last = self.prepare("SELECT COALESCE(MAX(id), 0) FROM commit_log")?;
        last.query_row([], |row| row.get(0)).map_err(classify_direct)
    }

    /// Whether these commands may be appended to a log of so many rows. What replies and sends change is read
    /// immediately, and so are messages that some clients wait for: the entry would only be an additional write. The
    /// same applies to a commit of many rows.
    pub(super) fn may_append(&self, hot: &Hot, most_rows: usize) -> Result<bool> {
        let messages = hot.accepts.iter().map(|batch| batch.messages.len());
        let fits = messages.sum::<usize>() + hot.finished.len() <= most_rows / 4
            && hot.begun.is_empty()
            && hot.settled.is_empty()
            && hot.accepts.iter().all(|batch| !batch.is_read_at_once && batch.is_texts())
            && hot
                .finished
                .iter()
                .all(|one| one.replies.is_empty() && one.health.is_none() && one.usage.is_none());
        Ok(fits && self.last_entry()? == self.tail.last)
    }

    /// Stores commands as an entry, in a transaction that has begun; returns the log's tail after it.
    pub(super) fn append(&mut self, hot: &Hot, caller: &Weak<()>) -> Result<(Written, Tail)> {
        let mut tail = std::mem::replace(&mut self.tail, Tail::unknown());
        tail.last += 1;
        let mut entry = Entry::new();
        let (accepted, mut rows) = self.append_messages(hot, &mut entry, &mut tail, caller)?;
        if !hot.finished.is_empty() {
            failpoint!("commit.finished", called by caller);
            failpoint!("finish.state", called by caller);
            failpoint!("finish.traces", called by caller);
            entry.push(Kind::Finished, &hot.finished.iter().map(|one| &**one).collect::<Vec<_>>());
            entry.push(Kind::Outcome, &hot.finished.iter().map(|one| Outcome(one)).collect::<Vec<_>>());
            entry.push(Kind::TraceUpdate, &hot.finished.iter().map(|one| &one.trace).collect::<Vec<_>>());
            rows += hot.finished.len();
        }
        let mut insert = self.prepare("INSERT INTO commit_log (id, entry) VALUES (?1, ?2)")?;
        insert.execute(params![tail.last, entry.0]).map_err(classify_direct)?;
        tail.entries.push_back((rows, entry.0));
        Ok((Written { accepted, ..Written::default() }, tail))
    }

    /// Appends the messages; also returns the number of new ones.
    fn append_messages(
        &self,
        hot: &Hot,
        entry: &mut Entry,
        tail: &mut Tail,
        caller: &Weak<()>,
    ) -> Result<(Vec<Accepted>, usize)> {
        if hot.accepts.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let judged = self.judge(&hot.accepts, caller)?;
        failpoint!("accept.messages", called by caller);
        let mut inserted = HashSet::new();
        let mut rows = judged.rows();
        let mut stored =
            self.prepare("SELECT EXISTS (SELECT 1 FROM messages WHERE bot_id = ?1 AND dedupe_key = ?2)")?;
        for row in &rows {
            let key = (row.bot_id, row.dedupe_key.clone());
            let bot = row.bot_id.text();
            let of_bot = params![bot.as_str(), row.dedupe_key];
            if !tail.messages.contains_key(&key)
                && !stored.query_row(of_bot, |row| row.get(0)).map_err(classify_direct)?
            {
                inserted.insert(row.id);
                tail.messages.insert(key, tail.last);
            }
        }
        rows.retain(|row: &&MessageRow| inserted.contains(&row.id));
        failpoint!("accept.numbers", called by caller);
        let mut seqs = Seqs::new();
        let mut numbered = Vec::new();
        let mut stored = self.prepare("SELECT last_seq FROM channels WHERE id = ?1")?;
        for (channel, messages) in inbox::taken(&judged.valid, &inserted) {
            let last = stored.query_row([channel.text().as_str()], |row| row.get(0));
            if let Some(stored) = last.optional().map_err(classify_direct)? {
                let last =
                    tail.seqs.get(&channel).copied().unwrap_or(stored).max(stored) + number(messages.len());
                inbox::number(&mut seqs, channel, &messages, last);
                numbered.push(LastSeq { channel, last });
                tail.seqs.insert(channel, last);
            }
        }
        failpoint!("accept.work", called by caller);
        failpoint!("accept.rows", called by caller);
        let follows = Consequences::new(&judged.valid, &inserted, &seqs);
        entry.push(Kind::Message, &rows);
        entry.push(Kind::Log, &follows.log);
        entry.push(Kind::Delivery, &follows.deliveries);
        entry.push(Kind::Trace, &follows.traces);
        entry.push(Kind::Contact, &follows.contacts);
        entry.push(Kind::Cursor, &follows.cursors);
        entry.push(Kind::LastSeq, &numbered);
        Ok((judged.answers(&inserted, &seqs), rows.len()))
    }

    /// Stores all entries in the tables, in a transaction that has begun.
    pub(super) fn flush_all(&self, caller: &Weak<()>) -> Result<()> {
        let last = self.last_entry()?;
        if last == self.tail.last {
            return self.flush_entries(&self.tail, self.tail.entries.len(), caller);
        }
        let mut entries = self.prepare("SELECT entry FROM commit_log ORDER BY id")?;
        let entries = entries.query_map([], |row| row.get(0)).map_err(classify_direct)?;
        let read =
            |stored: rusqlite::Result<Vec<u8>>| Ok((0, entry::current(stored.map_err(classify_direct)?)?));
        let entries = entries.map(read).collect::<Result<VecDeque<_>>>()?;
        let count = entries.len();
        self.flush_entries(&Tail { last, entries, ..Tail::default() }, count, caller)
    }

    /// Stores the oldest `count` entries in the tables and deletes them, in a transaction that has begun.
    pub(super) fn flush_entries(&self, tail: &Tail, count: usize, caller: &Weak<()>) -> Result<()> {
        failpoint!("flush.entries", called by caller);
        let (mut rows, mut later) = (Rows::default(), Rows::default());
        for (place, (_, entry)) in tail.entries.iter().enumerate() {
            if place < count {
                rows.read(entry)?;
            } else {
                later.read_outcomes(entry)?;
            }
        }
        let mut ended = Ended::at_once(&rows, &later);
        self.store_fields(&self.text::<MessageRow>(accept::insert_messages), rows.of(Kind::Message))?;
        self.store_fields(&self.text::<LogRow<'_>>(accept::insert_log), rows.of(Kind::Log))?;
        let open = rows.of(Kind::Delivery).filter(|row| !ended.deliveries.contains(row[0].as_str()));
        self.store_fields(&self.text::<DeliveryRow<'_>>(accept::insert_deliveries), open)?;
        let insert_trace = self.text::<NewTrace>(accept::insert_traces);
        for trace in rows.of(Kind::Trace) {
            match ended.traces.get(trace[0].as_str()) {
                Some(update) => {
                    let steps = joined_steps(trace, update);
                    self.store_fields(
                        &insert_trace,
                        std::iter::once(&ended_trace(trace, update, &steps)[..]),
                    )?
                }
                None => self.store_fields(&insert_trace, std::iter::once(trace))?,
            };
        }
        let update_contacts = self.text::<ContactRow<'_>>(fan_out::update_contacts);
        self.store_fields(&update_contacts, rows.of(Kind::Contact))?;
        let update_cursors = self.text::<CursorRow<'_>>(fan_out::update_cursors);
        self.store_fields(&update_cursors, last_cursors(&rows).values().map(Vec::as_slice))?;
        self.store_fields(
            "UPDATE channels SET last_seq = MAX(last_seq, ?2) WHERE id = ?1",
            last_seqs(&rows).values().copied(),
        )?;
        failpoint!("flush.outcomes", called by caller);
        self.flush_outcomes(&rows, &later, &mut ended)?;
        failpoint!("flush.delete", called by caller);
        let mut delete = self.prepare("DELETE FROM commit_log WHERE id <= ?1")?;
        let last = tail.last - number(tail.entries.len() - count);
        delete.execute([last]).map(drop).map_err(classify_direct)
    }

    /// Stores outcomes, except those that `ended` covers. `later` outcomes are stored with their own entries, which
    /// find no open row for those that ended a delivery or trace here.
    fn flush_outcomes(&self, rows: &Rows<'_>, later: &Rows<'_>, ended: &mut Ended<'_, '_>) -> Result<()> {
        let [success, outcome_text] =
            [delete_statement, finish_statement].map(|text| self.text::<Finished>(text));
        let update_trace = self.text::<TraceUpdate>(update_traces);
        let mut successes: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for (is_later, finished, outcome, trace) in outcomes(rows, later) {
            let is_success = is_success(finished);
            if !(is_success && ended.deliveries.remove(finished[0].as_str())) {
                if is_later {
                    continue;
                }
                let statement = if is_success { &success } else { &outcome_text };
                if self.store_fields(statement, std::iter::once(finished))? == 0 {
                    continue;
                }
                self.store_fields(&update_trace, std::iter::once(trace))?;
            } else if ended.traces.get(trace[0].as_str()).is_none_or(|own| !std::ptr::eq(*own, trace)) {
                self.store_fields(&update_trace, std::iter::once(trace))?;
            }
            if is_success {
                let (count, last) = successes.entry(outcome[0].as_str()).or_default();
                *count += 1;
                *last = outcome[1].as_number().max(*last);
            }
        }
        let counts: Vec<[Field<'_>; 3]> = successes
            .into_iter()
            .map(|(channel, (count, last))| [Field::Text(channel), Field::Number(count), Field::Number(last)])
            .collect();
        self.store_fields(&self.text::<Successes>(count_statement), counts.iter().map(<[_; 3]>::as_slice))
            .map(drop)
    }

    /// Runs a statement for each row; returns how many rows of tables it changed.
    fn store_fields<'r>(
        &self,
        statement: &str,
        rows: impl Iterator<Item = &'r [Field<'r>]>,
    ) -> Result<usize> {
        let mut statement = self.prepare(statement)?;
        let mut store = |row: &[Field<'_>]| statement.execute(rusqlite::params_from_iter(row));
        rows.map(|row| store(row).map_err(classify_direct)).sum()
    }
}

/// Iterates over the outcomes in two parts of the log: whether it is in the second part, the outcome, its count, and
/// the update of its trace.
fn outcomes<'e, 'r>(
    rows: &'r Rows<'e>,
    later: &'r Rows<'e>,
) -> impl Iterator<Item = (bool, &'r [Field<'e>], &'r [Field<'e>], &'r [Field<'e>])> {
    [(false, rows), (true, later)].into_iter().flat_map(|(is_later, rows)| {
        let finished = rows.of(Kind::Finished).zip(rows.of(Kind::Outcome)).zip(rows.of(Kind::TraceUpdate));
        finished.map(move |((finished, outcome), trace)| (is_later, finished, outcome, trace))
    })
}

/// Deliveries and traces that begin and end within the log.
struct Ended<'e, 'r> {
    /// Deliveries whose first attempt succeeded on the node that held them from the beginning.
    deliveries: HashSet<&'e str>,
    /// Traces of these deliveries without other open deliveries, with the update that ends them.
    traces: HashMap<&'e str, &'r [Field<'e>]>,
}

impl<'e, 'r> Ended<'e, 'r> {
    /// Collects what begins in `rows` and has ended. An outcome in `later` counts only if it also ends its trace: the
    /// steps of a trace are in the order of the log.
    fn at_once(rows: &'r Rows<'e>, later: &'r Rows<'e>) -> Self {
        let (claim, fence) = (Kind::Delivery.place("claim"), Kind::Finished.place("fence"));
        let attempts = Kind::Finished.place("attempts");
        let (open, ended) = (Kind::Trace.place("open_sinks"), Kind::TraceUpdate.place("ended"));
        let holders = rows.of(Kind::Delivery).map(|row| (row[0].as_str(), row[claim].as_number()));
        let mut holders: HashMap<&str, i64> = holders.collect();
        let sinks = rows.of(Kind::Trace).map(|row| (row[0].as_str(), row[open].as_number()));
        let sinks: HashMap<&str, i64> = sinks.collect();
        let (mut deliveries, mut traces) = (HashSet::new(), HashMap::new());
        for (is_later, row, _, update) in outcomes(rows, later) {
            let (delivery, trace) = (row[0].as_str(), update[0].as_str());
            let is_held = holders.remove(delivery) == Some(row[fence].as_number());
            let is_whole = sinks.get(trace) == Some(&update[ended].as_number());
            if is_held && is_success(row) && row[attempts].as_number() == 1 && (is_whole || !is_later) {
                deliveries.insert(delivery);
                if is_whole {
                    traces.entry(trace).or_insert(update);
                }
            }
        }
        Self { deliveries, traces }
    }
}

/// A trace and the only update of it, as [`update_traces`](crate::store::traces::update_traces) would store it.
fn ended_trace<'e>(trace: &[Field<'e>], update: &[Field<'e>], steps: &'e [u8]) -> Vec<Field<'e>> {
    let new = |column| update[Kind::TraceUpdate.place(column)];
    let mut row = trace.to_vec();
    let mut set = |column, value: Field<'e>| {
        if value != Field::Null {
            row[Kind::Trace.place(column)] = value;
        }
    };
    let old = |column| trace[Kind::Trace.place(column)].as_number();
    let duration = new("ended_at").as_number() - old("started_at");
    set("status", new("status"));
    set("open_sinks", Field::Number(0));
    set("summary", new("summary"));
    set("attempts", new("attempts"));
    set("duration_ms", Field::Number(old("duration_ms").max(duration)));
    set("packed_steps", Field::Bytes(steps));
    row
}

fn joined_steps(trace: &[Field<'_>], update: &[Field<'_>]) -> Vec<u8> {
    let steps = trace[Kind::Trace.place("packed_steps")].as_bytes();
    [steps, update[Kind::TraceUpdate.place("steps")].as_bytes()].concat()
}

/// Returns the last cursor of each bot after all entries.
fn last_cursors<'e>(rows: &Rows<'e>) -> BTreeMap<&'e str, Vec<Field<'e>>> {
    let mut last: BTreeMap<&str, Vec<Field<'_>>> = BTreeMap::new();
    for row in rows.of(Kind::Cursor) {
        let kept = last.entry(row[0].as_str()).or_insert_with(|| row.to_vec());
        for (kept, new) in kept.iter_mut().zip(row).filter(|(_, new)| **new != Field::Null) {
            *kept = *new;
        }
    }
    last
}

/// The last number of each channel after all entries.
fn last_seqs<'e, 'r>(rows: &'r Rows<'e>) -> BTreeMap<&'e str, &'r [Field<'e>]> {
    rows.of(Kind::LastSeq).map(|row| (row[0].as_str(), row)).collect()
}

fn is_success(finished: &[Field<'_>]) -> bool {
    finished[Kind::Finished.place("state")].as_str() == DeliveryState::Done.as_str()
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(0)
}
