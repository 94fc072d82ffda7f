use std::{collections::BTreeSet, time::Duration};

use hub_core::{
    id::OutboxId,
    network::WindowRules,
    secret::Sealed,
    store::{
        DeletedBatch,
        leases::Lease,
        outbox::NewOutbound,
        sending::{Begun, ItemState, OpenItem, Settled},
        traces::TraceUpdate,
    },
    traces::TraceStatus,
};

use super::scene::{Stage, accept_one, outbound, stage, stamp, step_reasons, trace, update};
use crate::support::database::{Db, START};

contract!("sending": {
    open_items_come_in_order_with_their_window => [open, people],
    people_are_found_piece_by_piece => [people],
    only_what_something_can_be_done_about_is_open => [open],
    what_waits_for_a_person_is_open_until_it_says_so => [open, people],
    a_send_is_counted_before_it_goes_out => [open],
    sends_of_one_commit_count_each_and_an_item_once => [open],
    an_old_lease_sends_nothing => [open],
    a_message_is_as_far_as_its_slowest_part => [],
    the_last_part_does_not_hide_a_lost_one => [],
    a_closed_window_and_an_unknown_outcome_are_kept => [],
    an_outcome_counts_for_its_try_and_its_window_only => [],
    messages_go_when_nothing_waits_for_them => [delete_messages_before],
});

pub const ON_STORE: super::Covered = ("mod", &[&["begin_send", "settle_send"]]);

async fn enqueue(db: &Db, send: NewOutbound) -> Vec<OutboxId> {
    let ids = send.parts.iter().map(|part| part.id).collect();
    commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();
    ids
}

async fn open(db: &Db, on: &Stage) -> Vec<OpenItem> {
    open_at(db, on, Duration::ZERO, 100).await
}

/// Three sends per window, which lasts an hour.
const RULES: WindowRules =
    WindowRules { age: Some(Duration::from_secs(3600)), sends: Some(3), burst: None, gap: Duration::ZERO };

async fn open_at(db: &Db, on: &Stage, after: Duration, limit: u32) -> Vec<OpenItem> {
    let everyone = ["ann", "bob", "cy", "stranger"].map(str::to_owned);
    let mut read = db.store.read().await.unwrap();
    let items = read.sending().open(on.bot, &everyone, &RULES, START + after, limit).await.unwrap();
    if limit > 1 {
        let people = read.sending().people(on.bot, "", &RULES, START + after, limit).await.unwrap();
        let theirs: BTreeSet<String> = items.iter().map(|item| item.peer.clone()).collect();
        assert_eq!(people, Vec::from_iter(theirs), "a search finds those who have such items, in order");
        let again = read.sending().open(on.bot, &people, &RULES, START + after, limit).await.unwrap();
        assert_eq!(again.len(), items.len());
    }
    items
}

async fn begin(db: &Db, lease: &Lease, id: OutboxId) -> bool {
    let lease = lease.clone();
    db.store
        .begin_send(Begun {
            lease,
            id,
            peer: "ann".to_owned(),
            shown_to: Vec::new(),
            recent_sends: String::new(),
            now: START,
        })
        .await
        .unwrap()
}

pub fn settled(on: &Stage, send: &NewOutbound, id: OutboxId, state: ItemState) -> Settled {
    Settled {
        id,
        message_id: send.message_id,
        bot_id: on.bot,
        parts: i64::try_from(send.parts.len()).unwrap(),
        peer: "ann".into(),
        attempts: 0,
        window_opened_at: Some(START),
        state,
        due_at: START,
        unknown: false,
        uncount: false,
        error: None,
        network_id: None,
        close_window: None,
        next_attempt_at: None,
        stamp: stamp(),
        trace: None,
    }
}

async fn settle(db: &Db, settled: Settled) -> bool {
    db.store.settle_send(settled).await.unwrap()
}

async fn open_items_come_in_order_with_their_window(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    accept_one(db, &on, "bob", "2", 0).await;
    let first = enqueue(db, outbound(db, on.bot, "ann", "a", &["1", "2"])).await;
    let second = enqueue(db, outbound(db, on.bot, "bob", "b", &["3"])).await;
    let items = open(db, &on).await;
    let ids: Vec<OutboxId> = first.iter().chain(&second).copied().collect();
    assert_eq!(items.iter().map(|item| item.id).collect::<Vec<_>>(), ids);
    let ann = &items[0];
    assert_eq!((ann.part, ann.parts, ann.text.as_str(), ann.client_id.as_str()), (0, 2, "1", "a-1"));
    assert_eq!((ann.window_opened_at, ann.window_sends), (Some(START), Some(0)));
    assert_eq!(ann.context_token.as_ref().map(Sealed::as_str), Some("token of 1"));
    assert_eq!(open_at(db, &on, Duration::ZERO, 1).await.len(), 1);
    db.sql("UPDATE outbox SET state = 'sent' WHERE peer = 'ann'").await;
    assert_eq!(open(db, &on).await.len(), 1);
}

