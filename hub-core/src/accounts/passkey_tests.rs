use serde_json::Value;

use super::*;
use crate::{
    accounts::tests::{House, code},
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
    fn new(house: &House, seed: u64) -> Self {
        Self { browser: house.accounts().browser(None), key: Authenticator::new(ORIGIN, seed) }
    }

    fn cookie(&self) -> &str {
        self.browser.cookie.expose()
    }

    async fn register(&mut self, house: &House, username: &str) -> Result<SignedIn> {
        let accounts = house.accounts();
        let begun = accounts.begin_passkey_registration(None, named(username), &self.browser).await?;
        let answer = self.key.create(&begun.public_key);
        let (flow, client) = (begun.flow_id.expose(), &ClientInfo::default());
        let finish = accounts.finish_passkey_registration(None, flow, Some(self.cookie()), answer, client);
        finish.await.map(|(signed_in, _)| signed_in.expect("a new account is signed in"))
    }

    async fn add(&mut self, house: &House, actor: &Actor) -> Result<crate::accounts::Me> {
        let accounts = house.accounts();
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

    async fn begin(&self, house: &House, username: Option<&str>) -> Ceremony {
        house.accounts().begin_passkey_login(username, &self.browser).await.unwrap()
    }

    async fn finish(&self, house: &House, begun: &Ceremony, answer: Value) -> Result<SignedIn> {
        let (flow, client) = (begun.flow_id.expose(), &ClientInfo::default());
        house.accounts().finish_passkey_login(flow, Some(self.cookie()), answer, client).await
    }

    async fn login(&mut self, house: &House, username: Option<&str>) -> Result<SignedIn> {
        let begun = self.begin(house, username).await;
        let answer = self.key.get(&begun.public_key);
        self.finish(house, &begun, answer).await
    }
}

#[tokio::test]
async fn an_account_is_made_when_the_ceremony_ends_and_not_before() {
    let house = House::new().await;
    let mut ada = Person::new(&house, 1);
    for _ in 0..20 {
        house.accounts().begin_passkey_registration(None, named("Ada"), &ada.browser).await.unwrap();
    }
    assert_eq!(house.count("users").await, 0);
    assert_eq!(house.count("sign_in_flows").await, 5, "a browser has five ceremonies at most");
    let signed_in = ada.register(&house, "Ada").await.unwrap();
    assert_eq!((signed_in.me.user.username.as_str(), signed_in.me.passkeys), ("ada", 1));
    assert!(!signed_in.me.has_password);
    assert!(house.actor(&signed_in).await.is_ok());
    let taken = house.accounts().begin_passkey_registration(None, named("ADA"), &ada.browser).await;
    assert_eq!(code(taken), ErrorCode::Conflict);
    let mut bob = Person::new(&house, 1);
    assert_eq!(code(bob.register(&house, "bob").await), ErrorCode::Conflict, "the credential is ada's");
    assert_eq!(house.count("users").await, 1, "a refused passkey leaves no account");
}

#[tokio::test]
async fn options_ask_for_a_verified_person_and_a_key_that_is_found_without_a_name() {
    let house = House::new().await;
    let ada = Person::new(&house, 1);
    let begun = house.accounts().begin_passkey_registration(None, named("ada"), &ada.browser).await.unwrap();
    let options = &begun.public_key;
    let selection = &options["authenticatorSelection"];
    assert_eq!(selection["userVerification"], "required", "{options}");
    assert_eq!(
        (&selection["residentKey"], &selection["requireResidentKey"]),
        (&"required".into(), &true.into())
    );
    assert_eq!(options["attestation"], "none");
    assert_eq!(options["rp"]["id"], "localhost");
    let login = ada.begin(&house, None).await.public_key;
    assert_eq!((&login["userVerification"], &login["rpId"]), (&"required".into(), &"localhost".into()));
    assert_eq!(login["allowCredentials"], serde_json::json!([]));
}

#[tokio::test]
async fn one_signs_in_with_and_without_a_name() {
    let house = House::new().await;
    let mut ada = Person::new(&house, 1);
    let id = ada.register(&house, "ada").await.unwrap().me.user.id;
    for username in [None, Some("ada"), Some("ADA")] {
        let signed_in = ada.login(&house, username).await.unwrap();
        assert_eq!(signed_in.me.user.id, id);
        assert!(house.actor(&signed_in).await.is_ok());
    }
    house.sql("UPDATE users SET status = 'disabled'").await;
    assert_eq!(code(ada.login(&house, None).await), ErrorCode::InvalidToken);
}

#[tokio::test]
async fn a_signed_in_user_adds_keys_and_keeps_a_way_in() {
    let house = House::new().await;
    let (mut first, mut second) = (Person::new(&house, 1), Person::new(&house, 2));
    let signed_in = first.register(&house, "ada").await.unwrap();
    let actor = house.actor(&signed_in).await.unwrap();
    assert_eq!(second.add(&house, &actor).await.unwrap().passkeys, 2);
    assert_eq!(second.login(&house, None).await.unwrap().me.user.id, signed_in.me.user.id);
    let list = house.accounts().passkeys(&actor, &PageRequest::default()).await.unwrap().items;
    assert_eq!(list.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["Phone", "Passkey"]);
    assert!(list[0].last_used_at.is_some() && list[1].last_used_at.is_none());

    let bob = house.register("bob").await.unwrap();
    let bob = house.actor(&bob).await.unwrap();
    assert_eq!(code(house.accounts().delete_passkey(&bob, list[0].id).await), ErrorCode::NotFound);
    house.accounts().delete_passkey(&actor, list[0].id).await.unwrap();
    assert_eq!(code(house.accounts().delete_passkey(&actor, list[0].id).await), ErrorCode::NotFound);
    assert_eq!(code(second.login(&house, None).await), ErrorCode::InvalidToken);
    assert_eq!(code(house.accounts().delete_passkey(&actor, list[1].id).await), ErrorCode::Conflict);
    assert!(first.login(&house, None).await.is_ok(), "the last key is still there");
}

#[tokio::test]
async fn of_many_who_delete_the_last_two_ways_in_one_is_left() {
    let house = House::new().await;
    let (mut first, mut second) = (Person::new(&house, 1), Person::new(&house, 2));
    let actor = house.actor(&first.register(&house, "ada").await.unwrap()).await.unwrap();
    second.add(&house, &actor).await.unwrap();
    let accounts = house.accounts();
    let list = accounts.passkeys(&actor, &PageRequest::default()).await.unwrap().items;
    let deletes = (0..50).map(|n| accounts.delete_passkey(&actor, list[n % 2].id));
    let done = futures_util::future::join_all(deletes).await;
    assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 1);
    assert_eq!(house.count("passkeys").await, 1);
}

