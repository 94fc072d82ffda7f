use serde_json::Value;

use super::*;
use crate::{
    accounts::tests::{Fixture, code},
    config::{HubConfig, Registration},
    page::PageRequest,
    testing::Authenticator,
};

const ORIGIN: &str = "http://localhost:9800";

fn named(username: &str) -> NewPasskey {
    let profile = NewProfile { username: username.into(), ..NewProfile::default() };
    NewPasskey { profile: Some(profile), ..NewPasskey::default() }
}

type Change<'c> = &'c dyn Fn(&mut Authenticator);

/// A browser with an authenticator.
struct Person {
    browser: Browser,
    key: Authenticator,
}

impl Person {
    fn new(fixture: &Fixture, seed: u64) -> Self {
        Self { browser: fixture.accounts().browser(None), key: Authenticator::new(ORIGIN, seed) }
    }

    fn cookie(&self) -> &str {
        self.browser.cookie.expose()
    }

    async fn register(&mut self, fixture: &Fixture, username: &str) -> Result<SignedIn> {
        let accounts = fixture.accounts();
        let begun = accounts.begin_passkey_registration(None, named(username), &self.browser).await?;
        let answer = self.key.create(&begun.public_key);
        let (flow, client) = (begun.flow_id.expose(), &ClientInfo::default());
        let finish = accounts.finish_passkey_registration(None, flow, Some(self.cookie()), answer, client);
        finish.await.map(|(signed_in, _)| signed_in.expect("a new account is signed in"))
    }

    async fn add(&mut self, fixture: &Fixture, actor: &Actor) -> Result<crate::accounts::Me> {
        let accounts = fixture.accounts();
        let new = NewPasskey { name: Some("Phone".into()), ..NewPasskey::default() };
        let begun = accounts.begin_passkey_registration(Some(actor), new, &self.browser).await?;
        let answer = self.key.create(&begun.public_key);
        let (flow, client) = (begun.flow_id.expose(), &ClientInfo::default());
        let finish = accounts
            .finish_passkey_registration(Some(actor), flow, Some(self.cookie()), answer, client)
            .await?;
        assert!(finish.0.is_none(), "the session stays the one it was");
        Ok(finish.1)
    }

    async fn begin(&self, fixture: &Fixture, username: Option<&str>) -> Ceremony {
        fixture.accounts().begin_passkey_login(username, &self.browser).await.unwrap()
    }

    async fn finish(&self, fixture: &Fixture, begun: &Ceremony, answer: Value) -> Result<SignedIn> {
        let (flow, client) = (begun.flow_id.expose(), &ClientInfo::default());
        fixture.accounts().finish_passkey_login(flow, Some(self.cookie()), answer, client).await
    }

    async fn login(&mut self, fixture: &Fixture, username: Option<&str>) -> Result<SignedIn> {
        let begun = self.begin(fixture, username).await;
        let answer = self.key.get(&begun.public_key);
        self.finish(fixture, &begun, answer).await
    }
}

#[tokio::test]
async fn an_account_is_created_at_the_end_of_the_ceremony() {
    let fixture = Fixture::new().await;
    let mut ada = Person::new(&fixture, 1);
    for _ in 0..20 {
        fixture.accounts().begin_passkey_registration(None, named("Ada"), &ada.browser).await.unwrap();
    }
    assert_eq!(fixture.count("users").await, 0);
    assert_eq!(fixture.count("sign_in_flows").await, 5, "a browser has five ceremonies at most");
    let signed_in = ada.register(&fixture, "Ada").await.unwrap();
    assert_eq!((signed_in.me.user.username.as_str(), signed_in.me.passkeys), ("ada", 1));
    assert!(!signed_in.me.has_password);
    assert!(fixture.actor(&signed_in).await.is_ok());
    let taken = fixture.accounts().begin_passkey_registration(None, named("ADA"), &ada.browser).await;
    assert_eq!(code(taken), ErrorCode::Conflict);
    let mut bob = Person::new(&fixture, 1);
    assert_eq!(code(bob.register(&fixture, "bob").await), ErrorCode::Conflict, "the credential is ada's");
    assert_eq!(fixture.count("users").await, 1, "a refused passkey leaves no account");
}

