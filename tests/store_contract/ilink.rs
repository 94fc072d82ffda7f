use std::time::Duration;

use hub_core::{
    ErrorCode,
    gateway::IlinkLoginStatus,
    id::{ChannelId, IlinkClientId},
    secret::TokenHash,
    store::ilink::OpenedLogin,
};

use super::scene::{HOSTILE_TEXTS, accept_one, add_channel, stage};
use crate::support::database::{Db, START};

contract!("ilink": {
    a_login_is_opened_and_confirmed_once => [login, open_login, confirm_login],
    a_login_expires_and_is_rejected => [reject_login, delete_expired_logins],
    a_client_starts_at_the_end_of_the_log_and_moves_forward => [insert_client, client, client_with, advance],
    clients_are_listed_and_deleted_for_their_channel => [clients, delete_client, delete_idle, touch],
    traces_are_found => [traces_of],
});

const MINUTE: Duration = Duration::from_secs(60);

async fn open(db: &Db, id: &'static str, most: u32) -> Option<IlinkLoginStatus> {
    let login = OpenedLogin {
        id,
        ip: "203.0.113.7",
        user_agent: HOSTILE_TEXTS[3],
        created_at: START,
        expires_at: START + MINUTE,
    };
    commit!(db, |tx| tx.ilink().open_login(&login, START, most).await).unwrap()
}

async fn add(db: &Db, channel: ChannelId, token: &'static str) -> IlinkClientId {
    let (id, hash): (IlinkClientId, _) = (db.ids.next(), TokenHash::of(token));
    commit!(db, |tx| tx.ilink().insert_client(id, channel, &hash, ("::1", "program"), START).await).unwrap();
    id
}

async fn a_login_is_opened_and_confirmed_once(db: &Db) {
    let on = stage(db).await;
    let opened = Some(IlinkLoginStatus::Scanned);
    assert_eq!(open(db, "one", 1).await, opened);
    assert_eq!(open(db, "one", 1).await, opened, "which changes nothing");
    assert_eq!(open(db, "two", 1).await, None, "as many as may be are open");
    let status = async |at| db.store.read().await.unwrap().ilink().login("one", at).await.unwrap();
    let row = status(START).await.unwrap();
    assert_eq!((row.status, row.client_id), (IlinkLoginStatus::Scanned, None));
    let client = add(db, on.channel, "token").await;
    let confirm = async |id: &'static str, until| {
        commit!(db, |tx| tx.ilink().confirm_login(id, client, START, until).await).unwrap()
    };
    let until = START + MINUTE * 2;
    assert!(confirm("one", until).await && !confirm("one", until).await && !confirm("none", until).await);
    assert_eq!(open(db, "one", 9).await, Some(IlinkLoginStatus::Confirmed));
    let row = status(START + MINUTE).await.unwrap();
    assert_eq!((row.status, row.client_id), (IlinkLoginStatus::Confirmed, Some(client)));
    assert!(status(until).await.is_none());
    open(db, "three", 9).await;
    assert!(confirm("three", START).await, "which ends no earlier than it would have");
    let after = db.store.read().await.unwrap().ilink().login("three", START).await.unwrap();
    assert!(after.is_some());
    commit!(db, |tx| tx.ilink().delete_client(on.channel, client).await).unwrap();
    assert!(status(START).await.is_none(), "a login ends with its client");
}

async fn a_login_expires_and_is_rejected(db: &Db) {
    let on = stage(db).await;
    let client = add(db, on.channel, "token").await;
    open(db, "one", 9).await;
    open(db, "two", 9).await;
    let reject =
        async |id: &'static str, at| commit!(db, |tx| tx.ilink().reject_login(id, at).await).unwrap();
    assert!(!reject("one", START + MINUTE).await, "too late");
    assert!(reject("one", START).await && !reject("one", START).await);
    assert_eq!(open(db, "one", 9).await, Some(IlinkLoginStatus::Rejected), "it cannot be opened again");
    let confirmed = commit!(db, |tx| tx.ilink().confirm_login("one", client, START, START + MINUTE).await);
    assert!(!confirmed.unwrap());
    let at = START + MINUTE;
    assert!(db.store.read().await.unwrap().ilink().login("two", at).await.unwrap().is_none());
    let delete = async |old| commit!(db, |tx| tx.ilink().delete_expired_logins(old, 9).await).unwrap();
    assert_eq!((delete(START).await, delete(at).await, delete(at).await), (0, 2, 0));
}

