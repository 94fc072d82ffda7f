use super::*;
use crate::{
    access::Actor,
    accounts::{
        NewPassword, UserStatus,
        tests::{Fixture, PASSWORD},
    },
    admin::UserPatch,
    model::session::ClientInfo,
    secret::Secret,
};

/// The cookie of a browser that a user has signed in with.
async fn cookie(fixture: &Fixture, id: UserId) -> String {
    fixture.accounts().device_cookie(id).await.unwrap().unwrap().expose().to_owned()
}

async fn knows(fixture: &Fixture, cookie: &str, username: &str) -> bool {
    fixture.accounts().known_device(cookie, username).await.unwrap().is_some()
}

#[tokio::test]
async fn a_browser_is_known_for_its_own_user_and_for_half_a_year() {
    let fixture = Fixture::new().await;
    let ada = fixture.register("ada").await.unwrap().me.user.id;
    fixture.register("bob").await.unwrap();
    let first = cookie(&fixture, ada).await;
    assert!(knows(&fixture, &first, "ada").await && knows(&fixture, &first, "ADA").await);
    assert!(!knows(&fixture, &first, "bob").await && !knows(&fixture, &first, "no name").await);
    // Each is another one.
    let second = cookie(&fixture, ada).await;
    let mark =
        async |cookie: &str| fixture.accounts().known_device(cookie, "ada").await.unwrap().unwrap().mark;
    assert_ne!(mark(&first).await, mark(&second).await);
    assert_eq!(mark(&first).await, mark(&first).await);
    fixture.clock.advance(DEVICE_LIFETIME.saturating_sub(Duration::from_millis(1)));
    assert!(knows(&fixture, &first, "ada").await);
    fixture.clock.advance(Duration::from_millis(1));
    assert!(!knows(&fixture, &first, "ada").await);
    assert_eq!(fixture.accounts().device_cookie(UserId::from_u128(1)).await.unwrap(), None);
}

#[tokio::test]
async fn only_cookies_signed_by_the_hub_are_looked_up() {
    let fixture = Fixture::new().await;
    let ada = fixture.register("ada").await.unwrap().me.user.id;
    let right = cookie(&fixture, ada).await;
    let (claim, signature) = right.rsplit_once('.').unwrap();
    let longer = claim.replacen('.', "9.", 1);
    let parts: Vec<&str> = claim.split('.').collect();
    let later = [parts[0], parts[1], "9999999999999", parts[3], signature].join(".");
    let long = format!("{}.{signature}", "x".repeat(10_000));
    let wrong = [
        "",
        ".",
        "....",
        claim,
        signature,
        &right.to_uppercase(),
        &format!("{right}0"),
        &format!("{claim}.{}", "0".repeat(64)),
        &format!("{longer}.{signature}"),
        &later,
        &long,
    ];
    // A store that is closed answers no query.
    fixture.hub.shutdown().await;
    for wrong in wrong {
        assert!(!knows(&fixture, wrong, "ada").await, "{wrong}");
    }
    assert!(!knows(&fixture, &right, "bob").await);
    fixture.accounts().known_device(&right, "ada").await.unwrap_err();
}

#[tokio::test]
async fn revoking_all_sessions_forgets_recognised_browsers() {
    let fixture = Fixture::new().await;
    let signed_in = fixture.register("ada").await.unwrap();
    fixture.register("bob").await.unwrap();
    let (ada, actor) = (signed_in.me.user.id, fixture.actor(&signed_in).await.unwrap());
    let admin = fixture.hub.admin();
    let role = UserPatch { role: Some(crate::access::Role::Admin), ..UserPatch::default() };
    let bob = admin.user_by_name(&Actor::Operator, "bob").await.unwrap().user.id;
    admin.update_user(&Actor::Operator, bob, role).await.unwrap();
    let status = |status| UserPatch { status: Some(status), ..UserPatch::default() };

    let known = cookie(&fixture, ada).await;
    let change = NewPassword { old: Some(PASSWORD.into()), new: "another passphrase".into() };
    fixture.accounts().change_password(&actor, change).await.unwrap();
    assert!(!knows(&fixture, &known, "ada").await, "a changed password");

    let known = cookie(&fixture, ada).await;
    // One session, or another name to show, is not all of them.
    let session = actor.user().unwrap().session_id;
    admin.end_sessions(&Actor::Operator, ada, session).await.unwrap();
    let name = UserPatch { display_name: Some("Ada".to_owned()), ..UserPatch::default() };
    admin.update_user(&Actor::Operator, ada, name).await.unwrap();
    assert!(knows(&fixture, &known, "ada").await);
    admin.end_sessions(&Actor::Operator, ada, None).await.unwrap();
    assert!(!knows(&fixture, &known, "ada").await, "all sessions ended");

    let known = cookie(&fixture, ada).await;
    admin.update_user(&Actor::Operator, ada, status(UserStatus::Disabled)).await.unwrap();
    admin.update_user(&Actor::Operator, ada, status(UserStatus::Active)).await.unwrap();
    assert!(!knows(&fixture, &known, "ada").await, "switched off");

    let known = cookie(&fixture, ada).await;
    let link = admin.create_reset_link(&Actor::Operator, ada, None).await.unwrap();
    assert!(knows(&fixture, &known, "ada").await, "a link that no one has used");
    let token: Secret = link.url.expose().split_once('#').unwrap().1.into();
    let new = "a third passphrase".into();
    fixture.accounts().reset_password(&token, new, &ClientInfo::default()).await.unwrap();
    assert!(!knows(&fixture, &known, "ada").await, "a password set with a link");

    let known = cookie(&fixture, ada).await;
    admin.delete_user(&Actor::Operator, ada).await.unwrap();
    assert!(!knows(&fixture, &known, "ada").await, "a user who is gone");
    fixture.register("ada").await.unwrap();
    assert!(!knows(&fixture, &known, "ada").await, "another user of that name");
}
