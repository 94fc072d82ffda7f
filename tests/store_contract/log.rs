//! Reads, acknowledgements and announcements of channel clients.

use std::{collections::HashMap, time::Duration};

use futures_util::join;
use hub_core::{
    id::{ChannelId, NodeId},
    secret::Sealed,
    store::{
        Store,
        log::{Ack, Listening},
        sending::Begun,
    },
    time::Clock,
};

use super::scene::{Stage, accept_one, add_channel, batch, message, outbound, stage, taken};
use crate::support::database::{Db, START};

contract!("log": {
    a_page_is_what_follows_oldest_first => [after],
    a_page_ends_when_it_is_large => [after],
    a_reader_misses_nothing_however_many_write => [after],
    a_shown_message_is_logged_once => [after],
    channels_show_their_status => [pulses],
    cursors_move_forward_only => [acknowledge],
    nodes_know_of_each_others_clients => [announce, listened_elsewhere],
});

/// No page is cut for its size.
const ANY_SIZE: i64 = i64::MAX;

async fn numbers(store: &Store, channel: ChannelId, after: i64, limit: u32, chars: i64) -> Vec<i64> {
    let rows = store.read().await.unwrap().log().after(channel, after, limit, chars).await.unwrap();
    rows.iter().map(|row| row.seq).collect()
}

async fn a_page_is_what_follows_oldest_first(db: &Db) {
    let on = stage(db).await;
    let other = add_channel(db, on.bot, "other").await;
    for n in 0..4 {
        accept_one(db, &on, "ann", &format!("{n}"), 0).await;
    }
    let (mut mine, _) = taken(db, message(db, on.bot, "bob", "4", "@shop hello"), on.channel, 0);
    mine.routes[0].taken.as_mut().unwrap().content = Some("hello".to_owned());
    let (mine, _) = taken(db, mine, other, 0);
    db.store.accept(batch(&on.lease, None, vec![mine])).await.unwrap();
    for (after, limit, seen) in [
        (0, 9, &[1, 2, 3, 4, 5][..]),
        (0, 2, &[1, 2]),
        (2, 2, &[3, 4]),
        (4, 9, &[5]),
        (5, 9, &[]),
        (99, 9, &[]),
    ] {
        assert_eq!(numbers(&db.store, on.channel, after, limit, ANY_SIZE).await, seen, "{after} {limit}");
    }
    assert_eq!(numbers(&db.store, other, 0, 9, ANY_SIZE).await, [1]);
    let rows = db.store.read().await.unwrap().log().after(on.channel, 3, 9, ANY_SIZE).await.unwrap();
    let row = &rows[1];
    assert_eq!(
        (row.message.content.as_str(), row.channel_content.as_deref()),
        ("@shop hello", Some("hello"))
    );
    assert_eq!((row.direction.as_str(), row.to_user_id.as_str()), ("inbound", "bot"));
    assert_eq!(
        (row.network_id.as_deref(), row.message.private.as_ref().map(Sealed::as_str)),
        (Some("4"), Some("sealed"))
    );
    assert_eq!((rows[0].channel_content.as_deref(), row.message.peer.as_str()), (None, "bob"));
}

async fn a_page_ends_when_it_is_large(db: &Db) {
    let on = stage(db).await;
    let texts = ["x".repeat(100), "y".repeat(100), "z".to_owned()];
    for (n, text) in texts.iter().enumerate() {
        let (one, _) = taken(db, message(db, on.bot, "ann", &format!("{n}"), text), on.channel, 0);
        db.store.accept(batch(&on.lease, None, vec![one])).await.unwrap();
    }
    // Each has two characters of items, too.
    for (chars, seen) in [
        (1, &[1][..]),
        (102, &[1]),
        (103, &[1, 2]),
        (204, &[1, 2]),
        (205, &[1, 2, 3]),
        (ANY_SIZE, &[1, 2, 3]),
    ] {
        assert_eq!(numbers(&db.store, on.channel, 0, 9, chars).await, seen, "{chars}");
    }
}

/// A store of another node on the same database. SQLite's one writer is the same for everyone.
async fn another(db: &Db) -> Store {
    if db.is_postgres() { Store::open(&db.config, Clock::system()).await.unwrap() } else { db.store.clone() }
}

async fn begin(store: &Store, on: &Stage, send: &hub_core::store::outbox::NewOutbound, part: usize) -> bool {
    let (lease, id, shown_to) = (on.lease.clone(), send.parts[part].id, vec![on.channel]);
    store
        .begin_send(Begun {
            lease,
            id,
            peer: "ann".to_owned(),
            shown_to,
            recent_sends: String::new(),
            now: START,
        })
        .await
        .unwrap()
}

async fn a_reader_misses_nothing_however_many_write(db: &Db) {
    const EACH: i64 = 40;
    let on = stage(db).await;
    let second = another(db).await;
    let sends: Vec<_> =
        (0..EACH).map(|n| outbound(db, on.bot, "ann", &format!("out {n}"), &["hi"])).collect();
    let rows = sends.clone();
    commit!(db, |tx| tx.outbox().enqueue(&rows).await).unwrap();
    let receive = async |from: i64| {
        for n in from..from + EACH {
            let (one, _) = taken(db, message(db, on.bot, "ann", &format!("in {n}"), "x"), on.channel, 0);
            db.store.accept(batch(&on.lease, None, vec![one])).await.unwrap();
        }
    };
    let send = async || {
        for send in &sends {
            assert!(begin(&second, &on, send, 0).await);
        }
    };
    let follow = async || {
        let (mut position, mut seen) = (0, Vec::new());
        while position < 3 * EACH {
            for seq in numbers(&second, on.channel, position, 7, ANY_SIZE).await {
                assert_eq!(seq, position + 1, "a number is visible only after those before it: {seen:?}");
                position = seq;
                seen.push(seq);
            }
        }
    };
    join!(receive(0), receive(1_000), send(), follow(), follow());
    assert_eq!(db.number("SELECT CAST(last_seq AS BIGINT) FROM channels").await, 3 * EACH);
    if db.is_postgres() {
        second.close().await;
    }
}

