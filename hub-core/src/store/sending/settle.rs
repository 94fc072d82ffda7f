//! Outcomes of tries: the resulting states of items, messages and windows.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    super::{
        due::{Stamp, Step},
        rows::row,
        traces::TraceUpdate,
    },
    leading,
};
use crate::{
    id::{BotId, MessageId, OutboxId},
    model::trace::TraceStatus,
    time::Timestamp,
    words::words,
};

words! {
    /// State of an item.
    pub enum ItemState {
        /// Waits for another try.
        Queued = "queued",
        /// It is being sent, or a process ended while it was.
        Sending = "sending",
        /// The network has it and gave it an id.
        Sent = "sent",
        /// The network took it and gave no id.
        Unconfirmed = "unconfirmed",
        /// It will never be taken.
        Failed = "failed",
        /// Unknown, and not retried.
        Unknown = "unknown",
        /// It waited too long.
        Expired = "expired",
    }
}

/// The outcome of a try, to be stored.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The item.
    pub id: OutboxId,
    /// Its message.
    pub message_id: MessageId,
    /// The bot.
    pub bot_id: BotId,
    /// Number of items of the message.
    pub parts: i64,
    /// The person.
    pub peer: String,
    /// Tries begun so far, this one included: an outcome is stored only until another try begins, on any node.
    pub attempts: i64,
    /// Opening time of the window in which it was tried: the outcome does not affect a later window.
    pub window_opened_at: Option<Timestamp>,
    /// New state.
    pub state: ItemState,
    /// Time of the next try.
    pub due_at: Timestamp,
    /// Whether the outcome of this attempt is unknown.
    pub unknown: bool,
    /// Whether the send is subtracted from the window's count: it never reached the network.
    pub uncount: bool,
    /// Error of the try.
    pub error: Option<String>,
    /// The network's id.
    pub network_id: Option<String>,
    /// Reason why the network closed the person's window.
    pub close_window: Option<String>,
    /// Time of the next try, for the trace.
    pub next_attempt_at: Option<Timestamp>,
    /// Time of the outcome, and the clock that determined `due_at`.
    pub stamp: Stamp,
    /// Change of the trace.
    pub trace: Option<TraceUpdate>,
}

impl Settled {
    /// Whether it affects the person's window.
    fn moves_window(&self) -> bool {
        self.uncount || self.close_window.is_some()
    }

    /// Whether it completes the sending of its message, so that no other row has to be read.
    pub(in crate::store) fn is_whole(&self) -> bool {
        !self.moves_window() && self.parts == 1 && self.state == ItemState::Sent && self.error.is_none()
    }

    /// Moves its times along with a step of the clock by which they were determined.
    pub(crate) fn follow(&mut self, step: Step) {
        self.due_at = step.moved(self.due_at);
        self.stamp.read.wall = step.moved(self.stamp.read.wall);
    }
}

/// Returns the changes of traces by outcomes, once the messages have these states.
pub(in crate::store) fn gained(
    stored: &[&Settled],
    messages: &HashMap<MessageId, ItemState>,
) -> Vec<TraceUpdate> {
    let gained = |one: &&Settled| {
        let mut trace = one.trace.clone()?;
        let is_whole =
            matches!(messages.get(&one.message_id), Some(ItemState::Sent | ItemState::Unconfirmed));
        if trace.status == Some(TraceStatus::Ok) && !is_whole {
            // An earlier part never arrived: the last one does not make the message whole.
            (trace.status, trace.summary) = (None, None);
        }
        Some(trace)
    };
    stored.iter().filter_map(gained).collect()
}

/// Returns whether each command is stored, and the outcomes that are.
pub(in crate::store) fn leading_outcomes(settled: &[Arc<Settled>]) -> (Vec<bool>, Vec<&Settled>) {
    let leading = leading(settled, |one| (one.id, one.attempts));
    let outcomes = settled.iter().zip(&leading).filter(|(_, leads)| **leads).map(|(one, _)| &**one);
    let outcomes = outcomes.collect();
    (leading, outcomes)
}

row!(Settled, |one| {
    Text item = one.id,
    Number tries = one.attempts,
    Text now_is = one.state.as_str(),
    Number due = one.due_at,
    Text error = one.error.as_deref(),
    Text network = one.network_id.as_deref(),
    Number unknown = i64::from(one.unknown),
    Number at = one.stamp.read.wall,
});