#[tokio::test]
async fn an_old_session_changes_no_way_of_signing_in() {
    let house = House::new().await;
    let mut ada = Person::new(&house, 1);
    let actor = house.actor(&ada.register(&house, "ada").await.unwrap()).await.unwrap();
    house.clock.advance(Duration::from_secs(15 * 60));
    let again = Person::new(&house, 2).add(&house, &actor).await;
    assert_eq!(code(again), ErrorCode::Forbidden);
    let list = house.accounts().passkeys(&actor, &PageRequest::default()).await.unwrap().items;
    assert_eq!(code(house.accounts().delete_passkey(&actor, list[0].id).await), ErrorCode::Forbidden);
}

#[tokio::test]
async fn a_ceremony_is_of_one_browser_one_purpose_and_one_use() {
    let house = House::new().await;
    let mut ada = Person::new(&house, 1);
    ada.register(&house, "ada").await.unwrap();
    let begun = ada.begin(&house, None).await;
    let answer = ada.key.get(&begun.public_key);
    let stranger = Person::new(&house, 9);
    let other = stranger.finish(&house, &begun, answer.clone()).await;
    assert_eq!(code(other), ErrorCode::InvalidToken, "another browser");
    let (flow, client) = (begun.flow_id.expose(), &ClientInfo::default());
    let accounts = house.accounts();
    let none = accounts.finish_passkey_login(flow, None, answer.clone(), client).await;
    assert_eq!(code(none), ErrorCode::InvalidToken, "no browser");
    let tries = (0..50).map(|_| ada.finish(&house, &begun, answer.clone()));
    let done = futures_util::future::join_all(tries).await;
    assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 1, "one of fifty");
    // A login's ceremony makes no key, and the other way round.
    let login = ada.begin(&house, None).await;
    let made = ada.key.clone().create(&serde_json::json!({
        "user": { "id": "AAAA" }, "challenge": login.public_key["challenge"],
    }));
    let (flow, cookie) = (login.flow_id.expose(), Some(ada.cookie()));
    let mixed = accounts.finish_passkey_registration(None, flow, cookie, made, client).await;
    assert_eq!(code(mixed), ErrorCode::InvalidToken);
    let late = ada.begin(&house, None).await;
    let answer = ada.key.get(&late.public_key);
    house.clock.advance(LIFETIME);
    assert_eq!(code(ada.finish(&house, &late, answer).await), ErrorCode::InvalidToken, "too late");
}

