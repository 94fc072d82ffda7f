use std::time::Duration;

use hub_core::{
    apps::{AppCall, NewAppCall},
    id::{AppCallId, InstallationId},
    page::PageRequest,
};

use super::{
    apps::{add, app},
    installations::install,
    scene::HOSTILE_TEXTS,
};
use crate::support::database::{Db, START};

contract!("app_calls": {
    calls_are_kept_for_their_installation_and_listed_newest_first => [insert, page],
    old_calls_are_forgotten => [delete_before],
});

async fn note(db: &Db, installation_id: InstallationId, path: &str, after: Duration) -> AppCallId {
    let id = db.ids.next();
    let call = NewAppCall {
        installation_id,
        trace_id: Some(db.ids.next()),
        method: "POST".to_owned(),
        path: path.to_owned(),
        request_body: path.to_owned(),
        status: 409,
        response_body: path.to_owned(),
        duration_ms: 7,
    };
    commit!(db, |tx| tx.app_calls().insert(id, &call, START + after).await).unwrap();
    id
}

async fn calls_are_kept_for_their_installation_and_listed_newest_first(db: &Db) {
    let ada = db.user("ada").await;
    let weather = add(db, app(db, ada, "weather")).await;
    let (bot, other) = (db.bot(ada).await, db.bot(ada).await);
    let (here, there) = (install(db, weather, bot, "here").await, install(db, weather, other, "there").await);
    for text in HOSTILE_TEXTS {
        note(db, here, text, Duration::ZERO).await;
    }
    note(db, there, "/elsewhere", Duration::ZERO).await;
    // An installation that is gone has no log.
    note(db, db.ids.next(), "/nowhere", Duration::ZERO).await;
    let mut read = db.store.read().await.unwrap();
    let calls = read.app_calls().page(here, &PageRequest::default()).await.unwrap();
    let paths: Vec<&str> = calls.iter().rev().map(|call| &*call.path).collect();
    assert_eq!(paths, HOSTILE_TEXTS);
    let AppCall { method, request_body, status, response_body, duration_ms, created_at, .. } = &calls[0];
    let last = HOSTILE_TEXTS[HOSTILE_TEXTS.len() - 1];
    assert_eq!((&**method, &**request_body, &**response_body), ("POST", last, last));
    assert_eq!((*status, *duration_ms, *created_at), (409, 7, START));
    let cursor = hub_core::page::encode("calls", &calls[1].id.to_string());
    let page = PageRequest::parse("calls", Some(2), Some(&cursor)).unwrap();
    assert_eq!(read.app_calls().page(here, &page).await.unwrap(), calls[2..5]);
    assert_eq!(db.count("app_calls").await, i64::try_from(HOSTILE_TEXTS.len()).unwrap() + 1);
}

async fn old_calls_are_forgotten(db: &Db) {
    let ada = db.user("ada").await;
    let weather = add(db, app(db, ada, "weather")).await;
    let bot = db.bot(ada).await;
    let here = install(db, weather, bot, "here").await;
    let hour = Duration::from_secs(3600);
    for _ in 0..3 {
        note(db, here, "/old", Duration::ZERO).await;
    }
    let stays = note(db, here, "/new", hour).await;
    let gone =
        async |limit| commit!(db, |tx| tx.app_calls().delete_before(START + hour, limit).await).unwrap();
    assert_eq!((gone(2).await, gone(2).await, gone(2).await), (2, 1, 0));
    let mut read = db.store.read().await.unwrap();
    let left = read.app_calls().page(here, &PageRequest::default()).await.unwrap();
    assert_eq!(left.iter().map(|call| call.id).collect::<Vec<_>>(), [stays]);
}