#[tokio::test]
async fn options_require_user_verification_and_a_discoverable_key() {
    let fixture = Fixture::new().await;
    let ada = Person::new(&fixture, 1);
    let begun =
        fixture.accounts().begin_passkey_registration(None, named("ada"), &ada.browser).await.unwrap();
    let options = &begun.public_key;
    let selection = &options["authenticatorSelection"];
    assert_eq!(selection["userVerification"], "required", "{options}");
    assert_eq!(
        (&selection["residentKey"], &selection["requireResidentKey"]),
        (&"required".into(), &true.into())
    );
    assert_eq!(options["attestation"], "none");
    assert_eq!(options["rp"]["id"], "localhost");
    let login = ada.begin(&fixture, None).await.public_key;
    assert_eq!((&login["userVerification"], &login["rpId"]), (&"required".into(), &"localhost".into()));
    assert_eq!(login["allowCredentials"], serde_json::json!([]));
}

#[tokio::test]
async fn a_passkey_signs_in_with_and_without_a_username() {
    let fixture = Fixture::new().await;
    let mut ada = Person::new(&fixture, 1);
    let id = ada.register(&fixture, "ada").await.unwrap().me.user.id;
    for username in [None, Some("ada"), Some("ADA")] {
        let signed_in = ada.login(&fixture, username).await.unwrap();
        assert_eq!(signed_in.me.user.id, id);
        assert!(fixture.actor(&signed_in).await.is_ok());
    }
    fixture.sql("UPDATE users SET status = 'disabled'").await;
    assert_eq!(code(ada.login(&fixture, None).await), ErrorCode::InvalidToken);
}

#[tokio::test]
async fn a_passkey_may_become_synchronised_and_not_cease_to_be() {
    let fixture = Fixture::new().await;
    let mut ada = Person::new(&fixture, 1);
    let id = ada.register(&fixture, "ada").await.unwrap().me.user.id;
    // A forged answer changes nothing.
    let mut forger = Authenticator::new(ORIGIN, 2);
    (forger.credential_id, forger.user_handle) = (ada.key.credential_id.clone(), ada.key.user_handle.clone());
    forger.synchronised = true;
    let begun = ada.begin(&fixture, None).await;
    let forged = forger.get(&begun.public_key);
    assert!(ada.finish(&fixture, &begun, forged).await.is_err());
    for synchronised in [false, true, true] {
        ada.key.synchronised = synchronised;
        assert_eq!(ada.login(&fixture, None).await.unwrap().me.user.id, id, "{synchronised}");
    }
    ada.key.synchronised = false;
    assert!(ada.login(&fixture, None).await.is_err());
    ada.key.synchronised = true;
    assert!(ada.login(&fixture, None).await.is_ok());

    let mut bob = Person::new(&fixture, 3);
    bob.key.synchronised = true;
    bob.register(&fixture, "bob").await.unwrap();
    assert!(bob.login(&fixture, Some("bob")).await.is_ok());
}

#[tokio::test]
async fn a_user_adds_passkeys_and_cannot_remove_the_last_sign_in_method() {
    let fixture = Fixture::new().await;
    let (mut first, mut second) = (Person::new(&fixture, 1), Person::new(&fixture, 2));
    let signed_in = first.register(&fixture, "ada").await.unwrap();
    let actor = fixture.actor(&signed_in).await.unwrap();
    assert_eq!(second.add(&fixture, &actor).await.unwrap().passkeys, 2);
    assert_eq!(second.login(&fixture, None).await.unwrap().me.user.id, signed_in.me.user.id);
    let list = fixture.accounts().passkeys(&actor, &PageRequest::default()).await.unwrap().items;
    assert_eq!(list.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["Phone", "Passkey"]);
    assert!(list[0].last_used_at.is_some() && list[1].last_used_at.is_none());

    let bob = fixture.register("bob").await.unwrap();
    let bob = fixture.actor(&bob).await.unwrap();
    assert_eq!(code(fixture.accounts().delete_passkey(&bob, list[0].id).await), ErrorCode::NotFound);
    fixture.accounts().delete_passkey(&actor, list[0].id).await.unwrap();
    assert_eq!(code(fixture.accounts().delete_passkey(&actor, list[0].id).await), ErrorCode::NotFound);
    assert_eq!(code(second.login(&fixture, None).await), ErrorCode::InvalidToken);
    assert_eq!(code(fixture.accounts().delete_passkey(&actor, list[1].id).await), ErrorCode::Conflict);
    assert!(first.login(&fixture, None).await.is_ok(), "the last key is still there");
}