async fn only_what_something_can_be_done_about_is_open(db: &Db) {
    let on = stage(db).await;
    let hour = Duration::from_secs(3600);
    for peer in ["ann", "bob"] {
        accept_one(db, &on, peer, peer, 0).await;
    }
    enqueue(db, outbound(db, on.bot, "stranger", "s", &["never wrote"])).await;
    let ann = enqueue(db, outbound(db, on.bot, "ann", "a", &["1", "2"])).await;
    enqueue(db, outbound(db, on.bot, "bob", "b", &["3"])).await;
    db.sql("UPDATE outbox SET last_error = 'why it waits'").await;
    let texts = async |after| {
        let items = open_at(db, &on, after, 100).await;
        items.into_iter().map(|item| item.text).collect::<Vec<_>>()
    };
    assert_eq!(texts(Duration::ZERO).await, ["1", "2", "3"], "a stranger has to write first");
    let due = (START + hour / 2).as_millis();
    db.sql(format!("UPDATE outbox SET due_at = {due} WHERE id = '{}'", ann[0])).await;
    assert_eq!(texts(Duration::ZERO).await, ["3"], "what is behind a waiting head waits too");
    assert_eq!(texts(hour / 2).await, ["1", "2", "3"]);
    db.sql("UPDATE outbox SET updated_at = due_at").await;
    db.sql("UPDATE contacts SET window_sends = 3 WHERE user_id = 'ann'").await;
    assert_eq!(texts(hour / 2).await, ["3"], "ann's window is used up");
    db.sql("UPDATE contacts SET window_sends = 0, window_closed = 'no' WHERE user_id = 'ann'").await;
    assert_eq!(texts(hour / 2).await, ["3"], "ann's window was closed");
    let mut all = texts(hour).await;
    all.sort();
    assert_eq!(all, ["1", "2", "3", "never wrote"], "what ran out has to be given up");
    db.sql("UPDATE outbox SET expires_at = expires_at * 2").await;
    assert!(texts(hour).await.is_empty(), "every window is too old");
}

async fn what_waits_for_a_person_is_open_until_it_says_so(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    enqueue(db, outbound(db, on.bot, "stranger", "s", &["never wrote"])).await;
    let send = outbound(db, on.bot, "ann", "a", &["1", "2"]);
    let ann = enqueue(db, send.clone()).await;
    let waiting = async || {
        let mut read = db.store.read().await.unwrap();
        let mut people = read.sending().people(on.bot, "", &RULES, START, 9).await.unwrap();
        people.sort();
        let items = read.sending().open(on.bot, &people, &RULES, START, 9).await.unwrap();
        (people, items.into_iter().map(|item| (item.text, item.last_error)).collect::<BTreeSet<_>>())
    };
    let all = ["1", "2", "never wrote"].map(|text| (text.to_owned(), None));
    db.sql("UPDATE contacts SET window_sends = 3").await;
    assert_eq!(waiting().await, (vec!["ann".to_owned(), "stranger".to_owned()], all.into()));
    // The error of an attempt does not count as the reason for which an item waits.
    for (id, state) in [(ann[0], ItemState::Queued), (ann[1], ItemState::Sending)] {
        let (error, stamp) = (Some("no connection".to_owned()), stamp());
        let due_at = match state {
            ItemState::Queued => stamp.read.wall + Duration::from_secs(5),
            _ => stamp.read.wall,
        };
        let tried = Settled { error, due_at, stamp, ..settled(&on, &send, id, state) };
        assert!(settle(db, tried).await);
    }
    let (people, items) = waiting().await;
    assert_eq!((people.len(), items.len()), (2, 3), "{items:?}");
    for id in ann {
        let error = Some("used up".to_owned());
        assert!(settle(db, Settled { error, ..settled(&on, &send, id, ItemState::Queued) }).await);
    }
    assert_eq!(waiting().await, (vec!["stranger".to_owned()], [("never wrote".to_owned(), None)].into()));
    db.sql("UPDATE contacts SET window_sends = 2").await;
    let (people, items) = waiting().await;
    assert_eq!(people, ["ann", "stranger"]);
    assert!(items.contains(&("1".to_owned(), Some("used up".to_owned()))), "{items:?}");
}

