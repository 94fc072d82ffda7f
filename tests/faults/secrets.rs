//! S8: what is secret stays so. Secrets are put wherever a caller, an operator or a receiver can put one, through
//! flows that work and flows that fail, against the shipped server with its most talkative log; then the
//! database, the log, the traces and every answer are searched for them.

mod caller;
mod plants;

use std::fs;

use data_encoding::HEXLOWER;
use hub_core::{random::Random, secret::Secret, store::StoreConfig};
use reqwest::Method;
use serde_json::{Value, json};

use caller::Caller;
use plants::{Plants, search_folder, search_postgres};

use crate::support::{
    http::until,
    hub_process::{HubProcess, NetworkProcess},
    port::ReceiverPort,
    postgres,
    receiver::Reply,
};

/// What somebody writes to the bot: no secret, so it is found where secrets are looked for.
const WITNESS: &str = "where is order 42?";

#[tokio::test]
async fn no_secret_is_left_anywhere_with_sqlite() {
    sweep(None).await;
}

#[tokio::test]
async fn no_secret_is_left_anywhere_with_postgres() {
    let Some(server) = postgres::server() else { return };
    let config = server.create_database().await;
    let StoreConfig::Postgres(url) = &config else { panic!("a PostgreSQL server makes such databases") };
    sweep(Some(url)).await;
    server.drop_database(&config).await;
}

