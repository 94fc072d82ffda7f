use hub_core::{
    bots::Direction,
    channels::sinks::SinkId,
    id::{DeliveryId, ReplayId, TraceId},
    store::{deliveries::Replay, traces::NewTrace},
    traces::{RefusedReplay, TraceStatus},
};

use super::scene::{Stage, accept_one, stage, trace, update};
use crate::support::database::{Db, START};

contract!("replays": {
    a_replay_is_stored_with_its_deliveries_and_counted => [sources, insert, find, bots_of],
});

fn replay(db: &Db, on: &Stage, source: TraceId, message: hub_core::id::MessageId) -> Replay {
    let id: DeliveryId = db.ids.next();
    let new = trace(db, on.bot, message, Some(on.channel), "replay");
    Replay {
        id,
        message_id: message,
        bot_id: on.bot,
        channel_id: on.channel,
        sink: SinkId::Webhook,
        target_url: None,
        now: START,
        trace: NewTrace { replay_of: Some(source), ..new },
    }
}

async fn a_replay_is_stored_with_its_deliveries_and_counted(db: &Db) {
    let on = stage(db).await;
    let bob = db.user("bob").await;
    let (first_message, _, first) = accept_one(db, &on, "ann", "1", 0).await;
    let (second_message, _, second) = accept_one(db, &on, "ann", "2", 0).await;
    let ids = [first, second, TraceId::MAX];
    let sources = async |owner| db.store.read().await.unwrap().replays().sources(owner, &ids).await.unwrap();
    let found = sources(on.owner).await;
    assert_eq!(found.iter().map(|source| source.id).collect::<Vec<_>>(), [second, first]);
    assert_eq!((found[0].message_id, found[0].direction), (second_message, Direction::Inbound));
    assert_eq!((found[0].channel_id, found[0].webhook.as_deref()), (Some(on.channel), Some("{}")));
    assert!(sources(bob).await.is_empty());

    let (owner, one): (_, ReplayId) = (on.owner, db.ids.next());
    let replays = [replay(db, &on, first, first_message), replay(db, &on, second, second_message)];
    let (done, gone) = (replays[0].trace.id, replays[1].trace.id);
    let refused = [RefusedReplay { trace_id: TraceId::MAX, reason: "why".to_owned() }];
    let kept = refused.to_vec();
    commit!(db, |tx| tx.replays().insert(one, owner, (&replays, &refused), (START, 1)).await).unwrap();
    let find = async |owner, id| db.store.read().await.unwrap().replays().find(owner, id).await.unwrap();
    let found = find(on.owner, one).await.unwrap();
    assert_eq!((found.total, found.pending, found.refused, found.created_at), (2, 2, kept, START));
    assert!(find(bob, one).await.is_none());
    let bots =
        async |owner| db.store.read().await.unwrap().replays().bots_of(owner, Some(one)).await.unwrap();
    assert_eq!((bots(on.owner).await, bots(bob).await), (vec![on.bot], vec![]));
    assert_eq!(db.count("deliveries").await, 4);

    let failed =
        hub_core::store::traces::TraceUpdate { status: Some(TraceStatus::Error), ..update(done, "end") };
    commit!(db, |tx| tx.traces().update(&[&failed]).await).unwrap();
    db.sql(format!("DELETE FROM traces WHERE id = '{gone}'")).await;
    let found = find(on.owner, one).await.unwrap();
    assert_eq!((found.total, found.pending, found.error, found.deleted), (2, 0, 1, 1));

    let two: ReplayId = db.ids.next();
    commit!(db, |tx| tx.replays().insert(two, owner, (&[], &[]), (START, 1)).await).unwrap();
    assert!(find(on.owner, one).await.is_none(), "only the newest is kept");
    assert_eq!((find(on.owner, two).await.unwrap().total, db.count("replay_traces").await), (0, 0));
}
