use std::time::Duration;

use hub_core::{
    bots::{Direction, MessageFilter},
    id::MessageId,
    page::PageRequest,
};

use super::scene::{Stage, accept_one, add_channel, batch, lease, message, outbound, stage, taken};
use crate::support::database::{Db, START};

contract!("messages": {
    messages_are_listed_newest_first_with_their_channels => [page],
    a_message_is_found_within_its_bot => [exists, find, find_all],
    filters_select_messages => [page],
    patterns_in_a_search_are_plain_text => [page],
    the_newest_secrets_of_a_person_are_found => [recent_private],
    quoted_texts_are_found_within_the_bot => [texts_by_network_id],
});

async fn the_newest_secrets_of_a_person_are_found(db: &Db) {
    let on = stage(db).await;
    let mut of_ann = Vec::new();
    for (key, peer) in [("1", "ann"), ("2", "ben"), ("3", "ann"), ("4", "ann")] {
        let (id, ..) = accept_one(db, &on, peer, key, 0).await;
        if peer == "ann" {
            of_ann.insert(0, id);
        }
    }
    db.sql("UPDATE messages SET private = 'sealed ' || id").await;
    let found = async |since, limit| {
        let mut read = db.store.read().await.unwrap();
        let rows = read.messages().recent_private(on.bot, "ann", since, limit).await.unwrap();
        assert!(rows.iter().all(|(id, private)| private.as_str() == format!("sealed {id}")));
        rows.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(found(START - Duration::from_secs(1), 10).await, of_ann);
    assert_eq!(found(START - Duration::from_secs(1), 2).await, of_ann[..2]);
    assert_eq!(found(START + Duration::from_secs(24 * 3600), 10).await, []);
}

async fn list(db: &Db, on: &Stage, filter: MessageFilter, page: PageRequest) -> Vec<String> {
    let mut read = db.store.read().await.unwrap();
    let rows = read.messages().page(on.bot, &filter, &page).await.unwrap();
    rows.into_iter().map(|row| row.content).collect()
}

async fn messages_are_listed_newest_first_with_their_channels(db: &Db) {
    let on = stage(db).await;
    let second = add_channel(db, on.bot, "second").await;
    let both = taken(db, message(db, on.bot, "ann", "1", "both"), on.channel, 0).0;
    let both = taken(db, both, second, 0).0;
    let one = taken(db, message(db, on.bot, "ann", "2", "one"), second, 0).0;
    let none = message(db, on.bot, "ann", "3", "none");
    db.store.accept(batch(&on.lease, None, vec![both, one, none])).await.unwrap();
    let mut send = outbound(db, on.bot, "ann", "out", &["sent"]);
    send.channel_id = Some(on.channel);
    commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();
    let filter = MessageFilter::default();
    let mut read = db.store.read().await.unwrap();
    let rows = read.messages().page(on.bot, &filter, &PageRequest::default()).await.unwrap();
    let found: Vec<_> = rows.iter().map(|row| (row.content.as_str(), row.channel_ids.clone())).collect();
    let expected = [
        ("sent", vec![on.channel]),
        ("none", vec![]),
        ("one", vec![second]),
        ("both", vec![on.channel, second]),
    ];
    assert_eq!(found, expected);
    assert_eq!((rows[0].direction, rows[3].direction), (Direction::Outbound, Direction::Inbound));
    assert_eq!((rows[0].to_user_id.as_str(), rows[3].from_user_id.as_str()), ("ann", "ann"));
    let page = PageRequest::parse("m", Some(1), None).unwrap();
    assert_eq!(list(db, &on, MessageFilter::default(), page).await, ["sent", "none"]);
    let cursor = hub_core::page::encode("m", &rows[1].id.to_string());
    let page = PageRequest::parse("m", Some(1), Some(&cursor)).unwrap();
    assert_eq!(list(db, &on, MessageFilter::default(), page).await, ["one", "both"]);
    drop(read);
    let other = db.bot(on.owner).await;
    let mut read = db.store.read().await.unwrap();
    assert!(read.messages().page(other, &filter, &PageRequest::default()).await.unwrap().is_empty());
}

async fn filters_select_messages(db: &Db) {
    let on = stage(db).await;
    let minute = Duration::from_secs(60);
    let mut messages = Vec::new();
    for (n, (peer, text)) in
        [("ann", "Hello there"), ("bob", "hello"), ("ann", "Grüße")].into_iter().enumerate()
    {
        let mut one = message(db, on.bot, peer, &n.to_string(), text);
        let at = START + minute * u32::try_from(n).unwrap();
        // Ids begin with the time.
        one.row.id = MessageId::from_u128(MessageId::first_at(at).as_u128() + 1);
        one.row.created_at = at;
        messages.push(one);
    }
    db.store.accept(batch(&on.lease, None, messages)).await.unwrap();
    let all = MessageFilter::default;
    let list = async |filter| list(db, &on, filter, PageRequest::default()).await;
    assert_eq!(list(MessageFilter { user_id: Some("ann".into()), ..all() }).await, ["Grüße", "Hello there"]);
    assert_eq!(list(MessageFilter { user_id: Some("Ann".into()), ..all() }).await, [] as [&str; 0]);
    assert_eq!(list(MessageFilter { direction: Some(Direction::Outbound), ..all() }).await, [] as [&str; 0]);
    assert_eq!(list(MessageFilter { direction: Some(Direction::Inbound), ..all() }).await.len(), 3);
    assert_eq!(list(MessageFilter { q: Some("HELLO".into()), ..all() }).await, ["hello", "Hello there"]);
    assert_eq!(list(MessageFilter { q: Some("üß".into()), ..all() }).await, ["Grüße"]);
    let since = MessageFilter { since: Some(START + minute), ..all() };
    assert_eq!(list(since).await, ["Grüße", "hello"], "from that moment on");
    let until = MessageFilter { until: Some(START + minute), ..all() };
    assert_eq!(list(until).await, ["Hello there"], "before that moment");
}

async fn patterns_in_a_search_are_plain_text(db: &Db) {
    let on = stage(db).await;
    let texts = ["50% off", "50 off", "a_b", "axb", r"back\slash", "'; --"];
    let messages = texts.iter().map(|text| message(db, on.bot, "ann", text, text)).collect();
    db.store.accept(batch(&on.lease, None, messages)).await.unwrap();
    for (q, expected) in
        [("0%", "50% off"), ("_", "a_b"), (r"\", r"back\slash"), ("';", "'; --"), ("0 o", "50 off")]
    {
        let filter = MessageFilter { q: Some(q.into()), ..MessageFilter::default() };
        assert_eq!(list(db, &on, filter, PageRequest::default()).await, [expected], "{q}");
    }
}

async fn quoted_texts_are_found_within_the_bot(db: &Db) {
    let on = stage(db).await;
    let other = db.bot(on.owner).await;
    let leases = lease(db).await.1;
    let mine = vec![message(db, on.bot, "ann", "1", "mine"), message(db, on.bot, "ann", "2", "second")];
    db.store.accept(batch(&on.lease, None, mine)).await.unwrap();
    db.store.accept(batch(&leases[&other], None, vec![message(db, other, "ann", "9", "his")])).await.unwrap();
    let mut read = db.store.read().await.unwrap();
    let found = read.messages().texts_by_network_id(on.bot, &["2", "9", "unknown"]).await.unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [("2".to_owned(), "second".to_owned())]);
}

async fn a_message_is_found_within_its_bot(db: &Db) {
    let on = stage(db).await;
    let (id, _, _) = accept_one(db, &on, "ann", "1", 0).await;
    let other = db.bot(on.owner).await;
    let mut read = db.store.read().await.unwrap();
    assert!(read.messages().exists(on.bot, id).await.unwrap());
    assert!(!read.messages().exists(other, id).await.unwrap());
    assert!(!read.messages().exists(on.bot, db.ids.next()).await.unwrap());
    let found = read.messages().find(on.bot, id).await.unwrap().unwrap();
    assert_eq!((found.id, found.channel_ids), (id, vec![on.channel]));
    assert!(read.messages().find(other, id).await.unwrap().is_none());
    let all = read.messages().find_all(on.bot, &[db.ids.next(), id]).await.unwrap();
    assert_eq!(
        all.into_iter().map(|message| (message.id, message.channel_ids)).collect::<Vec<_>>(),
        [(id, vec![on.channel])]
    );
    assert!(read.messages().find_all(other, &[id]).await.unwrap().is_empty());
    assert!(read.messages().find(on.bot, db.ids.next()).await.unwrap().is_none());
}