async fn a_shown_message_is_logged_once(db: &Db) {
    let on = stage(db).await;
    let send = outbound(db, on.bot, "ann", "long", &["one", "two"]);
    let rows = vec![send.clone()];
    commit!(db, |tx| tx.outbox().enqueue(&rows).await).unwrap();
    for part in [0, 0, 1] {
        assert!(begin(&db.store, &on, &send, part).await);
    }
    let rows = db.store.read().await.unwrap().log().after(on.channel, 0, 9, ANY_SIZE).await.unwrap();
    let shown: Vec<_> =
        rows.iter().map(|row| (row.seq, row.direction.as_str(), row.to_user_id.as_str())).collect();
    assert_eq!(shown, [(1, "outbound", "ann")]);
    assert_eq!(rows[0].message.content, "onetwo");
    let gone = Begun {
        lease: hub_core::store::leases::Lease { fence: on.lease.fence + 1, ..on.lease.clone() },
        id: send.parts[1].id,
        peer: "ann".to_owned(),
        shown_to: vec![on.channel],
        recent_sends: String::new(),
        now: START,
    };
    assert!(!db.store.begin_send(gone).await.unwrap());
    assert_eq!(db.count("channel_log").await, 1, "what is not sent is not shown");
}

async fn channels_show_their_status(db: &Db) {
    let on = stage(db).await;
    let other = add_channel(db, on.bot, "other").await;
    accept_one(db, &on, "ann", "1", 0).await;
    let gone: ChannelId = db.ids.next();
    db.sql(format!(
        "UPDATE channels SET enabled = {} WHERE id = '{other}'",
        if db.is_postgres() { "false" } else { "0" }
    ))
    .await;
    let rows = db.store.read().await.unwrap().log().pulses(&[on.channel, other, gone]).await.unwrap();
    let rows: HashMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
    assert_eq!(rows.len(), 2);
    let mine = &rows[&on.channel];
    assert_eq!((mine.last_seq, mine.acked(), mine.enabled, mine.name.as_str()), (1, None, true, "channel"));
    assert_eq!((mine.bot_status.as_str(), mine.owner_status.as_str()), ("pending", "active"));
    assert_eq!(mine.key_hash, hub_core::secret::TokenHash::of("channel"));
    assert_eq!((mine.old_key_hash.clone(), mine.old_key_until), (None, None));
    assert!(!rows[&other].enabled);
}

async fn cursors_move_forward_only(db: &Db) {
    let on = stage(db).await;
    let other = add_channel(db, on.bot, "other").await;
    for n in 0..3 {
        accept_one(db, &on, "ann", &format!("{n}"), 0).await;
    }
    for (acks, stands) in [
        (vec![], (None, None)),
        (vec![(on.channel, 4)], (None, None)),
        (vec![(on.channel, 0)], (Some(0), None)),
        (vec![(on.channel, 2), (other, 1)], (Some(2), None)),
        (vec![(on.channel, 1)], (Some(2), None)),
        (vec![(on.channel, 0)], (Some(2), None)),
        (vec![(on.channel, 4)], (Some(2), None)),
        (vec![(on.channel, 3), (other, 0)], (Some(3), Some(0))),
    ] {
        let acks: Vec<_> = acks.into_iter().map(|(channel, seq)| Ack { channel, seq }).collect();
        commit!(db, |tx| tx.log().acknowledge(&acks).await).unwrap();
        let rows = db.store.read().await.unwrap().log().pulses(&[on.channel, other]).await.unwrap();
        let acked = |id: ChannelId| rows.iter().find(|row| row.id == id).unwrap().acked();
        assert_eq!((acked(on.channel), acked(other)), stands);
    }
}

async fn nodes_know_of_each_others_clients(db: &Db) {
    let [here, there, far]: [NodeId; 3] = [db.ids.next(), db.ids.next(), db.ids.next()];
    let [first, second]: [ChannelId; 2] = [db.ids.next(), db.ids.next()];
    let announce = async |node, listening: Vec<(ChannelId, u32)>, from: Duration| {
        let listening: Vec<_> =
            listening.into_iter().map(|(channel, sockets)| Listening { channel, sockets }).collect();
        let (now, until) = (START + from, START + from + Duration::from_secs(30));
        commit!(db, |tx| tx.log().announce(node, &listening, now, until).await).unwrap();
    };
    let elsewhere = async |node, after: Duration| {
        db.store.read().await.unwrap().log().listened_elsewhere(node, START + after).await.unwrap()
    };
    announce(here, vec![(first, 1)], Duration::ZERO).await;
    announce(there, vec![(first, 2), (second, 1)], Duration::ZERO).await;
    announce(far, vec![(first, 3)], Duration::from_secs(20)).await;
    let at = Duration::from_secs(29);
    assert_eq!(elsewhere(here, at).await, HashMap::from([(first, 5), (second, 1)]));
    assert_eq!(elsewhere(far, at).await, HashMap::from([(first, 3), (second, 1)]));
    assert_eq!(
        elsewhere(here, Duration::from_secs(30)).await,
        HashMap::from([(first, 3)]),
        "the others are gone"
    );
    announce(there, vec![], at).await;
    assert_eq!(elsewhere(here, at).await, HashMap::from([(first, 3)]));
    announce(here, vec![], Duration::from_secs(40)).await;
    assert_eq!(db.count("channel_listeners").await, 1, "what ran out is taken away");
}
