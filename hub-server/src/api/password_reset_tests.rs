use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{App, Caller, PASSWORD, Reply};

async fn make(caller: &Caller<'_>, user: &str) -> Reply {
    let path = format!("/api/admin/users/{user}/reset-link");
    caller.send(Method::POST, &path, |request| request).await
}

async fn id(caller: &Caller<'_>) -> String {
    caller.get("/api/auth/me").await.data()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_administrator_makes_a_link_and_its_user_sets_the_password() {
    let app = App::with_hub(|builder| builder).await;
    let (ada, bob) = (app.user("ada").await, app.user("bob").await);
    let (ada_id, bob_id) = (id(&ada).await, id(&bob).await);
    make(&bob, &ada_id).await.error(403, "FORBIDDEN");
    make(&ada, &ada_id).await.error(403, "FORBIDDEN");
    make(&app.stranger(), &bob_id).await.error(401, "UNAUTHORIZED");
    make(&ada, "usr_01BX5ZZKBKACTAV9WEVGEMMVRZ").await.error(404, "NOT_FOUND");
    let made = make(&ada, &bob_id).await;
    let link = made.data()["reset_link"].as_str().unwrap();
    let (page, token) = link.split_once('#').unwrap();
    assert_eq!(page, "http://localhost:9800/login/reset");
    assert_eq!(made.data()["expires_at"], "2026-09-21T15:13:20.000Z");

    let body = |password: &str| json!({ "token": token, "new_password": password });
    let path = "/api/auth/password/reset";
    let person = app.stranger().with("Origin", "http://localhost:9800");
    app.stranger()
        .with("Origin", "https://evil.example")
        .post(path, &body("x"))
        .await
        .error(403, "FORBIDDEN");
    let weak = person.post(path, &body("password1")).await;
    let detail = &weak.error(400, "INVALID_PARAMS")["details"][0];
    assert_eq!(
        (&detail["field"], &detail["reason"]),
        (&json!("new_password"), &json!("is too easy to guess"))
    );
    let mut more = body("a new passphrase");
    more["username"] = "ada".into();
    assert!(person.post(path, &more).await.error(400, "INVALID_PARAMS").to_string().contains("username"));
    let set = person.post(path, &body("a new passphrase")).await;
    assert_eq!(*set.data(), json!({ "username": "bob" }));
    assert_eq!(set.header("set-cookie"), None, "it signs no one in");
    bob.get("/api/auth/me").await.error(401, "UNAUTHORIZED");
    let again = person.post(path, &body("a new passphrase")).await;
    again.error(401, "INVALID_TOKEN");
    let login = |password: &str| json!({ "username": "bob", "password": password });
    person.post("/api/auth/login", &login(PASSWORD)).await.error(401, "UNAUTHORIZED");
    person.post("/api/auth/login", &login("a new passphrase")).await.data();
    ada.get("/api/auth/me").await.data();

    // Both events are logged, and the token is not.
    let log = ada.get("/api/admin/audit?limit=200").await;
    let done: Vec<&Value> = log.data()["items"].as_array().unwrap().iter().collect();
    let of = |action: &str| {
        done.iter().find(|entry| entry["action"] == action).unwrap_or_else(|| panic!("{action}"))
    };
    assert_eq!(
        (&of("reset_link.created")["actor"], &of("reset_link.created")["target_name"]),
        (&json!(ada_id), &json!("bob"))
    );
    assert_eq!(
        (&of("password.reset")["actor"], &of("password.reset")["target"]),
        (&json!(""), &json!(bob_id))
    );
    assert!(!log.json.to_string().contains(token));
}

/// What an administrator can say of a user is no password.
#[tokio::test]
async fn no_administrator_sets_the_password_of_another_user() {
    let app = App::new().await;
    let (ada, bob) = (app.user("ada").await, app.user("bob").await);
    let path = format!("/api/admin/users/{}", id(&bob).await);
    for field in ["password", "new_password", "password_hash", "old_password"] {
        let mut body = json!({ "display_name": "Bobby" });
        body[field] = "a new passphrase".into();
        let reply = ada.send(Method::PUT, &path, |request| request.body_json(&body)).await;
        assert!(reply.error(400, "INVALID_PARAMS").to_string().contains(field));
        let reply =
            ada.send(Method::POST, &format!("{path}/reset-link"), |request| request.body_json(&body)).await;
        assert!(!reply.json.to_string().contains("a new passphrase"), "{}", reply.json);
    }
    let login = json!({ "username": "bob", "password": PASSWORD });
    app.stranger().post("/api/auth/login", &login).await.data();
}
