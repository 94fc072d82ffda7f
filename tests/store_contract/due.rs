//! Due times after a step of the clock.

use std::time::Duration;

use hub_core::{id::NodeId, store::due::Step};

use super::scene::{accept_one, stage};
use crate::support::database::{Db, START};

contract!("due": {
    what_waits_for_the_bots_of_a_node_moves_with_its_clock => [shift],
});

const HOUR: Duration = Duration::from_secs(3600);

async fn what_waits_for_the_bots_of_a_node_moves_with_its_clock(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let [node, other]: [NodeId; 2] = [db.ids.next(), db.ids.next()];
    let due_at = START + 3 * HOUR;
    db.sql(format!("UPDATE deliveries SET state = 'parked', due_at = {}", due_at.as_millis())).await;
    db.sql(format!("UPDATE bots SET lease_owner = '{node}'")).await;
    let step = Step { expected: START + 2 * HOUR, now: START, within: Duration::ZERO };
    for (node, expected) in [(other, due_at), (node, due_at - 2 * HOUR)] {
        commit!(db, |tx| tx.due().shift(node, step).await).unwrap();
        let stored = db.texts("SELECT CAST(due_at AS TEXT) FROM deliveries").await;
        assert_eq!(stored, [expected.as_millis().to_string()]);
    }
}
