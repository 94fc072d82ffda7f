//! Replays of messages whose deliveries have not ended: a replay adds no second open delivery of a message to the same
//! receiver. It is refused, or takes the place of deliveries that wait.

use std::collections::HashSet;

use super::replay::cancelled;
use crate::{
    error::Result,
    model::cause::Cause,
    store::{
        Tx,
        deliveries::{OpenDelivery, Replay},
    },
    time::Timestamp,
};

/// Replays that can be created, and those that cannot with the reasons.
#[derive(Debug, Default)]
pub(super) struct Admitted {
    pub(super) replays: Vec<Replay>,
    pub(super) refused: Vec<(Replay, String)>,
}

/// Decides which replays can be created next to these open deliveries of their messages. Those that wait do not count if
/// they are to be superseded.
pub(super) fn admit(replays: Vec<Replay>, open: &[OpenDelivery], supersede: bool) -> Admitted {
    let mut admitted = Admitted::default();
    let mut replayed = HashSet::new();
    for replay in replays {
        let obstacle = open.iter().find(|open| is_in_the_way(open, &replay) && (open.is_held || !supersede));
        let reason = if replayed.contains(&(replay.message_id, replay.channel_id)) {
            Some("another trace of the same message is replayed".to_owned())
        } else {
            obstacle.map(way_out)
        };
        if let Some(reason) = reason {
            admitted.refused.push((replay, reason));
        } else {
            replayed.insert((replay.message_id, replay.channel_id));
            admitted.replays.push(replay);
        }
    }
    admitted
}

/// As [`admit`], in the transaction that stores the replays: cancels the deliveries whose place they take.
pub(super) async fn make_way(
    tx: &mut Tx,
    replays: Vec<Replay>,
    supersede: bool,
    now: Timestamp,
) -> Result<Admitted> {
    let messages: Vec<_> = replays.iter().map(|replay| replay.message_id).collect();
    let mut deliveries = tx.deliveries();
    deliveries.lock_messages(&messages).await?;
    let open = deliveries.open_of(&messages).await?;
    let admitted = admit(replays, &open, supersede);
    let is_superseded = |open: &&OpenDelivery| admitted.replays.iter().any(|new| is_in_the_way(open, new));
    let superseded: Vec<_> = open.iter().filter(is_superseded).map(|open| open.id).collect();
    if superseded.is_empty() {
        return Ok(admitted);
    }
    let update = |trace| cancelled(trace, &Cause::Superseded, now);
    deliveries.abandon_waiting(&superseded, &Cause::Superseded.to_string(), now, update).await?;
    // A node may have loaded one of them since they were read.
    let open = deliveries.open_of(&messages).await?;
    let mut checked = admit(admitted.replays, &open, false);
    checked.refused.extend(admitted.refused);
    Ok(checked)
}

/// Whether a replay would deliver the message of an open delivery to the same receiver.
fn is_in_the_way(open: &OpenDelivery, replay: &Replay) -> bool {
    (open.message_id, open.channel_id, open.sink) == (replay.message_id, replay.channel_id, replay.sink)
        && open.goes_to(replay.target_url.as_deref())
}

/// Returns the reason why a replay cannot be created next to an open delivery, and the fix.
fn way_out(open: &OpenDelivery) -> String {
    let trace = open.trace_id;
    if open.is_held {
        format!(
            "the delivery of trace {trace} is in flight or has its turn in its lane; repeat the call when it has ended or is \
             parked"
        )
    } else {
        format!("the delivery of trace {trace} still waits; attempt it now, cancel it, or set supersede")
    }
}
