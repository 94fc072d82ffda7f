use serde_json::{Value, json};

use crate::testing::App;

async fn status(app: &App, login: &Value) -> Value {
    let (id, secret) = (login["qr_id"].as_str().unwrap(), login["poll_secret"].as_str().unwrap());
    let path = format!("/api/auth/qr/status?qr_id={id}&poll_secret={secret}");
    app.stranger().get(&path).await.data().clone()
}

#[tokio::test]
async fn a_screen_without_a_session_gets_one() {
    let app = App::with_hub(|builder| builder).await;
    let ada = app.user("ada").await;
    let screen = app.stranger().with("User-Agent", "Screen 1");
    let login = screen.post("/api/auth/qr/generate", &json!({})).await.data().clone();
    assert!(login["qr_text"].as_str().unwrap().starts_with("http://localhost:9800/login?qr=hubq_"));
    assert_eq!(status(&app, &login).await, json!({ "status": "waiting" }));
    let confirm = json!({ "qr_id": login["qr_id"], "user_code": login["user_code"], "approve": true });
    app.stranger().post("/api/auth/qr/confirm", &confirm).await.error(401, "UNAUTHORIZED");
    app.stranger()
        .post("/api/auth/qr/open", &json!({ "qr_id": login["qr_id"] }))
        .await
        .error(401, "UNAUTHORIZED");
    let without =
        ada.post("/api/auth/qr/confirm", &json!({ "qr_id": login["qr_id"], "approve": true })).await;
    assert_eq!(without.error(400, "INVALID_PARAMS")["details"][0]["field"], "user_code");
    let asker = ada.post("/api/auth/qr/open", &json!({ "qr_id": login["qr_id"] })).await;
    assert_eq!(asker.data()["user_agent"], "Screen 1");
    assert_eq!(ada.post("/api/auth/qr/confirm", &confirm).await.data()["status"], "confirmed");
    let done = status(&app, &login).await;
    assert_eq!((&done["status"], &done["user_name"]), (&json!("confirmed"), &json!("ada")));
    let ticket = json!({
        "qr_id": login["qr_id"], "poll_secret": login["poll_secret"], "exchange": done["exchange"],
    });
    let signed_in = screen.post("/api/auth/qr/exchange", &ticket).await;
    assert_eq!(signed_in.data()["username"], "ada");
    assert!(signed_in.header("set-cookie").unwrap().starts_with("session=hubs_"));
    screen.post("/api/auth/qr/exchange", &ticket).await.error(401, "INVALID_TOKEN");
}

#[tokio::test]
async fn a_program_gets_a_key() {
    let app = App::with_hub(|builder| builder).await;
    let ada = app.user("ada").await;
    let program = app.stranger().with("User-Agent", "hub-cli/1");
    let login = program.post("/api/auth/qr/generate", &json!({})).await.data().clone();
    let confirm = json!({ "qr_id": login["qr_id"], "user_code": login["user_code"], "approve": true });
    ada.post("/api/auth/qr/confirm", &confirm).await.data();
    let done = status(&app, &login).await;
    let ticket = json!({
        "qr_id": login["qr_id"], "poll_secret": login["poll_secret"], "exchange": done["exchange"],
    });
    program.post("/api/auth/qr/exchange?kind=x", &ticket).await.error(400, "INVALID_PARAMS");
    let given = program.post("/api/auth/qr/exchange?kind=api_key", &ticket).await;
    assert!(given.header("set-cookie").is_none());
    let key = given.data()["api_key"].as_str().unwrap().to_owned();
    let me = app.stranger().with("X-API-Key", &key).get("/api/auth/me").await;
    assert_eq!(me.data()["username"], "ada");
    program.post("/api/auth/qr/exchange?kind=api_key", &ticket).await.error(401, "INVALID_TOKEN");
    // A key opens no door for another device.
    let login = program.post("/api/auth/qr/generate", &json!({})).await.data().clone();
    let confirm = json!({ "qr_id": login["qr_id"], "user_code": login["user_code"], "approve": true });
    let with_key = app.stranger().with("X-API-Key", &key);
    with_key.post("/api/auth/qr/confirm", &confirm).await.error(403, "FORBIDDEN");
}

#[tokio::test]
async fn the_code_alone_reveals_nothing() {
    let app = App::with_hub(|builder| builder).await;
    let login = app.stranger().post("/api/auth/qr/generate", &json!({})).await.data().clone();
    let id = login["qr_id"].as_str().unwrap();
    let unknown = app.stranger().get("/api/auth/qr/status?qr_id=hubq_x&poll_secret=hubp_x").await;
    let unknown = unknown.error(401, "INVALID_TOKEN")["message"].clone();
    let guessed = app.stranger().get(&format!("/api/auth/qr/status?qr_id={id}&poll_secret={id}")).await;
    assert_eq!(guessed.error(401, "INVALID_TOKEN")["message"], unknown);
    let missing = app.stranger().get(&format!("/api/auth/qr/status?qr_id={id}")).await;
    assert_eq!(missing.error(400, "INVALID_PARAMS")["details"][0]["field"], "poll_secret");
}
