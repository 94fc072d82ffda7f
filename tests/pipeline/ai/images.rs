//! Images, which the model gets in the request itself.

use data_encoding::BASE64;
use hub_core::traces::{StepName, TraceStatus};
use serde_json::{Value, json};

use super::{MODEL, ai_steps, ended, said, scene};
use crate::support::{
    receiver::Reply,
    world::{TestBot, World},
};

const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\nnot really a picture";

/// The person sends these files as images of one message.
fn show(hub: &World, bot: &TestBot, images: &[&[u8]]) {
    let wx_id = &bot.account.wx_id;
    let items = images.iter().map(|bytes| hub.sim.store_file(wx_id, bytes).unwrap().image());
    hub.sim.inject(json!({ "wx_id": wx_id, "items": items.collect::<Vec<_>>() })).unwrap();
}

fn last_content(hub: &World, request: usize) -> Value {
    let asked = hub.receiver.received_at(MODEL)[request].json();
    asked["messages"].as_array().unwrap().last().unwrap()["content"].clone()
}

fn part(bytes: &[u8]) -> Value {
    let url = format!("data:image/png;base64,{}", BASE64.encode(bytes));
    json!({ "type": "image_url", "image_url": { "url": url } })
}

#[tokio::test]
async fn a_model_sees_the_image_and_not_what_is_none_or_too_large() {
    let (hub, bot, channel) = scene().await;
    let large = [IMAGE, &vec![0; 5 << 20]].concat();
    show(&hub, &bot, &[IMAGE, b"no image at all", &large, IMAGE]);
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "Hello!");
    let content = last_content(&hub, 0);
    assert_eq!(content[0], json!({ "type": "text", "text": "[an image]" }));
    let images = content.as_array().unwrap()[1..].to_vec();
    assert_eq!(images, [part(IMAGE), part(IMAGE)]);
    let trace = ended(&hub, &bot, channel, TraceStatus::Ok).await;
    let step = trace.steps.iter().find(|step| step.name == StepName::Ai).unwrap();
    assert_eq!(step.detail.images, Some(2));
    assert!(!serde_json::to_string(&trace.steps).unwrap().contains("base64"), "no trace holds the image");
    // Later it is a part of what was said, in words.
    hub.say(&bot, "and now?");
    hub.wait_sent(&bot, 2).await;
    assert_eq!(last_content(&hub, 1), "and now?");
    assert!(!hub.receiver.received_at(MODEL)[1].json().to_string().contains("base64"));
}

#[tokio::test]
async fn a_model_that_sees_nothing_is_asked_again_without_the_image() {
    let (hub, bot, channel) = scene().await;
    let refusal = json!({ "error": { "message": "unknown variant `image_url`, expected `text`" } });
    hub.receiver.then(MODEL, [Reply::json(&refusal).with_status(400)]);
    show(&hub, &bot, &[IMAGE]);
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "Hello!");
    assert_eq!(last_content(&hub, 0)[1], part(IMAGE));
    assert_eq!(last_content(&hub, 1), "[an image]");
    let trace = ended(&hub, &bot, channel, TraceStatus::Ok).await;
    assert_eq!((trace.attempts, ai_steps(&trace)), (1, vec![("ai", TraceStatus::Ok)]));
}

#[tokio::test]
async fn a_model_that_refuses_the_words_too_is_asked_no_third_time() {
    let (hub, bot, channel) = scene().await;
    let refusal = json!({ "error": { "message": "this image or its text is not allowed" } });
    hub.receiver.always(MODEL, Reply::json(&refusal).with_status(400));
    show(&hub, &bot, &[IMAGE]);
    let dead = ended(&hub, &bot, channel, TraceStatus::Error).await;
    assert_eq!((dead.attempts, hub.receiver.received_at(MODEL).len()), (1, 2));
    hub.receiver.always(MODEL, said("Hello!"));
    hub.say(&bot, "sorry");
    hub.wait_sent(&bot, 1).await;
}
