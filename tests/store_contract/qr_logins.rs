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
    a_login_goes_one_way => [scan, confirm, cancel],
    of_many_who_take_a_confirmed_login_one_does => [confirm, take],
});

const MINUTE: Duration = Duration::from_secs(60);

async fn begin(db: &Db, id: &'static str, at: Timestamp, most: u32) -> bool {
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
        tx.qr_logins().insert(&login, most).await
    })
    .unwrap()
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
    assert!(begin(db, "one", START, 2).await);
    assert!(begin(db, "two", START, 2).await);
    assert!(!begin(db, "three", START, 2).await, "so many at a time");
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

async fn a_login_goes_one_way(db: &Db) {
    let (ada, bob) = (user(db, "ada").await, user(db, "bob").await);
    let scan = async |user| commit!(db, |tx| tx.qr_logins().scan("one", user, START).await).unwrap();
    let cancel = async |id: &'static str| commit!(db, |tx| tx.qr_logins().cancel(id, START).await).unwrap();
    for id in ["one", "two"] {
        begin(db, id, START, 10).await;
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
    begin(db, "one", START, 10).await;
    let take = async || commit!(db, |tx| tx.qr_logins().take("one", START).await).unwrap();
    assert_eq!(take().await, None, "no one has confirmed it");
    let many = futures_util::future::join_all((0..20).map(|_| confirm(db, "one", ada))).await;
    assert_eq!(many.into_iter().filter(|done| *done).count(), 1);
    let taken = futures_util::future::join_all((0..20).map(|_| take())).await;
    assert_eq!(taken.into_iter().flatten().collect::<Vec<_>>(), [ada]);
}
