use hub_core::{
    access::Role,
    accounts::{ClientInfo, ProfilePatch, User, UserStatus},
    id::{SessionId, UserId},
    page::PageRequest,
    secret::{Secret, TokenHash},
    store::accounts::{Alive, Purpose, SessionRow},
    time::Timestamp,
};

use crate::support::database::{Db, START};

contract!("accounts": {
    the_first_user_is_admin_and_only_they => [insert_user, has_admin, lock_admins],
    a_role_that_is_given_counts => [insert_user, has_admin],
    names_are_unique_and_found => [insert_user, find_user_by_name, find_user],
    hostile_texts_come_back_as_they_were => [insert_user, find_user],
    a_password_is_replaced_only_while_it_is_the_old_one => [replace_password_hash],
    a_first_password_is_set_once => [replace_password_hash],
    a_profile_is_changed_by_field => [update_profile],
    other_sessions_end_and_one_goes_on_renewed => [end_other_sessions, renew_session],
    a_session_opens_for_an_active_user_with_the_same_password => [insert_session, find_holder],
    a_session_ends_by_age_and_by_idleness => [find_holder, list_sessions, delete_ended_sessions],
    a_session_is_touched_once_per_span => [touch_session],
    sessions_are_listed_newest_first_and_belong_to_their_user => [list_sessions, delete_session],
    the_oldest_sessions_are_trimmed => [trim_sessions],
    known_browsers_are_forgotten_together => [device_generation, forget_devices],
    ways_of_signing_in_are_counted => [count_sign_in_methods, lock_user, session_opened_at],
    a_one_time_thing_works_once_for_its_purpose_until_it_expires =>
        [insert_one_time, find_one_time, use_one_time],
    one_time_things_are_forgotten => [delete_one_time, delete_expired_one_time],
});

fn user(db: &Db, name: &str) -> User {
    User {
        id: db.ids.next(),
        username: name.to_owned(),
        display_name: format!("Name of {name}"),
        email: String::new(),
        role: Role::Member,
        status: UserStatus::Active,
        created_at: START,
    }
}

async fn add(db: &Db, name: &str, role: Option<Role>) -> (UserId, Option<Role>) {
    let user = user(db, name);
    let id = user.id;
    let given = commit!(db, |tx| {
        tx.accounts().lock_admins().await?;
        tx.accounts().insert_user(&user, Some(&Secret::new("hash")), role).await
    });
    (id, given.unwrap())
}

/// Opens a session at `at` that lives an hour, whose token is `token`.
async fn open(db: &Db, user_id: UserId, token: &str, at: Timestamp) -> (SessionId, bool) {
    let (id, hash): (SessionId, _) = (db.ids.next(), TokenHash::of(token));
    let opened = commit!(db, |tx| {
        let client = ClientInfo { ip: Some([10, 0, 0, 1].into()), user_agent: "test".to_owned() };
        let expires_at = at + HOUR;
        let row = SessionRow { id, user_id, token_hash: &hash, created_at: at, expires_at, client: &client };
        tx.accounts().insert_session(&row, Some(&Secret::new("hash"))).await
    });
    (id, opened.unwrap())
}

const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

fn alive(now: Timestamp) -> Alive {
    Alive { now, idle_since: now - HOUR / 2 }
}

