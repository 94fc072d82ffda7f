use super::*;
use crate::{
    accounts::tests::{Fixture, code},
    error::Reason,
    qr::qr_text_art,
};

/// A screen without a session, and ada, who has one.
async fn scene() -> (Fixture, Actor, QrLogin) {
    let fixture = Fixture::new().await;
    let ada = fixture.register("ada").await.unwrap();
    let ada = fixture.actor(&ada).await.unwrap();
    let client = ClientInfo { ip: Some([192, 0, 2, 7].into()), user_agent: "Screen\n1".to_owned() };
    let login = fixture.accounts().begin_qr_login(&client).await.unwrap();
    (fixture, ada, login)
}

async fn poll(fixture: &Fixture, login: &QrLogin) -> QrPoll {
    fixture.accounts().poll_qr_login(&login.qr_id, &login.poll_secret).await.unwrap()
}

async fn confirm(fixture: &Fixture, actor: &Actor, login: &QrLogin, user_code: &str) -> Result<QrStatus> {
    fixture.accounts().confirm_qr_login(actor, &login.qr_id, user_code, true).await
}

async fn exchange(fixture: &Fixture, login: &QrLogin, ticket: &Secret) -> Result<SignedIn> {
    let client = ClientInfo::default();
    fixture.accounts().exchange_qr_login(&login.qr_id, &login.poll_secret, ticket, &client).await
}

#[tokio::test]
async fn a_qr_login_gets_a_session_of_the_confirming_user() {
    let (fixture, ada, login) = scene().await;
    assert_eq!(login.qr_text, format!("http://localhost:9800/login?qr={}", login.qr_id));
    assert!(login.qr_svg.contains("<svg") && qr_text_art(&login.qr_text).is_ok());
    assert_eq!(login.user_code.len(), 9);
    let first = poll(&fixture, &login).await;
    assert_eq!((first.status, first.user_name, first.exchange), (QrStatus::Waiting, None, None));
    let asker = fixture.accounts().open_qr_login(&ada, &login.qr_id).await.unwrap();
    assert_eq!((asker.ip.as_str(), asker.user_agent.as_str()), ("192.0.2.7", "Screen1"));
    let scanned = poll(&fixture, &login).await;
    assert_eq!((scanned.status, scanned.user_name), (QrStatus::Scanned, None), "no name before they agree");
    let typed = login.user_code.to_lowercase().replace('-', " ");
    assert_eq!(confirm(&fixture, &ada, &login, &typed).await.unwrap(), QrStatus::Confirmed);
    let done = poll(&fixture, &login).await;
    assert_eq!((done.status, done.user_name.as_deref()), (QrStatus::Confirmed, Some("ada")));
    let signed_in = exchange(&fixture, &login, &done.exchange.unwrap()).await.unwrap();
    let actor = fixture.actor(&signed_in).await.unwrap();
    assert_eq!(actor.user().unwrap().user_id, ada.user().unwrap().user_id);
    assert_ne!(actor.user().unwrap().session_id, ada.user().unwrap().session_id);
}

#[tokio::test]
async fn a_qr_code_without_the_poll_secret_reveals_nothing() {
    let (fixture, ada, login) = scene().await;
    let other = fixture.accounts().begin_qr_login(&ClientInfo::default()).await.unwrap();
    let none = Secret::new("");
    for secret in [&none, &other.poll_secret, &Secret::new(login.qr_id.clone())] {
        let seen = fixture.accounts().poll_qr_login(&login.qr_id, secret).await;
        assert_eq!(code(seen), ErrorCode::InvalidToken);
    }
    confirm(&fixture, &ada, &login, &login.user_code).await.unwrap();
    let ticket = poll(&fixture, &login).await.exchange.unwrap();
    let client = ClientInfo::default();
    let accounts = fixture.accounts();
    let stolen = accounts.exchange_qr_login(&login.qr_id, &other.poll_secret, &ticket, &client).await;
    assert_eq!(code(stolen), ErrorCode::InvalidToken, "the ticket without the secret");
    for wrong in [none, Secret::new("hubx_"), login.poll_secret.0.clone()] {
        assert_eq!(code(exchange(&fixture, &login, &wrong).await), ErrorCode::InvalidToken);
    }
    assert!(exchange(&fixture, &login, &ticket).await.is_ok(), "wrong tries took nothing away");
}

