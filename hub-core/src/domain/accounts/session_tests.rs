use super::*;
use crate::accounts::tests::{Fixture, PASSWORD, code};

#[tokio::test]
async fn sessions_expire_by_idle_time_and_age_and_are_revoked_by_the_user() {
    let fixture = Fixture::new().await;
    let first = fixture.register("alice").await.unwrap();
    let second = fixture.login("alice", PASSWORD).await.unwrap();
    let almost_six_days = Duration::from_millis(6 * 24 * 3600 * 1000 - 1);
    for _ in 0..5 {
        fixture.clock.advance(almost_six_days);
        fixture.actor(&first).await.unwrap();
        // The note of the use is written behind the answer; an empty write waits for it.
        fixture.hub.context().store.write(|_| Box::pin(async { Ok(()) })).await.unwrap();
    }
    assert_eq!(code(fixture.actor(&second).await), ErrorCode::Unauthorized, "unused for a week");
    fixture.clock.advance(Duration::from_millis(5));
    assert_eq!(code(fixture.actor(&first).await), ErrorCode::Unauthorized, "30 days old");
    assert_eq!(fixture.accounts().delete_expired(10).await.unwrap(), 2);
    assert_eq!(fixture.accounts().delete_expired(10).await.unwrap(), 0);

    let (third, fourth) =
        (fixture.login("alice", PASSWORD).await.unwrap(), fixture.login("alice", PASSWORD).await.unwrap());
    let actor = fixture.actor(&third).await.unwrap();
    let Actor::User(other) = fixture.actor(&fourth).await.unwrap() else { panic!("a user") };
    fixture.accounts().delete_session(&actor, other.session_id.unwrap()).await.unwrap();
    assert_eq!(code(fixture.actor(&fourth).await), ErrorCode::Unauthorized);
    fixture.accounts().logout(&actor).await.unwrap();
    assert_eq!(code(fixture.actor(&third).await), ErrorCode::Unauthorized);
    fixture.accounts().logout(&actor).await.expect("signing out twice is fine");
}

#[tokio::test]
async fn a_disabled_user_and_a_garbled_token_are_rejected_at_once() {
    let fixture = Fixture::new().await;
    let alice = fixture.register("alice").await.unwrap();
    fixture.actor(&alice).await.unwrap();
    fixture.sql("UPDATE users SET status = 'disabled'").await;
    assert_eq!(code(fixture.actor(&alice).await), ErrorCode::Unauthorized);
    for garbage in ["", "hubs_", "x", "hubc_aaaa"] {
        assert_eq!(code(fixture.accounts().authenticate_session(garbage).await), ErrorCode::Unauthorized);
    }
}

#[tokio::test]
async fn the_list_shows_own_sessions_in_pages_and_keeps_a_hundred() {
    let fixture = Fixture::new().await;
    let alice = fixture.register("alice").await.unwrap();
    let mut newest = None;
    for _ in 0..100 {
        let client = ClientInfo { ip: "::ffff:10.0.0.1".parse().ok(), user_agent: "a\nb".repeat(200) };
        newest = Some(fixture.accounts().login("alice", PASSWORD.into(), &client).await.unwrap());
    }
    assert_eq!(code(fixture.actor(&alice).await), ErrorCode::Unauthorized, "the 101st ends the oldest");
    let newest = fixture.actor(&newest.unwrap()).await.unwrap();
    let list = Accounts::session_list(&newest);
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let request = PageRequest::parse(&list, Some(40), cursor.as_deref()).unwrap();
        let page = fixture.accounts().sessions(&newest, &request).await.unwrap();
        seen.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 100);
    assert!(seen.is_sorted_by(|a, b| a.id > b.id));
    assert!(seen[0].current && seen[1..].iter().all(|session| !session.current));
    assert_eq!((seen[0].ip.as_str(), seen[0].user_agent.len()), ("10.0.0.1", 256));
    assert!(!seen[0].user_agent.contains('\n'));

    let bob = fixture.register("bob").await.unwrap();
    let bob = fixture.actor(&bob).await.unwrap();
    let foreign = fixture.accounts().delete_session(&bob, seen[0].id).await;
    assert_eq!(code(foreign), ErrorCode::NotFound);
    assert_eq!(fixture.accounts().sessions(&bob, &PageRequest::default()).await.unwrap().items.len(), 1);
    assert_eq!(
        code(fixture.accounts().sessions(&Actor::Operator, &PageRequest::default()).await),
        ErrorCode::Forbidden
    );
}
