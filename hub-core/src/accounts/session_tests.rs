use super::*;
use crate::accounts::tests::{House, PASSWORD, code};

#[tokio::test]
async fn sessions_end_by_idleness_by_age_and_by_the_user() {
    let house = House::new().await;
    let first = house.register("alice").await.unwrap();
    let second = house.login("alice", PASSWORD).await.unwrap();
    let almost_six_days = Duration::from_millis(6 * 24 * 3600 * 1000 - 1);
    for _ in 0..5 {
        house.clock.advance(almost_six_days);
        house.actor(&first).await.unwrap();
        // The note of the use is written behind the answer; an empty write waits for it.
        house.hub.context().store.write(|_| Box::pin(async { Ok(()) })).await.unwrap();
    }
    assert_eq!(code(house.actor(&second).await), ErrorCode::Unauthorized, "unused for a week");
    house.clock.advance(Duration::from_millis(5));
    assert_eq!(code(house.actor(&first).await), ErrorCode::Unauthorized, "30 days old");
    assert_eq!(house.accounts().delete_expired(10).await.unwrap(), 2);
    assert_eq!(house.accounts().delete_expired(10).await.unwrap(), 0);

    let (third, fourth) =
        (house.login("alice", PASSWORD).await.unwrap(), house.login("alice", PASSWORD).await.unwrap());
    let actor = house.actor(&third).await.unwrap();
    let Actor::User(other) = house.actor(&fourth).await.unwrap() else { panic!("a user") };
    house.accounts().delete_session(&actor, other.session_id.unwrap()).await.unwrap();
    assert_eq!(code(house.actor(&fourth).await), ErrorCode::Unauthorized);
    house.accounts().logout(&actor).await.unwrap();
    assert_eq!(code(house.actor(&third).await), ErrorCode::Unauthorized);
    house.accounts().logout(&actor).await.expect("signing out twice is fine");
}

#[tokio::test]
async fn a_disabled_user_and_a_garbled_token_are_rejected_at_once() {
    let house = House::new().await;
    let alice = house.register("alice").await.unwrap();
    house.actor(&alice).await.unwrap();
    house.sql("UPDATE users SET status = 'disabled'").await;
    assert_eq!(code(house.actor(&alice).await), ErrorCode::Unauthorized);
    for garbage in ["", "hubs_", "x", "hubc_aaaa"] {
        assert_eq!(code(house.accounts().authenticate_session(garbage).await), ErrorCode::Unauthorized);
    }
}

#[tokio::test]
async fn the_list_shows_own_sessions_in_pages_and_keeps_a_hundred() {
    let house = House::new().await;
    let alice = house.register("alice").await.unwrap();
    let mut newest = None;
    for _ in 0..100 {
        let client = ClientInfo { ip: "::ffff:10.0.0.1".parse().ok(), user_agent: "a\nb".repeat(200) };
        newest = Some(house.accounts().login("alice", PASSWORD.into(), &client).await.unwrap());
    }
    assert_eq!(code(house.actor(&alice).await), ErrorCode::Unauthorized, "the 101st ends the oldest");
    let newest = house.actor(&newest.unwrap()).await.unwrap();
    let list = Accounts::session_list(&newest);
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let request = PageRequest::parse(&list, Some(40), cursor.as_deref()).unwrap();
        let page = house.accounts().sessions(&newest, &request).await.unwrap();
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

    let bob = house.register("bob").await.unwrap();
    let bob = house.actor(&bob).await.unwrap();
    let foreign = house.accounts().delete_session(&bob, seen[0].id).await;
    assert_eq!(code(foreign), ErrorCode::NotFound);
    assert_eq!(house.accounts().sessions(&bob, &PageRequest::default()).await.unwrap().items.len(), 1);
    assert_eq!(
        code(house.accounts().sessions(&Actor::Operator, &PageRequest::default()).await),
        ErrorCode::Forbidden
    );
}
