//! Sentences that state a cause come with the code and the values, through the shipped server.

use serde_json::{Value, json};

use crate::support::{
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
    port::ReceiverPort,
    receiver::Reply,
};

/// The outcomes of a message in two channels: one filters it, and the webhook of the other one fails.
async fn outcomes(ada: &Caller, bot: &str) -> (Value, Value) {
    until("both outcomes", async || {
        let traces = ada.get(&format!("/api/bots/{bot}/traces")).await;
        let find = |status: &str| {
            let mut traces = traces["items"].as_array().into_iter().flatten();
            traces.find(|trace| trace["status"] == status).cloned()
        };
        Some((find("skipped")?, find("error")?))
    })
    .await
}

#[tokio::test]
async fn causes_of_outcomes_have_codes_and_values_next_to_their_sentences() {
    let folder = tempfile::tempdir().unwrap();
    let (network, port) = (NetworkProcess::start().await, ReceiverPort::open().await);
    port.receiver.always("/hook", Reply::status(500));
    let allow = port.address.to_string();
    let server = HubProcess::start(folder.path(), &network, &[("HUB_EGRESS_ALLOW", allow.as_str())]).await;
    let mut ada = Caller::stranger(&server.url);
    let new = json!({ "username": "ada", "password": "correct horse battery staple" });
    ada.sign_in("/api/auth/register", new).await;
    let (bot, wx_id) = network.bind(&ada).await;

    let shown = ada.get(&format!("/api/bots/{bot}")).await;
    assert_eq!(shown["send_disabled_reason_cause"], json!({ "code": "never_wrote" }), "{shown}");
    assert!(shown["send_disabled_reason"].as_str().unwrap().contains("has not written"), "{shown}");
    assert!(shown.get("status_reason_cause").is_none(), "without a sentence there is no cause: {shown}");

    let channels = format!("/api/bots/{bot}/channels");
    ada.post(&channels, json!({ "name": "orders", "filter": { "keywords": ["order"] } })).await;
    let webhook = json!({
        "url": format!("http://{}/hook", port.address), "auth": { "method": "none" }, "retry": { "schedule_s": [1] },
    });
    ada.post(&channels, json!({ "name": "all", "webhook": webhook })).await;
    network.say(&wx_id, "hello").await;
    let (filtered, failed) = outcomes(&ada, &bot).await;

    assert_eq!(filtered["summary"], "filtered: keyword");
    let keyword = json!({ "code": "not_matched", "parts": ["keyword"] });
    assert_eq!(filtered["summary_cause"], json!({ "code": "filtered", "cause": keyword }));
    let id = filtered["trace_id"].as_str().unwrap();
    let steps = ada.get(&format!("/api/traces/{id}")).await["steps"].clone();
    let detail = &steps.as_array().unwrap().last().unwrap()["detail"];
    assert_eq!((&detail["reason"], &detail["reason_cause"]), (&json!("keyword"), &keyword));

    assert_eq!(failed["summary"], "failed after 2 attempt(s): status 500");
    let status = json!({ "code": "status", "status": 500 });
    assert_eq!(failed["summary_cause"], json!({ "code": "failed", "attempts": 2, "cause": status }));
    let (message, channel) =
        (failed["message_id"].as_str().unwrap(), filtered["channel_id"].as_str().unwrap());
    let path = format!("/api/bots/{bot}/messages/{message}/explain?channel_id={channel}");
    let explained = ada.get(&path).await;
    assert_eq!(explained["cause"]["reason_cause"], keyword, "{explained}");
    let listed = ada.get("/api/messages").await;
    let outcomes = listed["items"][0]["outcomes"].as_array().unwrap().clone();
    let codes = outcomes.iter().map(|outcome| outcome["reason_cause"]["code"].as_str().unwrap());
    let mut codes: Vec<&str> = codes.collect();
    codes.sort_unstable();
    assert_eq!(codes, ["failed", "filtered"], "{listed}");
}
