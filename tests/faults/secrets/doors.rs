//! The other ways in: a provider, a passkey, a QR code.

use reqwest::Method;
use serde_json::{Value, json};

use super::{accounts::token_of, caller::Caller, plants::Plants};
use crate::support::{port::ReceiverPort, receiver::Reply};

/// Settings of a provider on the receiver's port. The secret is the hub's own, and is planted.
pub(super) fn provider(plants: &mut Plants, port: &ReceiverPort) -> Vec<(&'static str, String)> {
    let at = |path: &str| format!("http://{}/provider/{path}", port.address);
    vec![
        ("HUB_GITHUB_CLIENT_ID", "the-hub".to_owned()),
        ("HUB_GITHUB_CLIENT_SECRET", plants.plant("the provider's client secret")),
        ("HUB_GITHUB_AUTHORIZE_URL", at("authorize")),
        ("HUB_GITHUB_TOKEN_URL", at("token")),
        ("HUB_GITHUB_PROFILE_URL", at("profile")),
        ("HUB_OIDC_ISSUER", at("issuer")),
        ("HUB_OIDC_CLIENT_ID", "the-hub".to_owned()),
        ("HUB_OIDC_CLIENT_SECRET", plants.plant("the issuer's client secret")),
    ]
}

/// All of them, where they lead in and where they do not.
pub(super) async fn ways_in(caller: &mut Caller, plants: &mut Plants, port: &ReceiverPort) {
    let ada = caller.cookie.take();
    by_provider(caller, plants, port).await;
    by_passkey(caller, plants).await;
    by_qr_code(caller, plants, ada.as_deref().expect("ada is signed in")).await;
    caller.cookie = ada;
}

/// Someone comes back from a provider that repeats what it received: three times in vain, then rightly.
async fn by_provider(caller: &mut Caller, plants: &mut Plants, port: &ReceiverPort) {
    let client_secret = plants.named("the provider's client secret").remove(0);
    let token = plants.plant("an access token");
    let granted = Reply::json(&json!({ "access_token": token, "token_type": "bearer" }));
    let echo = |status| {
        let told = json!({ "error": "bad", "error_description": format!("{client_secret} {token}") });
        Reply::json(&told).with_status(status).header("x-echo", &token)
    };
    let person = Reply::json(&json!({ "id": 7, "login": "octocat" }));
    for (answer, profile) in [
        (echo(400), person.clone()),
        (Reply::text("text/html", &format!("<p>{client_secret}</p>")), person.clone()),
        (granted.clone(), echo(403)),
        (granted, person),
    ] {
        port.receiver.always("/provider/token", answer);
        port.receiver.always("/provider/profile", profile);
        let (status, _, flow) = caller.call(Method::GET, "/api/auth/oauth/github", &[], None, true).await;
        assert_eq!(status, 303);
        let flow = flow.unwrap();
        plants.keep("a browser's cookie", &token_of(&flow));
        let state = caller.location.as_deref().unwrap();
        let state = state.split(['?', '&']).find_map(|pair| pair.strip_prefix("state=")).unwrap().to_owned();
        plants.keep("a state", &state);
        caller.cookie = Some(flow.split(';').next().unwrap().to_owned());
        let back =
            format!("/api/auth/callback/github?state={state}&code={}", plants.plant("a provider's code"));
        let (status, _, session) = caller.call(Method::GET, &back, &[], None, false).await;
        assert_eq!(status, 303);
        if let Some(session) = session {
            plants.keep("a session's cookie by a provider", &token_of(&session));
        }
        let (again, ..) = caller.call(Method::GET, &back, &[], None, false).await;
        assert_eq!(again, 401);
    }
    caller.cookie = None;
    let asked = port.receiver.received_at("/provider/token");
    let asked = String::from_utf8_lossy(&asked.last().unwrap().body).into_owned();
    let verifier = asked.split('&').find_map(|pair| pair.strip_prefix("code_verifier=")).unwrap();
    plants.keep("a code verifier", verifier);
    // An issuer that says nothing of use.
    port.receiver.always("/provider/issuer/.well-known/openid-configuration", echo(200));
    let (status, ..) = caller.call(Method::GET, "/api/auth/oauth/oidc", &[], None, false).await;
    assert_eq!(status, 502);
}

