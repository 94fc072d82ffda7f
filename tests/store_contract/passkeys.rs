use hub_core::{
    access::Role,
    accounts::{User, UserStatus},
    id::{PasskeyId, UserId},
    page::PageRequest,
    store::passkeys::PasskeyRow,
};

use crate::support::database::{Db, START};

contract!("passkeys": {
    a_credential_is_of_one_user => [insert, find, credential_ids, count],
    of_many_uses_with_one_state_one_is_noted => [note_use, list],
    passkeys_are_listed_newest_first_and_deleted_by_their_user => [list, delete],
});

/// A user for what belongs to one.
pub async fn user(db: &Db, name: &str) -> UserId {
    let user = User {
        id: db.ids.next(),
        username: name.to_owned(),
        display_name: name.to_owned(),
        email: String::new(),
        role: Role::Member,
        status: UserStatus::Active,
        created_at: START,
    };
    let id = user.id;
    commit!(db, |tx| tx.accounts().insert_user(&user, None, None).await).unwrap();
    id
}

async fn add(db: &Db, user_id: UserId, credential: &str) -> (PasskeyId, bool) {
    let row = PasskeyRow {
        id: db.ids.next(),
        user_id,
        credential_id: credential.to_owned(),
        credential: "old".to_owned(),
        name: format!("Name of {credential}"),
        created_at: START,
    };
    let id = row.id;
    (id, commit!(db, |tx| tx.passkeys().insert(&row).await).unwrap())
}

async fn a_credential_is_of_one_user(db: &Db) {
    let (ada, bob) = (user(db, "ada").await, user(db, "bob").await);
    let (id, added) = add(db, ada, "one").await;
    assert!(added);
    assert!(!add(db, bob, "one").await.1, "the credential is ada's");
    add(db, ada, "two").await;
    let mut read = db.store.read().await.unwrap();
    assert_eq!(read.passkeys().find("one").await.unwrap(), Some((id, ada, "old".to_owned())));
    assert_eq!(read.passkeys().find("three").await.unwrap(), None);
    assert_eq!(read.passkeys().credential_ids(ada).await.unwrap(), ["one", "two"]);
    assert_eq!(
        (read.passkeys().count(ada).await.unwrap(), read.passkeys().count(bob).await.unwrap()),
        (2, 0)
    );
}

async fn of_many_uses_with_one_state_one_is_noted(db: &Db) {
    let ada = user(db, "ada").await;
    let (id, _) = add(db, ada, "one").await;
    let note = async || commit!(db, |tx| tx.passkeys().note_use(id, "old", "new", START).await).unwrap();
    let noted = futures_util::future::join_all((0..20).map(|_| note())).await;
    assert_eq!(noted.into_iter().filter(|noted| *noted).count(), 1);
    let list = db.store.read().await.unwrap().passkeys().list(ada, &PageRequest::default()).await.unwrap();
    assert_eq!(list[0].last_used_at, Some(START));
}

async fn passkeys_are_listed_newest_first_and_deleted_by_their_user(db: &Db) {
    let (ada, bob) = (user(db, "ada").await, user(db, "bob").await);
    let mut ids = Vec::new();
    for credential in ["one", "two", "three"] {
        ids.push(add(db, ada, credential).await.0);
    }
    ids.reverse();
    let list = async |page: PageRequest| {
        let rows = db.store.read().await.unwrap().passkeys().list(ada, &page).await.unwrap();
        rows.into_iter().map(|passkey| passkey.id).collect::<Vec<_>>()
    };
    assert_eq!(list(PageRequest::default()).await, ids);
    assert_eq!(list(PageRequest::parse("p", Some(1), None).unwrap()).await, ids[..2]);
    let cursor = hub_core::page::encode("p", &ids[0].to_string());
    assert_eq!(list(PageRequest::parse("p", Some(5), Some(&cursor)).unwrap()).await, ids[1..]);
    let id = ids[0];
    let delete = async |user| commit!(db, |tx| tx.passkeys().delete(user, id).await).unwrap();
    assert!(!delete(bob).await, "another user's");
    assert!(delete(ada).await);
    assert!(!delete(ada).await);
}
