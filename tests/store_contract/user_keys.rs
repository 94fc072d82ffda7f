use std::time::Duration;

use hub_core::{
    access::Role,
    accounts::{ApiKey, User, UserStatus},
    id::{KeyId, UserId},
    page::PageRequest,
    secret::TokenHash,
};

use crate::support::database::{Db, START};

contract!("user_keys": {
    a_key_is_added_for_an_active_user_below_the_cap => [insert, find_holder],
    a_key_ends_by_time_and_by_its_user => [find_holder, delete],
    a_key_is_touched_once_per_span => [touch],
    keys_are_listed_newest_first_and_belong_to_their_user => [page],
    parallel_keys_do_not_pass_the_cap => [insert],
});

const HOUR: Duration = Duration::from_secs(3600);

async fn user(db: &Db, name: &str, status: UserStatus) -> UserId {
    let user = User {
        id: db.ids.next(),
        username: name.to_owned(),
        display_name: name.to_owned(),
        email: String::new(),
        role: Role::Member,
        status,
        created_at: START,
    };
    let id = user.id;
    commit!(db, |tx| tx.accounts().insert_user(&user, None, Some(Role::Member)).await).unwrap();
    id
}

/// Adds a key that lives an hour, whose secret is its name.
async fn add(db: &Db, user_id: UserId, name: &'static str, most: u32) -> Option<KeyId> {
    let id: KeyId = db.ids.next();
    let key = ApiKey {
        id,
        name: name.to_owned(),
        last4: "last".to_owned(),
        created_at: START,
        expires_at: Some(START + HOUR),
        last_used_at: None,
    };
    let added = commit!(db, |tx| tx.user_keys().insert(user_id, &key, &TokenHash::of(name), most).await);
    added.unwrap().then_some(id)
}

async fn a_key_is_added_for_an_active_user_below_the_cap(db: &Db) {
    let (ada, bob) = (user(db, "ada", UserStatus::Active).await, user(db, "bob", UserStatus::Disabled).await);
    let first = add(db, ada, "first", 2).await.unwrap();
    assert!(add(db, ada, "second", 2).await.is_some());
    assert!(add(db, ada, "third", 2).await.is_none());
    assert!(add(db, bob, "bobs", 2).await.is_none());
    let mut read = db.store.read().await.unwrap();
    let holder = read.user_keys().find_holder(&TokenHash::of("first"), START).await.unwrap().unwrap();
    assert_eq!((holder.key_id, holder.user_id, holder.role), (first, ada, Role::Member));
    assert!(read.user_keys().find_holder(&TokenHash::of("third"), START).await.unwrap().is_none());
}

async fn a_key_ends_by_time_and_by_its_user(db: &Db) {
    let (ada, bob) = (user(db, "ada", UserStatus::Active).await, user(db, "bob", UserStatus::Active).await);
    let key = add(db, ada, "key", 9).await.unwrap();
    let lives = async |after: Duration| {
        let mut read = db.store.read().await.unwrap();
        read.user_keys().find_holder(&TokenHash::of("key"), START + after).await.unwrap().is_some()
    };
    assert!(lives(super::scene::just_before(HOUR)).await);
    assert!(!lives(HOUR).await);
    assert_eq!(commit!(db, |tx| tx.user_keys().delete(bob, key).await).unwrap(), None);
    assert!(lives(Duration::ZERO).await);
    assert_eq!(commit!(db, |tx| tx.user_keys().delete(ada, key).await).unwrap().as_deref(), Some("key"));
    assert!(!lives(Duration::ZERO).await);
    assert_eq!(commit!(db, |tx| tx.user_keys().delete(ada, key).await).unwrap(), None);
}

async fn a_key_is_touched_once_per_span(db: &Db) {
    let ada = user(db, "ada", UserStatus::Active).await;
    let key = add(db, ada, "key", 9).await.unwrap();
    let used = async || {
        let mut read = db.store.read().await.unwrap();
        read.user_keys().find_holder(&TokenHash::of("key"), START).await.unwrap().unwrap().last_used_at
    };
    assert_eq!(used().await, None);
    let (now, later) = (START + HOUR / 4, START + HOUR / 2);
    commit!(db, |tx| tx.user_keys().touch(key, now, START).await).unwrap();
    commit!(db, |tx| tx.user_keys().touch(key, later, START).await).unwrap();
    assert_eq!(used().await, Some(now));
    commit!(db, |tx| tx.user_keys().touch(key, later, now).await).unwrap();
    assert_eq!(used().await, Some(later));
}

async fn keys_are_listed_newest_first_and_belong_to_their_user(db: &Db) {
    let (ada, bob) = (user(db, "ada", UserStatus::Active).await, user(db, "bob", UserStatus::Active).await);
    for name in ["a", "b", "c"] {
        add(db, ada, name, 9).await.unwrap();
    }
    add(db, bob, "bobs", 9).await.unwrap();
    let mut read = db.store.read().await.unwrap();
    let two = PageRequest::parse("keys", Some(1), None).unwrap();
    let names = |keys: Vec<ApiKey>| keys.into_iter().map(|key| key.name).collect::<Vec<_>>();
    assert_eq!(names(read.user_keys().page(ada, &two).await.unwrap()), ["c", "b"]);
    let bobs = read.user_keys().page(bob, &PageRequest::default()).await.unwrap();
    assert_eq!((bobs[0].expires_at, &*bobs[0].last4), (Some(START + HOUR), "last"));
    assert_eq!(names(bobs), ["bobs"]);
}

async fn parallel_keys_do_not_pass_the_cap(db: &Db) {
    let ada = user(db, "ada", UserStatus::Active).await;
    let names: Vec<&'static str> = (0..50).map(|n| &*format!("key {n}").leak()).collect();
    let added = futures_util::future::join_all(names.into_iter().map(|name| add(db, ada, name, 5))).await;
    assert_eq!(added.into_iter().flatten().count(), 5);
    assert_eq!(db.count("user_keys").await, 5);
}
