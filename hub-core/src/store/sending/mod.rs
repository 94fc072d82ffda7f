//! Statements of the outbox's worker: open items, begun tries and their outcomes.

pub(super) mod immediate_send;
mod settle;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use hub_macros::FromRow;
pub use immediate_send::{Permit, SendAtOnce};
pub use settle::{ItemState, Settled};
pub(super) use settle::{
    gained, leading_outcomes, settle_items, settle_messages, settle_windows, settled_messages, windows,
};

use super::{
    batched_delete::{self, DeletedBatch, batch_end},
    conn::{Conn, dialects, sql},
    due::LONGEST_WAIT,
    leases::Lease,
    outbox::NewOutbound,
    rows::row,
};
use crate::{
    error::Result,
    id::{BotId, ChannelId, MediaId, MessageId, OutboxId, TraceId},
    network::WindowRules,
    secret::Sealed,
    text::json,
    time::Timestamp,
};

/// Statements of the outbox's worker, on a lent connection.
#[derive(Debug)]
pub struct Sending<'c>(pub(super) Conn<'c>);

/// An open item, with the window of its person.
#[derive(Debug, Clone, FromRow)]
#[row(table = "outbox")]
pub struct OpenItem {
    /// Id.
    pub id: OutboxId,
    /// Its message.
    pub message_id: MessageId,
    /// The message's trace.
    pub trace_id: Option<TraceId>,
    /// Names a reply of a delivery by that delivery; any other send is traced on its own.
    pub dedupe_key: String,
    /// The person.
    pub peer: String,
    /// Place in the message, from 0.
    pub part: i64,
    /// Items of the message.
    pub parts: i64,
    /// Id for the network.
    pub client_id: String,
    /// Text.
    pub text: String,
    /// The file it is, when it is one.
    pub media_id: Option<MediaId>,
    /// `queued`, or `sending` when a process died with it on the wire.
    pub state: ItemState,
    /// Tries made.
    pub attempts: i64,
    /// Attempts with an unknown outcome.
    pub unknowns: i64,
    /// Time of the next try.
    pub due_at: Timestamp,
    /// Time of expiry.
    pub expires_at: Timestamp,
    /// Sealed permission to answer: the person's newest.
    pub context_token: Option<Sealed>,
    /// The permission that the sender chose, sealed for the message.
    pub private: Option<Sealed>,
    /// Time at which the window opened.
    pub window_opened_at: Option<Timestamp>,
    /// Sends since it opened.
    pub window_sends: Option<i64>,
    /// Reason why the network closed the window.
    pub window_closed: Option<String>,
    /// Reason why it has not been sent yet.
    pub last_error: Option<String>,
    /// Times of recent sends to the person, as [`RecentSends`](crate::bots::pacing::RecentSends) reads them.
    pub recent_sends: Option<String>,
}

impl OpenItem {
    /// An item of a message as it is stored, without what is read of its person; `None` when there is none at this place.
    pub(crate) fn new(message: &NewOutbound, place: usize) -> Option<Self> {
        let part = message.parts.get(place)?;
        Some(Self {
            id: part.id,
            message_id: message.message_id,
            trace_id: message.trace_id,
            dedupe_key: message.dedupe_key.clone(),
            peer: message.peer.clone(),
            part: i64::try_from(place).unwrap_or(i64::MAX),
            parts: i64::try_from(message.parts.len()).unwrap_or(i64::MAX),
            client_id: part.client_id.clone(),
            text: part.text.clone(),
            media_id: part.file.as_ref().map(|file| file.id),
            state: ItemState::Queued,
            attempts: 0,
            unknowns: 0,
            due_at: message.now,
            expires_at: message.expires_at,
            context_token: None,
            private: message.private.clone(),
            window_opened_at: None,
            window_sends: None,
            window_closed: None,
            last_error: None,
            recent_sends: None,
        })
    }
}

