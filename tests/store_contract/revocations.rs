use std::time::Duration;

use hub_core::{
    id::{RevocationId, SessionId},
    revocation::{Revocation, Revoked},
    time::Timestamp,
};

use crate::support::database::{Db, START};

contract!("revocations": {
    added_revocations_are_found_since_an_instant => [add, since],
    old_ones_are_forgotten_in_pieces => [delete_before],
});

async fn add(db: &Db, at: Timestamp) -> Revocation {
    let (id, session): (RevocationId, SessionId) = (db.ids.next(), db.ids.next());
    let revocation = Revocation { id, revoked: Revoked::Session(session), at };
    commit!(db, |tx| tx.revocations().add(&revocation).await).unwrap();
    revocation
}

const SECOND: Duration = Duration::from_secs(1);

async fn added_revocations_are_found_since_an_instant(db: &Db) {
    let (old, new) = (add(db, START).await, add(db, START + SECOND).await);
    let mut read = db.store.read().await.unwrap();
    let found = read.revocations().since(START).await.unwrap();
    assert_eq!(found, [(new.id, new.revoked.to_string(), new.at)]);
    let both = read.revocations().since(START - SECOND).await.unwrap();
    assert_eq!(both.iter().map(|row| row.0).collect::<Vec<_>>(), [old.id, new.id]);
    assert_eq!(both[0].1.parse::<Revoked>().unwrap(), old.revoked);
}

async fn old_ones_are_forgotten_in_pieces(db: &Db) {
    for _ in 0..3 {
        add(db, START).await;
    }
    let kept = add(db, START + SECOND).await;
    let forget =
        async |limit| commit!(db, |tx| tx.revocations().delete_before(START + SECOND, limit).await).unwrap();
    assert_eq!((forget(2).await, forget(2).await, forget(2).await), (2, 1, 0));
    let left = db.store.read().await.unwrap().revocations().since(START - SECOND).await.unwrap();
    assert_eq!(left.iter().map(|row| row.0).collect::<Vec<_>>(), [kept.id]);
}
