//! Replies that are sent as soon as they are stored: the commit that stores them also marks the first item as being sent
//! and counts it in its person's window, if nothing else waits for that person and the window is open. Otherwise
//! they wait in the outbox like everything else.

use std::collections::{HashMap, HashSet};

use hub_macros::FromRow;

use super::super::{
    conn::{Conn, sql},
    deliveries::Finished,
    outbox::NewOutbound,
};
use crate::{
    error::Result,
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
    /// When the person was last sent something, this send included.
    pub recent_sends: String,
    /// Whether the person must never have been sent anything before, since this process does not know of it.
    pub is_first: bool,
}

/// What an item that was marked is sent with.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Permit {
    /// Sealed permission to answer: the person's newest.
    pub context_token: Sealed,
    /// When the window opened.
    pub window_opened_at: Timestamp,
}

/// The items to send at once, by the deliveries that they answer.
pub type Permits = HashMap<DeliveryId, Permit>;

/// Counts a send to a person if it may be made now, and returns what it is made with.
pub(in crate::store) const COUNT_SEND: &str =
    "UPDATE contacts SET window_sends = window_sends + 1, recent_sends = $1
    WHERE bot_id = $2 AND user_id = $3 AND context_token IS NOT NULL AND window_closed IS NULL
      AND window_opened_at > $4 AND window_sends < $5 AND (NOT $6 OR recent_sends = '')
      AND NOT EXISTS (SELECT 1 FROM outbox o
         WHERE o.bot_id = $2 AND o.peer = $3 AND o.state IN ('queued', 'sending'))
    RETURNING context_token, window_opened_at";

/// The replies of outcomes that may be sent at once, with their conditions: of those that are new, the first to a person,
/// if it is the first of its delivery.
pub(in crate::store) fn candidates<'f>(
    finished: &[&'f Finished],
    new: &HashSet<MessageId>,
) -> Vec<(DeliveryId, &'f NewOutbound, &'f SendAtOnce)> {
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
                candidates.push((one.id, reply, condition));
            }
        }
    }
    candidates
}

/// Counts the sends that may be made now, before their items are stored.
pub(in crate::store) async fn count(
    conn: &mut Conn<'_>,
    candidates: &[(DeliveryId, &NewOutbound, &SendAtOnce)],
) -> Result<Permits> {
    let mut permits = Permits::new();
    for (delivery, reply, condition) in candidates {
        failpoint!("finish.window");
        let permit: Option<Permit> = sql!(*conn, optional: COUNT_SEND;
            &condition.recent_sends, reply.bot_id, &reply.peer, condition.wrote_after, condition.most_sends,
            condition.is_first
        )?;
        permits.extend(permit.map(|permit| (*delivery, permit)));
    }
    Ok(permits)
}

/// The messages whose first item is marked.
pub(in crate::store) fn begun(
    candidates: &[(DeliveryId, &NewOutbound, &SendAtOnce)],
    permits: &Permits,
) -> HashSet<MessageId> {
    let begun = candidates.iter().filter(|(delivery, ..)| permits.contains_key(delivery));
    begun.map(|(_, reply, _)| reply.message_id).collect()
}
