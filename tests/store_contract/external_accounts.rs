use hub_core::{accounts::ExternalAccount, id::UserId};

use super::passkeys::user;
use crate::support::database::{Db, START};

contract!("external_accounts": {
    an_account_is_of_one_user_and_a_user_has_one_of_a_provider => [insert, find_user, list],
    an_account_is_unlinked_by_its_user => [delete],
});

async fn link(db: &Db, user: UserId, provider: &str, subject: &str) -> bool {
    let account = ExternalAccount {
        provider: provider.to_owned(),
        subject: subject.to_owned(),
        username: "octocat".to_owned(),
        avatar_url: String::new(),
        created_at: START,
    };
    commit!(db, |tx| tx.external_accounts().insert(user, &account).await).unwrap()
}

async fn an_account_is_of_one_user_and_a_user_has_one_of_a_provider(db: &Db) {
    let (ada, bob) = (user(db, "ada").await, user(db, "bob").await);
    let races = futures_util::future::join_all(
        (0..20).map(|n| link(db, if n % 2 == 0 { ada } else { bob }, "github", "1")),
    )
    .await;
    assert_eq!(races.into_iter().filter(|linked| *linked).count(), 1, "one of twenty");
    let mut read = db.store.read().await.unwrap();
    let holder = read.external_accounts().find_user("github", "1").await.unwrap().unwrap();
    let other = if holder == ada { bob } else { ada };
    assert!(!link(db, holder, "github", "2").await, "one account of a provider");
    assert!(link(db, holder, "company", "1").await, "the same subject elsewhere is another account");
    assert!(link(db, other, "github", "2").await);
    assert_eq!(read.external_accounts().find_user("company", "2").await.unwrap(), None);
    let list = read.external_accounts().list(holder).await.unwrap();
    let names: Vec<_> =
        list.iter().map(|account| (account.provider.as_str(), account.subject.as_str())).collect();
    assert_eq!(names, [("company", "1"), ("github", "1")]);
    assert_eq!((list[0].username.as_str(), list[0].created_at), ("octocat", START));
}

async fn an_account_is_unlinked_by_its_user(db: &Db) {
    let (ada, bob) = (user(db, "ada").await, user(db, "bob").await);
    link(db, ada, "github", "1").await;
    let delete = async |user| commit!(db, |tx| tx.external_accounts().delete(user, "github").await).unwrap();
    assert!(!delete(bob).await);
    assert!(delete(ada).await);
    assert!(!delete(ada).await);
}