async fn sweep(database: Option<&Secret>) {
    let mut plants = Plants::default();
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let mut port = ReceiverPort::open().await;

    let key = HEXLOWER.encode(&Random::system().bytes::<32>());
    plants.keep("the secret key", &key);
    let admin = plants.plant("the admin's password in the environment");
    let metrics = plants.plant("the metrics token");
    // The server trusts whoever comes through its socket; a password is taken and not asked for.
    let database_password = plants.plant("the database's password");
    let url = database.map(|url| url.expose().replacen("hub@", &format!("hub:{database_password}@"), 1));
    let allow = port.address.to_string();
    let mut settings = vec![
        ("HUB_SECRET_KEY", key.as_str()),
        ("HUB_ADMIN_USERNAME", "root"),
        ("HUB_ADMIN_PASSWORD", admin.as_str()),
        ("HUB_EGRESS_ALLOW", allow.as_str()),
        ("HUB_LOG", "trace"),
        ("HUB_METRICS_TOKEN", metrics.as_str()),
        ("HUB_RATE_AUTH_PER_IP", "1000"),
        ("HUB_RATE_AUTH_PER_ACCOUNT", "1000"),
        ("HUB_RATE_BAD_CREDENTIALS", "1000"),
    ];
    settings.extend(url.as_deref().map(|url| ("HUB_DATABASE_URL", url)));
    let hub = HubProcess::start(folder.path(), &network, &settings).await;
    let mut caller = Caller::new(&hub.url);

    sign_in(&mut caller, &mut plants).await;
    change_credentials(&mut caller, &mut plants).await;
    show_bad_credentials(&mut caller, &mut plants).await;
    let support =
        crate::support::http::Caller::stranger(&hub.url).with_cookie(caller.cookie.clone().unwrap());
    let (bot, wx_id) = network.bind(&support).await;
    let channels = make_channels(&mut caller, &mut plants, &bot, &port).await;
    break_channels(&mut caller, &mut plants, &bot, &channels, &port).await;
    deliver(&mut caller, &mut plants, &network, (&bot, &wx_id), &channels, &mut port).await;
    send(&mut caller, &mut plants, &bot).await;
    read_everything(&mut caller, &bot, &metrics).await;
    administer(&mut caller, &mut plants, &admin).await;
    assert!(plants.0.len() >= 40, "{} secrets", plants.0.len());

    // Who finds nothing has to be able to find something.
    let mut witness = Plants::default();
    witness.keep("a message", WITNESS);
    assert_eq!(witness.found_in("an answer", caller.heard.as_bytes()).len(), 1);
    let stored = match database {
        Some(url) => search_postgres(&witness, url).await,
        None => search_folder(&witness, folder.path()),
    };
    assert!(!stored.is_empty());

    let mut found = plants.found_in("an answer", caller.heard.as_bytes());
    // While it runs, for the write-ahead log, and after it ended.
    found.extend(search_folder(&plants, folder.path()));
    if let Some(url) = database {
        found.extend(search_postgres(&plants, url).await);
    }
    let command = fs::read(format!("/proc/{}/cmdline", hub.process.id())).unwrap();
    found.extend(plants.found_in("the command line", &command));
    let (ended, log) = hub.process.terminate().await;
    assert!(ended.success(), "{ended}:\n{log}");
    assert!(log.contains("TRACE"), "the log is not as talkative as it has to be");
    found.extend(plants.found_in("the log", log.as_bytes()));
    found.extend(search_folder(&plants, folder.path()));
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Accounts: made, signed in to, and not.
async fn sign_in(caller: &mut Caller, plants: &mut Plants) {
    let password = plants.plant("a password");
    let body = json!({ "username": "ada", "password": password }).to_string();
    let (status, answer, cookie) =
        caller.call(Method::POST, "/api/auth/register", &[], Some(body.clone()), false).await;
    assert!(status < 300, "{answer}");
    let token = |cookie: &str| cookie.split([';', '=']).nth(1).unwrap().to_owned();
    plants.keep("a session's cookie", &token(&cookie.unwrap()));
    let (.., cookie) = caller.call(Method::POST, "/api/auth/login", &[], Some(body), false).await;
    let cookie = cookie.unwrap();
    plants.keep("another session's cookie", &token(&cookie));
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
            // Somebody new may register with the password of somebody who may not sign in.
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

fn token_of(cookie: &str) -> String {
    cookie.split([';', '=']).nth(1).unwrap().to_owned()
}

/// Keys that are made, used and ended, and passwords that change.
async fn change_credentials(caller: &mut Caller, plants: &mut Plants) {
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

/// What an administrator makes, and everything they can read.
async fn administer(caller: &mut Caller, plants: &mut Plants, password: &str) {
    let body = json!({ "username": "root", "password": password }).to_string();
    let (status, answer, cookie) = caller.call(Method::POST, "/api/auth/login", &[], Some(body), false).await;
    assert!(status < 300, "{answer}");
    let cookie = cookie.unwrap();
    plants.keep("the admin's cookie", &token_of(&cookie));
    caller.cookie = Some(cookie.split(';').next().unwrap().to_owned());
    let (status, answer, _) =
        caller.call(Method::POST, "/api/admin/invites", &[], Some("{}".into()), true).await;
    assert!(status < 300, "{answer}");
    let invite = answer["data"]["invite"].as_str().unwrap().to_owned();
    plants.keep("an invitation", &invite);
    let new =
        json!({ "username": "guest", "password": plants.plant("a guest's password"), "invite": invite });
    for refused in [false, true] {
        let body = Some(new.to_string());
        let (status, answer, cookie) =
            caller.call(Method::POST, "/api/auth/register", &[], body, false).await;
        assert_eq!(status >= 400, refused, "{answer}");
        if let Some(cookie) = cookie {
            plants.keep("a guest's cookie", &token_of(&cookie));
        }
    }
    let mut cookies = caller.cookie.take();
    let body = json!({ "username": "root", "password": password }).to_string();
    let (_, _, again) = caller.call(Method::POST, "/api/auth/login", &[], Some(body), false).await;
    if let Some(again) = again {
        plants.keep("the admin's second cookie", &token_of(&again));
        cookies = Some(again.split(';').next().unwrap().to_owned());
    }
    caller.cookie = cookies;
    let users = caller.done(Method::GET, "/api/admin/users?limit=200", None).await;
    for user in users["items"].as_array().unwrap() {
        caller.done(Method::GET, &format!("/api/admin/users/{}", user["id"].as_str().unwrap()), None).await;
    }
    for path in ["/api/admin/bots", "/api/admin/stats", "/api/admin/audit?limit=200"] {
        caller.done(Method::GET, path, None).await;
    }
    caller.done(Method::POST, "/api/auth/logout", None).await;
}

/// Credentials of all kinds that nobody knows, in all places.
async fn show_bad_credentials(caller: &mut Caller, plants: &mut Plants) {
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

/// The webhook of every method, and an AI sink. Gives the channels' ids.
async fn make_channels(
    caller: &mut Caller,
    plants: &mut Plants,
    bot: &str,
    port: &ReceiverPort,
) -> Vec<String> {
    let mut channels = Vec::new();
    for method in ["hmac", "bearer", "header", "none"] {
        let old = plants.plant(&format!("the former secret of {method}"));
        let new = plants.plant(&format!("the secret of {method}"));
        let webhook = |secret: &str| {
            json!({
                "url": format!("http://{}/{method}", port.address),
                "auth": { "method": method, "header_name": (method == "header").then_some("X-Pass"), "secret": secret },
                "retry": { "schedule_s": [1, 1] },
            })
        };
        let ai = json!({
            "enabled": true,
            "source": "custom",
            "base_url": format!("http://{}/model/{method}", port.address),
            "model": "small",
            "api_key": plants.plant(&format!("the AI key of {method}")),
        });
        let body = json!({ "name": method, "webhook": webhook(&old), "ai": ai }).to_string();
        let key = plants.plant("an idempotency key");
        let headers = [("idempotency-key", key.as_str())];
        let path = format!("/api/bots/{bot}/channels");
        for _ in 0..2 {
            let (status, answer, _) =
                caller.call(Method::POST, &path, &headers, Some(body.clone()), true).await;
            assert!(status < 300, "{status} {answer}");
            let answer = &answer["data"];
            if channels.last().is_none_or(|last| *last != answer["id"]) {
                plants.keep("a channel's key", answer["api_key"].as_str().unwrap());
                channels.push(answer["id"].as_str().unwrap().to_owned());
            }
        }
        // The same key for something else is refused.
        caller.refused(Method::POST, &path, &headers, Some(json!({ "name": "other" }).to_string())).await;
        let channel = channels.last().unwrap();
        let path = format!("{path}/{channel}");
        caller.done(Method::PUT, &format!("{path}/webhook"), Some(webhook(&new))).await;
        let (status, answer, _) =
            caller.call(Method::POST, &format!("{path}/regenerate-key?grace_hours=1"), &[], None, true).await;
        assert!(status < 300, "{status} {answer}");
        plants.keep("a channel's second key", answer["data"]["api_key"].as_str().unwrap());
    }
    channels
}

/// Settings with secrets in them that are refused.
async fn break_channels(
    caller: &mut Caller,
    plants: &mut Plants,
    bot: &str,
    channels: &[String],
    port: &ReceiverPort,
) {
    let path = format!("/api/bots/{bot}/channels/{}", channels[0]);
    let with_user = format!("http://user:{}@example.com/", plants.plant("a password in a URL"));
    let private = format!("http://10.0.0.1/?key={}", plants.plant("a key in a private URL"));
    let url = format!("http://{}/", port.address);
    let webhooks = [
        json!({ "url": with_user }),
        json!({ "url": private }),
        json!({ "url": url, "auth": { "method": "hmac", "secret": plants.plant("a key beside a bad field") }, "timeout_ms": 0 }),
        json!({ "url": url, "auth": { "method": "magic", "secret": plants.plant("a key of a bad method") } }),
        json!({ "url": url, "auth": plants.plant("a key instead of its object") }),
        json!({ "url": url, "auth": { "method": "bearer", "token": plants.plant("a key in a wrong field") } }),
        json!({ "url": url, "timeout_ms": plants.plant("a key instead of a number") }),
        json!({ "url": url, "auth": { "method": "header", "header_name": "host", "secret": plants.plant("a key of a bad header") } }),
        json!({ "url": url, "auth": { "method": "bearer", "secret": format!("{}\r\nx: y", plants.plant("a key with lines")) } }),
        json!({ "url": url, "auth": { "method": plants.plant("a key as the method"), "secret": null } }),
    ];
    for webhook in webhooks {
        caller.refused(Method::PUT, &format!("{path}/webhook"), &[], Some(webhook.to_string())).await;
    }
    let base_url = format!("https://x:{}@ai.example/", plants.plant("a password in the AI's URL"));
    let ai = json!({ "enabled": true, "source": "custom", "base_url": base_url, "model": "m", "api_key": plants.plant("an AI key beside a bad URL") });
    caller.refused(Method::PUT, &format!("{path}/ai"), &[], Some(ai.to_string())).await;
}

/// Deliveries that work, fail, echo what they got, and lead elsewhere.
async fn deliver(
    caller: &mut Caller,
    plants: &mut Plants,
    network: &NetworkProcess,
    (bot, wx_id): (&str, &str),
    channels: &[String],
    port: &mut ReceiverPort,
) {
    for (method, status) in [("hmac", 500), ("bearer", 401), ("header", 200), ("none", 302)] {
        // Every receiver tells what it knows, in its body and its headers.
        let secrets = plants.named(&format!("secret of {method}"));
        let echo = json!({ "you": "sent", "secrets": secrets, "all": secrets.join(" ") });
        let cookie = format!("session={}", plants.plant("a receiver's cookie"));
        let mut reply = Reply::json(&echo).header("set-cookie", &cookie);
        reply = reply.header("x-echo", &secrets.join(" ")).header("www-authenticate", &secrets[0]);
        let location =
            format!("http://{}/away?token={}", port.address, plants.plant("a token in a location"));
        reply = reply.header("location", &location);
        port.receiver.always(&format!("/{method}"), reply.with_status(status));
        // And so does every endpoint of a model.
        let key = plants.named(&format!("AI key of {method}")).join(" ");
        let refusal = Reply::json(&json!({ "error": { "message": format!("who may use {key}?") } }));
        port.receiver.always(&format!("/model/{method}/chat/completions"), refusal.with_status(401));
    }
    network.say(wx_id, WITNESS).await;
    until("every channel's first attempt", async || {
        let paths: Vec<String> = port.receiver.received().into_iter().map(|one| one.path).collect();
        ["/hmac", "/bearer", "/header", "/none", "/model"]
            .iter()
            .all(|path| paths.iter().any(|seen| seen.starts_with(path)))
            .then_some(())
    })
    .await;
    let mut received = port.receiver.received();
    received.retain(|one| !one.path.starts_with("/model"));
    let token = received[0].json()["contextToken"].as_str().unwrap().to_owned();
    plants.keep("the permission to answer", &token);
    for name in ["x-signature", "webhook-signature"] {
        let one = received.iter().find(|one| !one.header(name).is_empty()).unwrap();
        let (_, signature) = one.header(name).split_once([',', '=']).unwrap();
        plants.keep(name, signature.split(' ').next().unwrap().trim_end_matches('='));
    }
    // A replay leads elsewhere with a secret in its URL: where it is answered, refused and blocked.
    let listed =
        caller.done(Method::GET, &format!("/api/bots/{bot}/traces?channel_id={}", channels[2]), None).await;
    let trace = listed["items"][0]["trace_id"].as_str().unwrap().to_owned();
    let replay = format!("/api/bots/{bot}/traces/{trace}/replay");
    let token = plants.plant("a token in a replay's URL");
    plants.0.last_mut().unwrap().at_rest = true;
    let to = json!({ "url": format!("http://{}/replayed?token={token}", port.address) });
    caller.done(Method::POST, &replay, Some(to)).await;
    until("the replay", async || {
        port.receiver.received().iter().any(|one| one.path.starts_with("/replayed")).then_some(())
    })
    .await;
    let to =
        json!({ "url": format!("http://x:{}@example.com/", plants.plant("a password in a replay's URL")) });
    caller.refused(Method::POST, &replay, &[], Some(to.to_string())).await;
    // Nobody is there any more.
    port.close().await;
    network.say(wx_id, "anybody?").await;
    until("failed attempts", async || {
        let listed = caller.done(Method::GET, &format!("/api/bots/{bot}/traces?limit=200"), None).await;
        let failed = |trace: &Value| trace["summary"].as_str().unwrap().contains("connect");
        let failed = listed["items"].as_array().unwrap().iter().filter(|trace| failed(trace)).count();
        (failed >= 4).then_some(())
    })
    .await;
}

/// Sends with secrets where they do not belong.
async fn send(caller: &mut Caller, plants: &mut Plants, bot: &str) {
    let path = format!("/api/bots/{bot}/send");
    let key = plants.plant("a send's idempotency key");
    let headers = [("idempotency-key", key.as_str())];
    for content in ["hello", "hello", "something else"] {
        let body = json!({ "content": content }).to_string();
        let (status, answer, _) = caller.call(Method::POST, &path, &headers, Some(body), false).await;
        assert!(status < 500, "{status} {answer}");
    }
    let long = format!("{}{}", plants.plant("a long idempotency key"), "x".repeat(300));
    let body = json!({ "content": "x" }).to_string();
    caller.refused(Method::POST, &path, &[("idempotency-key", &long)], Some(body)).await;
}

/// Everything that can be asked for.
async fn read_everything(caller: &mut Caller, bot: &str, metrics: &str) {
    let bearer = format!("Bearer {metrics}");
    let cookie = caller.cookie.take();
    let headers = [("authorization", bearer.as_str())];
    let (status, ..) = caller.call(Method::GET, "/metrics", &headers, None, false).await;
    assert_eq!(status, 200, "the metrics can be read");
    caller.cookie = cookie;
    for path in [
        "/",
        "/openapi.json",
        "/docs",
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/auth/me",
        "/api/auth/sessions",
        "/api/bots",
    ] {
        caller.call(Method::GET, path, &[], None, false).await;
    }
    for part in ["", "/status", "/contacts", "/messages?limit=200", "/channels"] {
        caller.done(Method::GET, &format!("/api/bots/{bot}{part}"), None).await;
    }
    let listed = caller.done(Method::GET, &format!("/api/bots/{bot}/traces?limit=200"), None).await;
    let traces = listed["items"].as_array().unwrap().clone();
    assert!(traces.len() >= 8);
    for trace in traces {
        let id = trace["trace_id"].as_str().unwrap();
        caller.done(Method::GET, &format!("/api/bots/{bot}/traces/{id}"), None).await;
    }
    caller.done(Method::POST, "/api/auth/logout", None).await;
    caller.refused(Method::GET, "/api/bots", &[], None).await;
}