async fn people_are_found_piece_by_piece(db: &Db) {
    let on = stage(db).await;
    for peer in ["ann", "bob", "cy"] {
        accept_one(db, &on, peer, peer, 0).await;
        enqueue(db, outbound(db, on.bot, peer, &format!("to {peer}"), &["1", "2"])).await;
    }
    enqueue(db, outbound(db, on.bot, "bo", "stranger", &["never wrote"])).await;
    db.sql("UPDATE outbox SET last_error = 'why it waits'").await;
    let mut read = db.store.read().await.unwrap();
    let mut found =
        async |after: &str, limit| read.sending().people(on.bot, after, &RULES, START, limit).await.unwrap();
    assert_eq!(found("", 2).await, ["ann", "bob"]);
    assert_eq!(found("ann", 2).await, ["bob", "cy"]);
    assert_eq!(found("bob", 2).await, ["cy"]);
    assert!(found("cy", 2).await.is_empty());
    let items = read.sending().open(on.bot, &["cy".to_owned()], &RULES, START, 100).await.unwrap();
    assert_eq!(items.iter().map(|item| item.peer.as_str()).collect::<Vec<_>>(), ["cy", "cy"]);
}

async fn a_send_is_counted_before_it_goes_out(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let id = enqueue(db, outbound(db, on.bot, "ann", "a", &["1"])).await[0];
    assert!(begin(db, &on.lease, id).await);
    let item = &open(db, &on).await[0];
    assert_eq!(
        (item.state.as_str(), item.attempts, item.unknowns, item.window_sends),
        ("sending", 1, 0, Some(1))
    );
    // A second beginning of what was never settled: the process died in between.
    assert!(begin(db, &on.lease, id).await);
    let item = &open(db, &on).await[0];
    assert_eq!((item.attempts, item.unknowns, item.window_sends), (2, 1, Some(2)));
    db.sql("UPDATE outbox SET state = 'sent'").await;
    assert!(!begin(db, &on.lease, id).await, "what is sent is not sent again");
    assert_eq!(db.number("SELECT CAST(window_sends AS BIGINT) FROM contacts").await, 2);
}

async fn sends_of_one_commit_count_each_and_an_item_once(db: &Db) {
    let on = stage(db).await;
    for peer in ["ann", "bob"] {
        accept_one(db, &on, peer, peer, 0).await;
    }
    let (to_ann, to_bob) =
        (outbound(db, on.bot, "ann", "a", &["1"]), outbound(db, on.bot, "bob", "b", &["2"]));
    let ann = enqueue(db, to_ann.clone()).await[0];
    let bob = enqueue(db, to_bob.clone()).await[0];
    let begun = |lease: &Lease, id, peer: &str| {
        db.store.begin_send(Begun {
            lease: lease.clone(),
            id,
            peer: peer.to_owned(),
            shown_to: Vec::new(),
            recent_sends: String::new(),
            now: START,
        })
    };
    let old = Lease { fence: on.lease.fence - 1, bot_id: on.bot };
    let answers = futures_util::join!(
        begun(&old, ann, "ann"),
        begun(&on.lease, ann, "ann"),
        begun(&on.lease, bob, "bob"),
        begun(&on.lease, ann, "ann"),
    );
    let answers = [answers.0, answers.1, answers.2, answers.3].map(Result::unwrap);
    assert_eq!(answers, [false, true, true, false]);
    let items: Vec<_> = open(db, &on)
        .await
        .into_iter()
        .map(|item| (item.attempts, item.unknowns, item.window_sends))
        .collect();
    assert_eq!(items, [(1, 0, Some(1)), (1, 0, Some(1))]);
    let outcome = |send: &NewOutbound, id, attempts, state| {
        db.store.settle_send(Settled { attempts, ..settled(&on, send, id, state) })
    };
    let answers = futures_util::join!(
        outcome(&to_ann, ann, 0, ItemState::Failed),
        outcome(&to_ann, ann, 1, ItemState::Sent),
        outcome(&to_bob, bob, 1, ItemState::Unconfirmed),
        outcome(&to_ann, ann, 1, ItemState::Failed),
    );
    let answers = [answers.0, answers.1, answers.2, answers.3].map(Result::unwrap);
    assert_eq!(answers, [false, true, true, false]);
    for (send, status) in [(to_ann, "sent"), (to_bob, "unconfirmed")] {
        let stored = db.text(format!("SELECT status FROM messages WHERE id = '{}'", send.message_id)).await;
        assert_eq!(stored.as_deref(), Some(status));
    }
}

