use std::time::Duration;

use hub_core::{
    access::Role,
    accounts::{ClientInfo, UserStatus},
    admin::{AdminUser, UserPatch, UserQuery},
    id::{BotId, NodeId, SessionId, UserId},
    page::PageRequest,
    secret::TokenHash,
    store::{accounts::SessionRow, users::Guarded},
};

use super::scene::{self, entry};
use crate::support::database::{Db, START};

contract!("users": {
    users_are_listed_newest_first_and_filtered => [page, find],
    names_are_found_together => [names],
    a_user_is_changed_by_field => [update, find],
    the_last_active_admin_stays => [update, begin_deletion],
    parallel_demotions_leave_an_admin => [update],
    parallel_deletions_leave_an_admin => [begin_deletion, delete],
    a_user_goes_with_everything => [begin_deletion, delete_bots, delete],
    bots_of_a_disabled_user_rest_until_they_are_back => [rest_bots, wake_bots],
});

async fn admin(db: &Db, name: &str) -> UserId {
    let id = db.user(name).await;
    db.sql(format!("UPDATE users SET role = 'admin' WHERE id = '{id}'")).await;
    id
}

fn role(role: Role) -> UserPatch {
    UserPatch { role: Some(role), ..UserPatch::default() }
}

fn status(status: UserStatus) -> UserPatch {
    UserPatch { status: Some(status), ..UserPatch::default() }
}

async fn update(db: &Db, id: UserId, patch: UserPatch) -> Guarded {
    let change = commit!(db, |tx| {
        tx.accounts().lock_admins().await?;
        tx.users().update(id, &patch, START).await
    });
    change.unwrap()
}

async fn find(db: &Db, id: UserId) -> Option<AdminUser> {
    db.store.read().await.unwrap().users().find(id).await.unwrap()
}

