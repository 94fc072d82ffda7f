use std::time::Duration;

use hub_core::{id::UserId, store::inbox::ContactUpdate};

use super::scene::{Stage, batch, message, stage};
use crate::support::database::{Db, START};

contract!("contacts": {
    contacts_are_listed_by_their_last_message => [page, find],
    a_remark_is_the_owners => [set_remark],
    people_are_called_by_their_names_or_else_by_remarks => [names],
    windows_close_with_the_login_they_belong_to => [close_windows],
    a_message_reopens_the_window => [find],
    the_message_that_arrives_last_opens_the_window => [find, context_token],
    the_newest_permission_is_kept_sealed => [context_token],
});

const HOUR: Duration = Duration::from_secs(3600);

/// `peer` writes `hours` after the start.
async fn write(db: &Db, on: &Stage, peer: &str, hours: u32) {
    let mut one = message(db, on.bot, peer, &format!("{peer}-{hours}"), "x");
    one.row.created_at = START + HOUR * hours;
    one.contact = Some(ContactUpdate { opened_at: START + HOUR * hours, ..one.contact.unwrap() });
    let now = START + HOUR * hours;
    let batch = hub_core::store::inbox::Accept { now, ..batch(&on.lease, None, vec![one]) };
    db.store.accept(batch).await.unwrap();
}

async fn people_are_called_by_their_names_or_else_by_remarks(db: &Db) {
    let on = stage(db).await;
    for (peer, network_name) in [("ann", "Ann of the network"), ("bob", ""), ("cat", "")] {
        let mut one = message(db, on.bot, peer, peer, "x");
        // What a message shows is not taken for the network's name.
        "shown".clone_into(&mut one.row.user_name);
        network_name.clone_into(&mut one.contact.as_mut().unwrap().network_name);
        db.store.accept(batch(&on.lease, None, vec![one])).await.unwrap();
    }
    for (peer, remark) in [("ann", "my Ann"), ("bob", "my Bob")] {
        assert!(commit!(db, |tx| tx.contacts().set_remark(None, on.bot, peer, remark).await).unwrap());
    }
    let mut read = db.store.read().await.unwrap();
    let names = read.contacts().names(on.bot, &["ann", "bob", "cat", "nobody"]).await.unwrap();
    let expected = [("ann", "Ann of the network"), ("bob", "my Bob")];
    assert_eq!(names, expected.map(|(user, name)| (user.to_owned(), name.to_owned())).into());
    assert!(read.contacts().names(db.ids.next(), &["ann"]).await.unwrap().is_empty());
}

async fn the_newest_permission_is_kept_sealed(db: &Db) {
    let on = stage(db).await;
    for hours in [1, 2] {
        write(db, &on, "ann", hours).await;
    }
    let mut read = db.store.read().await.unwrap();
    let token = read.contacts().context_token(on.bot, "ann").await.unwrap().unwrap();
    assert_eq!(token.as_str(), "token of ann-2");
    assert!(read.contacts().context_token(on.bot, "Ann").await.unwrap().is_none());
}

async fn contacts_are_listed_by_their_last_message(db: &Db) {
    let on = stage(db).await;
    for (peer, hours) in [("ann", 1), ("bob", 3), ("Bob", 3), ("cat", 2), ("ann", 4)] {
        write(db, &on, peer, hours).await;
    }
    let mut read = db.store.read().await.unwrap();
    let mut page = async |after, limit| {
        let rows = read.contacts().page(on.bot, after, limit).await.unwrap();
        rows.into_iter().map(|row| (row.user_id, row.message_count)).collect::<Vec<_>>()
    };
    let all = [("ann", 2), ("bob", 1), ("Bob", 1), ("cat", 1)].map(|(name, n)| (name.to_owned(), n));
    assert_eq!(page(None, 9).await, all);
    let after = (START + HOUR * 3, "bob");
    assert_eq!(page(Some(after), 1).await, all[2..3]);
    assert_eq!(page(Some(after), 9).await, all[2..]);
    assert!(read.contacts().find(on.bot, "BOB").await.unwrap().is_none(), "ids are compared byte for byte");
    assert!(read.contacts().find(db.ids.next(), "ann").await.unwrap().is_none());
}