/// A passkey that no one has.
async fn by_passkey(caller: &mut Caller, plants: &mut Plants) {
    for (begin, body) in
        [("register", json!({ "username": "passer" })), ("login", json!({ "username": "ada" }))]
    {
        let path = format!("/api/auth/passkey/{begin}/begin");
        let (status, begun, flow) = caller.call(Method::POST, &path, &[], Some(body.to_string()), true).await;
        assert_eq!(status, 200, "{begun}");
        let flow = flow.unwrap();
        plants.keep("a passkey's browser", &token_of(&flow));
        caller.cookie = Some(flow.split(';').next().unwrap().to_owned());
        let begun = &begun["data"];
        plants.keep("a passkey's flow", begun["flow_id"].as_str().unwrap());
        plants.keep("a passkey's challenge", begun["publicKey"]["challenge"].as_str().unwrap());
        let planted = plants.plant("a passkey's answer");
        let answer = json!({
            "flow_id": begun["flow_id"], "id": planted, "rawId": planted, "type": "public-key",
            "response": {
                "clientDataJSON": planted, "attestationObject": planted, "authenticatorData": planted,
                "signature": planted,
            },
        });
        let path = format!("/api/auth/passkey/{begin}/finish");
        caller.refused(Method::POST, &path, &[], Some(answer.to_string())).await;
    }
    caller.cookie = None;
}

/// A screen that ada lets in, once as a browser and once as a program.
async fn by_qr_code(caller: &mut Caller, plants: &mut Plants, ada: &str) {
    for kind in ["session", "api_key"] {
        let (status, login, _) = caller.call(Method::POST, "/api/auth/qr/generate", &[], None, true).await;
        assert_eq!(status, 200, "{login}");
        let login = login["data"].clone();
        let poll_secret = login["poll_secret"].as_str().unwrap().to_owned();
        plants.keep("a poll secret", &poll_secret);
        let qr_id = login["qr_id"].as_str().unwrap().to_owned();
        let guess = format!(
            "/api/auth/qr/status?qr_id={qr_id}&poll_secret={}",
            plants.plant("a guessed poll secret")
        );
        caller.refused(Method::GET, &guess, &[], None).await;
        caller.cookie = Some(ada.to_owned());
        let confirm = json!({ "qr_id": qr_id, "user_code": login["user_code"], "approve": true });
        caller.done(Method::POST, "/api/auth/qr/confirm", Some(confirm)).await;
        caller.cookie = None;
        let status = format!("/api/auth/qr/status?qr_id={qr_id}&poll_secret={poll_secret}");
        let (_, seen, _) = caller.call(Method::GET, &status, &[], None, true).await;
        let exchange = seen["data"]["exchange"].as_str().unwrap().to_owned();
        plants.keep("a ticket", &exchange);
        let ticket = json!({ "qr_id": qr_id, "poll_secret": poll_secret, "exchange": exchange }).to_string();
        let path = format!("/api/auth/qr/exchange?kind={kind}");
        let (status, given, cookie) = caller.call(Method::POST, &path, &[], Some(ticket.clone()), true).await;
        assert_eq!(status, 200, "{given}");
        match (cookie, &given["data"]["api_key"]) {
            (Some(cookie), Value::Null) => plants.keep("a session's cookie by a QR code", &token_of(&cookie)),
            (None, Value::String(key)) => plants.keep("a program's API key", key),
            other => panic!("{other:?}"),
        }
        caller.refused(Method::POST, &path, &[], Some(ticket)).await;
    }
}
