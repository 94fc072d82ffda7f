use std::time::Duration;

use hub_core::{
    ErrorCode,
    bots::BotStatus,
    id::{BotId, UserId},
    page::PageRequest,
    secret::Sealed,
    store::bots::{Answered, NewBot, NewLogin},
};

use super::scene::{HOSTILE_TEXTS, accept_one, lease, stage};
use crate::support::database::{Db, START};

contract!("bots": {
    a_bot_comes_back_as_it_was_stored => [insert, find, login, rename],
    a_person_on_a_network_has_one_bot => [insert, holders],
    bots_are_listed_for_their_owner_newest_first => [page, count, names],
    bots_are_listed_by_status => [page_in_status],
    owners_are_found_for_many_bots => [owners],
    a_new_login_starts_over_and_shuts_the_old_poller_out => [replace_login],
    credentials_change_only_as_they_were_read => [update_credentials],
    logins_are_listed_per_owner_and_network => [logins_of],
    a_deleted_bot_takes_everything_with_it => [delete],
    reconnecting_is_refused_for_an_expired_login => [reconnect, resume],
    a_status_is_the_lease_holders_and_follows_the_one_before => [set_status],
    polls_are_noted_by_the_lease_holder => [note_poll],
    answers_of_many_bots_are_noted_at_once => [note_answers],
});

fn login(name: &str) -> NewLogin {
    NewLogin {
        wx_id: format!("{name}@im.bot"),
        owner_user_id: format!("{name}@person"),
        credentials: Sealed::from(format!("login of {name}")),
    }
}

async fn insert(db: &Db, owner: UserId, name: &str, network: &str) -> hub_core::Result<BotId> {
    let id: BotId = db.ids.next();
    let new = NewBot {
        id,
        owner_id: owner,
        name: name.to_owned(),
        network: network.to_owned(),
        login: login(name),
    };
    commit!(db, |tx| tx.bots().insert(&new, START).await).map(|()| id)
}

async fn status(db: &Db, bot: BotId) -> String {
    db.text(format!("SELECT status FROM bots WHERE id = '{bot}'")).await.unwrap()
}

async fn a_bot_comes_back_as_it_was_stored(db: &Db) {
    let owner = db.user("ada").await;
    for text in HOSTILE_TEXTS {
        let id = insert(db, owner, text, "sim").await.unwrap();
        let mut read = db.store.read().await.unwrap();
        let bot = read.bots().find(Some(owner), id).await.unwrap().unwrap();
        assert_eq!((bot.id, bot.owner_id, bot.name.as_str()), (id, owner, text));
        assert_eq!((bot.wx_id, bot.owner_user_id), (format!("{text}@im.bot"), format!("{text}@person")));
        assert_eq!((bot.status, bot.status_since, bot.created_at), (BotStatus::Pending, START, START));
        let login = read.bots().login(id).await.unwrap().unwrap();
        assert_eq!(
            (login.credentials.as_str(), login.cursor.as_str()),
            (format!("login of {text}").as_str(), "")
        );
        assert_eq!((login.network.as_str(), login.credentials_rev), ("sim", 1));
        let backwards: String = text.chars().rev().collect();
        let name = backwards.clone();
        commit!(db, |tx| tx.bots().rename(id, &name).await).unwrap();
        assert_eq!(read.bots().find(None, id).await.unwrap().unwrap().name, backwards);
    }
    assert!(db.store.read().await.unwrap().bots().login(db.ids.next()).await.unwrap().is_none());
}

async fn owners_are_found_for_many_bots(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let first = insert(db, ada, "first", "sim").await.unwrap();
    let second = insert(db, bob, "second", "sim").await.unwrap();
    insert(db, bob, "third", "sim").await.unwrap();
    let mut read = db.store.read().await.unwrap();
    let rows = read.bots().owners(&[first, second, db.ids.next()]).await.unwrap();
    let mut owners: Vec<_> = rows.into_iter().map(|row| (row.bot_id, row.owner_id)).collect();
    owners.sort_unstable();
    assert_eq!(owners, [(first, ada), (second, bob)]);
    assert!(read.bots().owners(&[]).await.unwrap().is_empty());
}

