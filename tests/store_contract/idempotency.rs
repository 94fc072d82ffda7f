use std::time::Duration;

use hub_core::{Error, ErrorCode};

use super::scene::just_before;
use crate::support::database::{Db, START};

contract!("idempotency": {
    one_of_many_claims_wins_and_its_answer_stays => [claim, answer, find],
    a_failed_command_gives_its_claim_back => [claim, find],
    an_expired_key_is_free_again => [claim, answer, find, delete_expired],
});

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn find(db: &Db, principal: &str, at: Duration) -> Option<(String, String)> {
    db.store.read().await.unwrap().idempotency().find(principal, "key", START + at).await.unwrap()
}

async fn one_of_many_claims_wins_and_its_answer_stays(db: &Db) {
    let claims = (0..20).map(|n| async move {
        commit!(db, |tx| {
            let mine = tx.idempotency().claim("ada", "key", &format!("body{n}"), START, START + DAY).await?;
            if mine {
                tx.idempotency().answer("ada", "key", &format!("answer{n}")).await?;
            }
            Ok(mine)
        })
        .unwrap()
    });
    let won: Vec<bool> = futures_util::future::join_all(claims).await;
    let winner = won.iter().position(|mine| *mine).unwrap();
    assert_eq!(won.iter().filter(|mine| **mine).count(), 1);
    let kept = (format!("body{winner}"), format!("answer{winner}"));
    assert_eq!(find(db, "ada", Duration::ZERO).await, Some(kept));
    assert_eq!(find(db, "bob", Duration::ZERO).await, None, "keys belong to their caller");
    let other = commit!(db, |tx| tx.idempotency().claim("bob", "key", "body", START, START + DAY).await);
    assert!(other.unwrap());
}

async fn a_failed_command_gives_its_claim_back(db: &Db) {
    let failed = commit!(db, |tx| {
        tx.idempotency().claim("ada", "key", "body", START, START + DAY).await?;
        Err::<(), _>(Error::conflict("no"))
    });
    assert_eq!(failed.unwrap_err().code(), ErrorCode::Conflict);
    assert_eq!(find(db, "ada", Duration::ZERO).await, None);
    assert!(commit!(db, |tx| tx.idempotency().claim("ada", "key", "x", START, START + DAY).await).unwrap());
}

async fn an_expired_key_is_free_again(db: &Db) {
    let claim = async |at: Duration, body: &'static str| {
        commit!(db, |tx| {
            let mine = tx.idempotency().claim("ada", "key", body, START + at, START + at + DAY).await?;
            if mine {
                tx.idempotency().answer("ada", "key", body).await?;
            }
            Ok(mine)
        })
        .unwrap()
    };
    assert!(claim(Duration::ZERO, "first").await);
    assert!(!claim(just_before(DAY), "early").await);
    assert_eq!(find(db, "ada", DAY).await, None, "expired, so not shown");
    assert!(claim(DAY, "second").await);
    assert_eq!(find(db, "ada", DAY).await, Some(("second".into(), "second".into())));
    let delete = |at: Duration| async move {
        commit!(db, |tx| tx.idempotency().delete_expired(START + at, 10).await).unwrap()
    };
    assert_eq!(delete(DAY).await, 0);
    assert_eq!(delete(DAY * 2).await, 1);
    assert_eq!(db.count("idempotency").await, 0);
}
