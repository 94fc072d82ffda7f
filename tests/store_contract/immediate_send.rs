//! Replies that the commit that stores them begins to send.

use std::{sync::Arc, time::Duration};

use hub_core::{
    id::DeliveryId,
    secret::Sealed,
    store::{
        deliveries::{DeliveryState, Finished, HealthReport, SinkHealth},
        due::{Reading, Stamp},
        outbox::NewOutbound,
        sending::{ItemState, Permit, SendAtOnce, Settled},
    },
    time::Clock,
};

use super::{
    deliveries::finished,
    scene::{Stage, accept_one, batch, message, outbound, stage, step_reasons, update},
    sending::settled,
};
use crate::support::database::{Db, START};

contract!("sending": {
    a_reply_is_begun_by_the_commit_that_stores_it => [],
    a_reply_waits_when_something_is_in_the_way => [],
    of_one_commit_only_the_first_reply_to_a_person_is_begun => [],
    a_reply_that_comes_again_is_not_begun_again => [],
    a_person_who_writes_in_the_same_commit_is_counted_right => [],
    a_message_that_was_sent_whole_is_settled => [],
});

pub fn at_once() -> SendAtOnce {
    SendAtOnce {
        wrote_after: START - Duration::from_secs(3600),
        most_sends: 3,
        recent_sends: "1,2".to_owned(),
        is_first: false,
    }
}

/// The outcome of a delivery to ann, with replies that may be sent at once.
async fn outcome(db: &Db, on: &Stage, key: &str, replies: Vec<NewOutbound>, health: bool) -> Finished {
    let (_, id, trace) = accept_one(db, on, "ann", key, on.lease.fence).await;
    let read = Reading { at: Clock::system().instant(), wall: db.store.now() };
    Finished {
        stamp: Stamp { read, followed: None },
        replies,
        send_at_once: Some(at_once()),
        health: health.then_some(SinkHealth { channel: on.channel, report: HealthReport::Works }),
        ..finished(on, id, trace, DeliveryState::Done)
    }
}

pub fn reply(db: &Db, on: &Stage, key: &str) -> NewOutbound {
    outbound(db, on.bot, "ann", &format!("re {key}"), &["a", "b"])
}

async fn finish(db: &Db, outcome: Finished) -> Option<Permit> {
    db.store.finish(Arc::new(outcome)).await.unwrap()
}

/// State and attempts of all items, in their order, then the sends of ann's window.
async fn states(db: &Db) -> (Vec<String>, i64) {
    let items = "SELECT text || ' ' || state || ' ' || CAST(attempts AS TEXT) FROM outbox ORDER BY id";
    (db.texts(items).await, db.number("SELECT CAST(window_sends AS BIGINT) FROM contacts").await)
}

async fn a_reply_is_begun_by_the_commit_that_stores_it(db: &Db) {
    let on = stage(db).await;
    for (health, sends) in [(false, 1), (true, 1)] {
        let key = format!("{health}");
        let replies = vec![reply(db, &on, &key), reply(db, &on, &format!("{key} too"))];
        let outcome = outcome(db, &on, &key, replies, health).await;
        let permit = finish(db, outcome).await;
        let context_token = Sealed::from(format!("token of {key}"));
        assert_eq!(permit, Some(Permit { context_token, window_opened_at: START }));
        let queued = ["a sending 1", "b queued 0", "a queued 0", "b queued 0"].map(str::to_owned);
        assert_eq!(states(db).await, (queued.to_vec(), sends), "{key}");
        let recent = db.text("SELECT recent_sends FROM contacts").await;
        assert_eq!(recent.as_deref(), Some("1,2"));
        db.sql("DELETE FROM outbox").await;
        db.sql("UPDATE contacts SET recent_sends = ''").await;
    }
}

async fn a_reply_waits_when_something_is_in_the_way(db: &Db) {
    let on = stage(db).await;
    let ways = [
        "UPDATE contacts SET window_closed = 'no'",
        "UPDATE contacts SET window_sends = 3",
        "UPDATE contacts SET context_token = NULL",
        &format!(
            "UPDATE contacts SET window_opened_at = {}",
            (START - Duration::from_secs(3600)).as_millis()
        ),
        "DELETE FROM contacts",
    ];
    for (place, way) in ways.into_iter().enumerate() {
        for health in [false, true] {
            let key = format!("{place} {health}");
            let outcome = outcome(db, &on, &key, vec![reply(db, &on, &key)], health).await;
            db.sql(way).await;
            assert_eq!(finish(db, outcome).await, None, "{way}");
            assert_eq!(db.texts("SELECT DISTINCT state FROM outbox").await, ["queued"], "{way}");
            assert_eq!(db.count("contacts WHERE recent_sends <> ''").await, 0, "{way}");
            db.sql("DELETE FROM outbox").await;
        }
    }
    let send = outbound(db, on.bot, "ann", "of an API", &["earlier"]);
    commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();
    assert_eq!(finish(db, outcome(db, &on, "last", vec![reply(db, &on, "last")], false).await).await, None);
    db.sql("DELETE FROM outbox").await;
    let mut not_first = outcome(db, &on, "not first", vec![reply(db, &on, "not first")], false).await;
    not_first.send_at_once.as_mut().unwrap().is_first = true;
    db.sql("UPDATE contacts SET recent_sends = '1'").await;
    assert_eq!(finish(db, not_first).await, None);
    let unconditional = Finished {
        send_at_once: None,
        ..outcome(db, &on, "none", vec![reply(db, &on, "none")], false).await
    };
    db.sql("DELETE FROM outbox").await;
    assert_eq!(finish(db, unconditional).await, None);
    assert_eq!(db.texts("SELECT DISTINCT state FROM outbox").await, ["queued"]);
}