#[tokio::test]
async fn concurrent_deletions_leave_one_sign_in_method() {
    let fixture = Fixture::new().await;
    let (mut first, mut second) = (Person::new(&fixture, 1), Person::new(&fixture, 2));
    let actor = fixture.actor(&first.register(&fixture, "ada").await.unwrap()).await.unwrap();
    second.add(&fixture, &actor).await.unwrap();
    let accounts = fixture.accounts();
    let list = accounts.passkeys(&actor, &PageRequest::default()).await.unwrap().items;
    let deletes = (0..50).map(|n| accounts.delete_passkey(&actor, list[n % 2].id));
    let done = futures_util::future::join_all(deletes).await;
    assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 1);
    assert_eq!(fixture.count("passkeys").await, 1);
}

#[tokio::test]
async fn an_old_session_cannot_change_sign_in_methods() {
    let fixture = Fixture::new().await;
    let mut ada = Person::new(&fixture, 1);
    let actor = fixture.actor(&ada.register(&fixture, "ada").await.unwrap()).await.unwrap();
    fixture.clock.advance(Duration::from_secs(15 * 60));
    let again = Person::new(&fixture, 2).add(&fixture, &actor).await;
    assert_eq!(code(again), ErrorCode::Forbidden);
    let list = fixture.accounts().passkeys(&actor, &PageRequest::default()).await.unwrap().items;
    assert_eq!(code(fixture.accounts().delete_passkey(&actor, list[0].id).await), ErrorCode::Forbidden);
}

#[tokio::test]
async fn a_ceremony_is_valid_once_for_its_browser_and_purpose() {
    let fixture = Fixture::new().await;
    let mut ada = Person::new(&fixture, 1);
    ada.register(&fixture, "ada").await.unwrap();
    let begun = ada.begin(&fixture, None).await;
    let answer = ada.key.get(&begun.public_key);
    let stranger = Person::new(&fixture, 9);
    let other = stranger.finish(&fixture, &begun, answer.clone()).await;
    assert_eq!(code(other), ErrorCode::InvalidToken, "another browser");
    let (flow, client) = (begun.flow_id.expose(), &ClientInfo::default());
    let accounts = fixture.accounts();
    let none = accounts.finish_passkey_login(flow, None, answer.clone(), client).await;
    assert_eq!(code(none), ErrorCode::InvalidToken, "no browser");
    let tries = (0..50).map(|_| ada.finish(&fixture, &begun, answer.clone()));
    let done = futures_util::future::join_all(tries).await;
    assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 1, "one of fifty");
    // A login's ceremony makes no key, and the other way round.
    let login = ada.begin(&fixture, None).await;
    let made = ada.key.clone().create(&serde_json::json!({
        "user": { "id": "AAAA" }, "challenge": login.public_key["challenge"],
    }));
    let (flow, cookie) = (login.flow_id.expose(), Some(ada.cookie()));
    let mixed = accounts.finish_passkey_registration(None, flow, cookie, made, client).await;
    assert_eq!(code(mixed), ErrorCode::InvalidToken);
    let late = ada.begin(&fixture, None).await;
    let answer = ada.key.get(&late.public_key);
    fixture.clock.advance(LIFETIME);
    assert_eq!(code(ada.finish(&fixture, &late, answer).await), ErrorCode::InvalidToken, "too late");
}

#[tokio::test]
async fn many_sign_in_at_the_same_time_in_any_order() {
    let fixture = Fixture::new().await;
    let mut ada = Person::new(&fixture, 1);
    ada.register(&fixture, "ada").await.unwrap();
    let mut begun = Vec::new();
    for _ in 0..100 {
        let person = Person { browser: fixture.accounts().browser(None), key: ada.key.clone() };
        let ceremony = person.begin(&fixture, None).await;
        begun.push((person, ceremony));
    }
    begun.reverse();
    for (mut person, ceremony) in begun {
        let answer = person.key.get(&ceremony.public_key);
        person.finish(&fixture, &ceremony, answer).await.unwrap();
    }
}