async fn an_old_lease_sends_nothing(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let id = enqueue(db, outbound(db, on.bot, "ann", "a", &["1"])).await[0];
    let old = Lease { fence: on.lease.fence - 1, bot_id: on.bot };
    assert!(!begin(db, &old, id).await);
    let item = &open(db, &on).await[0];
    assert_eq!((item.state.as_str(), item.attempts, item.window_sends), ("queued", 0, Some(0)));
}

async fn a_message_is_as_far_as_its_slowest_part(db: &Db) {
    use ItemState::{Expired, Failed, Queued, Sent, Unconfirmed, Unknown};
    let on = stage(db).await;
    for (n, (states, expected)) in [
        ([Sent, Sent, Queued], "queued"),
        ([Sent, Sent, Sent], "sent"),
        ([Sent, Unconfirmed, Sent], "unconfirmed"),
        ([Unconfirmed, Unknown, Sent], "unknown"),
        ([Unknown, Expired, Sent], "expired"),
        ([Expired, Failed, Unknown], "failed"),
        ([Failed, Queued, Sent], "queued"),
    ]
    .into_iter()
    .enumerate()
    {
        let send = outbound(db, on.bot, "ann", &format!("{n}"), &["1", "2", "3"]);
        let ids = enqueue(db, send.clone()).await;
        let early = settled(&on, &send, ids[0], Expired);
        assert!(!settle(db, early).await, "it has not expired by the clock of the store");
        db.sql("UPDATE outbox SET expires_at = due_at").await;
        for (id, state) in ids.into_iter().zip(states) {
            let mut one = settled(&on, &send, id, state);
            one.network_id = (state == Sent).then(|| format!("net-{id}"));
            assert!(settle(db, one).await);
        }
        let status = db.text(format!("SELECT status FROM messages WHERE id = '{}'", send.message_id)).await;
        assert_eq!(status.as_deref(), Some(expected), "{states:?}");
    }
    let named = db.text("SELECT network_id FROM messages WHERE dedupe_key = '1'").await.unwrap();
    let first = db.text("SELECT network_id FROM outbox WHERE part = 0 AND client_id = '1-1'").await.unwrap();
    assert_eq!(named, first, "the message is known by its first part");
}

async fn the_last_part_does_not_hide_a_lost_one(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    for (key, first, expected) in
        [("a", ItemState::Failed, "error lost"), ("b", ItemState::Unconfirmed, "ok whole")]
    {
        let send = outbound(db, on.bot, "ann", key, &["1", "2"]);
        let new = trace(db, on.bot, send.message_id, None, "queued");
        let id = new.id;
        let parts = enqueue(db, send.clone()).await;
        commit!(db, |tx| tx.traces().insert(&[&new]).await).unwrap();
        let lost = (first == ItemState::Failed)
            .then(|| TraceUpdate { status: Some(TraceStatus::Error), ..update(id, "lost") });
        settle(db, Settled { trace: lost, ..settled(&on, &send, parts[0], first) }).await;
        let last = Some(update(id, "whole"));
        settle(db, Settled { trace: last, ..settled(&on, &send, parts[1], ItemState::Sent) }).await;
        let told = db.text(format!("SELECT status || ' ' || summary FROM traces WHERE id = '{id}'")).await;
        assert_eq!(told.as_deref(), Some(expected));
        let steps = step_reasons(db, id).await;
        assert!(steps.iter().any(|kind| kind == "whole"), "each part is a step: {steps:?}");
    }
}

