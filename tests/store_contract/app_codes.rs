use std::time::Duration;

use hub_core::{
    apps::AppScopes,
    secret::TokenHash,
    store::app_codes::{NewCode, StoredCode},
};

use super::{
    apps::{add, app},
    installations::install,
};
use crate::support::database::{Db, START};

contract!("app_codes": {
    a_code_is_stored_with_its_outcome => [insert, find, note],
    a_code_is_used_once => [consume],
    old_codes_are_forgotten => [delete_before],
});

const MINUTE: Duration = Duration::from_secs(60);

/// Stores a code whose text is its name.
async fn code(db: &Db, name: &str, expires_after: Duration) -> NewCode {
    let ada = db.user(name).await;
    let bot = db.bot(ada).await;
    let code = NewCode {
        app_id: add(db, app(db, ada, name)).await,
        bot_id: bot,
        user_id: ada,
        redirect_uri: "https://app.example/cb?x=1".to_owned(),
        scopes: AppScopes::parse(["bot:read", "message:read"]).unwrap(),
        challenge: "challenge".to_owned(),
        expires_at: START + expires_after,
    };
    let (hash, stored) = (TokenHash::of(name), code.clone());
    commit!(db, |tx| tx.app_codes().insert(&hash, &stored).await).unwrap();
    code
}

async fn find(db: &Db, name: &str) -> Option<StoredCode> {
    db.store.read().await.unwrap().app_codes().find(&TokenHash::of(name)).await.unwrap()
}

async fn a_code_is_stored_with_its_outcome(db: &Db) {
    let stored = code(db, "code", MINUTE).await;
    assert!(find(db, "another").await.is_none());
    let fresh = StoredCode { code: stored.clone(), used: false, installation_id: None, token_hash: None };
    assert_eq!(find(db, "code").await, Some(fresh));
    let installation = install(db, stored.app_id, stored.bot_id, "weather").await;
    let (hash, token) = (TokenHash::of("code"), TokenHash::of("token"));
    commit!(db, |tx| tx.app_codes().note(&hash, installation, &token).await).unwrap();
    let found = find(db, "code").await.unwrap();
    assert_eq!((found.installation_id, found.token_hash), (Some(installation), Some(TokenHash::of("token"))));
}

async fn a_code_is_used_once(db: &Db) {
    code(db, "code", MINUTE).await;
    let consume = async || {
        let hash = TokenHash::of("code");
        commit!(db, |tx| tx.app_codes().consume(&hash, START).await).unwrap()
    };
    let uses = futures_util::future::join_all((0..20).map(|_| consume())).await;
    assert_eq!(uses.into_iter().filter(|used| *used).count(), 1);
    assert!(find(db, "code").await.unwrap().used);
}

async fn old_codes_are_forgotten(db: &Db) {
    for name in ["a", "b", "c"] {
        code(db, name, MINUTE).await;
    }
    code(db, "late", MINUTE * 2).await;
    let gone = async |limit| {
        commit!(db, |tx| tx.app_codes().delete_before(START + MINUTE * 2, limit).await).unwrap()
    };
    assert_eq!((gone(2).await, gone(2).await, gone(2).await), (2, 1, 0));
    assert!(find(db, "late").await.is_some());
}
