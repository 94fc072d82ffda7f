//! Open deliveries: what keeps a replay from starting, and what it supersedes.

use hub_core::{
    channels::sinks::SinkId,
    id::{DeliveryId, MessageId, TraceId},
    store::{
        deliveries::{DeliveryState, OpenDelivery},
        traces::TraceUpdate,
    },
    traces::TraceStatus,
};

use super::scene::{accept_one, batch, message, stage, step_reasons, taken, update, with_ai};
use crate::support::database::{Db, START};

contract!("deliveries": {
    open_deliveries_name_their_receiver_and_whether_a_node_holds_them => [open_of, lock_messages],
    a_waiting_delivery_is_abandoned_unless_a_node_holds_it => [abandon_waiting, open_of],
    a_delivery_that_has_ended_is_not_claimed => [claim, abandon_waiting],
});

async fn open_of(db: &Db, messages: &[MessageId]) -> Vec<OpenDelivery> {
    db.store.read().await.unwrap().deliveries().open_of(messages).await.unwrap()
}

async fn abandon(db: &Db, ids: &[DeliveryId]) -> Vec<DeliveryId> {
    let ids = ids.to_vec();
    let end =
        |trace| TraceUpdate { status: Some(TraceStatus::Error), summary: None, ..update(trace, "abandoned") };
    commit!(db, |tx| tx.deliveries().abandon_waiting(&ids, "superseded", START, end).await).unwrap()
}

async fn state(db: &Db, trace: TraceId) -> Vec<(DeliveryState, Option<String>)> {
    let found = db.store.read().await.unwrap().deliveries().find_by_trace(trace).await.unwrap();
    found.into_iter().map(|(state, _, reason)| (state, reason)).collect()
}

async fn open_deliveries_name_their_receiver_and_whether_a_node_holds_them(db: &Db) {
    let on = stage(db).await;
    db.sql("UPDATE channels SET webhook = '{\"url\":\"https://shop.example/\"}'").await;
    let (first, waiting, trace) = accept_one(db, &on, "ann", "1", 0).await;
    let (second, held, _) = accept_one(db, &on, "bob", "2", on.lease.fence).await;
    let (third, over, _) = accept_one(db, &on, "eve", "3", 0).await;
    abandon(db, &[over]).await;
    let locked = commit!(db, |tx| {
        let mut deliveries = tx.deliveries();
        deliveries.lock_messages(&[first, second, MessageId::MAX]).await?;
        deliveries.open_of(&[first, second, third, MessageId::MAX]).await
    });
    let open = open_of(db, &[second, first, third]).await;
    assert_eq!(open, locked.unwrap(), "the same in the transaction that locks them");
    assert_eq!(
        open.iter().map(|open| (open.id, open.is_held)).collect::<Vec<_>>(),
        [(waiting, false), (held, true)]
    );
    let one = &open[0];
    assert_eq!(
        (one.trace_id, one.message_id, one.channel_id, one.sink, one.state),
        (trace, first, on.channel, SinkId::Webhook, DeliveryState::Pending)
    );
    let goes_to = |open: &OpenDelivery| {
        [None, Some("https://shop.example/"), Some("https://b.example/")].map(|url| open.goes_to(url))
    };
    assert_eq!(goes_to(one), [true, true, false]);
    db.sql("UPDATE deliveries SET target_url = 'https://b.example/'").await;
    assert_eq!(goes_to(&open_of(db, &[first]).await[0]), [false, false, true]);
    db.sql("UPDATE bots SET lease_fence = lease_fence + 1").await;
    assert!(!open_of(db, &[second]).await[0].is_held, "its node lost the bot");
    assert_eq!(open_of(db, &[]).await, []);
}

async fn a_waiting_delivery_is_abandoned_unless_a_node_holds_it(db: &Db) {
    let on = stage(db).await;
    let (message, webhook) = taken(db, message(db, on.bot, "ann", "1", "hi"), on.channel, 0);
    let (message, ai) = with_ai(db, message);
    let trace = message.routes[0].trace.id;
    db.store.accept(batch(&on.lease, None, vec![message])).await.unwrap();
    let (_, held, held_trace) = accept_one(db, &on, "bob", "2", on.lease.fence).await;
    db.sql(format!("UPDATE deliveries SET state = 'parked' WHERE id = '{webhook}'")).await;
    assert_eq!(abandon(db, &[webhook, held]).await, [webhook]);
    let dead = (DeliveryState::Dead, Some("superseded".to_owned()));
    assert_eq!(state(db, held_trace).await, [(DeliveryState::Pending, None)]);
    assert_eq!(state(db, trace).await, [dead.clone(), (DeliveryState::Pending, None)]);
    let status = async || db.text(format!("SELECT status FROM traces WHERE id = '{trace}'")).await.unwrap();
    assert_eq!(status().await, "pending", "the other sink has not ended");
    assert_eq!(abandon(db, &[ai, webhook]).await, [ai], "what has ended does not end again");
    assert_eq!((status().await.as_str(), state(db, trace).await), ("error", vec![dead.clone(), dead]));
    assert_eq!(step_reasons(db, trace).await, ["received", "abandoned", "abandoned"]);
    assert_eq!(abandon(db, &[]).await, []);
}

/// A scan read the row, and the delivery was abandoned before the scan claimed it.
async fn a_delivery_that_has_ended_is_not_claimed(db: &Db) {
    let on = stage(db).await;
    let (_, id, _) = accept_one(db, &on, "ann", "1", 0).await;
    let fence = on.lease.fence;
    assert_eq!(abandon(db, &[id]).await, [id]);
    let claimed = commit!(db, |tx| tx.deliveries().claim(&[id], fence).await).unwrap();
    assert!(claimed.is_empty(), "it would be attempted");
    assert_eq!(db.number("SELECT count(*) FROM deliveries WHERE claim <> 0").await, 0);
}