#[tokio::test]
async fn many_sign_in_at_the_same_time_in_any_order() {
    let house = House::new().await;
    let mut ada = Person::new(&house, 1);
    ada.register(&house, "ada").await.unwrap();
    let mut begun = Vec::new();
    for _ in 0..100 {
        let person = Person { browser: house.accounts().browser(None), key: ada.key.clone() };
        let ceremony = person.begin(&house, None).await;
        begun.push((person, ceremony));
    }
    begun.reverse();
    for (mut person, ceremony) in begun {
        let answer = person.key.get(&ceremony.public_key);
        person.finish(&house, &ceremony, answer).await.unwrap();
    }
}

#[tokio::test]
async fn what_a_hostile_authenticator_says_is_not_believed() {
    let house = House::new().await;
    let (mut ada, mut bob) = (Person::new(&house, 1), Person::new(&house, 2));
    ada.register(&house, "ada").await.unwrap();
    bob.register(&house, "bob").await.unwrap();
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
        let begun = ada.begin(&house, None).await;
        let answer = key.get(&begun.public_key);
        let error = ada.finish(&house, &begun, answer).await.unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (ErrorCode::InvalidToken, "this passkey is not accepted"),
            "{what}"
        );
    }
    // With another user's name: the key is valid, but belongs to someone else.
    let begun = ada.begin(&house, Some("bob")).await;
    let answer = ada.key.get(&begun.public_key);
    assert_eq!(code(ada.finish(&house, &begun, answer).await), ErrorCode::InvalidToken);
    // Created for another page, or without user verification.
    for change in [
        |key: &mut Authenticator| key.origin = "http://localhost:1".into(),
        |key: &mut Authenticator| {
            key.user_verified = false;
        },
    ] {
        let mut eve = Person::new(&house, 3);
        change(&mut eve.key);
        assert_eq!(code(eve.register(&house, "eve").await), ErrorCode::InvalidToken);
    }
    assert_eq!(house.count("users").await, 2);
    for garbage in [Value::Null, serde_json::json!({}), serde_json::json!({ "id": 1 }), "x".into()] {
        let begun = ada.begin(&house, None).await;
        assert_eq!(code(ada.finish(&house, &begun, garbage).await), ErrorCode::InvalidParams);
    }
}

#[tokio::test]
async fn a_counter_that_does_not_increase_is_rejected() {
    let house = House::new().await;
    let mut ada = Person::new(&house, 1);
    ada.key.counter = 7;
    ada.register(&house, "ada").await.unwrap();
    ada.login(&house, None).await.unwrap();
    let copy = ada.key.clone();
    ada.login(&house, None).await.unwrap();
    let mut thief = Person { browser: house.accounts().browser(None), key: copy };
    assert_eq!(code(thief.login(&house, None).await), ErrorCode::InvalidToken, "the same count again");
    thief.key.counter = 3;
    assert_eq!(code(thief.login(&house, None).await), ErrorCode::InvalidToken, "a lower count");
    // What is noted behind the answers is there when an empty write is.
    house.hub.context().store.write(|_| Box::pin(async { Ok(()) })).await.unwrap();
    let actor = house.actor(&ada.login(&house, None).await.unwrap()).await.unwrap();
    let seen = house.accounts().activity(&actor, &PageRequest::default()).await.unwrap().items;
    let failed = seen.iter().filter(|one| one.entry.action == "user.login_failed").count();
    assert_eq!((failed, seen[1].method()), (2, Some("passkey")), "ada can see both");
    // Two uses with one count at the same time: one counts.
    let (one, two) = (ada.begin(&house, None).await, ada.begin(&house, None).await);
    let mut twin = ada.key.clone();
    let (first, second) = (ada.key.get(&one.public_key), twin.get(&two.public_key));
    let (first, second) =
        futures_util::join!(ada.finish(&house, &one, first), ada.finish(&house, &two, second));
    assert_eq!(u8::from(first.is_ok()) + u8::from(second.is_ok()), 1);
}

