use std::time::Duration;

use futures_util::future::join_all;

use super::*;
use crate::{
    access::{Actor, Role},
    accounts::{
        ApiKey, NewApiKey, NewPassword,
        tests::{Fixture, PASSWORD, code},
    },
    admin::{RESET_LINK_LIFETIME, UserPatch},
    page::PageRequest,
    store::audit::AuditFilter,
};

const NEW: &str = "a new passphrase";

/// The token of a new link.
async fn link(fixture: &Fixture, id: UserId) -> Secret {
    let made = fixture.hub.admin().create_reset_link(&Actor::Operator, id, None).await.unwrap();
    let (page, token) = made.url.expose().split_once('#').unwrap();
    assert_eq!(page, "http://localhost:9800/login/reset");
    assert!(token.starts_with("hubr_"));
    token.into()
}

async fn set(fixture: &Fixture, token: &Secret, password: &str) -> Result<User> {
    fixture.accounts().reset_password(token, password.into(), &ClientInfo::default()).await
}

#[tokio::test]
async fn a_reset_link_sets_a_password_once_and_revokes_sessions() {
    let fixture = Fixture::new().await;
    let ada = fixture.register("ada").await.unwrap();
    let bob = fixture.register("bob").await.unwrap();
    let (actor, id) = (fixture.actor(&bob).await.unwrap(), bob.me.user.id);
    let new = NewApiKey { name: "ci".into(), expires_in_days: None };
    let key = fixture.accounts().create_api_key(&actor, new, None).await.unwrap();
    let token = link(&fixture, id).await;
    fixture.actor(&bob).await.expect("a link that no one has used changes nothing");
    fixture.login("bob", PASSWORD).await.unwrap();

    let mut revocations = fixture.hub.revocations();
    // What is refused leaves the link.
    for bad in ["short", "bob", "password1"] {
        let refused = set(&fixture, &token, bad).await.unwrap_err();
        assert_eq!(
            (refused.code(), &*refused.details()[0].field),
            (ErrorCode::InvalidParams, "new_password")
        );
    }
    assert_eq!(set(&fixture, &token, NEW).await.unwrap().username, "bob");
    assert_eq!(revocations.recv().await.unwrap(), Revoked::User(id));
    assert_eq!(code(fixture.actor(&bob).await), ErrorCode::Unauthorized);
    assert_eq!(code(fixture.login("bob", PASSWORD).await), ErrorCode::Unauthorized);
    fixture.login("bob", NEW).await.unwrap();
    fixture.accounts().authenticate_api_key(key.secret.expose()).await.expect("keys live on");
    fixture.actor(&ada).await.expect("no one else is concerned");
    assert_eq!(code(set(&fixture, &token, "yet another passphrase").await), ErrorCode::InvalidToken);
    fixture.login("bob", NEW).await.unwrap();

    let filter = AuditFilter { target: Some(id.to_string()), ..AuditFilter::default() };
    let log = fixture.hub.admin().audit(&Actor::Operator, &filter, &PageRequest::default()).await.unwrap();
    let done = log.items.iter().map(|entry| (&*entry.action, &*entry.actor));
    let done: Vec<_> = done.filter(|(action, _)| *action != "user.login_failed").collect();
    assert_eq!(
        done,
        [("password.reset", ""), ("reset_link.created", "operator"), ("user.registered", &*id.to_string())]
    );
    assert!(!fixture.holds(token.expose()).await, "the token is stored as a hash");
}