async fn a_remark_is_the_owners(db: &Db) {
    let on = stage(db).await;
    let bob = db.user("bob").await;
    write(db, &on, "ann", 1).await;
    let set = async |owner: Option<UserId>, user: &str, remark: &str| {
        let (user, remark) = (user.to_owned(), remark.to_owned());
        commit!(db, |tx| tx.contacts().set_remark(owner, on.bot, &user, &remark).await).unwrap()
    };
    assert!(!set(Some(bob), "ann", "stolen").await);
    assert!(!set(Some(on.owner), "nobody", "x").await);
    for remark in super::scene::HOSTILE_TEXTS {
        assert!(set(Some(on.owner), "ann", remark).await);
        let mut read = db.store.read().await.unwrap();
        assert_eq!(read.contacts().find(on.bot, "ann").await.unwrap().unwrap().remark, remark);
    }
    assert!(set(None, "ann", "the operator's").await);
    write(db, &on, "ann", 2).await;
    let ann = db.store.read().await.unwrap().contacts().find(on.bot, "ann").await.unwrap().unwrap();
    assert_eq!(ann.remark, "the operator's", "a message does not change what people wrote");
}

async fn windows_close_with_the_login_they_belong_to(db: &Db) {
    let on = stage(db).await;
    write(db, &on, "ann", 1).await;
    let other = db.bot(on.owner).await;
    let leases = super::scene::lease(db).await.1;
    let elsewhere = message(db, other, "ann", "1", "x");
    db.store.accept(batch(&leases[&other], None, vec![elsewhere])).await.unwrap();
    commit!(db, |tx| tx.contacts().close_windows(on.bot, START + HOUR * 7).await).unwrap();
    let mut read = db.store.read().await.unwrap();
    let mine = read.contacts().find(on.bot, "ann").await.unwrap().unwrap();
    assert_eq!((mine.window.opened_at, mine.message_count), (None, 1));
    let bound = |hours| Some((START + HOUR * hours).as_millis().to_string());
    assert_eq!(mine.window.closed, bound(7));
    assert!(read.contacts().find(other, "ann").await.unwrap().unwrap().window.opened_at.is_some());
    assert_eq!(db.number("SELECT count(*) FROM contacts WHERE context_token IS NULL").await, 1);
    drop(read);
    commit!(db, |tx| tx.contacts().close_windows(on.bot, START + HOUR * 8).await).unwrap();
    let mut read = db.store.read().await.unwrap();
    let again = read.contacts().find(on.bot, "ann").await.unwrap().unwrap();
    assert_eq!(again.window.closed, bound(8), "each login counts separately");
    drop(read);
    write(db, &on, "ann", 9).await;
    let wrote = db.store.read().await.unwrap().contacts().find(on.bot, "ann").await.unwrap().unwrap();
    assert_eq!((wrote.window.opened_at, wrote.window.closed), (Some(START + HOUR * 9), None));
}

async fn a_message_reopens_the_window(db: &Db) {
    let on = stage(db).await;
    write(db, &on, "ann", 5).await;
    db.sql("UPDATE contacts SET window_sends = 3, window_closed = 'full'").await;
    write(db, &on, "ann", 6).await;
    let ann = db.store.read().await.unwrap().contacts().find(on.bot, "ann").await.unwrap().unwrap();
    assert_eq!((ann.window.opened_at, ann.window.sends), (Some(START + HOUR * 6), 0));
    assert_eq!(ann.window.closed, None);
}

/// Clocks may be set back: what counts is the order of arrival, not the times of messages.
async fn the_message_that_arrives_last_opens_the_window(db: &Db) {
    let on = stage(db).await;
    let window = async || {
        let mut read = db.store.read().await.unwrap();
        let token = read.contacts().context_token(on.bot, "ann").await.unwrap().unwrap();
        let ann = read.contacts().find(on.bot, "ann").await.unwrap().unwrap();
        ((ann.window.opened_at, ann.window.sends, ann.window.closed), token.as_str().to_owned())
    };
    let opened = |hours| (Some(START + HOUR * hours), 0, None);
    write(db, &on, "ann", 6).await;
    db.sql("UPDATE contacts SET window_sends = 10, window_closed = 'full'").await;
    write(db, &on, "ann", 5).await;
    assert_eq!(window().await, (opened(5), "token of ann-5".to_owned()));
    let both = [4, 3].map(|hours| {
        let mut one = message(db, on.bot, "ann", &format!("ann-{hours}"), "x");
        one.contact = Some(ContactUpdate { opened_at: START + HOUR * hours, ..one.contact.unwrap() });
        one
    });
    db.store.accept(batch(&on.lease, None, both.into())).await.unwrap();
    assert_eq!(window().await, (opened(3), "token of ann-3".to_owned()), "in one batch");
}