#[tokio::test]
async fn forged_authenticator_data_is_rejected() {
    let fixture = Fixture::new().await;
    let (mut ada, mut bob) = (Person::new(&fixture, 1), Person::new(&fixture, 2));
    ada.register(&fixture, "ada").await.unwrap();
    bob.register(&fixture, "bob").await.unwrap();
    let bobs_handle = bob.key.user_handle.clone();
    let others_key = bob.key.clone();
    let changes: [(&str, Change<'_>); 9] = [
        ("another origin", &|key| key.origin = "https://evil.example".into()),
        ("a subdomain", &|key| key.origin = "http://a.localhost:9800".into()),
        ("another port", &|key| key.origin = "http://localhost:9801".into()),
        ("another scheme", &|key| key.origin = "https://localhost:9800".into()),
        ("another site", &|key| key.rp_id = "evil.example".into()),
        ("no one verified", &|key| key.user_verified = false),
        ("another user's handle", &|key| key.user_handle = bobs_handle.clone()),
        ("no handle", &|key| key.user_handle = None),
        ("another user's key", &|key| {
            let mut other = others_key.clone();
            other.credential_id.clone_from(&key.credential_id);
            other.user_handle.clone_from(&key.user_handle);
            *key = other;
        }),
    ];
    for (what, change) in changes {
        let mut key = ada.key.clone();
        change(&mut key);
        let begun = ada.begin(&fixture, None).await;
        let answer = key.get(&begun.public_key);
        let error = ada.finish(&fixture, &begun, answer).await.unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (ErrorCode::InvalidToken, "this passkey is not accepted"),
            "{what}"
        );
    }
    // With another user's name: the key is valid, but belongs to someone else.
    let begun = ada.begin(&fixture, Some("bob")).await;
    let answer = ada.key.get(&begun.public_key);
    assert_eq!(code(ada.finish(&fixture, &begun, answer).await), ErrorCode::InvalidToken);
    // Created for another page, or without user verification.
    for change in [
        |key: &mut Authenticator| key.origin = "http://localhost:1".into(),
        |key: &mut Authenticator| {
            key.user_verified = false;
        },
    ] {
        let mut eve = Person::new(&fixture, 3);
        change(&mut eve.key);
        assert_eq!(code(eve.register(&fixture, "eve").await), ErrorCode::InvalidToken);
    }
    assert_eq!(fixture.count("users").await, 2);
    for garbage in [Value::Null, serde_json::json!({}), serde_json::json!({ "id": 1 }), "x".into()] {
        let begun = ada.begin(&fixture, None).await;
        assert_eq!(code(ada.finish(&fixture, &begun, garbage).await), ErrorCode::InvalidParams);
    }
}

#[tokio::test]
async fn a_counter_that_does_not_increase_is_rejected() {
    let fixture = Fixture::new().await;
    let mut ada = Person::new(&fixture, 1);
    ada.key.counter = 7;
    ada.register(&fixture, "ada").await.unwrap();
    ada.login(&fixture, None).await.unwrap();
    let copy = ada.key.clone();
    ada.login(&fixture, None).await.unwrap();
    let mut thief = Person { browser: fixture.accounts().browser(None), key: copy };
    assert_eq!(code(thief.login(&fixture, None).await), ErrorCode::InvalidToken, "the same count again");
    thief.key.counter = 3;
    assert_eq!(code(thief.login(&fixture, None).await), ErrorCode::InvalidToken, "a lower count");
    // What is noted behind the answers is there when an empty write is.
    fixture.hub.context().store.write(|_| Box::pin(async { Ok(()) })).await.unwrap();
    let actor = fixture.actor(&ada.login(&fixture, None).await.unwrap()).await.unwrap();
    let seen = fixture.accounts().activity(&actor, &PageRequest::default()).await.unwrap().items;
    let failed = seen.iter().filter(|one| one.entry.action == "user.login_failed").count();
    assert_eq!((failed, seen[1].method()), (2, Some("passkey")), "ada can see both");
    // Two uses with one count at the same time: one counts.
    let (one, two) = (ada.begin(&fixture, None).await, ada.begin(&fixture, None).await);
    let mut twin = ada.key.clone();
    let (first, second) = (ada.key.get(&one.public_key), twin.get(&two.public_key));
    let (first, second) =
        futures_util::join!(ada.finish(&fixture, &one, first), ada.finish(&fixture, &two, second));
    assert_eq!(u8::from(first.is_ok()) + u8::from(second.is_ok()), 1);
}

