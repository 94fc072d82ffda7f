use std::time::Duration;

use hub_core::{
    audit::{Action, NewEntry},
    id::AuditId,
    page::{self, PageRequest},
    store::audit::AuditFilter,
    time::Timestamp,
};
use serde_json::json;

use crate::support::database::{Db, START};

contract!("audit": {
    an_entry_takes_the_names_of_the_moment => [add, page],
    entries_are_filtered_and_paged => [page],
    a_user_sees_what_they_did_and_what_was_done_to_them => [page_of_user],
    old_entries_are_forgotten_in_pieces => [delete_before],
});

fn entry(db: &Db, actor: &str, action: Action, at: Timestamp) -> NewEntry {
    NewEntry {
        id: db.ids.next(),
        at,
        actor: actor.to_owned(),
        credential: String::new(),
        action,
        target: String::new(),
        target_name: String::new(),
        detail: json!({}),
        ip: "10.0.0.1".to_owned(),
    }
}

async fn add(db: &Db, entry: NewEntry) -> AuditId {
    let id = entry.id;
    commit!(db, |tx| tx.audit().add(&entry).await).unwrap();
    id
}

async fn an_entry_takes_the_names_of_the_moment(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let about_bob = entry(db, &ada.to_string(), Action::UserUpdated, START).target(bob, "no name of his");
    add(db, about_bob.detail(json!({ "role": "admin" }))).await;
    add(db, entry(db, "operator", Action::KeyDeleted, START).target("key_1", "ci")).await;
    db.sql("DELETE FROM users").await;
    let mut read = db.store.read().await.unwrap();
    let entries = read.audit().page(&AuditFilter::default(), &PageRequest::default()).await.unwrap().rows;
    let [second, first] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((&first.actor, &*first.actor_name), (&ada.to_string(), "ada"));
    assert_eq!((&first.target, &*first.target_name), (&bob.to_string(), "bob"));
    assert_eq!((&*first.action, &first.detail), ("user.updated", &json!({ "role": "admin" })));
    assert_eq!((first.at, &*first.ip, &*first.credential), (START, "10.0.0.1", ""));
    assert_eq!((&*second.actor, &*second.actor_name, &*second.target_name), ("operator", "", "ci"));
}

async fn a_user_sees_what_they_did_and_what_was_done_to_them(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let login = add(db, entry(db, &ada.to_string(), Action::Login, START).target("ses_1", "")).await;
    let guess = add(db, entry(db, "", Action::LoginFailed, START).target(ada, "")).await;
    let by_bob = add(db, entry(db, &bob.to_string(), Action::UserUpdated, START).target(ada, "")).await;
    add(db, entry(db, &bob.to_string(), Action::Login, START)).await;
    add(db, entry(db, "", Action::LoginFailed, START)).await;
    let ids = async |limit, after: Option<AuditId>| {
        let mut read = db.store.read().await.unwrap();
        let cursor = after.map(|id| page::encode("audit", &id.to_string()));
        let page = PageRequest::parse("audit", Some(limit), cursor.as_deref()).unwrap();
        let entries = read.audit().page_of_user(ada, &page).await.unwrap();
        entries.into_iter().map(|entry| entry.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(50, None).await, [by_bob, guess, login]);
    assert_eq!(ids(1, None).await, [by_bob, guess], "one more than the page holds");
    assert_eq!(ids(50, Some(by_bob)).await, [guess, login]);
}

async fn entries_are_filtered_and_paged(db: &Db) {
    let mut made = Vec::new();
    for (actor, action) in [("a", Action::Login), ("b", Action::Login), ("a", Action::Logout)] {
        made.push(add(db, entry(db, actor, action, START).target("t", "")).await);
    }
    let mut read = db.store.read().await.unwrap();
    let mut ids = async |actor: Option<&str>, action: Option<&str>, target: Option<&str>, limit| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let filter = AuditFilter { actor: own(actor), action: own(action), target: own(target) };
        let page = PageRequest::parse("audit", Some(limit), None).unwrap();
        let entries = read.audit().page(&filter, &page).await.unwrap().rows;
        entries.into_iter().map(|entry| entry.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, None, None, 1).await, [made[2], made[1]], "one more than the page holds");
    assert_eq!(ids(Some("a"), None, None, 9).await, [made[2], made[0]]);
    assert_eq!(ids(Some("a"), Some("user.login"), Some("t"), 9).await, [made[0]]);
    assert_eq!(ids(None, None, Some("other"), 9).await, []);
}

async fn old_entries_are_forgotten_in_pieces(db: &Db) {
    for _ in 0..3 {
        add(db, entry(db, "a", Action::Login, START)).await;
    }
    let day = Duration::from_secs(24 * 60 * 60);
    let kept = add(db, entry(db, "a", Action::Login, START + day)).await;
    let forget = async |limit| commit!(db, |tx| tx.audit().delete_before(START + day, limit).await).unwrap();
    assert_eq!((forget(2).await, forget(2).await, forget(2).await), (2, 1, 0));
    let mut read = db.store.read().await.unwrap();
    let left = read.audit().page(&AuditFilter::default(), &PageRequest::default()).await.unwrap().rows;
    assert_eq!(left.iter().map(|entry| entry.id).collect::<Vec<_>>(), [kept]);
}
