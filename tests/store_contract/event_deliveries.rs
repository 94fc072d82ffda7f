//! The deliveries of events to apps, and their outcomes.

use std::time::Duration;

use hub_core::{
    apps::AppEventState,
    store::deliveries::{DeliveryState, EventJobRow, FinishedEvent},
};

use super::{
    app_events::{attempt, backlog, due, log, queue, scene},
    scene::{lease, stamp},
};
use crate::support::database::{Db, START};

contract!("deliveries": {
    only_the_holder_of_the_bot_stores_an_outcome => [claim],
    a_webhook_that_is_gone_needs_to_be_verified_again => [],
});

/// The outcome of an event.
pub const ON_STORE: super::Covered = ("mod", &[&["finish_event"]]);
/// The statement behind it.
pub const STATEMENT: super::Covered = ("deliveries", &[&["finish_event"]]);

const MINUTE: Duration = Duration::from_secs(60);

/// The outcome of a first attempt under this fence.
fn finished(row: &EventJobRow, fence: i64, state: DeliveryState) -> FinishedEvent {
    let (is_over, log) = match state {
        DeliveryState::Done => (true, AppEventState::Delivered),
        DeliveryState::Dead => (true, AppEventState::Failed),
        _ => (false, AppEventState::Pending),
    };
    FinishedEvent {
        id: row.id,
        fence,
        state,
        attempts: row.attempts + 1,
        due_at: START + MINUTE,
        first_attempt_at: START,
        keep: false,
        last_error: (!is_over).then(|| "status 500".to_owned()),
        stamp: stamp(),
        attempt: Some(attempt(row.event_id, log)),
        trace: None,
        replies: Vec::new(),
        gone: None,
    }
}

async fn only_the_holder_of_the_bot_stores_an_outcome(db: &Db) {
    let scene = scene(db, "weather").await;
    let first = lease(db).await.1[&scene.bot].clone();
    let id = queue(db, &scene, "ann", true).await;
    let row = backlog(db, &scene, first.fence, START).await.remove(0);
    let ids = [row.id];
    let fence = first.fence;
    let claimed = commit!(db, |tx| tx.deliveries().claim(&ids, fence).await).unwrap();
    assert!(claimed.contains(&row.id) && backlog(db, &scene, fence, START).await.is_empty());
    let retry = FinishedEvent { keep: true, ..finished(&row, fence, DeliveryState::Pending) };
    let old = FinishedEvent { fence: fence - 1, ..retry.clone() };
    assert!(!db.store.finish_event(old).await.unwrap(), "another node has the bot");
    assert_eq!(due(db, id).await.unwrap().attempts, 0);
    assert!(db.store.finish_event(retry.clone()).await.unwrap());
    assert!(!db.store.finish_event(retry).await.unwrap(), "it counts once");
    let shown = log(db, &scene).await.remove(0);
    assert_eq!((shown.attempts, shown.next_attempt_at), (1, Some(START + MINUTE)));
    assert!(backlog(db, &scene, fence, START + MINUTE).await.is_empty(), "this node holds it in memory");
    let row = backlog(db, &scene, fence + 1, START).await.remove(0);
    assert_eq!((row.attempts, row.first_attempt_at, row.due_at), (1, Some(START), START + MINUTE));
    // It leaves its lane, and comes back when it is due.
    let parked = finished(&row, fence, DeliveryState::Parked);
    assert!(db.store.finish_event(parked).await.unwrap());
    assert!(backlog(db, &scene, fence, START + Duration::from_secs(59)).await.is_empty());
    let row = backlog(db, &scene, fence, START + MINUTE).await.remove(0);
    assert_eq!((row.state, row.attempts), (DeliveryState::Parked, 2));
    assert!(db.store.finish_event(finished(&row, fence, DeliveryState::Done)).await.unwrap());
    assert_eq!(db.count("deliveries").await, 0);
    let shown = log(db, &scene).await.remove(0);
    assert_eq!((shown.state, shown.attempts, shown.next_attempt_at), (AppEventState::Delivered, 3, None));
}

async fn a_webhook_that_is_gone_needs_to_be_verified_again(db: &Db) {
    let scene = scene(db, "weather").await;
    let fence = lease(db).await.1[&scene.bot].fence;
    let rev = async || db.store.read().await.unwrap().channels().config_rev(scene.bot).await.unwrap();
    let before = rev().await.unwrap();
    let id = queue(db, &scene, "ann", true).await;
    let row = backlog(db, &scene, fence, START).await.remove(0);
    let gone = Some((scene.app, "https://weather.example".to_owned()));
    let outcome = FinishedEvent { gone, ..finished(&row, fence, DeliveryState::Dead) };
    assert!(db.store.finish_event(outcome).await.unwrap());
    assert_eq!(due(db, id).await.unwrap().webhook_url, None);
    assert_eq!(rev().await, Some(before + 1), "batches are routed again");
    assert_eq!(log(db, &scene).await[0].state, AppEventState::Failed);
}
