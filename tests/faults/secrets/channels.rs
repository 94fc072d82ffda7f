//! Channels with secrets in their sinks, and what goes through them.

use reqwest::Method;
use serde_json::{Value, json};

use super::{WITNESS, caller::Caller, plants::Plants};
use crate::support::{http::until, hub_process::NetworkProcess, port::ReceiverPort, receiver::Reply};

/// The webhook of every method, and an AI sink. Gives the channels' ids.
pub(super) async fn make_channels(
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
pub(super) async fn break_channels(
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
        json!({ "url": url, "auth": { "method": "hmac", "secret": plants.plant("a key next to a bad field") }, "timeout_ms": 0 }),
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
    let ai = json!({ "enabled": true, "source": "custom", "base_url": base_url, "model": "m", "api_key": plants.plant("an AI key next to a bad URL") });
    caller.refused(Method::PUT, &format!("{path}/ai"), &[], Some(ai.to_string())).await;
}

/// Deliveries that work, fail, echo what they got, and lead elsewhere.
pub(super) async fn deliver(
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
    // No one is there any more.
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
pub(super) async fn send(caller: &mut Caller, plants: &mut Plants, bot: &str) {
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
