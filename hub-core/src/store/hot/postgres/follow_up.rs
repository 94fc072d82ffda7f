//! Statements that read rows of the large statement, after it and in its transaction.

use std::{collections::HashSet, sync::Arc};

use super::Hot;
use crate::{
    error::Result,
    id::{DeliveryId, MessageId, OutboxId},
    store::{
        ai,
        conn::Conn,
        deliveries::{self, Finished},
        rows,
        sending::{self, Begun, ItemState, Settled},
        traces,
    },
};

/// Whether a batch needs one of these statements.
pub(super) fn is_needed(hot: &Hot) -> bool {
    !hot.begun.is_empty()
        || hot.finished.iter().any(|one| one.health.is_some() || one.usage.is_some())
        || hot.settled.iter().any(|one| !one.is_whole())
}

/// Stores what attempts showed of webhooks and what they cost, of the outcomes that were stored.
pub(super) async fn note(
    conn: &mut Conn<'_>,
    finished: &[Arc<Finished>],
    stored: &HashSet<DeliveryId>,
) -> Result<()> {
    failpoint!("finish.health");
    for one in finished.iter().filter(|one| stored.contains(&one.id)) {
        if let Some(health) = &one.health {
            rows::run(conn, &[health], deliveries::raise_revisions).await?;
            rows::run(conn, &[health], deliveries::note_health).await?;
        }
        if let Some(usage) = &one.usage {
            rows::run(conn, &[usage], ai::add_usage).await?;
        }
    }
    Ok(())
}

/// Marks items as being sent and counts the sends; returns `false` for an item that is not sent.
pub(super) async fn begin(conn: &mut Conn<'_>, begun: &[Arc<Begun>]) -> Result<Vec<bool>> {
    if begun.is_empty() {
        return Ok(Vec::new());
    }
    failpoint!("outbox.begin");
    let (leading, tries) = sending::leading_tries(begun);
    let begin = |rows: &str| format!("{} RETURNING outbox.id", sending::begin_items(rows));
    let marked: Vec<OutboxId> = rows::returning(conn, &tries, begin).await?;
    let answers = sending::answers(&marked, begun.iter().map(|one| one.id), leading);
    // Channels before contacts, as where messages are accepted: two nodes never wait for each other.
    for shown in sending::shown(begun, &answers) {
        let number = |rows: &str| format!("{} RETURNING channels.last_seq", sending::number_shown(rows));
        let numbered: Vec<(i64,)> = rows::all(conn, &[&shown], number).await?;
        if !numbered.is_empty() {
            rows::run(conn, &[shown], sending::show).await?;
        }
    }
    failpoint!("outbox.window");
    rows::run(conn, &sending::counted_sends(begun, &answers), sending::count_sends).await?;
    Ok(answers)
}

/// Stores outcomes of tries; returns the items for which that was done.
pub(super) async fn settle(conn: &mut Conn<'_>, outcomes: &[&Settled]) -> Result<Vec<OutboxId>> {
    if outcomes.is_empty() {
        return Ok(Vec::new());
    }
    failpoint!("outbox.settle");
    let settle = |rows: &str| format!("{} RETURNING outbox.id", sending::settle_items(rows));
    let items: Vec<OutboxId> = rows::returning(conn, outcomes, settle).await?;
    let stored: Vec<&Settled> = outcomes.iter().copied().filter(|one| items.contains(&one.id)).collect();
    failpoint!("outbox.message");
    let messages = sending::settled_messages(&stored);
    let states: Vec<(MessageId, ItemState)> = rows::all(conn, &messages, sending::settle_messages).await?;
    for window in sending::windows(&stored) {
        rows::run(conn, &[window], sending::settle_windows).await?;
    }
    let gained = sending::gained(&stored, &states.into_iter().collect());
    traces::update(conn, &gained.iter().collect::<Vec<_>>()).await?;
    Ok(items)
}
