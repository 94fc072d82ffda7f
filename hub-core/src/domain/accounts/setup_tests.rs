use super::*;
use crate::{
    accounts::tests::{Fixture, PASSWORD, code, new},
    config::{HubConfig, Registration},
    model::session::ClientInfo,
};

#[tokio::test]
async fn a_hub_bound_wide_gives_its_first_account_to_the_setup_token() {
    let config = HubConfig { setup_token_required: true, ..HubConfig::default() };
    let fixture = Fixture::with(config).await;
    let accounts = fixture.accounts();
    let with = async |name: &str, token: &Secret| {
        accounts.register(new(name), Some(token.clone()), &ClientInfo::default()).await
    };
    let refused = fixture.register("eve").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Forbidden);
    assert!(refused.message().contains("setup token"), "{refused}");

    let first = accounts.mint_setup_token().await.unwrap().unwrap();
    let second = accounts.mint_setup_token().await.unwrap().unwrap();
    assert_eq!(code(with("eve", &first).await), ErrorCode::InvalidToken, "a later one ends it");
    assert_eq!(code(with("eve", &"guess".into()).await), ErrorCode::InvalidToken);
    fixture.clock.advance(SETUP_TOKEN_LIFETIME);
    assert_eq!(code(with("eve", &second).await), ErrorCode::InvalidToken, "half an hour has passed");
    assert_eq!(accounts.delete_expired(10).await.unwrap(), 1);

    let third = accounts.mint_setup_token().await.unwrap().unwrap();
    let bad = NewUser { email: Some("x".into()), ..new("alice") };
    let refused = accounts.register(bad, Some(third.clone()), &ClientInfo::default()).await;
    assert_eq!(code(refused), ErrorCode::InvalidParams);
    let race = futures_util::future::join(with("alice", &third), with("eve", &third)).await;
    let (winner, loser) = if race.0.is_ok() { race } else { (race.1, race.0) };
    assert_eq!(winner.unwrap().me.user.role, Role::Admin);
    assert_eq!(code(loser), ErrorCode::InvalidToken, "it works once");
    assert_eq!(accounts.mint_setup_token().await.unwrap(), None);
    assert_eq!(fixture.register("bob").await.unwrap().me.user.role, Role::Member);
}

#[tokio::test]
async fn an_unused_setup_token_is_revoked_by_the_first_administrator() {
    let fixture = Fixture::new().await;
    let token = fixture.accounts().mint_setup_token().await.unwrap().unwrap();
    fixture.register("alice").await.unwrap();
    let late = fixture.accounts().register(new("eve"), Some(token), &ClientInfo::default()).await;
    assert_eq!(code(late), ErrorCode::InvalidToken);
}

#[tokio::test]
async fn a_closed_registration_opens_for_the_setup_token_alone() {
    for registration in [Registration::Closed, Registration::Invite] {
        let fixture = Fixture::with(HubConfig { registration, ..HubConfig::default() }).await;
        assert_eq!(code(fixture.register("eve").await), ErrorCode::Forbidden);
        let token = fixture.accounts().mint_setup_token().await.unwrap();
        let alice = fixture.accounts().register(new("alice"), token, &ClientInfo::default()).await;
        assert_eq!(alice.unwrap().me.user.role, Role::Admin);
        assert_eq!(code(fixture.register("eve").await), ErrorCode::Forbidden);
    }
}

#[tokio::test]
async fn the_operator_creates_administrators() {
    let fixture = Fixture::new().await;
    let accounts = fixture.accounts();
    let ensured = accounts.ensure_admin("admin", PASSWORD.into()).await.unwrap();
    let EnsuredAdmin::Created(admin) = ensured else { panic!("there was none") };
    assert_eq!(admin.role, Role::Admin);
    let again = accounts.ensure_admin("other", "x".into()).await.unwrap();
    assert_eq!(again, EnsuredAdmin::Exists);
    assert_eq!(fixture.login("admin", PASSWORD).await.unwrap().me.user, admin);

    let root = accounts.create_admin(&Actor::Operator, new("root")).await.unwrap();
    assert_eq!(root.role, Role::Admin);
    let taken: Error = accounts.create_admin(&Actor::Operator, new("root")).await.unwrap_err();
    assert_eq!(taken.code(), ErrorCode::Conflict);
    let eve = accounts.create_user(&Actor::Operator, new("eve"), Role::Member).await.unwrap();
    assert_eq!(eve.role, Role::Member);
    let bob = fixture.register("bob").await.unwrap();
    let bob = fixture.actor(&bob).await.unwrap();
    assert_eq!(code(accounts.create_admin(&bob, new("mallory")).await), ErrorCode::Forbidden);
    let made = accounts.create_user(&bob, new("mallory"), Role::Member).await;
    assert_eq!(code(made), ErrorCode::Forbidden);
}
