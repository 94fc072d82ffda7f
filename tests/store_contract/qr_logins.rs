use std::time::Duration;

use hub_core::{
    accounts::{ClientInfo, QrStatus},
    id::UserId,
    secret::{Sealed, TokenHash},
    store::qr_logins::NewQrLogin,
    time::Timestamp,
};

use super::passkeys::user;
use crate::support::database::{Db, START};

contract!("qr_logins": {
    a_login_is_found_until_it_expires => [insert, find, delete_expired],
    the_oldest_that_no_user_has_opened_are_deleted => [trim],
    a_login_goes_one_way => [scan, confirm, cancel],
    of_many_who_take_a_confirmed_login_one_does => [confirm, take],
});

const MINUTE: Duration = Duration::from_secs(60);

async fn begin(db: &Db, id: &'static str, at: Timestamp) {
    let (poll, client) = (TokenHash::of("poll"), ClientInfo { ip: None, user_agent: "Screen".to_owned() });
    commit!(db, |tx| {
        let login = NewQrLogin {
            id,
            poll: &poll,
            user_code: "BCDF-GHJK",
            client: &client,
            created_at: at,
            expires_at: at + MINUTE,
        };
        tx.qr_logins().insert(&login).await
    })
    .unwrap();
}

async fn status(db: &Db, id: &str) -> (QrStatus, Option<UserId>) {
    let row = db.store.read().await.unwrap().qr_logins().find(id, START).await.unwrap().unwrap();
    (row.status, row.user_id)
}

async fn confirm(db: &Db, id: &'static str, user: UserId) -> bool {
    let ticket = Sealed::from("ticket".to_owned());
    commit!(db, |tx| tx.qr_logins().confirm(id, user, &ticket, START).await).unwrap()
}

async fn a_login_is_found_until_it_expires(db: &Db) {
    begin(db, "one", START).await;
    begin(db, "two", START).await;
    let mut read = db.store.read().await.unwrap();
    let row = read.qr_logins().find("one", START).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.user_code.as_str(), row.user_agent.as_str()),
        (QrStatus::Waiting, "BCDF-GHJK", "Screen")
    );
    assert_eq!((row.poll_hash.as_str(), row.expires_at), (TokenHash::of("poll").as_str(), START + MINUTE));
    assert!(row.exchange.is_none() && row.user_name.is_none());
    assert!(read.qr_logins().find("one", START + MINUTE).await.unwrap().is_none());
    assert!(read.qr_logins().find("none", START).await.unwrap().is_none());
    let expired =
        async |limit| commit!(db, |tx| tx.qr_logins().delete_expired(START + MINUTE, limit).await).unwrap();
    assert_eq!((expired(1).await, expired(5).await, expired(5).await), (1, 1, 0));
}

async fn the_oldest_that_no_user_has_opened_are_deleted(db: &Db) {
    let ada = user(db, "ada").await;
    for (n, id) in ["opened", "expired", "first", "second", "third"].into_iter().enumerate() {
        let at = if id == "expired" { START - MINUTE } else { START + Duration::from_secs(n as u64) };
        begin(db, id, at).await;
    }
    assert!(commit!(db, |tx| tx.qr_logins().scan("opened", ada, START).await).unwrap());
    let trim = async |keep| commit!(db, |tx| tx.qr_logins().trim(START, keep).await).unwrap();
    assert_eq!((trim(3).await, trim(2).await, trim(2).await), (0, 1, 0));
    let mut read = db.store.read().await.unwrap();
    for (id, is_there) in [("opened", true), ("first", false), ("second", true), ("third", true)] {
        assert_eq!(read.qr_logins().find(id, START).await.unwrap().is_some(), is_there, "{id}");
    }
}

async fn a_login_goes_one_way(db: &Db) {
    let (ada, bob) = (user(db, "ada").await, user(db, "bob").await);
    let scan = async |user| commit!(db, |tx| tx.qr_logins().scan("one", user, START).await).unwrap();
    let cancel = async |id: &'static str| commit!(db, |tx| tx.qr_logins().cancel(id, START).await).unwrap();
    for id in ["one", "two"] {
        begin(db, id, START).await;
    }
    assert!(scan(ada).await);
    assert!(!scan(bob).await, "one person");
    assert_eq!(status(db, "one").await, (QrStatus::Scanned, Some(ada)));
    assert!(!confirm(db, "one", bob).await, "who scanned decides");
    assert!(confirm(db, "one", ada).await);
    assert!(!confirm(db, "one", ada).await, "once");
    assert!(!cancel("one").await, "too late");
    assert_eq!(status(db, "one").await, (QrStatus::Confirmed, Some(ada)));
    assert!(cancel("two").await);
    assert!(!confirm(db, "two", ada).await && !cancel("two").await);
    assert_eq!(status(db, "two").await.0, QrStatus::Cancelled);
}

async fn of_many_who_take_a_confirmed_login_one_does(db: &Db) {
    let ada = user(db, "ada").await;
    begin(db, "one", START).await;
    let take = async || commit!(db, |tx| tx.qr_logins().take("one", START).await).unwrap();
    assert_eq!(take().await, None, "no one has confirmed it");
    let many = futures_util::future::join_all((0..20).map(|_| confirm(db, "one", ada))).await;
    assert_eq!(many.into_iter().filter(|done| *done).count(), 1);
    let taken = futures_util::future::join_all((0..20).map(|_| take())).await;
    assert_eq!(taken.into_iter().flatten().collect::<Vec<_>>(), [ada]);
}
