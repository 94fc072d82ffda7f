use hub_core::id::BotId;

use super::scene::{HOSTILE_TEXTS, accept_one, outbound, stage};
use crate::support::database::Db;

contract!("outbox": {
    a_message_is_stored_with_its_parts_in_order => [enqueue, queued_parts],
    equal_keys_are_one_message => [enqueue, known],
    a_message_joins_its_persons_conversation => [enqueue],
    a_refused_send_leaves_no_trace => [enqueue],
    texts_are_stored_as_they_are => [enqueue],
});

async fn a_message_is_stored_with_its_parts_in_order(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let send = outbound(db, on.bot, "ann", "send", &["a", "b", "c"]);
    let (id, ids) = (send.message_id, send.parts.iter().map(|part| part.id.to_string()).collect::<Vec<_>>());
    assert_eq!(commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap(), [id]);
    assert_eq!(db.texts("SELECT id FROM outbox ORDER BY part").await, ids);
    assert_eq!(db.texts("SELECT client_id FROM outbox ORDER BY id").await, ["send-a", "send-b", "send-c"]);
    let parts =
        db.texts("SELECT CAST(part AS TEXT) || '/' || CAST(parts AS TEXT) FROM outbox ORDER BY id").await;
    assert_eq!(parts, ["0/3", "1/3", "2/3"]);
    let named = db.text(format!("SELECT user_name FROM messages WHERE id = '{id}'")).await;
    assert_eq!(named.as_deref(), Some("Name of ann"));
    let mut read = db.store.read().await.unwrap();
    assert_eq!(read.outbox().queued_parts(on.bot, "ann").await.unwrap().parts, 3);
    let none = read.outbox().queued_parts(on.bot, "bob").await.unwrap();
    assert_eq!((none.parts, none.due_at), (0, None));
    db.sql(format!("UPDATE outbox SET due_at = due_at + 90000 WHERE id = '{}'", ids[2])).await;
    let later = read.outbox().queued_parts(on.bot, "ann").await.unwrap();
    let due = db.number(format!("SELECT due_at FROM outbox WHERE id = '{}'", ids[2])).await;
    assert_eq!((later.parts, later.due_at.map(hub_core::time::Timestamp::as_millis)), (3, Some(due)));
    db.sql(format!("UPDATE outbox SET state = 'sending' WHERE id = '{}'", ids[0])).await;
    db.sql(format!("UPDATE outbox SET state = 'sent' WHERE id = '{}'", ids[1])).await;
    assert_eq!(read.outbox().queued_parts(on.bot, "ann").await.unwrap().parts, 1);
}

async fn equal_keys_are_one_message(db: &Db) {
    let on = stage(db).await;
    let first = outbound(db, on.bot, "ann", "same", &["first"]);
    let id = first.message_id;
    let twin = outbound(db, on.bot, "ann", "same", &["twin", "of two"]);
    let other = outbound(db, on.bot, "ann", "other", &["other"]);
    let other_id = other.message_id;
    assert_eq!(commit!(db, |tx| tx.outbox().enqueue(&[first, twin, other]).await).unwrap(), [id, other_id]);
    let again = outbound(db, on.bot, "bob", "same", &["again"]);
    assert_eq!(commit!(db, |tx| tx.outbox().enqueue(&[again]).await).unwrap(), []);
    assert_eq!(db.texts("SELECT text FROM outbox ORDER BY id").await, ["first", "other"]);
    assert_eq!(db.count("messages").await, 2);
    let elsewhere = db.bot(on.owner).await;
    let theirs = outbound(db, elsewhere, "ann", "same", &["theirs"]);
    assert_eq!(commit!(db, |tx| tx.outbox().enqueue(&[theirs]).await).unwrap().len(), 1);
    let asked = ["same", "other", "never"].map(str::to_owned);
    let known = async |bot, keys: &[String]| {
        let mut known = db.store.read().await.unwrap().outbox().known(bot, keys).await.unwrap();
        known.sort();
        known
    };
    assert_eq!(known(on.bot, &asked).await, ["other", "same"]);
    assert_eq!(known(elsewhere, &asked).await, ["same"]);
    assert!(known(on.bot, &[]).await.is_empty());
}

async fn a_message_joins_its_persons_conversation(db: &Db) {
    let on = stage(db).await;
    let send = async |peer: &str, key: &str| {
        let send = outbound(db, on.bot, peer, key, &["x"]);
        let id = send.message_id;
        commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();
        db.text(format!("SELECT session_id FROM messages WHERE id = '{id}'")).await.unwrap()
    };
    assert_eq!(send("ann", "1").await, "ann", "a person who never wrote is a conversation");
    let (older, _, _) = accept_one(db, &on, "ann", "a", 0).await;
    let (newer, _, _) = accept_one(db, &on, "ann", "b", 0).await;
    db.sql(format!("UPDATE messages SET session_id = 'old talk' WHERE id = '{older}'")).await;
    db.sql(format!("UPDATE messages SET session_id = 'talk' WHERE id = '{newer}'")).await;
    assert_eq!(send("ann", "2").await, "talk");
    assert_eq!(send("bob", "3").await, "bob");
}

async fn a_refused_send_leaves_no_trace(db: &Db) {
    let gone: BotId = db.ids.next();
    let send = outbound(db, gone, "ann", "send", &["a"]);
    assert_eq!(commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap(), []);
    assert_eq!(commit!(db, |tx| tx.outbox().enqueue(&[]).await).unwrap(), []);
    assert_eq!((db.count("messages").await, db.count("outbox").await), (0, 0));
}

async fn texts_are_stored_as_they_are(db: &Db) {
    let on = stage(db).await;
    let rows: Vec<_> = HOSTILE_TEXTS
        .iter()
        .map(|text| outbound(db, on.bot, text, &format!("key {text}"), &[text]))
        .collect();
    commit!(db, |tx| tx.outbox().enqueue(&rows).await).unwrap();
    assert_eq!(db.texts("SELECT text FROM outbox ORDER BY id").await, HOSTILE_TEXTS);
    assert_eq!(db.texts("SELECT peer FROM outbox ORDER BY id").await, HOSTILE_TEXTS);
    assert_eq!(db.texts("SELECT content FROM messages ORDER BY id").await, HOSTILE_TEXTS);
}
