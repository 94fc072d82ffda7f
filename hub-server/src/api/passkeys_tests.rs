use hub_core::testing::Authenticator;
use serde_json::{Value, json};

use crate::testing::{App, Reply};

const ORIGIN: &str = "http://localhost:9800";

fn cookie(reply: &Reply) -> String {
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

fn with_flow(mut answer: Value, begun: &Reply) -> Value {
    answer["flow_id"] = begun.data()["flow_id"].clone();
    answer
}

#[tokio::test]
async fn a_browser_registers_signs_in_and_adds_a_key() {
    let app = App::with_hub(|builder| builder).await;
    let stranger = app.stranger().with("Origin", ORIGIN);
    let begun = stranger.post("/api/auth/passkey/register/begin", &json!({ "username": "ada" })).await;
    let set = begun.header("set-cookie").unwrap();
    assert!(
        set.starts_with("flow=hubw_") && set.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax"),
        "{set}"
    );
    let mut key = Authenticator::new(ORIGIN, 1);
    let answer = with_flow(key.create(&begun.data()["publicKey"]), &begun);
    let path = "/api/auth/passkey/register/finish";
    stranger.post(path, &answer).await.error(401, "INVALID_TOKEN");
    let browser = stranger.clone().with("Cookie", &cookie(&begun));
    let made = browser.post(path, &answer).await;
    assert_eq!((&made.data()["username"], &made.data()["passkeys"]), (&json!("ada"), &json!(1)));
    assert!(cookie(&made).starts_with("session=hubs_"));
    browser.post(path, &answer).await.error(401, "INVALID_TOKEN");

    // Without a body, and with the credential in a member of its own.
    let begun = browser.send(poem::http::Method::POST, "/api/auth/passkey/login/begin", |ask| ask).await;
    assert_eq!(begun.data()["publicKey"]["allowCredentials"], json!([]));
    assert!(begun.data()["publicKey"].get("mediation").is_none());
    assert_eq!(cookie(&begun), cookie(&browser.post("/api/auth/passkey/login/begin", &json!({})).await));
    let answer = json!({
        "flow_id": begun.data()["flow_id"], "credential": key.get(&begun.data()["publicKey"]),
    });
    let signed_in = browser.post("/api/auth/passkey/login/finish", &answer).await;
    assert_eq!(signed_in.data()["username"], "ada");

    let mine = format!("{}; {}", cookie(&signed_in), cookie(&begun));
    let ada = stranger.clone().with("Cookie", &mine);
    let begin = "/api/auth/passkey/register/begin";
    let named = ada.post(begin, &json!({ "username": "bob" })).await;
    assert_eq!(named.error(400, "INVALID_PARAMS")["details"][0]["field"], "username");
    let begun = ada.post(begin, &json!({ "name": "Phone" })).await;
    let mut second = Authenticator::new(ORIGIN, 2);
    let answer = with_flow(second.create(&begun.data()["publicKey"]), &begun);
    browser.post(path, &answer).await.error(401, "UNAUTHORIZED");
    let begun = ada.post(begin, &json!({ "name": "Phone" })).await;
    let answer = with_flow(second.create(&begun.data()["publicKey"]), &begun);
    let added = ada.post(path, &answer).await;
    assert_eq!(added.data()["passkeys"], 2);
    assert!(added.header("set-cookie").is_none(), "the session stays");
    let list = ada.get("/api/auth/passkey/list").await.data()["items"].clone();
    assert_eq!((&list[0]["name"], &list[0]["last_used_at"]), (&json!("Phone"), &Value::Null));
    assert!(list[1]["last_used_at"].is_string());
    assert!(!list.to_string().contains("cred"), "no key is shown");
}

#[tokio::test]
async fn a_forged_page_begins_nothing() {
    let app = App::with_hub(|builder| builder).await;
    let evil = app.stranger().with("Origin", "https://evil.example");
    for path in ["register/begin", "login/begin"] {
        evil.post(&format!("/api/auth/passkey/{path}"), &json!({ "username": "ada" }))
            .await
            .error(403, "FORBIDDEN");
    }
}

#[tokio::test]
async fn an_address_without_a_host_name_gets_the_reason() {
    let app = App::with_hub(|builder| {
        let mut config = hub_core::config::HubConfig::default();
        config.public_url = "http://192.0.2.1:9800".parse().unwrap();
        builder.config(config)
    })
    .await;
    let refused = app.stranger().post("/api/auth/passkey/login/begin", &json!({})).await;
    let message = refused.error(503, "UNAVAILABLE")["message"].to_string();
    assert!(message.contains("http://192.0.2.1:9800/") && message.contains("host name"), "{message}");
}

#[tokio::test]
async fn a_session_reports_until_when_it_may_change_the_ways_to_sign_in() {
    let app = App::new().await;
    let ada = app.user("ada").await;
    let key = ada.post("/api/user/api-keys", &json!({ "name": "ci" })).await;
    let fresh_until = hub_core::time::Timestamp::from_millis(1_790_000_000_000 + 15 * 60 * 1000);
    assert_eq!(ada.get("/api/auth/me").await.data()["fresh_until"], fresh_until.to_string());
    let begin = async || ada.post("/api/auth/passkey/register/begin", &json!({ "name": "Phone" })).await;
    begin().await.data();
    app.clock.advance(std::time::Duration::from_secs(15 * 60));
    let refused = begin().await;
    let error = refused.error(403, "FORBIDDEN");
    assert_eq!(error["reason"], "session_too_old");
    assert_eq!(error["hint"], "this needs a session that was opened within the last 15 minutes");

    let secret = key.data()["key"].as_str().unwrap();
    let program = app.stranger().with("Authorization", &format!("Bearer {secret}"));
    assert!(program.get("/api/auth/me").await.data().get("fresh_until").is_none());
    let refused = program.post("/api/user/api-keys", &json!({ "name": "another" })).await;
    assert_eq!(refused.error(403, "FORBIDDEN")["reason"], "session_required");
}
