//! Replies that are sent as soon as they are stored: the commit that stores them also marks the first item as being sent
//! and counts it in its person's window, if nothing else waits for that person and the window is open. Otherwise
//! they wait in the outbox like everything else.

use std::collections::{HashMap, HashSet};

use hub_macros::FromRow;

use super::super::{deliveries::Finished, outbox::NewOutbound, rows::row};
use crate::{
    id::{DeliveryId, MessageId},
    secret::Sealed,
    time::Timestamp,
};

/// On what condition the first item of a delivery's replies is marked as being sent when it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendAtOnce {
    /// The person wrote after this.
    pub wrote_after: Timestamp,
    /// Fewer sends than this were made since.
    pub most_sends: i64,
    /// Times of recent sends to the person, this send included.
    pub recent_sends: String,
    /// Whether the person must never have been sent anything before, since this process does not know of it.
    pub is_first: bool,
}

/// Data for sending an item that was marked.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Permit {
    /// Sealed permission to answer: the person's newest.
    pub context_token: Sealed,
    /// Time at which the window opened.
    pub window_opened_at: Timestamp,
}

/// The items to send at once, by the deliveries that they answer.
pub type Permits = HashMap<DeliveryId, Permit>;

/// A reply that may be sent at once, and on what condition.
#[derive(Debug)]
pub(in crate::store) struct Candidate<'f> {
    pub(in crate::store) delivery: DeliveryId,
    pub(in crate::store) reply: &'f NewOutbound,
    condition: &'f SendAtOnce,
}

row!(Candidate<'_>, |row| {
    Text message = row.reply.message_id,
    Text delivery = row.delivery,
    Text bot = row.reply.bot_id,
    Text person = row.reply.peer.as_str(),
    Text recent = row.condition.recent_sends.as_str(),
    Number wrote_after = row.condition.wrote_after,
    Number most_sends = row.condition.most_sends,
    Number is_first = i64::from(row.condition.is_first),
});

/// Counts a send to each person of these rows to whom one may be made now.
pub(in crate::store) fn count_send(rows: &str) -> String {
    format!(
        "UPDATE contacts SET window_sends = window_sends + 1, recent_sends = x.recent FROM {rows}
        WHERE contacts.bot_id = x.bot AND contacts.user_id = x.person AND context_token IS NOT NULL
          AND window_closed IS NULL AND window_opened_at > x.wrote_after AND window_sends < x.most_sends
          AND (x.is_first = 0 OR recent_sends = '')
          AND NOT EXISTS (SELECT 1 FROM outbox o
             WHERE o.bot_id = x.bot AND o.peer = x.person AND o.state IN ('queued', 'sending'))"
    )
}

/// Columns that [`count_send`] returns of the contact, as a [`Permit`].
pub(in crate::store) const PERMIT: &str = "RETURNING context_token, window_opened_at";

/// The replies of outcomes that may be sent at once: of those that are new, the first to a person, if it is the first of
/// its delivery.
pub(in crate::store) fn candidates<'f>(
    finished: &[&'f Finished],
    new: &[&NewOutbound],
) -> Vec<Candidate<'f>> {
    let new: HashSet<MessageId> = new.iter().map(|reply| reply.message_id).collect();
    let mut people = HashSet::new();
    let mut candidates = Vec::new();
    for one in finished {
        for (place, reply) in
            one.replies.iter().enumerate().filter(|(_, reply)| new.contains(&reply.message_id))
        {
            if people.insert((reply.bot_id, reply.peer.as_str()))
                && place == 0
                && let Some(condition) = &one.send_at_once
            {
                candidates.push(Candidate { delivery: one.id, reply, condition });
            }
        }
    }
    candidates
}