async fn a_person_on_a_network_has_one_bot(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let first = insert(db, ada, "same", "sim").await.unwrap();
    assert_eq!(insert(db, bob, "same", "sim").await.unwrap_err().code(), ErrorCode::Conflict);
    let second = insert(db, bob, "same", "ilink").await.unwrap();
    let mut read = db.store.read().await.unwrap();
    let mut holders = async |network: &str, wx_id: &str, person: &str| {
        let rows = read.bots().holders(network, wx_id, person).await.unwrap();
        rows.into_iter().map(|holder| (holder.bot_id, holder.owner_id)).collect::<Vec<_>>()
    };
    assert_eq!(holders("sim", "", "same@person").await, [(first, ada)]);
    assert_eq!(holders("ilink", "same@im.bot", "other").await, [(second, bob)]);
    assert_eq!(holders("sim", "none", "").await, []);
    drop(read);
    let mut nameless = login("x");
    nameless.owner_user_id.clear();
    for _ in 0..2 {
        let new = NewBot {
            id: db.ids.next(),
            owner_id: ada,
            name: "x".into(),
            network: "sim".into(),
            login: nameless.clone(),
        };
        commit!(db, |tx| tx.bots().insert(&new, START).await).expect("no one knows whose these are");
    }
    // The same person's bot precedes one that has the same account id.
    let third = insert(db, ada, "third", "sim").await.unwrap();
    db.sql(format!("UPDATE bots SET wx_id = 'shared' WHERE id IN ('{first}', '{third}')")).await;
    let rows = db.store.read().await.unwrap().bots().holders("sim", "shared", "third@person").await.unwrap();
    assert_eq!(rows.iter().map(|holder| holder.bot_id).collect::<Vec<_>>(), [third, first]);
}

async fn bots_are_listed_for_their_owner_newest_first(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(insert(db, ada, name, "sim").await.unwrap());
    }
    insert(db, bob, "his", "sim").await.unwrap();
    ids.reverse();
    let mut read = db.store.read().await.unwrap();
    let mut list = async |owner: Option<UserId>, page: PageRequest| {
        let rows = read.bots().page(owner, &page).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(list(Some(ada), PageRequest::default()).await, ids);
    assert_eq!(list(None, PageRequest::default()).await.len(), 4);
    let page = PageRequest::parse("b", Some(1), None).unwrap();
    assert_eq!(list(Some(ada), page).await, ids[..2]);
    let cursor = hub_core::page::encode("b", &ids[0].to_string());
    let page = PageRequest::parse("b", Some(5), Some(&cursor)).unwrap();
    assert_eq!(list(Some(ada), page).await, ids[1..]);
    let names = read.bots().names(&[ids[0], ids[2], db.ids.next()]).await.unwrap();
    let expected = [(ids[0], "c".to_owned()), (ids[2], "a".to_owned())];
    assert_eq!(names, expected.into_iter().collect());
    assert_eq!(read.bots().count(ada).await.unwrap(), 3);
    assert_eq!(read.bots().count(db.ids.next()).await.unwrap(), 0);
    assert!(read.bots().find(Some(bob), ids[0]).await.unwrap().is_none());
}

async fn a_new_login_starts_over_and_shuts_the_old_poller_out(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    db.sql("UPDATE bots SET status = 'expired', status_reason = 'why', last_error = 'why'").await;
    let new = login("new");
    commit!(db, |tx| tx.bots().replace_login(on.bot, &new, START).await).unwrap();
    let mut read = db.store.read().await.unwrap();
    let stored = read.bots().login(on.bot).await.unwrap().unwrap();
    assert_eq!((stored.credentials.as_str(), stored.cursor.as_str()), ("login of new", ""));
    assert_eq!((stored.credentials_rev, stored.status), (2, BotStatus::Connecting));
    assert!(read.leases().work(&on.lease).await.unwrap().is_none(), "the old fence is worth nothing");
    let late = db.store.accept(super::scene::batch(&on.lease, Some("late"), vec![])).await.unwrap();
    assert_eq!(late, hub_core::store::inbox::Accepted::Fenced);
    assert_eq!(db.count("messages").await, 1, "what came in before stays");
    let bot = read.bots().find(None, on.bot).await.unwrap().unwrap();
    assert_eq!((bot.status_reason, bot.last_error), (None, None));
}