#[tokio::test]
async fn a_wrong_code_ends_the_login() {
    let (fixture, ada, login) = scene().await;
    for wrong in ["", "BCDF-GHJ"] {
        let login = fixture.accounts().begin_qr_login(&ClientInfo::default()).await.unwrap();
        assert_eq!(code(confirm(&fixture, &ada, &login, wrong).await), ErrorCode::InvalidToken);
        assert_eq!(poll(&fixture, &login).await.status, QrStatus::Cancelled);
        let again = confirm(&fixture, &ada, &login, &login.user_code).await;
        assert_eq!(code(again), ErrorCode::InvalidToken, "there is no second guess");
    }
    let refused = fixture.accounts().confirm_qr_login(&ada, &login.qr_id, "", false).await.unwrap();
    assert_eq!((refused, poll(&fixture, &login).await.status), (QrStatus::Cancelled, QrStatus::Cancelled));
}

#[tokio::test]
async fn only_the_opening_user_confirms_a_qr_login_before_it_expires() {
    let (fixture, ada, login) = scene().await;
    let bob = fixture.register("bob").await.unwrap();
    let bob = fixture.actor(&bob).await.unwrap();
    fixture.accounts().open_qr_login(&ada, &login.qr_id).await.unwrap();
    assert_eq!(code(fixture.accounts().open_qr_login(&bob, &login.qr_id).await), ErrorCode::InvalidToken);
    assert_eq!(code(confirm(&fixture, &bob, &login, &login.user_code).await), ErrorCode::InvalidToken);
    assert_eq!(poll(&fixture, &login).await.status, QrStatus::Scanned, "it is not bob's to end");
    let outside = Actor::User(crate::access::UserActor { session_id: None, ..*ada.user().unwrap() });
    assert_eq!(code(confirm(&fixture, &outside, &login, &login.user_code).await), ErrorCode::Forbidden);
    assert_eq!(code(confirm(&fixture, &Actor::Operator, &login, "").await), ErrorCode::Forbidden);
    fixture.clock.advance(LIFETIME);
    assert_eq!(poll(&fixture, &login).await.status, QrStatus::Expired);
    assert_eq!(code(confirm(&fixture, &ada, &login, &login.user_code).await), ErrorCode::InvalidToken);
    assert_eq!(fixture.accounts().delete_expired(100).await.unwrap(), 1);
    let gone = fixture.accounts().poll_qr_login(&login.qr_id, &login.poll_secret).await;
    assert_eq!(code(gone), ErrorCode::InvalidToken);
}

#[tokio::test]
async fn a_session_that_is_too_old_lets_no_device_in() {
    let (fixture, ada, _) = scene().await;
    fixture.clock.advance(Duration::from_secs(15 * 60));
    let login = fixture.accounts().begin_qr_login(&ClientInfo::default()).await.unwrap();
    let opened = fixture.accounts().open_qr_login(&ada, &login.qr_id).await.map(|_| ());
    let confirmed = confirm(&fixture, &ada, &login, &login.user_code).await.map(|_| ());
    for refused in [opened, confirmed] {
        let error = refused.unwrap_err();
        assert_eq!((error.code(), error.reason()), (ErrorCode::Forbidden, Some(Reason::SessionTooOld)));
    }
    assert_eq!(poll(&fixture, &login).await.status, QrStatus::Waiting, "the code is not used up");
    let again = fixture.login("ada", crate::accounts::tests::PASSWORD).await.unwrap();
    let again = fixture.actor(&again).await.unwrap();
    assert_eq!(confirm(&fixture, &again, &login, &login.user_code).await.unwrap(), QrStatus::Confirmed);
    // What is refused lets no one in.
    let other = fixture.accounts().begin_qr_login(&ClientInfo::default()).await.unwrap();
    let refused = fixture.accounts().confirm_qr_login(&ada, &other.qr_id, "", false).await.unwrap();
    assert_eq!(refused, QrStatus::Cancelled);
}

#[tokio::test]
async fn of_fifty_concurrent_confirmations_one_succeeds() {
    let (fixture, ada, login) = scene().await;
    let confirms = (0..50).map(|_| confirm(&fixture, &ada, &login, &login.user_code));
    let done = futures_util::future::join_all(confirms).await;
    assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 1);
    assert!(done.into_iter().filter_map(Result::err).all(|error| error.code() == ErrorCode::InvalidToken));
    let ticket = poll(&fixture, &login).await.exchange.unwrap();
    let sessions = fixture.count("sessions").await;
    let collects = (0..50).map(|_| exchange(&fixture, &login, &ticket));
    let done = futures_util::future::join_all(collects).await;
    assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 1);
    assert!(done.into_iter().filter_map(Result::err).all(|error| error.code() == ErrorCode::InvalidToken));
    assert_eq!(fixture.count("sessions").await, sessions + 1);
}