#[tokio::test]
async fn a_reset_link_expires_and_is_revoked_by_a_later_link_a_new_password_or_deletion() {
    let fixture = Fixture::new().await;
    fixture.register("ada").await.unwrap();
    let bob = fixture.register("bob").await.unwrap();
    let id = bob.me.user.id;
    let first = link(&fixture, id).await;
    fixture.clock.advance(RESET_LINK_LIFETIME.saturating_sub(Duration::from_millis(1)));
    let second = link(&fixture, id).await;
    assert_eq!(code(set(&fixture, &first, NEW).await), ErrorCode::InvalidToken, "a later one ends it");
    fixture.clock.advance(RESET_LINK_LIFETIME);
    assert_eq!(code(set(&fixture, &second, NEW).await), ErrorCode::InvalidToken, "an hour has passed");

    let third = link(&fixture, id).await;
    let actor = fixture.actor(&bob).await.unwrap();
    let change = NewPassword { old: Some(PASSWORD.into()), new: NEW.into() };
    fixture.accounts().change_password(&actor, change).await.unwrap();
    assert_eq!(code(set(&fixture, &third, "yet another passphrase").await), ErrorCode::InvalidToken);

    let fourth = link(&fixture, id).await;
    fixture.hub.admin().delete_user(&Actor::Operator, id).await.unwrap();
    assert_eq!(code(set(&fixture, &fourth, NEW).await), ErrorCode::InvalidToken);
    assert_eq!(fixture.count("one_time WHERE purpose = 'reset'").await, 0);
    for garbage in ["", "hubr_", "hubr_x", bob.token.expose()] {
        assert_eq!(code(set(&fixture, &garbage.into(), NEW).await), ErrorCode::InvalidToken, "{garbage}");
    }
}

#[tokio::test]
async fn of_fifty_concurrent_uses_of_a_reset_link_one_succeeds() {
    let fixture = Fixture::new().await;
    let bob = fixture.register("bob").await.unwrap();
    let token = link(&fixture, bob.me.user.id).await;
    let passwords: Vec<String> = (0..50).map(|n| format!("a new passphrase {n}")).collect();
    let done = join_all(passwords.iter().map(|password| set(&fixture, &token, password))).await;
    let won: Vec<_> = done.iter().zip(&passwords).filter(|(result, _)| result.is_ok()).collect();
    let [(_, password)] = won[..] else { panic!("{} won", won.len()) };
    fixture.login("bob", password).await.unwrap();
    let lost = done.iter().filter_map(|result| result.as_ref().err()).map(Error::code);
    assert!(lost.into_iter().all(|code| matches!(code, ErrorCode::InvalidToken | ErrorCode::RateLimited)));
}

#[tokio::test]
async fn only_administrators_create_reset_links_and_only_for_others() {
    let fixture = Fixture::new().await;
    let (ada, bob) = (fixture.register("ada").await.unwrap(), fixture.register("bob").await.unwrap());
    let (admin, member) = (fixture.actor(&ada).await.unwrap(), fixture.actor(&bob).await.unwrap());
    let (ada, bob) = (ada.me.user.id, bob.me.user.id);
    let make = async |actor: Actor, id| fixture.hub.admin().create_reset_link(&actor, id, None).await;
    assert_eq!(code(make(member, ada).await), ErrorCode::Forbidden);
    assert_eq!(code(make(member, bob).await), ErrorCode::Forbidden);
    assert_eq!(code(make(admin, UserId::from_u128(1)).await), ErrorCode::NotFound);
    // A signed-in browser that was left open does not bypass the password, nor does an API key.
    assert_eq!(code(make(admin, ada).await), ErrorCode::Forbidden);
    let new = NewApiKey { name: "ci".into(), expires_in_days: None };
    let key = fixture.accounts().create_api_key(&admin, new, None).await.unwrap();
    let key: ApiKey = key.key;
    let by_key = Actor::User(crate::access::UserActor {
        session_id: None,
        key_id: Some(key.id),
        ..*admin.user().unwrap()
    });
    assert_eq!(code(make(by_key, ada).await), ErrorCode::Forbidden);
    // Another administrator is an ordinary user here.
    let role = UserPatch { role: Some(Role::Admin), ..UserPatch::default() };
    fixture.hub.admin().update_user(&admin, bob, role).await.unwrap();
    make(by_key, bob).await.unwrap();
    // A user without a password gets their first one.
    fixture.sql("UPDATE users SET password_hash = NULL WHERE username = 'bob'").await;
    let token = link(&fixture, bob).await;
    set(&fixture, &token, NEW).await.unwrap();
    fixture.login("bob", NEW).await.unwrap();
}