async fn the_first_user_is_admin_and_only_they(db: &Db) {
    assert!(!commit!(db, |tx| tx.accounts().has_admin().await).unwrap());
    let mut adding = Vec::new();
    for n in 0..10 {
        adding.push(add(db, ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"][n], None));
    }
    let given = futures_util::future::join_all(adding).await;
    let admins = given.iter().filter(|(_, role)| *role == Some(Role::Admin)).count();
    assert_eq!((admins, given.len()), (1, 10));
    assert!(commit!(db, |tx| tx.accounts().has_admin().await).unwrap());
}

async fn a_role_that_is_given_counts(db: &Db) {
    assert_eq!(add(db, "first", Some(Role::Member)).await.1, Some(Role::Member));
    assert_eq!(add(db, "second", None).await.1, Some(Role::Admin));
    assert_eq!(add(db, "third", Some(Role::Admin)).await.1, Some(Role::Admin));
}

async fn names_are_unique_and_found(db: &Db) {
    let (ada, _) = add(db, "ada", None).await;
    assert_eq!(add(db, "ada", None).await.1, None, "the name is taken");
    assert_eq!(db.count("users").await, 1);
    let mut read = db.store.read().await.unwrap();
    let (found, hash) = read.accounts().find_user_by_name("ada").await.unwrap().unwrap();
    assert_eq!((found.id, hash.unwrap().expose()), (ada, "hash"));
    assert_eq!((found.display_name.as_str(), found.created_at), ("Name of ada", START));
    assert!(read.accounts().find_user_by_name("ADA").await.unwrap().is_none());
    assert!(read.accounts().find_user(db.ids.next()).await.unwrap().is_none());
    assert_eq!(read.accounts().find_user(ada).await.unwrap().unwrap().0.username, "ada");
}

async fn hostile_texts_come_back_as_they_were(db: &Db) {
    for (n, text) in super::scene::HOSTILE_TEXTS.into_iter().enumerate() {
        let mut user = user(db, &format!("user{n}"));
        text.clone_into(&mut user.display_name);
        let id = user.id;
        commit!(db, |tx| tx.accounts().insert_user(&user, None, None).await).unwrap();
        let found = db.store.read().await.unwrap().accounts().find_user(id).await.unwrap().unwrap();
        assert_eq!(found.0.display_name, text);
        assert!(found.1.is_none());
    }
}

async fn a_password_is_replaced_only_while_it_is_the_old_one(db: &Db) {
    let (ada, _) = add(db, "ada", None).await;
    let replace = async |old: &str, new: &str| {
        let (old, new) = (Secret::new(old), Secret::new(new));
        commit!(db, |tx| tx.accounts().replace_password_hash(ada, Some(&old), &new, START).await).unwrap()
    };
    assert!(!replace("other", "new").await);
    assert!(replace("hash", "new").await);
    assert!(!replace("hash", "newer").await);
    let (_, hash) = db.store.read().await.unwrap().accounts().find_user(ada).await.unwrap().unwrap();
    assert_eq!(hash.unwrap().expose(), "new");
}

async fn a_session_opens_for_an_active_user_with_the_same_password(db: &Db) {
    let (ada, _) = add(db, "ada", None).await;
    let (id, opened) = open(db, ada, "token", START).await;
    assert!(opened);
    let holder = async |token: &str| {
        let hash = TokenHash::of(token);
        db.store.read().await.unwrap().accounts().find_holder(&hash, alive(START)).await.unwrap()
    };
    let found = holder("token").await.unwrap();
    assert_eq!((found.session_id, found.user_id, found.role), (id, ada, Role::Admin));
    assert_eq!(found.last_seen_at, START);
    assert!(holder("another").await.is_none());
    db.sql(format!("UPDATE users SET role = 'member' WHERE id = '{ada}'")).await;
    assert_eq!(holder("token").await.unwrap().role, Role::Member, "a demotion counts at once");
    db.sql(format!("UPDATE users SET password_hash = 'changed' WHERE id = '{ada}'")).await;
    assert!(!open(db, ada, "late", START).await.1, "the password changed during the login");
    db.sql(format!("UPDATE users SET password_hash = 'hash', status = 'disabled' WHERE id = '{ada}'")).await;
    assert!(!open(db, ada, "disabled", START).await.1);
    assert!(holder("token").await.is_none(), "a disabled user's session is worth nothing");
    assert!(!open(db, db.ids.next(), "nobody", START).await.1);
}

async fn a_session_ends_by_age_and_by_idleness(db: &Db) {
    let (ada, _) = add(db, "ada", None).await;
    let (id, _) = open(db, ada, "token", START).await;
    let lives = async |at: Timestamp| {
        let mut read = db.store.read().await.unwrap();
        let holder = read.accounts().find_holder(&TokenHash::of("token"), alive(at)).await.unwrap();
        let listed = read.accounts().list_sessions(ada, alive(at), &PageRequest::default()).await.unwrap();
        assert_eq!(holder.is_some(), !listed.is_empty());
        holder.is_some()
    };
    let idle = START + HOUR / 2;
    assert!(lives(idle - std::time::Duration::from_millis(1)).await);
    assert!(!lives(idle).await, "idle for too long");
    commit!(db, |tx| tx.accounts().touch_session(id, START + HOUR, START).await).unwrap();
    assert!(!lives(START + HOUR).await, "too old, however busy");
    let ended = |at: Timestamp| async move {
        commit!(db, |tx| tx.accounts().delete_ended_sessions(alive(at), 10).await).unwrap()
    };
    assert_eq!(ended(START + HOUR / 4).await, 0);
    assert_eq!(ended(START + HOUR).await, 1);
    assert_eq!(db.count("sessions").await, 0);
}

async fn a_session_is_touched_once_per_span(db: &Db) {
    let (ada, _) = add(db, "ada", None).await;
    let (id, _) = open(db, ada, "token", START).await;
    let minute = HOUR / 60;
    let touch = async |at: Timestamp| {
        commit!(db, |tx| tx.accounts().touch_session(id, at, at - minute).await).unwrap();
        db.number("SELECT CAST(last_seen_at AS BIGINT) FROM sessions").await
    };
    assert_eq!(touch(START + minute / 2).await, START.as_millis(), "noted less than a minute ago");
    assert_eq!(touch(START + minute).await, (START + minute).as_millis());
}

async fn sessions_are_listed_newest_first_and_belong_to_their_user(db: &Db) {
    let ((ada, _), (bob, _)) = (add(db, "ada", None).await, add(db, "bob", None).await);
    let mut mine = Vec::new();
    for n in 0..3 {
        mine.push(open(db, ada, &format!("ada{n}"), START).await.0);
    }
    let (his, _) = open(db, bob, "bob", START).await;
    mine.reverse();
    let list = async |user, page: PageRequest| {
        let mut read = db.store.read().await.unwrap();
        let rows = read.accounts().list_sessions(user, alive(START), &page).await.unwrap();
        rows.into_iter().map(|session| session.id).collect::<Vec<_>>()
    };
    assert_eq!(list(ada, PageRequest::default()).await, mine);
    assert_eq!(list(bob, PageRequest::default()).await, [his]);
    let first = PageRequest::parse("s", Some(1), None).unwrap();
    assert_eq!(list(ada, first).await, mine[..2], "one more than asked for tells that more follow");
    let cursor = hub_core::page::encode("s", &mine[0].to_string());
    let second = PageRequest::parse("s", Some(1), Some(&cursor)).unwrap();
    assert_eq!(list(ada, second).await, mine[1..]);
    let end = async |user, id| commit!(db, |tx| tx.accounts().delete_session(user, id).await).unwrap();
    assert!(!end(bob, mine[0]).await, "another user's");
    assert!(end(ada, mine[0]).await);
    assert!(!end(ada, mine[0]).await, "gone already");
    assert_eq!(list(ada, PageRequest::default()).await, mine[1..]);
}

async fn the_oldest_sessions_are_trimmed(db: &Db) {
    let ((ada, _), (bob, _)) = (add(db, "ada", None).await, add(db, "bob", None).await);
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(open(db, ada, &format!("ada{n}"), START).await.0.to_string());
        open(db, bob, &format!("bob{n}"), START).await;
    }
    assert_eq!(commit!(db, |tx| tx.accounts().trim_sessions(ada, 2).await).unwrap(), 2);
    let kept = db.texts(format!("SELECT id FROM sessions WHERE user_id = '{ada}' ORDER BY id")).await;
    assert_eq!(kept, ids[2..]);
    assert_eq!(db.count("sessions").await, 6);
}

async fn ways_of_signing_in_are_counted(db: &Db) {
    let (ada, _) = add(db, "ada", None).await;
    let (session, _) = open(db, ada, "token", START).await;
    let count = async || {
        commit!(db, |tx| {
            tx.accounts().lock_user(ada).await?;
            tx.accounts().count_sign_in_methods(ada).await
        })
        .unwrap()
    };
    assert_eq!(count().await, 1, "the password");
    db.sql(format!(
        "INSERT INTO passkeys (id, user_id, credential_id, credential, name, created_at)
            VALUES ('p', '{ada}', 'c', '', '', 0);
         INSERT INTO external_accounts (provider, subject, user_id, username, avatar_url, created_at)
            VALUES ('github', '1', '{ada}', '', '', 0), ('company', '1', '{ada}', '', '', 0)"
    ))
    .await;
    assert_eq!(count().await, 4);
    db.sql(format!("UPDATE users SET password_hash = NULL WHERE id = '{ada}'")).await;
    assert_eq!(count().await, 3);
    let mut read = db.store.read().await.unwrap();
    assert_eq!(read.accounts().session_opened_at(session).await.unwrap(), Some(START));
    assert_eq!(read.accounts().session_opened_at(db.ids.next()).await.unwrap(), None);
}

async fn known_browsers_are_forgotten_together(db: &Db) {
    let (ada, _) = add(db, "ada", None).await;
    let (bob, _) = add(db, "bob", None).await;
    let generation = async |id: UserId| {
        let mut read = db.store.read().await.unwrap();
        read.accounts().device_generation(id).await.unwrap()
    };
    assert_eq!(generation(ada).await, Some(("ada".to_owned(), 0)));
    for _ in 0..2 {
        commit!(db, |tx| tx.accounts().forget_devices(ada).await).unwrap();
    }
    assert_eq!(generation(ada).await, Some(("ada".to_owned(), 2)));
    assert_eq!(generation(bob).await, Some(("bob".to_owned(), 0)));
    assert_eq!(generation(db.ids.next()).await, None);
}

async fn a_one_time_thing_works_once_for_its_purpose_until_it_expires(db: &Db) {
    let hash = |text| TokenHash::of(text);
    for token in ["used", "late"] {
        let hash = hash(token);
        commit!(db, |tx| tx.accounts().insert_one_time(Purpose::Setup, &hash, "it", START + HOUR).await)
            .unwrap();
    }
    let again = hash("used");
    let twice = commit!(db, |tx| tx.accounts().insert_one_time(Purpose::Setup, &again, "", START).await);
    assert_eq!(twice.unwrap_err().code(), hub_core::ErrorCode::Conflict);
    let take = async |token, at| {
        let hash = hash(token);
        commit!(db, |tx| tx.accounts().use_one_time(Purpose::Setup, &hash, at).await).unwrap()
    };
    let find = async |token, purpose, at| {
        let mut read = db.store.read().await.unwrap();
        read.accounts().find_one_time(purpose, &hash(token), at).await.unwrap()
    };
    assert_eq!(find("unknown", Purpose::Setup, START).await, None);
    assert_eq!(find("used", Purpose::Reset, START).await, None, "for another purpose");
    assert_eq!(find("used", Purpose::Setup, START + HOUR).await, None, "too late");
    for _ in 0..2 {
        assert_eq!(
            find("used", Purpose::Setup, START).await.as_deref(),
            Some("it"),
            "looking uses nothing up"
        );
    }
    assert_eq!(take("unknown", START).await, None);
    let many = futures_util::future::join_all((0..20).map(|_| take("used", START))).await;
    assert_eq!(many.into_iter().flatten().collect::<Vec<_>>(), ["it"], "one of twenty gets it");
    assert_eq!(take("late", START + HOUR).await, None);
    assert_eq!(find("used", Purpose::Setup, START).await, None, "it is used");
}

async fn one_time_things_are_forgotten(db: &Db) {
    for (token, subject, hours) in [("a", "x", 1), ("b", "x", 2), ("c", "y", 1), ("d", "y", 3)] {
        let hash = TokenHash::of(token);
        let until = START + HOUR * hours;
        commit!(db, |tx| tx.accounts().insert_one_time(Purpose::Setup, &hash, subject, until).await).unwrap();
    }
    commit!(db, |tx| tx.accounts().delete_one_time(Purpose::Setup, "x").await).unwrap();
    assert_eq!(db.texts("SELECT subject FROM one_time").await, ["y", "y"]);
    let expired = |limit| async move {
        commit!(db, |tx| tx.accounts().delete_expired_one_time(START + HOUR * 3, limit).await).unwrap()
    };
    assert_eq!(expired(1).await, 1, "the limit counts");
    assert_eq!(expired(5).await, 1);
    assert_eq!(expired(5).await, 0);
}

async fn a_first_password_is_set_once(db: &Db) {
    let user = user(db, "ada");
    let id = user.id;
    commit!(db, |tx| tx.accounts().insert_user(&user, None, None).await).unwrap();
    let set = async |old: Option<&'static str>, new: &'static str| {
        commit!(db, |tx| {
            let (old, new) = (old.map(Secret::new), Secret::new(new));
            tx.accounts().replace_password_hash(id, old.as_ref(), &new, START).await
        })
        .unwrap()
    };
    assert!(!set(Some("hash"), "first").await);
    assert!(set(None, "first").await);
    assert!(!set(None, "second").await);
    assert!(set(Some("first"), "second").await);
}

async fn a_profile_is_changed_by_field(db: &Db) {
    let (ada, _) = add(db, "ada", None).await;
    let (bob, _) = add(db, "bob", None).await;
    let patch = async |id: UserId, name: Option<&'static str>, email: Option<&'static str>| {
        commit!(db, |tx| {
            let patch =
                ProfilePatch { display_name: name.map(str::to_owned), email: email.map(str::to_owned) };
            tx.accounts().update_profile(id, &patch, START).await
        })
        .unwrap()
    };
    assert!(patch(ada, Some("Ada"), None).await);
    assert!(patch(ada, None, Some("a@b.c")).await);
    assert!(!patch(db.ids.next(), Some("nobody"), None).await);
    let mut read = db.store.read().await.unwrap();
    let (found, _) = read.accounts().find_user(ada).await.unwrap().unwrap();
    assert_eq!((&*found.display_name, &*found.email), ("Ada", "a@b.c"));
    let (found, _) = read.accounts().find_user(bob).await.unwrap().unwrap();
    assert_eq!((&*found.display_name, &*found.email), ("Name of bob", ""));
}

async fn other_sessions_end_and_one_goes_on_renewed(db: &Db) {
    let (ada, _) = add(db, "ada", None).await;
    let (bob, _) = add(db, "bob", None).await;
    let (kept, _) = open(db, ada, "kept", START).await;
    open(db, ada, "other", START).await;
    open(db, bob, "bobs", START).await;
    let ended = commit!(db, |tx| tx.accounts().end_other_sessions(ada, Some(kept)).await).unwrap();
    assert_eq!(ended, 1);
    let renew = async |id: SessionId| {
        commit!(db, |tx| tx.accounts().renew_session(id, &TokenHash::of("renewed")).await).unwrap()
    };
    assert!(!renew(db.ids.next()).await);
    assert!(renew(kept).await);
    let mut read = db.store.read().await.unwrap();
    for (token, lives) in [("kept", false), ("other", false), ("renewed", true), ("bobs", true)] {
        let holder = read.accounts().find_holder(&TokenHash::of(token), alive(START)).await.unwrap();
        assert_eq!(holder.is_some(), lives, "{token}");
    }
    assert_eq!(commit!(db, |tx| tx.accounts().end_other_sessions(ada, None).await).unwrap(), 1);
}