/// A try that is about to be made.
#[derive(Debug, Clone)]
pub struct Begun {
    /// The lease under which it is made.
    pub lease: Lease,
    /// The item.
    pub id: OutboxId,
    /// The person.
    pub peer: String,
    /// Channels whose clients also see what the bot sends: the first try of a message enters it into their logs.
    pub shown_to: Vec<ChannelId>,
    /// Times of recent sends to the person, this try included.
    pub recent_sends: String,
    /// Time of the try.
    pub now: Timestamp,
}

impl Sending<'_> {
    /// Returns people with items to work on now, in the order of their ids after `after`. People who have to write
    /// first are included until an item records this reason; people whose first item is not due are not.
    pub async fn people(
        &mut self,
        bot_id: BotId,
        after: &str,
        rules: &WindowRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<String>> {
        failpoint!("outbox.people");
        let (oldest, sends) = limits(rules, now);
        sql!(self.0, values: PEOPLE; bot_id, now, oldest, sends, i64::from(limit), now + LONGEST_WAIT, after)
    }

    /// Reads the items to work on now for these people, in the order they were accepted: expired items, due items of
    /// people whose window is open unless an earlier item is not due, and items of other people that do not record
    /// yet why they wait.
    pub async fn open(
        &mut self,
        bot_id: BotId,
        people: &[String],
        rules: &WindowRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<OpenItem>> {
        failpoint!("outbox.open");
        let (oldest, sends) = limits(rules, now);
        sql!(self.0, all: OPEN[0], OPEN[1];
            bot_id, now, oldest, sends, i64::from(limit), now + LONGEST_WAIT, json(people))
    }

    /// Visits up to `limit` messages after the id `after`, and deletes those that were accepted before `before` and
    /// have no open delivery and no unsent part.
    pub async fn delete_messages_before(
        &mut self,
        after: &str,
        before: Timestamp,
        limit: u32,
    ) -> Result<DeletedBatch> {
        let bound = MessageId::first_at(before).to_string();
        let Some(last) = batched_delete::end(&mut self.0, DELETE_MESSAGES[0], after, &bound, limit).await?
        else {
            return Ok(DeletedBatch::default());
        };
        let deleted = sql!(self.0, execute: DELETE_MESSAGES[1], DELETE_MESSAGES[2]; after, &last, before)?;
        Ok(DeletedBatch { deleted, last: Some(last) })
    }
}

/// Returns the oldest time at which a person may have written last, and the limit of sends since.
fn limits(rules: &WindowRules, now: Timestamp) -> (Timestamp, i64) {
    (rules.age.map_or(Timestamp::MIN, |age| now - age), rules.sends.map_or(i64::MAX, i64::from))
}

/// Condition that the window of a contact `c` is open.
macro_rules! window_is_open {
    () => {
        "c.window_closed IS NULL AND c.window_opened_at > $3 AND c.window_sends < $4"
    };
}

/// Condition that an item is open, as the index of open items has it.
macro_rules! is_open {
    () => {
        "state IN ('queued', 'sending')"
    };
}

/// Condition that an item does not record why it waits: nothing was tried, or the error is of a try.
macro_rules! is_unexplained {
    ($item:literal) => {
        concat!(
            "(",
            $item,
            ".last_error IS NULL OR ",
            $item,
            ".state = 'sending' OR ",
            $item,
            ".due_at > ",
            $item,
            ".updated_at)"
        )
    };
}

/// The statement of [`Sending::people`]. It goes from one person with open items to the next by the index of these.
pub(super) const PEOPLE: &str = concat!(
    "WITH RECURSIVE people (id) AS (
       SELECT (SELECT peer FROM outbox WHERE bot_id = $1 AND ",
    is_open!(),
    " AND peer > $7 ORDER BY peer LIMIT 1)
       UNION ALL
       SELECT (SELECT peer FROM outbox WHERE bot_id = $1 AND ",
    is_open!(),
    " AND peer > people.id ORDER BY peer LIMIT 1) FROM people WHERE people.id IS NOT NULL)
    SELECT id FROM people WHERE id IS NOT NULL AND (
       EXISTS (SELECT 1 FROM outbox WHERE bot_id = $1 AND peer = people.id AND ",
    is_open!(),
    " AND expires_at <= $2)
       OR (EXISTS (SELECT 1 FROM contacts c WHERE c.bot_id = $1 AND c.user_id = people.id AND ",
    window_is_open!(),
    ") AND (SELECT due_at <= $2 OR due_at > $6 FROM outbox WHERE bot_id = $1 AND peer = people.id AND ",
    is_open!(),
    " ORDER BY id LIMIT 1))
       OR (EXISTS (SELECT 1 FROM outbox WHERE bot_id = $1 AND peer = people.id AND ",
    is_unexplained!("outbox"),
    " AND ",
    is_open!(),
    ") AND NOT EXISTS (SELECT 1 FROM contacts c WHERE c.bot_id = $1 AND c.user_id = people.id AND ",
    window_is_open!(),
    ")))
    LIMIT $5"
);

/// The statement of [`Sending::open`], on SQLite and on PostgreSQL. The people's items are found first: of `ORDER BY` with
/// `LIMIT` PostgreSQL may conclude that it is best to look through all items that were ever sent.
pub(super) const OPEN: [&str; 2] = dialects![
    "WITH o AS MATERIALIZED (SELECT * FROM outbox WHERE bot_id = $1 AND peer",
    in 7,
    " AND ",
    is_open!(),
    ") SELECT o.id, o.message_id, m.trace_id, m.dedupe_key, o.peer, o.part, o.parts, o.client_id, o.text, o.media_id,
       o.state, o.attempts, o.unknowns, o.due_at, o.expires_at, c.context_token, m.private, c.window_opened_at,
       c.window_sends, c.window_closed, o.last_error, c.recent_sends
    FROM o JOIN messages m ON m.id = o.message_id
    LEFT JOIN contacts c ON c.bot_id = o.bot_id AND c.user_id = o.peer
    WHERE o.expires_at <= $2 OR (",
    window_is_open!(),
    " AND NOT EXISTS (SELECT 1 FROM outbox h WHERE h.bot_id = o.bot_id AND h.peer = o.peer AND h.id <= o.id AND h.",
    is_open!(),
    " AND h.due_at > $2 AND h.due_at <= $6)) OR (",
    is_unexplained!("o"),
    " AND (",
    window_is_open!(),
    ") IS NOT TRUE)
    ORDER BY o.id LIMIT $5"
];

/// The messages that [`Sending::delete_messages_before`] deletes.
macro_rules! old_messages {
    () => {
        "SELECT m.id FROM messages m WHERE m.id > $1 AND m.id <= $2 AND m.created_at < $3
            AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.state IN ('pending', 'parked'))
            AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.message_id = m.id AND o.state IN ('queued', 'sending'))"
    };
}

/// The statements of [`Sending::delete_messages_before`]; the deletion on SQLite and on PostgreSQL, where it waits for
/// no other node.
pub(super) const DELETE_MESSAGES: [&str; 3] = [
    batch_end!("messages"),
    concat!("DELETE FROM messages WHERE id IN (", old_messages!(), ")"),
    concat!(
        "DELETE FROM messages WHERE id IN (",
        old_messages!(),
        " ORDER BY m.id FOR UPDATE OF m SKIP LOCKED)"
    ),
];

/// Returns for each command whether it is the one of its item that is stored: the one with the highest number, of
/// equal ones the first. A statement changes each row once, whatever it joins with.
fn leading<C>(commands: &[Arc<C>], number: impl Fn(&C) -> (OutboxId, i64)) -> Vec<bool> {
    let mut best: HashMap<OutboxId, (i64, usize)> = HashMap::new();
    for (place, command) in commands.iter().enumerate() {
        let (id, number) = number(command);
        let known = best.entry(id).or_insert((number, place));
        if number > known.0 {
            *known = (number, place);
        }
    }
    let leads = |(place, command): (usize, &Arc<C>)| best[&number(command).0].1 == place;
    commands.iter().enumerate().map(leads).collect()
}

/// Returns for each try whether it is stored if its item is open, and those that are.
pub(super) fn leading_tries(begun: &[Arc<Begun>]) -> (Vec<bool>, Vec<&Begun>) {
    let leading = leading(begun, |one| (one.id, one.lease.fence));
    let tries = begun.iter().zip(&leading).filter(|(_, leads)| **leads).map(|(one, _)| &**one);
    let tries = tries.collect();
    (leading, tries)
}

row!(Begun, |one| {
    Text item = one.id,
    Number fence = one.lease.fence,
    Number at = one.now,
});

/// Marks items as being sent before they are written to the network, out of these rows; those whose bot has another
/// holder, or that are not open any more, stay as they are. An item that a dead process left in `sending` counts as one
/// try with an unknown outcome.
pub(super) fn begin_items(rows: &str) -> String {
    format!(
        "UPDATE outbox SET state = 'sending', attempts = attempts + 1, updated_at = x.at,
            unknowns = unknowns + CASE WHEN state = 'sending' THEN 1 ELSE 0 END
         FROM {rows} WHERE outbox.id = x.item AND state IN ('queued', 'sending')
           AND EXISTS (SELECT 1 FROM bots b WHERE b.id = outbox.bot_id AND b.lease_fence = x.fence)"
    )
}

/// An item whose message is entered into a channel's log.
pub(super) struct LoggedItem {
    item: OutboxId,
    channel: ChannelId,
}

row!(LoggedItem, |row| {
    Text item = row.item,
    Text channel = row.channel,
});

/// Takes a number of a channel's log, out of one row, unless the message is in the log already.
pub(super) fn number_shown(rows: &str) -> String {
    format!(
        "UPDATE channels SET last_seq = last_seq + 1 FROM {rows} WHERE channels.id = x.channel AND NOT EXISTS (
            SELECT 1 FROM channel_log l JOIN outbox o ON o.message_id = l.message_id
            WHERE l.channel_id = x.channel AND o.id = x.item)"
    )
}

/// Enters a message under the number that [`number_shown`] took, out of one row.
pub(super) fn show(rows: &str) -> String {
    format!(
        "INSERT INTO channel_log (channel_id, seq, message_id)
         SELECT c.id, c.last_seq, o.message_id FROM {rows} JOIN channels c ON c.id = x.channel
         JOIN outbox o ON o.id = x.item"
    )
}

/// Entries of channel logs that follow from the tries that were begun.
pub(super) fn shown(begun: &[Arc<Begun>], answers: &[bool]) -> Vec<LoggedItem> {
    let begun = begun.iter().zip(answers).filter(|(_, begun)| **begun);
    begun
        .flat_map(|(one, _)| {
            one.shown_to.iter().map(|channel| LoggedItem { item: one.id, channel: *channel })
        })
        .collect()
}

/// Returns for each command whether it was stored.
pub(super) fn answers(
    stored: &[OutboxId],
    ids: impl Iterator<Item = OutboxId>,
    leading: Vec<bool>,
) -> Vec<bool> {
    ids.zip(leading).map(|(id, leads)| leads && stored.contains(&id)).collect()
}

/// Sends to one person.
pub(super) struct CountedSends<'b> {
    bot: BotId,
    person: &'b str,
    n: i64,
    recent: &'b str,
}

row!(CountedSends<'_>, |row| {
    Text bot = row.bot,
    Text person = row.person,
    Number n = row.n,
    Text recent = row.recent,
});

/// The tries that were begun, by their receivers.
pub(super) fn counted_sends<'b>(begun: &'b [Arc<Begun>], answers: &[bool]) -> Vec<CountedSends<'b>> {
    let mut counts: BTreeMap<(BotId, &str), (i64, &str)> = BTreeMap::new();
    for (one, _) in begun.iter().zip(answers).filter(|(_, begun)| **begun) {
        let (n, recent) = counts.entry((one.lease.bot_id, &one.peer)).or_default();
        (*n, *recent) = (*n + 1, &one.recent_sends);
    }
    counts.into_iter().map(|((bot, person), (n, recent))| CountedSends { bot, person, n, recent }).collect()
}

/// Counts sends in the windows of those who get them, out of these rows.
pub(super) fn count_sends(rows: &str) -> String {
    format!(
        "UPDATE contacts SET window_sends = window_sends + x.n, recent_sends = x.recent
         FROM {rows} WHERE bot_id = x.bot AND user_id = x.person"
    )
}
