//! The other direction: what the hub's connector writes has the form of what a foreign client writes. Values are
//! its own; methods, queries, headers, field names and their types are not.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::Request;
use hub_core::network::{LoginStep, Network, sim::QrAction};
use serde_json::{Value, json};

use crate::ilink::stage::{Stage, reply_to};

/// Headers that HTTP libraries set as they like.
const LIBRARY: [&str; 9] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-length",
    "host",
    "sec-fetch-mode",
    "user-agent",
];
/// Headers whose value is the same for everyone.
const FIXED: [&str; 3] = ["authorizationtype", "content-type", "ilink-app-id"];

/// Every form in which an endpoint was called.
type Forms = BTreeMap<String, BTreeSet<String>>;

/// Holds everything that the hub's connector calls in a login, a conversation and a stop against the recorded
/// requests of another client.
pub async fn assert_hub_writes_alike(foreign: &[Request<Bytes>]) {
    let stage = Stage::quick().await;
    type_pairing_code(&stage).await;
    let (bot, message) = stage.bind_and_greet().await;
    bot.connection.start().await.unwrap();
    let (user, token) = (message.from_user_id.as_str(), message.context_token.as_ref());
    bot.connection.typing(user, token, true).await.unwrap();
    bot.connection.send(&reply_to(&message, "hub-1", "hello")).await;
    bot.connection.typing(user, token, false).await.unwrap();
    bot.connection.stop().await;
    let (ours, theirs) = (forms(&stage.tap.all()), forms(foreign));
    let called: BTreeSet<_> = ours.keys().map(String::as_str).collect();
    let expected = [
        "get_bot_qrcode",
        "get_qrcode_status",
        "getconfig",
        "getupdates",
        "notifystart",
        "notifystop",
        "sendmessage",
        "sendtyping",
    ];
    assert_eq!(called, BTreeSet::from(expected));
    for (endpoint, ours) in &ours {
        let theirs = &theirs[endpoint];
        assert!(ours.is_subset(theirs), "{endpoint}:\nthe hub {ours:#?}\nthe other client {theirs:#?}");
    }
}

/// A login up to the right pairing code.
async fn type_pairing_code(stage: &Stage) {
    let mut prompt = stage.network.begin_login(&[]).await.unwrap();
    let action = QrAction::RequireCode { code: "1234".into() };
    stage.sim.qr(prompt.qr_text.expose(), action).unwrap();
    assert!(matches!(stage.step(&mut prompt.state, None).await, LoginStep::NeedCode { wrong: false }));
    assert!(matches!(stage.step(&mut prompt.state, Some("1234")).await, LoginStep::Scanned));
}

fn forms(requests: &[Request<Bytes>]) -> Forms {
    let mut forms = Forms::new();
    for request in requests.iter().filter(|request| request.uri().path().starts_with("/ilink/")) {
        let endpoint = request.uri().path().rsplit('/').next().unwrap_or_default();
        forms.entry(endpoint.to_owned()).or_default().insert(form(request).to_string());
    }
    forms
}

fn form(request: &Request<Bytes>) -> Value {
    let query = request.uri().query().unwrap_or_default();
    let query: BTreeSet<_> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    let headers = request.headers().iter().filter(|(name, _)| !LIBRARY.contains(&name.as_str()));
    let headers: BTreeMap<_, _> = headers
        .map(|(name, value)| {
            let fixed = FIXED.contains(&name.as_str());
            (name.as_str(), if fixed { value.to_str().unwrap() } else { "" })
        })
        .collect();
    let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    json!({"method": request.method().as_str(), "query": query, "headers": headers, "body": types(&body)})
}

/// A value with its type in its place.
fn types(value: &Value) -> Value {
    match value {
        Value::Null => json!("null"),
        Value::Bool(_) => json!("bool"),
        Value::Number(_) => json!("number"),
        Value::String(_) => json!("string"),
        Value::Array(items) => items.iter().map(types).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), types(value))).collect(),
    }
}