#[tokio::test]
async fn secrets_are_not_in_the_store() {
    let (fixture, ada, login) = scene().await;
    confirm(&fixture, &ada, &login, &login.user_code).await.unwrap();
    let ticket = poll(&fixture, &login).await.exchange.unwrap();
    for secret in [&login.poll_secret, &ticket] {
        assert!(!fixture.holds(secret.expose()).await, "the store holds a secret");
    }
    assert!(fixture.holds(&login.qr_id).await, "what is looked for is found");
}

#[tokio::test]
async fn of_ten_thousand_qr_logins_the_oldest_makes_room_for_another() {
    let (fixture, ada, login) = scene().await;
    fixture
        .sql(
            "INSERT INTO qr_logins (id, poll_hash, user_code, status, ip, user_agent, created_at, expires_at)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
             SELECT 'hubq_' || i, '', '', 'waiting', '', '', created_at, expires_at FROM n, qr_logins",
        )
        .await;
    assert_eq!(fixture.count("qr_logins").await, i64::from(MAX_LOGINS));
    fixture.accounts().open_qr_login(&ada, &login.qr_id).await.unwrap();
    fixture.clock.advance(Duration::from_secs(1));
    let newer = fixture.accounts().begin_qr_login(&ClientInfo::default()).await.unwrap();
    assert_eq!(
        fixture.count("qr_logins").await,
        i64::from(MAX_LOGINS) + 1,
        "one that is opened takes no place"
    );
    for _ in 0..3 {
        fixture.accounts().begin_qr_login(&ClientInfo::default()).await.unwrap();
    }
    assert_eq!(fixture.count("qr_logins").await, i64::from(MAX_LOGINS) + 1);
    assert_eq!(poll(&fixture, &login).await.status, QrStatus::Scanned);
    assert_eq!(poll(&fixture, &newer).await.status, QrStatus::Waiting);
}

#[tokio::test]
async fn other_sessions_of_the_user_are_notified() {
    use crate::{accounts::ActivityBy, page::PageRequest};
    let (fixture, ada, login) = scene().await;
    confirm(&fixture, &ada, &login, &login.user_code).await.unwrap();
    let ticket = poll(&fixture, &login).await.exchange.unwrap();
    let entered = exchange(&fixture, &login, &ticket).await.unwrap();
    let screen = fixture.actor(&entered).await.unwrap();
    let seen = async |actor: &Actor| {
        fixture.accounts().activity(actor, &PageRequest::default()).await.unwrap().items
    };
    let activity = seen(&ada).await;
    let actions: Vec<_> =
        activity.iter().map(|one| (&*one.entry.action, one.method(), one.current)).collect();
    assert_eq!(
        actions,
        [
            ("user.login", Some("qr"), false),
            ("qr_login.decided", None, true),
            ("user.login", Some("password"), true),
            ("user.registered", None, false),
        ]
    );
    assert!(activity.iter().all(|one| one.by == ActivityBy::User));
    assert!(seen(&screen).await[0].current, "it is how that session began");
    // The entry names what ends it.
    fixture.accounts().delete_session(&ada, activity[0].entry.target.parse().unwrap()).await.unwrap();
    assert_eq!(code(fixture.actor(&entered).await), ErrorCode::Unauthorized);
    // Other users are not notified, and the administrator is not named.
    let bob = fixture.register("bob").await.unwrap();
    let bob = fixture.actor(&bob).await.unwrap();
    assert!(seen(&bob).await.iter().all(|one| one.entry.actor_name == "bob"));
    let id = bob.user().unwrap().user_id;
    fixture.hub.admin().end_sessions(&ada, id, None).await.unwrap();
    let newest = seen(&bob).await.remove(0);
    assert_eq!((&*newest.entry.action, newest.by), ("user.sessions_ended", ActivityBy::Administrator));
    assert_eq!((&*newest.entry.actor, &*newest.entry.credential, &*newest.entry.ip), ("", "", ""));
}