#[tokio::test]
async fn an_unknown_name_looks_like_a_known_one() {
    let house = House::new().await;
    let mut ada = Person::new(&house, 1);
    ada.register(&house, "ada").await.unwrap();
    house.register("bob").await.unwrap();
    let shape = |options: &Value| {
        let mut options = options.clone();
        options["challenge"] = Value::Null;
        options["allowCredentials"][0]["id"] =
            options["allowCredentials"][0]["id"].as_str().unwrap().len().into();
        options
    };
    let known = ada.begin(&house, Some("ada")).await.public_key;
    for unknown in ["bob", "nobody", "No Name!", "名"] {
        let first = ada.begin(&house, Some(unknown)).await;
        let again = ada.begin(&house, Some(&unknown.to_uppercase())).await;
        assert_eq!(shape(&first.public_key), shape(&known), "{unknown}");
        let ids = |begun: &Ceremony| begun.public_key["allowCredentials"].clone();
        if unknown.is_ascii() && !unknown.contains(' ') {
            assert_eq!(ids(&first), ids(&again), "{unknown} is answered the same every time");
        }
        assert_ne!(ids(&first)[0]["id"], known["allowCredentials"][0]["id"]);
        let answer = ada.key.get(&first.public_key);
        assert_eq!(code(ada.finish(&house, &first, answer).await), ErrorCode::InvalidToken);
    }
}

#[tokio::test]
async fn passkeys_say_where_they_do_not_work() {
    for (url, works) in [
        ("https://hub.example", true),
        ("https://hub.example:8443", true),
        ("http://localhost:9800", true),
        ("http://hub.example", false),
        ("http://127.0.0.1:9800", false),
        ("https://192.0.2.1", false),
        ("https://[2001:db8::1]", false),
    ] {
        let house = House::with(HubConfig { public_url: url.parse().unwrap(), ..HubConfig::default() }).await;
        let browser = house.accounts().browser(None);
        let begun = house.accounts().begin_passkey_login(None, &browser).await;
        assert_eq!(begun.is_ok(), works, "{url}");
        if let Err(error) = begun {
            assert_eq!(error.code(), ErrorCode::Unavailable);
            assert!(error.message().contains(url) && error.hint().is_some(), "{error}");
        }
    }
}

#[tokio::test]
async fn a_closed_house_and_a_new_one_ask_for_more() {
    let closed = HubConfig { registration: Registration::Closed, ..HubConfig::default() };
    let house = House::with(closed).await;
    assert_eq!(code(Person::new(&house, 1).register(&house, "ada").await), ErrorCode::Forbidden);
    let house = House::with(HubConfig { setup_token_required: true, ..HubConfig::default() }).await;
    assert_eq!(code(Person::new(&house, 1).register(&house, "ada").await), ErrorCode::Forbidden);
    let token = house.accounts().mint_setup_token().await.unwrap();
    let mut ada = Person::new(&house, 1);
    let new = NewPasskey { ticket: token, ..named("ada") };
    let accounts = house.accounts();
    let begun = accounts.begin_passkey_registration(None, new, &ada.browser).await.unwrap();
    let answer = ada.key.create(&begun.public_key);
    let (flow, client) = (begun.flow_id.expose(), &ClientInfo::default());
    let (_, me) =
        accounts.finish_passkey_registration(None, flow, Some(ada.cookie()), answer, client).await.unwrap();
    assert_eq!(me.user.role, crate::access::Role::Admin);
}

#[tokio::test]
async fn of_many_who_register_with_keys_at_once_one_is_admin_and_one_has_the_name() {
    let house = House::new().await;
    let mut people: Vec<Person> = (0..50).map(|seed| Person::new(&house, seed)).collect();
    let all = people.iter_mut().enumerate().map(|(n, person)| {
        let name = format!("user-{}", n / 2);
        let house = &house;
        async move { person.register(house, &name).await }
    });
    let all: Vec<_> = futures_util::future::join_all(all).await.into_iter().collect();
    let admin = |one: &&Result<SignedIn>| {
        one.as_ref().is_ok_and(|one| one.me.user.role == crate::access::Role::Admin)
    };
    assert_eq!(all.iter().filter(admin).count(), 1);
    assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 25);
    assert!(all.into_iter().filter_map(Result::err).all(|error| error.code() == ErrorCode::Conflict));
}