/// In one commit or in several.
async fn of_one_commit_only_the_first_reply_to_a_person_is_begun(db: &Db) {
    let on = stage(db).await;
    for (health, first_may) in [(false, true), (true, true), (false, false), (true, false)] {
        let mut outcomes = Vec::new();
        for place in 0..3 {
            let key = format!("{place} {health} {first_may}");
            outcomes.push(outcome(db, &on, &key, vec![reply(db, &on, &key)], health).await);
        }
        // What may not be sent at once is not overtaken by what could be.
        outcomes[0].send_at_once.take_if(|_| !first_may);
        let stored = futures_util::future::join_all(outcomes.into_iter().map(|one| finish(db, one))).await;
        let begun: Vec<bool> = stored.iter().map(Option::is_some).collect();
        assert_eq!(begun, [first_may, false, false]);
        let sending = db.number("SELECT count(*) FROM outbox WHERE state = 'sending'").await;
        assert_eq!(sending, i64::from(first_may));
        db.sql("DELETE FROM outbox").await;
    }
}

async fn a_reply_that_comes_again_is_not_begun_again(db: &Db) {
    let on = stage(db).await;
    let first = Arc::new(outcome(db, &on, "1", vec![reply(db, &on, "1")], false).await);
    assert!(db.store.finish(Arc::clone(&first)).await.unwrap().is_some());
    assert_eq!(db.store.finish(first).await.unwrap(), None, "its commit went unheard");
    assert_eq!(states(db).await, (vec!["a sending 1".to_owned(), "b queued 0".to_owned()], 1));
    db.sql("UPDATE outbox SET state = 'sent'").await;
    let again: DeliveryId = db.ids.next();
    let second = Finished { id: again, ..outcome(db, &on, "2", vec![reply(db, &on, "1")], false).await };
    assert_eq!(finish(db, second).await, None, "a delivery that is gone");
    let second = outcome(db, &on, "3", vec![reply(db, &on, "1"), reply(db, &on, "3")], true).await;
    assert_eq!(finish(db, second).await, None, "a second run of the same hook");
    assert_eq!(db.texts("SELECT DISTINCT state FROM outbox ORDER BY state").await, ["queued", "sent"]);
}

async fn a_person_who_writes_in_the_same_commit_is_counted_right(db: &Db) {
    let on = stage(db).await;
    for key in ["1", "2", "3"] {
        let outcome = outcome(db, &on, key, vec![reply(db, &on, key)], false).await;
        let more = message(db, on.bot, "ann", &format!("more {key}"), "more");
        db.sql("UPDATE contacts SET window_sends = 2").await;
        let (permit, accepted) =
            futures_util::join!(finish(db, outcome), db.store.accept(batch(&on.lease, None, vec![more])));
        accepted.unwrap();
        let token = db.text("SELECT context_token FROM contacts").await;
        assert_eq!(token, Some(format!("token of more {key}")));
        // In a commit of its own the reply may have been counted before the window was opened again.
        let (items, sends) = states(db).await;
        assert_eq!(items[0].contains("sending"), permit.is_some());
        assert!(sends <= i64::from(permit.is_some()), "{sends} of {permit:?}");
        assert_eq!(db.count("outbox").await, 2);
        db.sql("DELETE FROM outbox").await;
        db.sql("UPDATE contacts SET recent_sends = ''").await;
    }
}

async fn a_message_that_was_sent_whole_is_settled(db: &Db) {
    let on = stage(db).await;
    let send = outbound(db, on.bot, "ann", "re", &["text"]);
    let outcome = outcome(db, &on, "1", vec![send.clone()], false).await;
    let trace = outcome.trace.id;
    assert!(finish(db, outcome).await.is_some());
    let stamp =
        Stamp { read: Reading { at: Clock::system().instant(), wall: db.store.now() }, followed: None };
    let sent = |attempts| Settled {
        attempts,
        stamp,
        network_id: Some("n1".to_owned()),
        trace: Some(update(trace, "reply")),
        ..settled(&on, &send, send.parts[0].id, ItemState::Sent)
    };
    assert!(!db.store.settle_send(sent(0)).await.unwrap(), "another try has begun");
    let late = "SELECT state || ' ' || CAST(attempts AS TEXT) FROM outbox";
    assert_eq!(db.texts(late).await, ["sending 1"]);
    // Together with a message of the same person.
    let more = message(db, on.bot, "ann", "more", "more");
    let (settled, accepted) = futures_util::join!(
        db.store.settle_send(sent(1)),
        db.store.accept(batch(&on.lease, None, vec![more]))
    );
    assert!(settled.unwrap());
    accepted.unwrap();
    assert!(!db.store.settle_send(sent(1)).await.unwrap(), "it is settled");
    assert_eq!(db.texts("SELECT state FROM outbox WHERE network_id = 'n1'").await, ["sent"]);
    let messages = "SELECT status FROM messages WHERE network_id = 'n1' AND status_reason IS NULL";
    assert_eq!(db.texts(messages).await, ["sent"]);
    assert_eq!(step_reasons(db, trace).await, ["received", "request", "reply"]);
}