async fn users_are_listed_newest_first_and_filtered(db: &Db) {
    let ada = admin(db, "ada").await;
    let bob = db.user("bob_b").await;
    let cid = db.user("cid").await;
    db.user("~demo").await;
    db.sql("UPDATE users SET display_name = 'Ada 100%', password_hash = 'x' WHERE username = 'ada'").await;
    db.sql("UPDATE users SET status = 'disabled' WHERE username = 'cid'").await;
    db.bot(ada).await;
    let mut read = db.store.read().await.unwrap();
    let mut ids = async |query: UserQuery| {
        let found = read.users().page(&query, &PageRequest::default()).await.unwrap();
        found.rows.into_iter().map(|row| row.user.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(UserQuery::default()).await, [cid, bob, ada]);
    assert_eq!(ids(UserQuery { role: Some(Role::Admin), ..UserQuery::default() }).await, [ada]);
    assert_eq!(ids(UserQuery { status: Some(UserStatus::Disabled), ..UserQuery::default() }).await, [cid]);
    for (q, found) in
        [("ADA", vec![ada]), ("100%", vec![ada]), ("b_b", vec![bob]), ("_d_", vec![]), ("\\", vec![])]
    {
        assert_eq!(ids(UserQuery { q: Some(q.to_owned()), ..UserQuery::default() }).await, found, "{q}");
    }
    let page = PageRequest::parse("users", Some(1), None).unwrap();
    assert_eq!(read.users().page(&UserQuery::default(), &page).await.unwrap().rows.len(), 2);
    drop(read);
    let found = find(db, ada).await.unwrap();
    assert_eq!((found.has_password, found.bots, found.sessions, found.api_keys), (true, 1, 0, 0));
    assert_eq!((found.user.role, found.last_seen_at), (Role::Admin, None));
    assert!(find(db, db.ids.next()).await.is_none());
}

async fn names_are_found_together(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let mut read = db.store.read().await.unwrap();
    let names = read.users().names(&[ada, bob, ada, db.ids.next()]).await.unwrap();
    assert_eq!((names.len(), &*names[&ada], &*names[&bob]), (2, "ada", "bob"));
    assert!(read.users().names(&[]).await.unwrap().is_empty());
}

async fn session(db: &Db, user_id: UserId) -> SessionId {
    let id: SessionId = db.ids.next();
    commit!(db, |tx| {
        let hash = TokenHash::of(&id.to_string());
        let expires_at = START + Duration::from_secs(60);
        let client = ClientInfo::default();
        let row =
            SessionRow { id, user_id, token_hash: &hash, created_at: START, expires_at, client: &client };
        tx.accounts().insert_session(&row, None).await
    })
    .unwrap();
    id
}

async fn a_user_is_changed_by_field(db: &Db) {
    let (ada, bob) = (admin(db, "ada").await, db.user("bob").await);
    assert_eq!(update(db, bob, role(Role::Admin)).await, Guarded::Done);
    assert_eq!(update(db, ada, status(UserStatus::Disabled)).await, Guarded::Done);
    let name = UserPatch { display_name: Some("Ada".to_owned()), ..UserPatch::default() };
    assert_eq!(update(db, ada, name).await, Guarded::Done);
    let (a, b) = (find(db, ada).await.unwrap().user, find(db, bob).await.unwrap().user);
    assert_eq!((a.role, a.status, &*a.display_name), (Role::Admin, UserStatus::Disabled, "Ada"));
    assert_eq!((b.role, b.status, &*b.display_name), (Role::Admin, UserStatus::Active, "bob"));
    assert_eq!(update(db, db.ids.next(), role(Role::Admin)).await, Guarded::Absent);
    let demo = db.user("~demo").await;
    assert_eq!(update(db, demo, role(Role::Admin)).await, Guarded::Absent);
}

async fn the_last_active_admin_stays(db: &Db) {
    let (ada, bob) = (admin(db, "ada").await, admin(db, "bob").await);
    db.user("cid").await;
    db.sql(format!("UPDATE users SET status = 'disabled' WHERE id = '{bob}'")).await;
    let begin = async |id| {
        commit!(db, |tx| {
            tx.accounts().lock_admins().await?;
            tx.users().begin_deletion(id).await
        })
        .unwrap()
    };
    assert_eq!(update(db, ada, role(Role::Member)).await, Guarded::LastAdmin);
    assert_eq!(update(db, ada, status(UserStatus::Disabled)).await, Guarded::LastAdmin);
    assert_eq!(begin(ada).await, Guarded::LastAdmin);
    assert_eq!(begin(db.ids.next()).await, Guarded::Absent);
    // What leaves them an active admin is no matter, and neither is an admin who is disabled.
    assert_eq!(update(db, ada, role(Role::Admin)).await, Guarded::Done);
    assert_eq!(update(db, bob, role(Role::Member)).await, Guarded::Done);
    assert_eq!(begin(bob).await, Guarded::Done);
    let user = find(db, ada).await.unwrap().user;
    assert_eq!((user.role, user.status), (Role::Admin, UserStatus::Active));
}

async fn active_admins(db: &Db) -> i64 {
    db.number("SELECT CAST(count(*) AS BIGINT) FROM users WHERE role = 'admin' AND status = 'active'").await
}

/// Another node on PostgreSQL; on SQLite another process, with its own writer.
async fn other(db: &Db) -> hub_core::store::Store {
    hub_core::store::Store::open(&db.config, hub_core::time::Clock::system()).await.unwrap()
}

async fn parallel_demotions_leave_an_admin(db: &Db) {
    let mut admins = Vec::new();
    for n in 0..50 {
        admins.push(admin(db, &format!("a{n}")).await);
    }
    let stores = [db.store.clone(), other(db).await];
    let demotions = admins.iter().enumerate().map(|(n, id)| {
        let (id, store) = (*id, stores[n % 2].clone());
        async move {
            let change = store.write(move |tx| {
                Box::pin(async move {
                    tx.accounts().lock_admins().await?;
                    tx.users().update(id, &role(Role::Member), START).await
                })
            });
            change.await.unwrap()
        }
    });
    let done = futures_util::future::join_all(demotions).await;
    assert_eq!(done.iter().filter(|one| **one == Guarded::LastAdmin).count(), 1);
    assert_eq!(active_admins(db).await, 1);
    stores[1].close().await;
}

async fn parallel_deletions_leave_an_admin(db: &Db) {
    let mut admins = Vec::new();
    for n in 0..50 {
        admins.push(admin(db, &format!("a{n}")).await);
    }
    let stores = [db.store.clone(), other(db).await];
    let deletions = admins.iter().enumerate().map(|(n, id)| {
        let (id, store) = (*id, stores[n % 2].clone());
        async move {
            let delete = store.write(move |tx| {
                Box::pin(async move {
                    tx.accounts().lock_admins().await?;
                    let guarded = tx.users().begin_deletion(id).await?;
                    if guarded == Guarded::Done {
                        tx.users().delete(id).await?;
                    }
                    Ok(guarded)
                })
            });
            delete.await.unwrap()
        }
    });
    let done = futures_util::future::join_all(deletions).await;
    assert_eq!(done.iter().filter(|one| **one == Guarded::LastAdmin).count(), 1);
    assert_eq!((active_admins(db).await, db.count("users").await), (1, 1));
    stores[1].close().await;
}

async fn a_user_goes_with_everything(db: &Db) {
    let (_, bob, cid) = (admin(db, "ada").await, db.user("bob").await, db.user("cid").await);
    let (bot, kept) = (db.bot(bob).await, db.bot(cid).await);
    scene::add_channel(db, bot, "gone").await;
    scene::add_channel(db, kept, "kept").await;
    for user in [bob, cid] {
        session(db, user).await;
        db.sql(format!(
            "INSERT INTO idempotency (principal, key, body_hash, answer, expires_at) VALUES ('{user}', 'k', '', '', 0)"
        ))
        .await;
        db.sql(format!(
            "INSERT INTO user_keys (id, user_id, name, key_hash, last4, created_at)
             VALUES ('key_{user}', '{user}', '', '{user}', '', 0)"
        ))
        .await;
        db.sql(format!(
            "INSERT INTO binds (id, owner_id, for_bot_id, network, name, status, private, codes_shown, rev, created_at,
                expires_at)
             VALUES ('bnd_{user}', '{cid}', '{}', 'sim', '', '', '', 0, 0, 0, 0)",
            if user == bob { bot } else { kept }
        ))
        .await;
    }
    let gone = commit!(db, |tx| {
        tx.accounts().lock_admins().await?;
        assert_eq!(tx.users().begin_deletion(bob).await?, Guarded::Done);
        let bots: Vec<BotId> = tx.users().delete_bots(bob).await?;
        tx.users().delete(bob).await?;
        Ok(bots)
    });
    assert_eq!(gone.unwrap(), [bot]);
    for (table, left) in [
        ("users", 2),
        ("bots", 1),
        ("channels", 1),
        ("sessions", 1),
        ("user_keys", 1),
        ("idempotency", 1),
        ("binds", 1),
    ] {
        assert_eq!(db.count(table).await, left, "{table}");
    }
}

