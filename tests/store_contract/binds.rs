use std::time::Duration;

use hub_core::{
    bots::{BindStatus, StoredBind},
    id::{BotId, UserId},
    secret::Sealed,
    store::binds::BindChange,
};

use crate::support::database::{Db, START};

contract!("binds": {
    a_bind_is_visible_to_the_user_who_started_it => [insert, find],
    one_of_two_changes_wins => [advance, find],
    old_and_surplus_binds_are_forgotten => [insert],
    binds_of_a_bot_go_with_it => [delete_of_bot],
});

const HOUR: Duration = Duration::from_secs(3600);

fn bind(db: &Db, owner: UserId, name: &str, hours: u32) -> StoredBind {
    StoredBind {
        id: db.ids.next(),
        owner_id: owner,
        for_bot: None,
        network: "sim".into(),
        name: name.to_owned(),
        status: BindStatus::Waiting,
        private: Sealed::from("notes".to_owned()),
        codes_shown: 1,
        rev: 1,
        bot_id: None,
        expires_at: START + HOUR * hours,
    }
}

async fn insert(db: &Db, new: StoredBind, keep: u32) {
    commit!(db, |tx| tx.binds().insert(&new, START, START, keep).await).unwrap();
}

async fn a_bind_is_visible_to_the_user_who_started_it(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    for name in super::scene::HOSTILE_TEXTS {
        let mut new = bind(db, ada, name, 1);
        new.for_bot = Some(db.ids.next());
        insert(db, new.clone(), 99).await;
        let mut read = db.store.read().await.unwrap();
        let found = read.binds().find(ada, new.id).await.unwrap().unwrap();
        assert_eq!(format!("{found:?}"), format!("{new:?}"));
        assert_eq!(found.private.as_str(), "notes");
        assert!(read.binds().find(bob, new.id).await.unwrap().is_none());
    }
}

async fn one_of_two_changes_wins(db: &Db) {
    let ada = db.user("ada").await;
    let new = bind(db, ada, "x", 1);
    let id = new.id;
    insert(db, new, 9).await;
    let bot: BotId = db.ids.next();
    let change = |status, bot_id| BindChange {
        status,
        private: Sealed::from("new".to_owned()),
        codes_shown: 2,
        bot_id,
    };
    let advance =
        async |rev, change: BindChange| commit!(db, |tx| tx.binds().advance(id, rev, &change).await).unwrap();
    let both = futures_util::join!(
        advance(1, change(BindStatus::Scanned, None)),
        advance(1, change(BindStatus::Scanned, None))
    );
    assert_eq!(usize::from(both.0) + usize::from(both.1), 1);
    assert!(advance(2, change(BindStatus::Confirmed, Some(bot))).await);
    assert!(!advance(2, change(BindStatus::Expired, None)).await);
    let found = db.store.read().await.unwrap().binds().find(ada, id).await.unwrap().unwrap();
    assert_eq!((found.status, found.rev, found.codes_shown), (BindStatus::Confirmed, 3, 2));
    assert_eq!((found.bot_id, found.private.as_str()), (Some(bot), "new"));
}

async fn old_and_surplus_binds_are_forgotten(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    insert(db, bind(db, bob, "his", 1), 2).await;
    for name in ["first", "second", "third"] {
        insert(db, bind(db, ada, name, 1), 2).await;
    }
    assert_eq!(db.texts("SELECT name FROM binds ORDER BY id").await, ["his", "second", "third"]);
    let late = bind(db, bob, "late", 9);
    let after = START + HOUR * 2;
    commit!(db, |tx| tx.binds().insert(&late, after, after, 2).await).unwrap();
    assert_eq!(db.texts("SELECT name FROM binds").await, ["late"], "all that ended before are gone");
}

async fn binds_of_a_bot_go_with_it(db: &Db) {
    let ada = db.user("ada").await;
    let (mine, other): (BotId, BotId) = (db.ids.next(), db.ids.next());
    for (name, for_bot, ended_with) in [
        ("for", Some(mine), None),
        ("with", None, Some(mine)),
        ("other", Some(other), None),
        ("none", None, None),
    ] {
        let mut new = bind(db, ada, name, 1);
        (new.for_bot, new.bot_id) = (for_bot, ended_with);
        insert(db, new, 9).await;
    }
    commit!(db, |tx| tx.binds().delete_of_bot(mine).await).unwrap();
    assert_eq!(db.texts("SELECT name FROM binds ORDER BY id").await, ["other", "none"]);
}
