//! Accounts, their credentials, and callers without any.

use reqwest::Method;
use serde_json::json;

use super::{caller::Caller, plants::Plants};

/// Accounts: made, signed in to, and not.
pub(super) async fn sign_in(caller: &mut Caller, plants: &mut Plants) {
    let password = plants.plant("a password");
    let body = json!({ "username": "ada", "password": password }).to_string();
    let (status, answer, cookie) =
        caller.call(Method::POST, "/api/auth/register", &[], Some(body.clone()), false).await;
    assert!(status < 300, "{answer}");
    plants.keep("a session's cookie", &token_of(&cookie.unwrap()));
    let (.., cookie) = caller.call(Method::POST, "/api/auth/login", &[], Some(body), false).await;
    let cookie = cookie.unwrap();
    plants.keep("another session's cookie", &token_of(&cookie));
    for (what, body) in [
        ("a wrong password", json!({ "username": "ada", "password": plants.plant("a wrong password") })),
        ("somebody's", json!({ "username": "nobody", "password": plants.plant("a stranger's password") })),
        ("the name", json!({ "username": plants.plant("a password typed as the name"), "password": "x" })),
        ("a list", json!({ "username": "ada", "password": [plants.plant("a password in a list")] })),
        ("a field", json!({ "username": "ada", "passwrod": plants.plant("a password in a wrong field") })),
        (
            "a role",
            json!({ "username": "eve", "password": plants.plant("a cheat's password"), "role": "admin" }),
        ),
    ] {
        for path in ["/api/auth/login", "/api/auth/register"] {
            // Someone new may register with the password of someone who may not sign in.
            let (status, answer, _) =
                caller.call(Method::POST, path, &[], Some(body.to_string()), false).await;
            assert!(status < 500, "{what} {path}: {answer}");
        }
    }
    let broken = [
        format!("{{\"username\":\"ada\",\"password\":\"{}\"", plants.plant("a password in half a body")),
        format!("\"{}\"", plants.plant("a password instead of a body")),
        format!("username=ada&password={}", plants.plant("a password in a form")),
        format!(
            "{{\"username\":\"ada\",\"password\":\"{}\\u12\"}}",
            plants.plant("a password in a bad string")
        ),
    ];
    for body in broken {
        caller.refused(Method::POST, "/api/auth/login", &[], Some(body)).await;
    }
    caller.cookie = Some(cookie.split(';').next().unwrap().to_owned());
}

pub(super) fn token_of(cookie: &str) -> String {
    cookie.split([';', '=']).nth(1).unwrap().to_owned()
}

/// Keys that are made, used and ended, and passwords that change.
pub(super) async fn change_credentials(caller: &mut Caller, plants: &mut Plants) {
    for n in 0..2 {
        let idempotency = plants.plant("an idempotency key of an API key");
        let headers = [("idempotency-key", idempotency.as_str())];
        let body = json!({ "name": "program" }).to_string();
        let (status, answer, _) =
            caller.call(Method::POST, "/api/user/api-keys", &headers, Some(body), true).await;
        assert!(status < 300, "{answer}");
        let key = answer["data"]["key"].as_str().unwrap().to_owned();
        plants.keep("a user's API key", &key);
        let cookie = caller.cookie.take();
        let bearer = format!("Bearer {key}");
        for headers in [[("authorization", bearer.as_str())], [("x-api-key", key.as_str())]] {
            let (status, answer, _) = caller.call(Method::GET, "/api/auth/me", &headers, None, false).await;
            assert_eq!(status, 200, "{answer}");
            caller
                .refused(Method::POST, "/api/user/api-keys", &headers, Some("{\"name\":\"x\"}".into()))
                .await;
        }
        // In the query it is no credential, and no less a secret.
        caller.refused(Method::GET, &format!("/api/auth/me?api_key={key}"), &[], None).await;
        caller.cookie = cookie;
        if n == 0 {
            let path = format!("/api/user/api-keys/{}", answer["data"]["id"].as_str().unwrap());
            caller.done(Method::DELETE, &path, None).await;
            caller.refused(Method::GET, "/api/auth/me", &[("x-api-key", &key)], None).await;
        }
    }
    let old = plants.named("a password")[0].clone();
    let wrong = plants.plant("a wrong old password");
    for body in [
        json!({ "old_password": wrong, "new_password": plants.plant("a new password that is not taken") }),
        json!({ "old_password": old, "new_password": [plants.plant("a new password in a list")] }),
        json!({ "old_password": old, "newpassword": plants.plant("a new password in a wrong field") }),
    ] {
        caller.refused(Method::PUT, "/api/user/password", &[], Some(body.to_string())).await;
    }
    let body = json!({ "old_password": old, "new_password": plants.plant("a new password") }).to_string();
    let (status, answer, cookie) =
        caller.call(Method::PUT, "/api/user/password", &[], Some(body), false).await;
    assert!(status < 300, "{answer}");
    let cookie = cookie.unwrap();
    plants.keep("a renewed session's cookie", &token_of(&cookie));
    caller.cookie = Some(cookie.split(';').next().unwrap().to_owned());
    caller.done(Method::GET, "/api/user/profile", None).await;
    caller.done(Method::GET, "/api/user/api-keys", None).await;
}

/// Credentials of all kinds that no one knows, in all places.
pub(super) async fn show_bad_credentials(caller: &mut Caller, plants: &mut Plants) {
    let cookie = caller.cookie.take();
    let bearer = format!("Bearer {}", plants.plant("a bearer token"));
    let basic = format!("Basic {}", plants.plant("basic credentials"));
    let session = format!("session={}", plants.plant("an unknown session"));
    let two =
        format!("session={}; session={}", plants.plant("a first cookie"), plants.plant("a second cookie"));
    let (key, channel_key) = (plants.plant("an API key"), format!("hubc_{}", plants.plant("a channel key")));
    let channel_bearer = format!("Bearer {channel_key}");
    for (name, value) in [
        ("authorization", bearer.as_str()),
        ("authorization", &basic),
        ("authorization", &channel_bearer),
        ("cookie", &session),
        ("cookie", &two),
        ("x-api-key", &key),
        ("x-api-key", &channel_key),
    ] {
        for path in ["/api/bots", "/api/auth/me", "/api/nowhere", "/api/v1/channels/messages"] {
            caller.refused(Method::GET, path, &[(name, value)], None).await;
        }
    }
    let queries: Vec<String> = ["api_key", "key", "token", "access_token", "password", "secret"]
        .iter()
        .map(|name| format!("{name}={}", plants.plant(&format!("{name} in a query"))))
        .collect();
    for query in queries {
        for (method, path) in [
            (Method::GET, "/api/bots"),
            (Method::GET, "/api/nowhere"),
            (Method::PATCH, "/api/bots"),
            (Method::POST, "/api/auth/logout"),
        ] {
            caller.refused(method, &format!("{path}?{query}"), &[], None).await;
        }
        caller.call(Method::GET, &format!("/healthz?{query}"), &[], None, false).await;
    }
    let path = format!("/api/{}", plants.plant("a secret in a path"));
    caller.refused(Method::GET, &path, &[], None).await;
    caller.cookie = cookie;
}
