//! Plans of PostgreSQL for a large commit: the number of rows is that of outcomes and replies, and no row is compared
//! with all others.
//!
//! PostgreSQL expects ten rows of any bound array. It may join two arrays by a nested loop, whose cost grows with the
//! square of the commit. The plans that it logs show this.

use std::sync::Arc;

use futures_util::future::join_all;
use hub_core::{
    id::{DeliveryId, TraceId},
    store::{
        deliveries::{DeliveryState, Finished},
        due::{Reading, Stamp},
        inbox::AcceptMessage,
        sending::SendAtOnce,
    },
    time::Clock,
};

use super::{
    deliveries::finished,
    scene::{Stage, batch, message, outbound, stage, taken},
};
use crate::support::{
    database::{Db, START},
    logged_plans::{LOGS_PLANS, number, plans},
    postgres::Server,
};

/// Outcomes of a commit.
const ROWS: usize = 120;

/// Messages of as many people, each with a delivery.
async fn accept(db: &Db, on: &Stage, round: usize) -> Vec<(String, DeliveryId, TraceId)> {
    let (messages, deliveries): (Vec<AcceptMessage>, Vec<_>) = (0..ROWS)
        .map(|number| {
            let (person, key) = (format!("person {number}"), format!("{round}-{number}"));
            let new = message(db, on.bot, &person, &key, &key);
            let (message, delivery) = taken(db, new, on.channel, on.lease.fence);
            let trace = message.routes[0].trace.id;
            (message, (person, delivery, trace))
        })
        .unzip();
    db.store.accept(batch(&on.lease, None, messages)).await.unwrap();
    deliveries
}

/// Their outcomes, each with a reply. The first is stored alone, and those that come meanwhile in one commit.
async fn finish(db: &Db, on: &Stage, round: usize, deliveries: Vec<(String, DeliveryId, TraceId)>) {
    let outcomes = deliveries.into_iter().map(|(person, id, trace)| {
        let read = Reading { at: Clock::system().instant(), wall: db.store.now() };
        Finished {
            stamp: Stamp { read, followed: None },
            replies: vec![outbound(db, on.bot, &person, &format!("re {round} {person}"), &["text"])],
            send_at_once: Some(SendAtOnce {
                wrote_after: START - std::time::Duration::from_secs(3600),
                most_sends: 9,
                recent_sends: "1".to_owned(),
                is_first: false,
            }),
            ..finished(on, id, trace, DeliveryState::Done)
        }
    });
    let stored = join_all(outcomes.map(|outcome| db.store.finish(Arc::new(outcome)))).await;
    assert_eq!(stored.len(), ROWS);
}

#[tokio::test]
async fn a_large_commit_compares_no_rows_with_each_other() {
    let Some(server) = Server::with(&LOGS_PLANS) else { return };
    let db = Db::of(&server).await;
    let on = stage(&db).await;
    for round in 0..2 {
        let deliveries = accept(&db, &on, round).await;
        // As after a while, and not as of tables that were never filled.
        db.sql("ANALYZE").await;
        finish(&db, &on, round, deliveries).await;
    }
    db.store.close().await;
    let log = server.log();
    let (mut accepted, mut ended) = (0, 0);
    for plan in plans(&log) {
        let most = |what: &str| plan.iter().filter_map(|line| number(line, what)).max().unwrap_or(0);
        let shown = || plan.join("\n");
        assert!(
            most("Rows Removed by Join Filter: ") < 4 * ROWS,
            "rows are compared with each other:\n{}",
            shown()
        );
        let rows = most("actual rows=");
        if plan.iter().any(|line| line.contains("Delete on deliveries")) {
            ended = ended.max(rows);
        }
        if plan.iter().any(|line| line.contains("Insert on channel_log")) {
            accepted = accepted.max(rows);
        }
    }
    assert!(accepted >= ROWS && ended >= ROWS / 4, "the commits are not in the log: {accepted}, {ended}");
}