async fn credentials_change_only_as_they_were_read(db: &Db) {
    let owner = db.user("ada").await;
    let id = insert(db, owner, "bot", "sim").await.unwrap();
    let update = async |rev, text: &str| {
        let sealed = Sealed::from(text.to_owned());
        commit!(db, |tx| tx.bots().update_credentials(id, rev, &sealed).await).unwrap()
    };
    assert!(update(1, "first").await);
    assert!(!update(1, "late").await);
    assert!(update(2, "second").await);
    let login = db.store.read().await.unwrap().bots().login(id).await.unwrap().unwrap();
    assert_eq!((login.credentials.as_str(), login.credentials_rev), ("second", 3));
}

async fn logins_are_listed_per_owner_and_network(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let first = insert(db, ada, "a", "sim").await.unwrap();
    let second = insert(db, ada, "b", "sim").await.unwrap();
    insert(db, ada, "c", "ilink").await.unwrap();
    insert(db, bob, "d", "sim").await.unwrap();
    let mut read = db.store.read().await.unwrap();
    let mut logins = async |only, limit| {
        let rows = read.bots().logins_of(ada, "sim", only, limit).await.unwrap();
        rows.into_iter().map(|(id, sealed)| (id, sealed.as_str().to_owned())).collect::<Vec<_>>()
    };
    let (a, b) = ((first, "login of a".to_owned()), (second, "login of b".to_owned()));
    assert_eq!(logins(None, 9).await, [b.clone(), a.clone()]);
    assert_eq!(logins(None, 1).await, [b]);
    assert_eq!(logins(Some(first), 9).await, [a]);
}

async fn a_deleted_bot_takes_everything_with_it(db: &Db) {
    let on = stage(db).await;
    let bob = db.user("bob").await;
    accept_one(db, &on, "ann", "1", 0).await;
    let send = super::scene::outbound(db, on.bot, "ann", "send", &["hi"]);
    commit!(db, |tx| tx.outbox().enqueue(&[send]).await).unwrap();
    let delete = async |owner: UserId| commit!(db, |tx| tx.bots().delete(Some(owner), on.bot).await).unwrap();
    assert!(!delete(bob).await);
    assert_eq!(db.count("messages").await, 2);
    assert!(delete(on.owner).await);
    assert!(!delete(on.owner).await);
    for table in ["bots", "channels", "messages", "contacts", "channel_log", "deliveries", "traces", "outbox"]
    {
        assert_eq!(db.count(table).await, 0, "{table}");
    }
}

async fn reconnecting_is_refused_for_an_expired_login(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let id = insert(db, ada, "bot", "sim").await.unwrap();
    let reconnect =
        async |owner: UserId| commit!(db, |tx| tx.bots().reconnect(Some(owner), id, START).await).unwrap();
    let resume = async || commit!(db, |tx| tx.bots().resume(id, START).await).unwrap();
    assert!(!resume().await, "nothing to resume: no one polled it yet");
    for word in ["error", "offline", "online"] {
        db.sql(format!("UPDATE bots SET status = '{word}', status_reason = 'why', last_error = 'why'")).await;
        assert!(!reconnect(bob).await);
        assert!(reconnect(ada).await, "{word}");
        assert_eq!(status(db, id).await, "connecting");
        assert_eq!(
            db.number("SELECT count(*) FROM bots WHERE status_reason IS NULL AND last_error IS NULL").await,
            1
        );
    }
    db.sql("UPDATE bots SET status = 'expired'").await;
    assert!(!reconnect(ada).await);
    assert!(resume().await, "a known login may be tried again");
    assert_eq!(status(db, id).await, "connecting");
    db.sql("UPDATE bots SET status = 'online'").await;
    assert!(!resume().await, "it is in use");
}