async fn a_client_starts_at_the_end_of_the_log_and_moves_forward(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let id = add(db, on.channel, "token").await;
    let found = async || db.store.read().await.unwrap().ilink().client(id).await.unwrap().unwrap();
    let row = found().await;
    assert_eq!((row.client.acked_seq, row.client.given_seq, row.client.last_used_at), (1, 1, START));
    assert_eq!((row.channel_id, row.bot_id, row.owner_id, row.enabled), (on.channel, on.bot, on.owner, true));
    let advance = async |acked, given| commit!(db, |tx| tx.ilink().advance(id, acked, given).await).unwrap();
    advance(0, 7).await;
    advance(5, 0).await;
    advance(2, 2).await;
    let moved = found().await.client;
    assert_eq!((moved.acked_seq, moved.given_seq), (5, 7));
    let with = async |token: &str| {
        let mut read = db.store.read().await.unwrap();
        read.ilink().client_with(&TokenHash::of(token)).await.unwrap().map(|row| row.client.id)
    };
    assert_eq!((with("token").await, with("other").await), (Some(id), None));
    let (same, hash): (IlinkClientId, _) = (db.ids.next(), TokenHash::of("token"));
    let twice = commit!(db, |tx| tx.ilink().insert_client(same, on.channel, &hash, ("", ""), START).await);
    assert_eq!(twice.unwrap_err().code(), ErrorCode::Conflict, "a token is one client's");
}

async fn clients_are_listed_and_deleted_for_their_channel(db: &Db) {
    let on = stage(db).await;
    let other = add_channel(db, on.bot, "other").await;
    let (first, second) = (add(db, on.channel, "1").await, add(db, on.channel, "2").await);
    add(db, other, "3").await;
    let list = async |channel| {
        let clients = db.store.read().await.unwrap().ilink().clients(channel).await.unwrap();
        clients.into_iter().map(|client| client.id).collect::<Vec<_>>()
    };
    assert_eq!(list(on.channel).await, [first, second]);
    let delete = async |channel, id| commit!(db, |tx| tx.ilink().delete_client(channel, id).await).unwrap();
    assert!(!delete(other, first).await, "a client of another channel");
    assert!(delete(on.channel, first).await && !delete(on.channel, first).await);
    commit!(db, |tx| tx.ilink().touch(second, START + MINUTE).await).unwrap();
    let idle = async |before| commit!(db, |tx| tx.ilink().delete_idle(on.channel, before).await).unwrap();
    idle(START + MINUTE).await;
    assert_eq!(list(on.channel).await, [second]);
    idle(START + MINUTE * 2).await;
    assert_eq!((list(on.channel).await.len(), list(other).await.len()), (0, 1));
}

async fn traces_are_found(db: &Db) {
    let on = stage(db).await;
    let (first, _, trace) = accept_one(db, &on, "ann", "1", 0).await;
    let (second, ..) = accept_one(db, &on, "ann", "2", 0).await;
    let other = add_channel(db, on.bot, "other").await;
    let mut read = db.store.read().await.unwrap();
    assert_eq!(read.ilink().traces_of(on.channel, &[first]).await.unwrap(), [trace]);
    assert_eq!(read.ilink().traces_of(on.channel, &[first, second]).await.unwrap().len(), 2);
    assert_eq!(read.ilink().traces_of(other, &[first]).await.unwrap(), []);
}
