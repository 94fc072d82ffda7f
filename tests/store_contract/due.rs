//! Due times after a step of the clock.

use std::{sync::Arc, time::Duration};

use hub_core::{
    id::NodeId,
    store::{
        deliveries::{DeliveryState, Finished},
        due::{Followed, Reading, Stamp, StoredClock},
        outbox::NewOutbound,
    },
    time::{Clock, Timestamp},
};

use super::{
    deliveries::finished,
    scene::{accept_one, outbound, stage},
};
use crate::support::database::Db;

contract!("due": {
    a_step_of_the_clock_moves_due_times_and_leases_once => [follow_clock],
    nothing_expires_for_a_step_that_a_new_node_took_for_a_downtime => [follow_clock],
    an_outcome_that_is_stored_after_a_step_moves_along => [follow_clock],
});

const HOUR: Duration = Duration::from_secs(3600);

async fn a_step_of_the_clock_moves_due_times_and_leases_once(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let clock = Clock::system();
    let (at, node): (_, NodeId) = (clock.instant(), db.ids.next());
    let follow = async |before: Option<Followed>| {
        let clock = clock.clone();
        commit!(db, |tx| tx.due().follow_clock(before, &clock).await).unwrap()
    };
    let (first, step) = follow(None).await;
    assert_eq!(step, None, "nothing was noted before");
    // Both nodes saw the clock two hours ahead.
    let ahead = first.reading.wall + 2 * HOUR;
    let noted = StoredClock { seen_at: ahead, moved_ms: 0 };
    let (before, _) = noted.follow(None, Reading { at, wall: ahead });
    let due_at = ahead + HOUR;
    let ends = due_at.as_millis();
    db.sql(format!("UPDATE deliveries SET state = 'parked', due_at = {ends}")).await;
    db.sql(format!("INSERT INTO nodes (id, lease_until) VALUES ('{node}', {ends})")).await;
    // One item was accepted before the step, and one between it and its discovery.
    let items = [ahead, clock.now()].map(|now| NewOutbound {
        now,
        expires_at: now + 4 * HOUR,
        ..outbound(db, on.bot, "ann", &now.to_string(), &["text"])
    });
    commit!(db, |tx| tx.outbox().enqueue(&items).await).unwrap();
    let lifetimes = async || {
        let sql = "SELECT CAST(expires_at - created_at AS TEXT) FROM outbox ORDER BY created_at DESC";
        let texts = db.texts(sql).await;
        texts.iter().map(|text| Duration::from_millis(text.parse().unwrap())).collect::<Vec<_>>()
    };
    let stored = async || {
        let sql = format!(
            "SELECT CAST(due_at AS TEXT) FROM deliveries
             UNION ALL SELECT CAST(lease_until AS TEXT) FROM nodes WHERE id = '{node}'"
        );
        let texts = db.texts(sql).await;
        texts.iter().map(|text| Timestamp::from_millis(text.parse().unwrap())).collect::<Vec<_>>()
    };
    let (_, step) = follow(Some(before)).await;
    let moved = stored().await;
    let by = u64::try_from(-step.unwrap().by()).unwrap();
    assert_eq!(moved, [due_at - Duration::from_millis(by); 2]);
    assert!(Duration::from_millis(by).abs_diff(2 * HOUR) < Duration::from_secs(60), "{by} ms");
    let lives = lifetimes().await;
    assert_eq!([lives[0] + Duration::from_millis(by), lives[1]], [4 * HOUR; 2]);
    // The second node measures the same step.
    let (_, step) = follow(Some(before)).await;
    assert_eq!((step, stored().await), (None, moved));
}

async fn nothing_expires_for_a_step_that_a_new_node_took_for_a_downtime(db: &Db) {
    let on = stage(db).await;
    let clock = Clock::system();
    let at = clock.instant();
    let follow = async |before: Option<Followed>| {
        let clock = clock.clone();
        commit!(db, |tx| tx.due().follow_clock(before, &clock).await).unwrap()
    };
    // The node that starts notes the clock as it is after the step.
    let (new, _) = follow(None).await;
    let now = new.reading.wall;
    let behind = now - 26 * HOUR;
    let noted = StoredClock { seen_at: behind, moved_ms: 0 };
    let (before, _) = noted.follow(None, Reading { at, wall: behind });
    let items = [behind, now].map(|now| NewOutbound {
        now,
        expires_at: now + 24 * HOUR,
        ..outbound(db, on.bot, "ann", &now.to_string(), &["text"])
    });
    commit!(db, |tx| tx.outbox().enqueue(&items).await).unwrap();
    // Of two nodes that ran before the step, each finds it.
    for _ in 0..2 {
        let (_, step) = follow(Some(before)).await;
        assert_eq!(step, None, "no due time moves");
        let sql = "SELECT CAST(expires_at AS TEXT) FROM outbox ORDER BY created_at";
        for expires_at in db.texts(sql).await {
            let expires_at = Timestamp::from_millis(expires_at.parse().unwrap());
            assert!(expires_at.since(now) > 23 * HOUR, "{expires_at}");
            assert!(expires_at.since(now) < 25 * HOUR, "{expires_at}");
        }
    }
}

async fn an_outcome_that_is_stored_after_a_step_moves_along(db: &Db) {
    let on = stage(db).await;
    let clock = Clock::system();
    let ahead = clock.now() + 2 * HOUR;
    let read = Reading { at: clock.instant(), wall: ahead };
    let (followed, _) = StoredClock { seen_at: ahead, moved_ms: 0 }.follow(None, read);
    // The renewal of leases that moves due times by the step is the outcome of another node, or goes unacknowledged.
    let follow = async |before: Option<Followed>| {
        let clock = clock.clone();
        commit!(db, |tx| tx.due().follow_clock(before, &clock).await).unwrap();
    };
    follow(None).await;
    let due_at = async |peer: &str, stamp: Stamp| {
        let (_, id, trace) = accept_one(db, &on, peer, peer, on.lease.fence).await;
        let parked = finished(&on, id, trace, DeliveryState::Parked);
        db.store.finish(Arc::new(Finished { due_at: ahead + HOUR, stamp, ..parked })).await.unwrap();
        let sql = format!("SELECT CAST(due_at AS BIGINT) FROM deliveries WHERE id = '{id}'");
        Timestamp::from_millis(db.number(sql).await)
    };
    let before = Stamp { read, followed: Some(followed) };
    let after = Stamp { read: Reading { at: clock.instant(), wall: clock.now() }, ..before };
    assert_eq!(due_at("ann", before).await, ahead + HOUR, "the step is not found yet");
    assert!(due_at("dan", after).await > ahead + 2 * HOUR, "it moves back when the step is found");
    follow(Some(followed)).await;
    let moved = due_at("bob", before).await;
    let late = Duration::from_millis(moved.as_millis().abs_diff((ahead - HOUR).as_millis()));
    assert!(late < Duration::from_secs(60), "it is due an hour from now, and not three: {late:?}");
    assert_eq!(due_at("cho", after).await, ahead + HOUR, "by the new clock already");
}
