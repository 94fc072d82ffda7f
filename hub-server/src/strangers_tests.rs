//! Callers without a valid credential: headers that cannot be read, and limits that they cannot evade.

use poem::http::{HeaderValue, Method};
use serde_json::json;

use crate::testing::{App, Caller, Reply, bind};

/// An application behind a proxy that reports addresses.
async fn behind_proxy() -> App {
    App::with(|values| values.trusted_proxies = vec!["0.0.0.0/32".parse().unwrap()]).await
}

fn from<'a>(app: &'a App, address: &str) -> Caller<'a> {
    app.stranger().with("X-Forwarded-For", address)
}

fn bearer(n: usize) -> String {
    format!("Bearer hubu_{n:043}")
}

/// The field that an `INVALID_PARAMS` names.
fn refused_field(reply: &Reply) -> String {
    reply.error(400, "INVALID_PARAMS")["details"][0]["field"].as_str().unwrap().to_owned()
}

fn unreadable() -> HeaderValue {
    HeaderValue::from_bytes(b"\xe9-retry").unwrap()
}

#[tokio::test]
async fn an_idempotency_key_that_is_not_text_is_refused() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let bot = bind(&ann, &simulator, None).await;
    let bot = format!("/api/bots/{}", bot["id"].as_str().unwrap());
    for (path, body) in [
        (format!("{bot}/send"), json!({ "content": "hello" })),
        (format!("{bot}/channels"), json!({ "name": "orders" })),
        ("/api/user/api-keys".to_owned(), json!({ "name": "robot" })),
        ("/api/apps".to_owned(), json!({ "name": "Weather" })),
    ] {
        let reply = ann.send(Method::POST, &path, |request| {
            request.header("Idempotency-Key", unreadable()).body_json(&body)
        });
        assert_eq!(refused_field(&reply.await), "Idempotency-Key", "{path}");
    }
    let sent = ann.get(&format!("{bot}/messages")).await;
    assert_eq!(sent.data()["items"], json!([]), "nothing was done");
}

#[tokio::test]
async fn a_header_that_is_read_and_is_not_text_is_refused() {
    let app = App::new().await;
    for name in [
        "Accept",
        "Content-Type",
        "If-None-Match",
        "If-Range",
        "Last-Event-ID",
        "MCP-Protocol-Version",
        "Mcp-Session-Id",
        "Range",
        "X-API-Key",
        "X-Trace-Id",
    ] {
        for path in ["/api/events", "/api/auth/oauth/providers", "/mcp"] {
            let reply =
                app.stranger().send(Method::GET, path, |request| request.header(name, unreadable())).await;
            assert_eq!(refused_field(&reply), name, "{path}");
        }
    }
    for name in ["Authorization", "Cookie", "User-Agent", "X-Forwarded-For", "Cf-Ipcity"] {
        let request = app.stranger();
        let reply = request
            .send(Method::GET, "/api/auth/oauth/providers", |request| request.header(name, unreadable()));
        assert_eq!(reply.await.response.status(), 200, "{name}");
    }
}

#[tokio::test]
async fn a_made_up_credential_does_not_evade_the_limit_of_its_address() {
    let app = behind_proxy().await;
    let passed = async |address: &str, path: &str, header: &str, value: &dyn Fn(usize) -> String| {
        let mut passed = 0;
        for n in 0..700 {
            let caller = from(&app, address).with(header, &value(n));
            passed += usize::from(caller.get(path).await.response.status() != 429);
        }
        passed
    };
    let providers = "/api/auth/oauth/providers";
    assert_eq!(passed("203.0.113.1", providers, "Authorization", &bearer).await, 600);
    assert_eq!(passed("203.0.113.2", "/console", "Cookie", &|n| format!("session=hubs_{n:043}")).await, 600);
    let status = "/ilink/bot/get_qrcode_status?qrcode=x";
    assert_eq!(passed("203.0.113.3", status, "Authorization", &bearer).await, 600);

    // Of the same address, what has proved to be a credential has a bucket of its own, until it is revoked.
    let ann = app.user("ann").await;
    let key = ann.post("/api/user/api-keys", &json!({ "name": "robot" })).await;
    let (id, key) = (key.data()["id"].clone(), key.data()["key"].as_str().unwrap().to_owned());
    let key = format!("Bearer {key}");
    let robot = async |address| from(&app, address).with("Authorization", &key).get("/api/bots").await;
    assert_eq!(robot("203.0.113.1").await.response.status(), 429, "its address pays until it is known");
    robot("203.0.113.4").await.data();
    robot("203.0.113.1").await.data();
    let path = format!("/api/user/api-keys/{}", id.as_str().unwrap());
    ann.send(Method::DELETE, &path, |request| request).await.data();
    assert_eq!(robot("203.0.113.1").await.response.status(), 401);
    assert_eq!(robot("203.0.113.1").await.response.status(), 429, "and after that");
}

#[tokio::test]
async fn the_code_of_a_program_counts_as_a_sign_in_of_its_address() {
    let app = behind_proxy().await;
    let begin = async |address: &str| {
        from(&app, address).get("/ilink/bot/get_bot_qrcode?bot_type=3").await.json["ret"].clone()
    };
    for n in 0..20 {
        let expected = if n < 10 { 0 } else { -2 };
        assert_eq!(begin(&format!("2001:db8:1:2::{n}")).await, expected, "{n}: one /64 is one address");
    }
    assert_eq!(begin("2001:db8:1:3::1").await, 0);
    app.clock.advance(std::time::Duration::from_secs(6));
    assert_eq!(begin("2001:db8:1:2::1").await, 0);
}

#[tokio::test]
async fn a_guessed_token_of_a_program_counts_as_a_bad_credential() {
    let app = behind_proxy().await;
    let guess = async |address: &str, n: usize| {
        let program = from(&app, address)
            .with("AuthorizationType", "ilink_bot_token")
            .with("Authorization", &format!("Bearer hubl_{n:043}"));
        program.post("/ilink/bot/getupdates", &json!({ "get_updates_buf": "" })).await.json
    };
    for n in 0..30 {
        let answer = guess("203.0.113.1", n).await;
        if n < 20 {
            assert_eq!(answer["errcode"], -14, "{n}");
        } else {
            assert_eq!(answer["ret"], -2, "{n}");
        }
    }
    assert_eq!(guess("203.0.113.2", 0).await["errcode"], -14);
    let key = from(&app, "203.0.113.1").with("Authorization", &bearer(0)).get("/api/bots").await;
    assert_eq!(key.response.status(), 429, "guesses of keys and of tokens count together");
}
