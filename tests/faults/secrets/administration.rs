//! Objects that an administrator creates, changes and reads.

use reqwest::Method;
use serde_json::json;

use super::{accounts::token_of, caller::Caller, plants::Plants};
use crate::support::{port::ReceiverPort, receiver::Reply};

/// Creates and changes objects as an administrator, and reads everything an administrator can read.
pub(super) async fn administer(
    caller: &mut Caller,
    plants: &mut Plants,
    password: &str,
    port: &ReceiverPort,
) {
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
    reset_passwords(caller, plants).await;
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
    set_model(caller, plants, port).await;
    for path in ["/api/admin/bots", "/api/admin/stats", "/api/admin/audit?limit=200"] {
        caller.done(Method::GET, path, None).await;
    }
    caller.done(Method::POST, "/api/auth/logout", None).await;
}

/// A link that sets a password, after tries that it does not survive and tries that it does.
async fn reset_passwords(caller: &mut Caller, plants: &mut Plants) {
    let body =
        json!({ "username": "root", "password": plants.named("the admin's password in the environment")[0] });
    let (.., cookie) = caller.call(Method::POST, "/api/auth/login", &[], Some(body.to_string()), false).await;
    let cookie = cookie.unwrap();
    plants.keep("the admin's cookie for links", &token_of(&cookie));
    caller.cookie = Some(cookie.split(';').next().unwrap().to_owned());
    let found = caller.done(Method::GET, "/api/admin/users?q=guest", None).await;
    let path = format!("/api/admin/users/{}/reset-link", found["items"][0]["id"].as_str().unwrap());
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let (status, answer, _) = caller.call(Method::POST, &path, &[], None, true).await;
        assert!(status < 300, "{answer}");
        let link = answer["data"]["reset_link"].as_str().unwrap();
        tokens.push(link.split_once('#').unwrap().1.to_owned());
        plants.keep("a link's token", tokens.last().unwrap());
    }
    caller.done(Method::POST, "/api/auth/logout", None).await;
    caller.cookie = None;
    let set = |token: &str, password: &str| json!({ "token": token, "new_password": password }).to_string();
    let reset = "/api/auth/password/reset";
    let password = plants.plant("a password set with a link");
    let taken = set(&tokens[0], &plants.plant("a password of a link that is over"));
    caller.refused(Method::POST, reset, &[], Some(taken)).await;
    let unknown = set(&format!("hubr_{}", plants.plant("a link's made-up token")), &password);
    caller.refused(Method::POST, reset, &[], Some(unknown)).await;
    let long = set(&tokens[1], &format!("{}{}", plants.plant("a long password for a link"), "x".repeat(300)));
    caller.refused(Method::POST, reset, &[], Some(long)).await;
    let (status, answer, _) =
        caller.call(Method::POST, reset, &[], Some(set(&tokens[1], &password)), false).await;
    assert!(status < 300, "{answer}");
    caller.refused(Method::POST, reset, &[], Some(set(&tokens[1], &password))).await;
}

/// The AI endpoint of the hub: set, tried where it repeats its key, and refused.
async fn set_model(caller: &mut Caller, plants: &mut Plants, port: &ReceiverPort) {
    let base_url = format!("http://{}/global", port.address);
    for n in 0..2 {
        let key = plants.plant(&format!("the administrator's AI key {n}"));
        let echo = json!({ "error": { "message": format!("who may use {key}?") } });
        port.receiver.always("/global/chat/completions", Reply::json(&echo).with_status(401));
        let body = json!({ "base_url": base_url, "model": "small", "api_key": key });
        caller.done(Method::PUT, "/api/admin/ai-config", Some(body)).await;
        let tested = caller.done(Method::POST, "/api/admin/ai-config/test", None).await;
        assert_eq!(tested["ok"], false, "{tested}");
        caller.done(Method::GET, "/api/admin/ai-config", None).await;
    }
    let with_user = format!("http://x:{}@ai.example/v1", plants.plant("a password in the AI endpoint's URL"));
    for body in [
        json!({ "base_url": with_user, "model": "m", "api_key": plants.plant("an AI key next to a bad URL of it") }),
        json!({ "base_url": base_url, "model": "", "api_key": plants.plant("an AI key next to no model") }),
        json!({ "base_url": base_url, "api_key": [plants.plant("an AI key in a list")] }),
        json!({ "base_url": base_url, "apikey": plants.plant("an AI key in a wrong field") }),
    ] {
        caller.refused(Method::PUT, "/api/admin/ai-config", &[], Some(body.to_string())).await;
    }
}
