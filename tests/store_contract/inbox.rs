//! Accepting batches; `Store::accept`.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::future::{join, join_all};
use hub_core::{
    page::PageRequest,
    store::{
        deliveries::{DeliveryState, Finished},
        due::{Reading, Stamp},
        inbox::{Accept, Accepted},
    },
    time::Clock,
};

use super::{
    deliveries::finished,
    scene::{
        HOSTILE_TEXTS, accept_one, add_channel, batch, entry, message, scope, stage, step_reasons, taken,
        with_ai,
    },
};
use crate::support::database::{Db, START};

contract!("inbox": {
    a_batch_is_messages_work_contacts_and_cursor_at_once => [],
    a_repeat_is_dropped_by_its_key => [],
    channel_numbers_have_no_gap_under_concurrency => [],
    an_old_fence_stores_nothing => [],
    old_rules_store_nothing => [],
    an_empty_batch_moves_the_cursor_only => [],
    texts_come_back_as_they_were => [],
    messages_and_outcomes_take_one_commit => [],
});

pub const ON_STORE: super::Covered = ("mod", &[&["accept"]]);

async fn messages_and_outcomes_take_one_commit(db: &Db) {
    let on = stage(db).await;
    let stats = db.store.stats();
    let commits = || stats.commits.load(Ordering::Relaxed);
    let before = commits();
    let (_, delivery, trace) = accept_one(db, &on, "ann", "1", on.lease.fence).await;
    assert_eq!(commits(), before + 1);
    let reading = Reading { at: Clock::system().instant(), wall: db.store.now() };
    let stamp = Stamp { read: reading, followed: None };
    let outcome = Finished { stamp, ..finished(&on, delivery, trace, DeliveryState::Done) };
    db.store.finish(Arc::new(outcome.clone())).await.unwrap();
    assert_eq!(commits(), before + 2);
    assert_eq!(step_reasons(db, trace).await, ["received", "request"]);
    // Together, and the outcome for the second time: it counts once.
    let (next, _) = taken(db, message(db, on.bot, "bob", "2", "hi"), on.channel, 0);
    let accepting = db.store.accept(batch(&on.lease, None, vec![next]));
    let (accepted, stored) = join(accepting, db.store.finish(Arc::new(outcome))).await;
    assert_eq!((accepted.unwrap(), stored.unwrap()), (Accepted::Stored(vec![Some(vec![2])]), None));
    assert!(commits() > before + 2);
    assert_eq!(step_reasons(db, trace).await, ["received", "request"]);
    // Two sinks of one trace.
    let (both, webhook) = taken(db, message(db, on.bot, "cid", "3", "hi"), on.channel, 0);
    let (both, ai) = with_ai(db, both);
    let trace = both.routes[0].trace.id;
    db.store.accept(batch(&on.lease, None, vec![both])).await.unwrap();
    let outcome = |id| Finished { stamp, ..finished(&on, id, trace, DeliveryState::Done) };
    let (one, other) =
        join(db.store.finish(Arc::new(outcome(webhook))), db.store.finish(Arc::new(outcome(ai)))).await;
    one.unwrap();
    other.unwrap();
    assert_eq!(step_reasons(db, trace).await, ["received", "request", "request"]);
    let status = db.text(format!("SELECT status FROM traces WHERE id = '{trace}'")).await;
    assert_eq!(status.as_deref(), Some("ok"));
    // Under old rules nothing is stored, nor does the cursor move.
    let stale = Accept { config_rev: 7, ..batch(&on.lease, Some("stale"), Vec::new()) };
    assert_eq!(db.store.accept(stale).await.unwrap(), Accepted::Stale);
    assert_eq!(cursor(db).await, "1");
}

async fn row_counts(db: &Db) -> Vec<i64> {
    let mut counts = Vec::new();
    for table in ["messages", "channel_log", "deliveries", "traces", "contacts"] {
        counts.push(db.count(table).await);
    }
    counts
}

async fn cursor(db: &Db) -> String {
    db.text("SELECT cursor FROM bots").await.unwrap()
}