/// Stores the states of items, out of these rows. An item is stored as expired only once its expiry has passed by the
/// clock of its times.
pub(in crate::store) fn settle_items(rows: &str) -> String {
    format!(
        "UPDATE outbox SET state = x.now_is, due_at = x.due, last_error = x.error,
           network_id = COALESCE(x.network, network_id), unknowns = unknowns + x.unknown, updated_at = x.at
        FROM {rows} WHERE outbox.id = x.item AND attempts = x.tries AND state IN ('queued', 'sending')
          AND (x.now_is <> 'expired' OR expires_at <= x.at)"
    )
}

/// A message of which items were tried: its first network id and its last error.
pub(in crate::store) struct SettledMessage<'a> {
    message: MessageId,
    network: Option<&'a str>,
    error: Option<&'a str>,
}

row!(SettledMessage<'_>, |row| {
    Text message = row.message,
    Text network = row.network,
    Text error = row.error,
});

/// The messages of these outcomes.
pub(in crate::store) fn settled_messages<'a>(settled: &[&'a Settled]) -> Vec<SettledMessage<'a>> {
    let mut rows: BTreeMap<MessageId, SettledMessage<'_>> = BTreeMap::new();
    for one in settled {
        let message = one.message_id;
        let row = rows.entry(message).or_insert(SettledMessage { message, network: None, error: None });
        row.network = row.network.or(one.network_id.as_deref());
        row.error = one.error.as_deref().or(row.error);
    }
    rows.into_values().collect()
}

/// Stores the states of messages, out of these rows; returns the states. A message is open while an item is, and
/// otherwise has the state of its worst item.
pub(in crate::store) fn settle_messages(rows: &str) -> String {
    format!(
        "UPDATE messages SET network_id = COALESCE(network_id, x.network),
            status_reason = CASE WHEN x.error IS NULL AND NOT EXISTS (
                SELECT 1 FROM outbox o WHERE o.message_id = messages.id AND o.state <> 'sent')
                THEN NULL ELSE COALESCE(x.error, status_reason) END,
            status = (SELECT CASE
                WHEN COUNT(CASE WHEN o.state IN ('queued', 'sending') THEN 1 END) > 0 THEN 'queued'
                WHEN COUNT(CASE WHEN o.state = 'failed' THEN 1 END) > 0 THEN 'failed'
                WHEN COUNT(CASE WHEN o.state = 'expired' THEN 1 END) > 0 THEN 'expired'
                WHEN COUNT(CASE WHEN o.state = 'unknown' THEN 1 END) > 0 THEN 'unknown'
                WHEN COUNT(CASE WHEN o.state = 'unconfirmed' THEN 1 END) > 0 THEN 'unconfirmed'
                ELSE 'sent' END FROM outbox o WHERE o.message_id = messages.id)
         FROM {rows} WHERE messages.id = x.message RETURNING id, status"
    )
}

/// The effect of a try on the person's window.
pub(in crate::store) struct WindowChange<'a>(&'a Settled);

row!(WindowChange<'_>, |row| {
    Text bot = row.0.bot_id,
    Text person = row.0.peer.as_str(),
    Number opened = row.0.window_opened_at,
    Text closed = row.0.close_window.as_deref(),
    Number uncounted = i64::from(row.0.uncount),
});

/// The effects of these outcomes on windows; few have one.
pub(in crate::store) fn windows<'a>(settled: &[&'a Settled]) -> Vec<WindowChange<'a>> {
    settled.iter().filter(|one| one.moves_window()).map(|one| WindowChange(one)).collect()
}

/// Stores the effect of a try on the person's window, out of one row.
pub(in crate::store) fn settle_windows(rows: &str) -> String {
    format!(
        "UPDATE contacts SET window_closed = COALESCE(x.closed, window_closed),
            window_sends = CASE WHEN window_sends > 0 THEN window_sends - x.uncounted ELSE 0 END
         FROM {rows} WHERE bot_id = x.bot AND user_id = x.person
           AND COALESCE(window_opened_at, 0) = COALESCE(x.opened, 0)"
    )
}
