//! Linking accounts at providers, and taking them off.

use poem::http;
use serde_json::json;

use super::tests::{app, enter, me, start};
use crate::testing::Caller;

#[tokio::test]
async fn an_account_is_linked_by_its_user_only() {
    let (app, fake) = app().await;
    let (ada, bob) = (app.user("ada").await, app.user("bob").await);
    fake.person(&json!(1), "bob");
    app.stranger().get("/api/auth/oauth/one?link=true").await.error(401, "UNAUTHORIZED");
    let mut forged = ada.clone();
    forged.headers.retain(|(name, _)| name != "Origin");
    forged.get("/api/auth/oauth/one?link=true").await.error(403, "FORBIDDEN");
    let forged = forged.with("Sec-Fetch-Site", "cross-site");
    forged.get("/api/auth/oauth/one?link=true").await.error(403, "FORBIDDEN");

    let link = async |who: &Caller<'_>, finisher: &Caller<'_>| {
        let away = start(who, "/api/auth/oauth/one?link=true&redirect=/me").await;
        let mut finisher = finisher.clone();
        match finisher.headers.iter_mut().find(|(name, _)| name == "Cookie") {
            Some((_, cookies)) => *cookies = format!("{cookies}; {}", away.cookie),
            None => finisher = finisher.with("Cookie", &away.cookie),
        }
        finisher.get(&away.back("one")).await
    };
    link(&ada, &app.stranger()).await.error(401, "UNAUTHORIZED");
    link(&ada, &bob).await.error(401, "INVALID_TOKEN");
    assert_eq!(link(&ada, &ada).await.header("location"), Some("/me"));
    assert_eq!(link(&ada, &ada).await.header("location"), Some("/me"), "again is fine");
    link(&bob, &bob).await.error(409, "CONFLICT");
    let listed = ada.get("/api/user/oauth-accounts").await.data()["items"].clone();
    assert_eq!(
        (&listed[0]["provider"], &listed[0]["subject"], &listed[0]["username"]),
        (&json!("one"), &json!("1"), &json!("bob"))
    );
    assert_eq!(
        me(&app, &enter(&app, "one").await).await["username"],
        "ada",
        "the name over there decides nothing"
    );

    bob.send(http::Method::DELETE, "/api/user/oauth-accounts/one", |ask| ask).await.error(404, "NOT_FOUND");
    ada.send(http::Method::DELETE, "/api/user/oauth-accounts/one", |ask| ask).await.data();
    assert_eq!(ada.get("/api/user/oauth-accounts").await.data()["items"], json!([]));
    let fresh = me(&app, &enter(&app, "one").await).await;
    assert_eq!(fresh["username"], "bob-2", "unlinked, it is a stranger's");
}

#[tokio::test]
async fn the_last_way_in_stays() {
    let (app, fake) = app().await;
    fake.person(&json!(1), "ada");
    let cookie = enter(&app, "one").await;
    let ada = app.stranger().with("Cookie", &cookie).with("Origin", "http://localhost:9800");
    ada.send(http::Method::DELETE, "/api/user/oauth-accounts/one", |ask| ask).await.error(409, "CONFLICT");
    assert_eq!(me(&app, &cookie).await["oauth_accounts"], json!(["one"]));
}

/// An account that two users link at the same time is one's, and stays so.
#[tokio::test]
async fn of_fifty_who_link_one_account_one_has_it() {
    let (app, fake) = app().await;
    let mut people = Vec::new();
    for n in 0..50 {
        people.push(app.user(&format!("user-{n}")).await);
    }
    fake.person(&json!(7), "sought");
    let tries = people.iter().map(|person| async {
        let away = start(person, "/api/auth/oauth/one?link=true").await;
        let mut back = person.clone();
        let cookies = back.headers.iter_mut().find(|(name, _)| name == "Cookie").unwrap();
        cookies.1 = format!("{}; {}", cookies.1, away.cookie);
        back.get(&away.back("one")).await.response.status().as_u16()
    });
    let statuses = futures_util::future::join_all(tries).await;
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!((count(303), count(409)), (1, 49), "{statuses:?}");
    let mut holders = 0;
    for person in &people {
        let listed = person.get("/api/user/oauth-accounts").await;
        holders += listed.data()["items"].as_array().unwrap().len();
    }
    assert_eq!(holders, 1);
}