async fn a_closed_window_and_an_unknown_outcome_are_kept(db: &Db) {
    let on = stage(db).await;
    let (.., trace) = accept_one(db, &on, "ann", "1", 0).await;
    let send = outbound(db, on.bot, "ann", "a", &["1"]);
    let id = enqueue(db, send.clone()).await[0];
    begin(db, &on.lease, id).await;
    let later = START + Duration::from_secs(30);
    let again = Settled {
        attempts: 1,
        due_at: later,
        unknown: true,
        error: Some("cut".into()),
        close_window: Some("prepare failed".into()),
        trace: Some(update(trace, "reply")),
        ..settled(&on, &send, id, ItemState::Queued)
    };
    assert!(settle(db, again).await);
    let items = open_at(db, &on, Duration::from_secs(60), 9).await;
    assert_eq!(items.len(), 1, "it does not say yet that the window is closed");
    db.sql(format!("UPDATE outbox SET updated_at = {}", later.as_millis())).await;
    assert!(open_at(db, &on, Duration::from_secs(60), 9).await.is_empty(), "it waits for its person");
    let closed = db.text("SELECT window_closed FROM contacts").await;
    assert_eq!(closed.as_deref(), Some("prepare failed"));
    db.sql("UPDATE contacts SET window_closed = NULL").await;
    assert!(open(db, &on).await.is_empty(), "not due yet");
    let item = &open_at(db, &on, Duration::from_secs(30), 9).await[0];
    assert_eq!((item.state.as_str(), item.unknowns, item.due_at), ("queued", 1, later));
    assert_eq!(step_reasons(db, trace).await, ["received", "reply"]);
    let reason =
        db.text(format!("SELECT status_reason FROM messages WHERE id = '{}'", send.message_id)).await;
    assert_eq!(reason.as_deref(), Some("cut"));
}

async fn an_outcome_counts_for_its_try_and_its_window_only(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let send = outbound(db, on.bot, "ann", "a", &["1", "2"]);
    let ids = enqueue(db, send.clone()).await;
    let sends = async || db.number("SELECT CAST(window_sends AS BIGINT) FROM contacts").await;
    for _ in 0..2 {
        assert!(begin(db, &on.lease, ids[0]).await);
    }
    let late = Settled { attempts: 1, ..settled(&on, &send, ids[0], ItemState::Sent) };
    assert!(!settle(db, late).await, "another try has begun");
    assert_eq!(db.texts("SELECT state FROM outbox ORDER BY id").await, ["sending", "queued"]);
    let never_written =
        Settled { attempts: 2, uncount: true, ..settled(&on, &send, ids[0], ItemState::Queued) };
    assert_eq!(sends().await, 2);
    assert!(settle(db, never_written).await);
    assert_eq!(sends().await, 1, "what never reached the network is not counted");
    assert!(begin(db, &on.lease, ids[0]).await);
    let before = Settled {
        attempts: 3,
        uncount: true,
        close_window: Some("prepare failed".into()),
        window_opened_at: Some(START - Duration::from_millis(1)),
        ..settled(&on, &send, ids[0], ItemState::Queued)
    };
    assert!(settle(db, before).await);
    assert_eq!(
        (sends().await, db.text("SELECT window_closed FROM contacts").await),
        (2, None),
        "a later window"
    );
    let done = Settled { attempts: 3, ..settled(&on, &send, ids[0], ItemState::Sent) };
    assert!(settle(db, done.clone()).await);
    assert!(!settle(db, done).await, "what is sent is over");
}

async fn messages_go_when_nothing_waits_for_them(db: &Db) {
    let on = stage(db).await;
    for key in ["pending", "parked", "done"] {
        accept_one(db, &on, "ann", key, 0).await;
        db.sql(format!(
            "UPDATE deliveries SET state = '{key}' WHERE message_id = (SELECT id FROM messages WHERE dedupe_key = '{key}')"
        ))
        .await;
    }
    for key in ["queued", "sending", "sent"] {
        enqueue(db, outbound(db, on.bot, "ann", key, &["x"])).await;
        db.sql(format!("UPDATE outbox SET state = '{key}' WHERE client_id = '{key}-x'")).await;
    }
    let delete = async |after: Option<String>, before, limit| {
        let after = after.unwrap_or_default();
        commit!(db, |tx| tx.sending().delete_messages_before(&after, before, limit).await).unwrap()
    };
    assert_eq!(delete(None, START, 9).await, DeletedBatch::default(), "made at that very moment");
    let later = START + Duration::from_millis(1);
    // Of the first four the third alone has nothing that waits.
    let piece = delete(None, later, 4).await;
    assert_eq!((piece.deleted, piece.last.is_some()), (1, true));
    let piece = delete(piece.last, later, 9).await;
    assert_eq!((piece.deleted, piece.last.is_some()), (1, true));
    assert_eq!(delete(piece.last, later, 9).await, DeletedBatch::default());
    let kept = db.texts("SELECT dedupe_key FROM messages ORDER BY dedupe_key").await;
    assert_eq!(kept, ["parked", "pending", "queued", "sending"]);
    for table in ["channel_log", "deliveries", "traces", "outbox"] {
        assert_eq!(db.count(table).await, 2, "{table}: what went with the messages");
    }
}