#[tokio::test]
async fn the_response_for_an_unknown_username_is_that_for_a_known_one() {
    let fixture = Fixture::new().await;
    let mut ada = Person::new(&fixture, 1);
    ada.register(&fixture, "ada").await.unwrap();
    fixture.register("bob").await.unwrap();
    let shape = |options: &Value| {
        let mut options = options.clone();
        options["challenge"] = Value::Null;
        options["allowCredentials"][0]["id"] =
            options["allowCredentials"][0]["id"].as_str().unwrap().len().into();
        options
    };
    let known = ada.begin(&fixture, Some("ada")).await.public_key;
    for unknown in ["bob", "nobody", "No Name!", "名"] {
        let first = ada.begin(&fixture, Some(unknown)).await;
        let again = ada.begin(&fixture, Some(&unknown.to_uppercase())).await;
        assert_eq!(shape(&first.public_key), shape(&known), "{unknown}");
        let ids = |begun: &Ceremony| begun.public_key["allowCredentials"].clone();
        if unknown.is_ascii() && !unknown.contains(' ') {
            assert_eq!(ids(&first), ids(&again), "{unknown} is answered the same every time");
        }
        assert_ne!(ids(&first)[0]["id"], known["allowCredentials"][0]["id"]);
        let answer = ada.key.get(&first.public_key);
        assert_eq!(code(ada.finish(&fixture, &first, answer).await), ErrorCode::InvalidToken);
    }
}

#[tokio::test]
async fn an_origin_without_passkeys_is_reported() {
    for (url, works) in [
        ("https://hub.example", true),
        ("https://hub.example:8443", true),
        ("http://localhost:9800", true),
        ("http://hub.example", false),
        ("http://127.0.0.1:9800", false),
        ("https://192.0.2.1", false),
        ("https://[2001:db8::1]", false),
    ] {
        let fixture =
            Fixture::with(HubConfig { public_url: url.parse().unwrap(), ..HubConfig::default() }).await;
        let browser = fixture.accounts().browser(None);
        let begun = fixture.accounts().begin_passkey_login(None, &browser).await;
        assert_eq!(begun.is_ok(), works, "{url}");
        if let Err(error) = begun {
            assert_eq!(error.code(), ErrorCode::Unavailable);
            assert!(error.message().contains(url) && error.hint().is_some(), "{error}");
        }
    }
}

#[tokio::test]
async fn a_passkey_registration_needs_an_invitation_or_a_setup_token_where_they_are_required() {
    let closed = HubConfig { registration: Registration::Closed, ..HubConfig::default() };
    let fixture = Fixture::with(closed).await;
    assert_eq!(code(Person::new(&fixture, 1).register(&fixture, "ada").await), ErrorCode::Forbidden);
    let fixture = Fixture::with(HubConfig { setup_token_required: true, ..HubConfig::default() }).await;
    assert_eq!(code(Person::new(&fixture, 1).register(&fixture, "ada").await), ErrorCode::Forbidden);
    let token = fixture.accounts().mint_setup_token().await.unwrap();
    let mut ada = Person::new(&fixture, 1);
    let new = NewPasskey { ticket: token, ..named("ada") };
    let accounts = fixture.accounts();
    let begun = accounts.begin_passkey_registration(None, new, &ada.browser).await.unwrap();
    let answer = ada.key.create(&begun.public_key);
    let (flow, client) = (begun.flow_id.expose(), &ClientInfo::default());
    let (_, me) =
        accounts.finish_passkey_registration(None, flow, Some(ada.cookie()), answer, client).await.unwrap();
    assert_eq!(me.user.role, crate::access::Role::Admin);
}

#[tokio::test]
async fn of_concurrent_passkey_registrations_one_is_administrator_and_one_gets_the_name() {
    let fixture = Fixture::new().await;
    let mut people: Vec<Person> = (0..50).map(|seed| Person::new(&fixture, seed)).collect();
    let all = people.iter_mut().enumerate().map(|(n, person)| {
        let name = format!("user-{}", n / 2);
        let fixture = &fixture;
        async move { person.register(fixture, &name).await }
    });
    let all: Vec<_> = futures_util::future::join_all(all).await.into_iter().collect();
    let admin = |one: &&Result<SignedIn>| {
        one.as_ref().is_ok_and(|one| one.me.user.role == crate::access::Role::Admin)
    };
    assert_eq!(all.iter().filter(admin).count(), 1);
    assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 25);
    assert!(all.into_iter().filter_map(Result::err).all(|error| error.code() == ErrorCode::Conflict));
}