async fn a_batch_is_messages_work_contacts_and_cursor_at_once(db: &Db) {
    let on = stage(db).await;
    let second = add_channel(db, on.bot, "second").await;
    let (first, delivery) = taken(db, message(db, on.bot, "ann", "1", "hello"), on.channel, on.lease.fence);
    let (first, _) = taken(db, first, second, 0);
    let (other, _) = taken(db, message(db, on.bot, "bob", "2", "hi"), second, 0);
    let skipped = message(db, on.bot, "ann", "3", "for no channel");
    let accepted =
        db.store.accept(batch(&on.lease, Some("next"), vec![first, other, skipped])).await.unwrap();
    let seqs = vec![Some(vec![1, 1]), Some(vec![2]), Some(vec![])];
    assert_eq!(accepted, Accepted::Stored(seqs));
    assert_eq!(row_counts(db).await, [3, 3, 3, 3, 2]);
    assert_eq!(cursor(db).await, "next");
    let held =
        db.number(format!("SELECT CAST(claim AS BIGINT) FROM deliveries WHERE id = '{delivery}'")).await;
    assert_eq!(held, on.lease.fence);
    let mut read = db.store.read().await.unwrap();
    let ann = read.contacts().find(on.bot, "ann").await.unwrap().unwrap();
    assert_eq!((ann.message_count, ann.user_name.as_str()), (2, "Name of ann"));
    assert_eq!((ann.window.opened_at, ann.window.sends), (Some(START), 0));
    let token = db.text("SELECT context_token FROM contacts WHERE user_id = 'ann'").await;
    assert_eq!(token.as_deref(), Some("token of 3"), "the newest permission counts");
    let bot = read.bots().find(scope(on.owner).owner(), on.bot).await.unwrap().unwrap();
    assert_eq!((bot.last_inbound_at, bot.last_poll_at), (Some(START), Some(START)));
}

async fn a_repeat_is_dropped_by_its_key(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "same", 0).await;
    let before = row_counts(db).await;
    let (repeat, _) = taken(db, message(db, on.bot, "ann", "same", "again"), on.channel, 0);
    let (new, _) = taken(db, message(db, on.bot, "ann", "new", "more"), on.channel, 0);
    let (twin, _) = taken(db, message(db, on.bot, "ann", "new", "twin"), on.channel, 0);
    let accepted = db.store.accept(batch(&on.lease, None, vec![repeat, new, twin])).await.unwrap();
    assert_eq!(accepted, Accepted::Stored(vec![None, Some(vec![2]), None]), "a repeat takes no number");
    let after = row_counts(db).await;
    assert_eq!(after, before.iter().zip([1, 1, 1, 1, 0]).map(|(n, more)| n + more).collect::<Vec<_>>());
    let count = db.number("SELECT CAST(message_count AS BIGINT) FROM contacts").await;
    assert_eq!(count, 2, "a repeat is not counted");
    assert_eq!(cursor(db).await, "same", "no cursor keeps the old one");
    // Another bot has keys of its own.
    let other = db.bot(on.owner).await;
    let leases = super::scene::lease(db).await.1;
    let same = message(db, other, "ann", "same", "elsewhere");
    let accepted = db.store.accept(batch(&leases[&other], None, vec![same])).await.unwrap();
    assert_eq!(accepted, Accepted::Stored(vec![Some(vec![])]));
}

async fn channel_numbers_have_no_gap_under_concurrency(db: &Db) {
    let on = stage(db).await;
    let accepts = (0..60).map(|n| {
        let batches = (0..=n % 3).map(|k| {
            // Every fourth batch repeats the one before.
            let key = format!("{}-{k}", if n % 4 == 3 { n - 1 } else { n });
            taken(db, message(db, on.bot, "ann", &key, "x"), on.channel, 0).0
        });
        db.store.accept(batch(&on.lease, Some("c"), batches.collect()))
    });
    let mut seqs = Vec::new();
    for accepted in join_all(accepts).await {
        let Accepted::Stored(stored) = accepted.unwrap() else { panic!("the lease holds") };
        seqs.extend(stored.into_iter().flatten().flatten());
    }
    seqs.sort_unstable();
    let count = i64::try_from(seqs.len()).unwrap();
    assert_eq!(seqs, (1..=count).collect::<Vec<_>>());
    assert_eq!(db.number("SELECT CAST(last_seq AS BIGINT) FROM channels").await, count);
    assert_eq!(db.count("channel_log").await, count);
    assert_eq!(db.count("messages").await, count);
}