async fn a_status_is_the_lease_holders_and_follows_the_one_before(db: &Db) {
    let owner = db.user("ada").await;
    let id = insert(db, owner, "bot", "sim").await.unwrap();
    let fence = lease(db).await.1[&id].fence;
    let set = async |fence, next, reason: Option<&'static str>, seconds| {
        let now = START + Duration::from_secs(seconds);
        commit!(db, |tx| tx.bots().set_status(id, fence, next, reason, now).await).unwrap()
    };
    assert_eq!(set(fence, BotStatus::Online, None, 1).await, None, "a pending bot connects first");
    assert_eq!(set(fence, BotStatus::Connecting, None, 2).await, Some(BotStatus::Pending));
    assert_eq!(set(fence - 1, BotStatus::Online, None, 3).await, None, "an old fence");
    assert_eq!(set(fence, BotStatus::Online, None, 4).await, Some(BotStatus::Connecting));
    assert_eq!(set(fence, BotStatus::Degraded, Some("slow"), 5).await, Some(BotStatus::Online));
    assert_eq!(set(fence, BotStatus::Degraded, Some("slower"), 6).await, Some(BotStatus::Degraded));
    let bot = db.store.read().await.unwrap().bots().find(None, id).await.unwrap().unwrap();
    assert_eq!((bot.status, bot.status_reason.as_deref()), (BotStatus::Degraded, Some("slower")));
    assert_eq!(bot.status_since, START + Duration::from_secs(5), "the reason changed, the status did not");
    assert_eq!(set(fence, BotStatus::Expired, None, 7).await, Some(BotStatus::Degraded));
    assert_eq!(set(fence, BotStatus::Online, None, 8).await, None);
}

async fn polls_are_noted_by_the_lease_holder(db: &Db) {
    let owner = db.user("ada").await;
    let id = insert(db, owner, "bot", "sim").await.unwrap();
    let fence = lease(db).await.1[&id].fence;
    let note = async |fence, answered, error: Option<&'static str>| {
        commit!(db, |tx| tx.bots().note_poll(id, fence, answered, error).await).unwrap()
    };
    assert!(note(fence, Some(START), None).await);
    assert!(note(fence, None, Some("timeout")).await);
    assert!(!note(fence - 1, None, None).await);
    let bot = db.store.read().await.unwrap().bots().find(None, id).await.unwrap().unwrap();
    assert_eq!((bot.last_poll_at, bot.last_error.as_deref()), (Some(START), Some("timeout")));
    assert!(note(fence, None, None).await);
    let bot = db.store.read().await.unwrap().bots().find(None, id).await.unwrap().unwrap();
    assert_eq!((bot.last_poll_at, bot.last_error), (Some(START), None));
}

async fn answers_of_many_bots_are_noted_at_once(db: &Db) {
    let owner = db.user("ada").await;
    let (mine, taken, late) = (db.bot(owner).await, db.bot(owner).await, db.bot(owner).await);
    let leases = lease(db).await.1;
    commit!(db, |tx| tx.bots().note_poll(mine, 1, None, Some("timeout")).await).unwrap();
    let answered =
        |bot_id, fence, seconds| Answered { bot_id, fence, at: START + Duration::from_secs(seconds) };
    let answers = vec![answered(mine, leases[&mine].fence, 1), answered(taken, leases[&taken].fence - 1, 2)];
    commit!(db, |tx| tx.bots().note_answers(&answers).await).unwrap();
    commit!(db, |tx| tx.bots().note_answers(&[]).await).unwrap();
    let mut read = db.store.read().await.unwrap();
    let mut last_poll = async |id| {
        let bot = read.bots().find(None, id).await.unwrap().unwrap();
        (bot.last_poll_at, bot.last_error)
    };
    assert_eq!(last_poll(mine).await, (Some(START + Duration::from_secs(1)), None));
    assert_eq!(last_poll(taken).await, (None, None), "another node has it");
    assert_eq!(last_poll(late).await, (None, None));
}

async fn bots_are_listed_by_status(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let (a, b, c) = (db.bot(ada).await, db.bot(ada).await, db.bot(bob).await);
    db.sql(format!("UPDATE bots SET status = 'online' WHERE id IN ('{a}', '{c}')")).await;
    let mut read = db.store.read().await.unwrap();
    let mut ids = async |owner: Option<UserId>, status| {
        let found = read.bots().page_in_status(owner, status, &PageRequest::default()).await.unwrap();
        found.rows.into_iter().map(|bot| bot.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None, None).await, [c, b, a]);
    assert_eq!(ids(None, Some(BotStatus::Online)).await, [c, a]);
    assert_eq!(ids(Some(ada), Some(BotStatus::Online)).await, [a]);
    assert_eq!(ids(Some(ada), Some(BotStatus::Error)).await, []);
}