async fn bots_of_a_disabled_user_rest_until_they_are_back(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let (online, expired, other) = (db.bot(ada).await, db.bot(ada).await, db.bot(bob).await);
    db.sql(format!("UPDATE bots SET status = 'online' WHERE id = '{online}'")).await;
    db.sql(format!("UPDATE bots SET status = 'expired', status_reason = 'why' WHERE id = '{expired}'")).await;
    let node: NodeId = db.ids.next();
    let until = START + Duration::from_secs(30);
    let acquire = async || {
        let taken = commit!(db, |tx| tx.leases().acquire(&entry(node), START, until, 10).await).unwrap();
        let mut bots: Vec<BotId> = taken.into_iter().map(|lease| lease.bot_id).collect();
        bots.sort();
        bots
    };
    assert_eq!(acquire().await, [online, expired, other]);
    update(db, ada, status(UserStatus::Disabled)).await;
    let mut rested = commit!(db, |tx| tx.users().rest_bots(ada, START).await).unwrap();
    rested.sort();
    assert_eq!(rested, [online, expired]);
    let held = commit!(db, |tx| tx.leases().renew(&entry(node), until).await).unwrap();
    assert_eq!(
        held.iter().map(|lease| lease.bot_id).collect::<Vec<_>>(),
        [other],
        "the node lets go of them"
    );
    assert_eq!(acquire().await, [], "no one takes them up");
    let statuses =
        async || db.texts(format!("SELECT status FROM bots WHERE owner_id = '{ada}' ORDER BY id")).await;
    assert_eq!(statuses().await, ["offline", "expired"]);
    update(db, ada, status(UserStatus::Active)).await;
    assert_eq!(commit!(db, |tx| tx.users().wake_bots(ada, START).await).unwrap(), [online]);
    assert_eq!(statuses().await, ["connecting", "expired"]);
    assert_eq!(acquire().await, [online, expired]);
}