async fn an_old_fence_stores_nothing(db: &Db) {
    let on = stage(db).await;
    let late = START + Duration::from_secs(31);
    let node = db.ids.next();
    let taken_over = commit!(db, |tx| tx.leases().acquire(&entry(node), late, late, 1).await).unwrap();
    assert_eq!(taken_over.len(), 1);
    let (sleeper, _) = taken(db, message(db, on.bot, "ann", "1", "late"), on.channel, on.lease.fence);
    let accepted = db.store.accept(batch(&on.lease, Some("late"), vec![sleeper])).await.unwrap();
    assert_eq!(accepted, Accepted::Fenced);
    assert_eq!(row_counts(db).await, [0; 5]);
    assert_eq!(cursor(db).await, "");
    db.sql("DELETE FROM channels").await;
    db.sql("DELETE FROM bots").await;
    let gone = db.store.accept(batch(&taken_over[0], Some("x"), vec![])).await.unwrap();
    assert_eq!(gone, Accepted::Fenced, "a bot that is gone is no one's");
}

async fn old_rules_store_nothing(db: &Db) {
    let on = stage(db).await;
    let mine = scope(on.owner);
    commit!(db, |tx| tx.channels().begin_change(mine, on.bot).await).unwrap();
    let (old, _) = taken(db, message(db, on.bot, "ann", "1", "old"), on.channel, 0);
    let other = db.bot(on.owner).await;
    let leases = super::scene::lease(db).await.1;
    let fine = batch(&leases[&other], Some("fine"), vec![message(db, other, "ann", "1", "x")]);
    let (stale, stored) =
        futures_util::join!(db.store.accept(batch(&on.lease, Some("x"), vec![old])), db.store.accept(fine));
    assert_eq!(stale.unwrap(), Accepted::Stale);
    assert_eq!(stored.unwrap(), Accepted::Stored(vec![Some(vec![])]), "a neighbour in the commit is stored");
    assert_eq!(db.count("messages").await, 1);
    let (again, _) = taken(db, message(db, on.bot, "ann", "1", "again"), on.channel, 0);
    let again = hub_core::store::inbox::Accept { config_rev: 1, ..batch(&on.lease, Some("y"), vec![again]) };
    assert_eq!(db.store.accept(again).await.unwrap(), Accepted::Stored(vec![Some(vec![1])]));
}

async fn an_empty_batch_moves_the_cursor_only(db: &Db) {
    let on = stage(db).await;
    db.sql("UPDATE bots SET last_error = 'no answer'").await;
    let accepted = db.store.accept(batch(&on.lease, Some("moved"), vec![])).await.unwrap();
    assert_eq!(accepted, Accepted::Stored(vec![]));
    assert_eq!(cursor(db).await, "moved");
    assert_eq!(row_counts(db).await, [0; 5]);
    assert_eq!(db.number("SELECT count(*) FROM bots WHERE last_inbound_at IS NULL").await, 1);
    assert_eq!(db.text("SELECT last_error FROM bots").await, None, "the network answered");
}

async fn texts_come_back_as_they_were(db: &Db) {
    let on = stage(db).await;
    let mut messages = Vec::new();
    for (n, text) in HOSTILE_TEXTS.into_iter().enumerate() {
        let mut one = message(db, on.bot, text, &format!("{n}"), text);
        text.clone_into(&mut one.row.user_name);
        messages.push(one);
    }
    db.store.accept(batch(&on.lease, Some(HOSTILE_TEXTS[3]), messages)).await.unwrap();
    assert_eq!(cursor(db).await, HOSTILE_TEXTS[3]);
    let mut read = db.store.read().await.unwrap();
    let filter = hub_core::bots::MessageFilter::default();
    let mut listed = read.messages().page(on.bot, &filter, &PageRequest::default()).await.unwrap().rows;
    listed.reverse();
    let keys: Vec<String> = (0..HOSTILE_TEXTS.len()).map(|n| n.to_string()).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let by_id = read.messages().quoted(on.bot, &keys).await.unwrap();
    for ((text, message), key) in HOSTILE_TEXTS.into_iter().zip(&listed).zip(keys) {
        assert_eq!((message.content.as_str(), message.from_user_id.as_str()), (text, text));
        assert_eq!(message.user_name, text);
        assert_eq!(by_id[key].content, text);
    }
}
