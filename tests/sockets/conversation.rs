//! Frames between hub and client.

use std::time::Duration;

use bytes::Bytes;
use hub_core::{
    channels::{ChannelPatch, NewChannel, sinks::WebSocketSettings},
    media::{NewUpload, UploadRequest},
    traces::StepName,
};
use serde_json::{Value, json};

use super::{
    client::{Client, open},
    stage::{CONNECT, Stage},
};

#[tokio::test]
async fn every_client_gets_everything_from_where_it_was() {
    let stage = Stage::new().await;
    stage.say("one");
    let (mut first, init) = stage.connect("ack=true").await;
    assert_eq!(init["data"]["channel_id"], stage.channel.to_string());
    assert_eq!(init["data"]["bot_id"], stage.bot.id.to_string());
    assert_eq!(init["data"]["channel_name"], "orders");
    assert!(init["data"]["bot_status"].is_string() && init["data"]["last_seq"].is_i64());
    assert_eq!(first.message().await, (1, "one".to_owned()));
    let (mut second, _) = stage.connect("since=1").await;
    stage.say("two");
    for client in [&mut first, &mut second] {
        assert_eq!(client.message().await, (2, "two".to_owned()));
    }
    first.say(&json!({ "type": "ack", "data": { "seq": 1 } })).await;
    first.say(&json!({ "type": "ping", "reqID": "7" })).await;
    assert_eq!(first.hear("pong").await["reqID"], "7");
    drop(first);
    let (mut third, init) = stage.connect("").await;
    assert_eq!(init["data"]["since"], 1, "after what was acknowledged");
    assert_eq!(third.message().await.0, 2);
    let trace = stage.world.traces(&stage.bot).await.remove(0);
    let trace = stage.world.trace(&stage.bot, trace.trace_id).await;
    let step = trace.steps.iter().find(|step| step.name == StepName::Websocket).expect("clients were there");
    assert_eq!(json!(step.detail), json!({ "clients": 2 }));
    stage.stop().await;
}

/// Connects with the key in the query alone, as published clients do.
async fn connect_by_query(stage: &Stage, name: &str) -> Client {
    let target = format!("{CONNECT}?{name}={}", stage.key);
    let mut client = open(stage.address, &target, &[]).await.ok().unwrap();
    client.hear("init").await;
    client
}

#[tokio::test]
async fn a_client_that_never_acknowledges_gets_no_repeats_after_a_restart() {
    let stage = Stage::new().await;
    let mut said = 0;
    for carrier in ["key", "api_key", "header"] {
        let connect = async || match carrier {
            "header" => stage.connect("").await.0,
            name => connect_by_query(&stage, name).await,
        };
        let mut client = connect().await;
        for question in ["one", "two", "three"] {
            said += 1;
            stage.say(question);
            assert_eq!(client.message().await, (said, question.to_owned()));
        }
        drop(client);
        let mut client = connect().await;
        said += 1;
        stage.say("after the restart");
        assert_eq!(client.message().await, (said, "after the restart".to_owned()), "{carrier}: no repeats");
    }
    stage.stop().await;
}

#[tokio::test]
async fn an_ack_frame_makes_the_position_explicit_however_the_key_is_sent() {
    let stage = Stage::new().await;
    let mut client = connect_by_query(&stage, "key").await;
    for n in 1..=10 {
        stage.say(&n.to_string());
        assert_eq!(client.message().await, (n, n.to_string()));
    }
    client.say(&json!({ "type": "ack", "data": { "seq": 3 } })).await;
    // The response comes after the acknowledgement.
    client.say(&json!({ "type": "ping" })).await;
    client.hear("pong").await;
    drop(client);
    for name in ["key", "api_key"] {
        let mut again = connect_by_query(&stage, name).await;
        for n in 4..=10 {
            assert_eq!(again.message().await, (n, n.to_string()), "{name}");
        }
    }
    stage.stop().await;
}

#[tokio::test]
async fn sends_are_answered_in_both_dialects_and_are_as_durable_as_any() {
    let stage = Stage::new().await;
    let (mut client, _) = stage.connect("").await;
    let refused = json!({ "type": "send_text", "reqID": "a", "data": { "content": "too early" } });
    client.say(&refused).await;
    let ack = client.hear("send_ack").await;
    assert_eq!((&ack["data"]["success"], &ack["data"]["code"]), (&json!(false), &json!("WINDOW_CLOSED")));
    stage.say("hello");
    client.message().await;
    let keyed = json!({
        "type": "send_text", "reqID": "b",
        "data": { "to_user_id": stage.bot.account.owner_user_id, "content": "one", "idempotency_key": "k" },
    });
    client.say(&keyed).await;
    let first = client.hear("send_ack").await;
    assert_eq!((&first["data"]["success"], &first["reqID"]), (&json!(true), &json!("b")));
    client.say(&keyed).await;
    let again = client.hear("send_ack").await;
    assert_eq!(again["data"]["message_id"], first["data"]["message_id"], "the same key sends once");
    client
        .say(&json!({ "type": "send_text", "req_id": 2, "data": { "recipient": "", "text": "two" } }))
        .await;
    let ack = client.hear("send_ack").await;
    assert_eq!(
        (&ack["req_id"], &ack["data"]["req_id"], &ack["data"]["success"]),
        (&json!(2), &json!(2), &json!(true))
    );
    let sent = stage.world.wait_sent(&stage.bot, 2).await;
    assert_eq!(sent.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    client.say(&json!({ "type": "send_text", "reqID": "c", "data": { "to_user_id": "someone else", "content": "x" } })).await;
    assert_eq!(client.hear("send_ack").await["data"]["success"], false);
    stage.stop().await;
}

#[tokio::test]
async fn a_permission_of_the_receiver_is_used_and_any_other_is_replaced_by_the_newest() {
    let stage = Stage::new().await;
    let (mut client, _) = stage.connect("").await;
    let mut tokens = Vec::new();
    for text in ["one", "two"] {
        stage.say(text);
        let message = client.hear("message").await;
        tokens.push(message["data"]["context_token"].as_str().unwrap().to_owned());
    }
    assert_ne!(tokens[0], tokens[1]);
    let chosen = [Some(tokens[0].as_str()), Some("not one of theirs"), None];
    for token in chosen {
        let data = json!({ "content": "hello", "context_token": token });
        client.say(&json!({ "type": "send_text", "reqID": 1, "data": data })).await;
        assert_eq!(client.hear("send_ack").await["data"]["success"], true);
    }
    let sent = stage.world.wait_sent(&stage.bot, 3).await;
    let used: Vec<_> = sent.iter().map(|sent| sent.context_token.as_str()).collect();
    assert_eq!(used, [&*tokens[0], &*tokens[1], &*tokens[1]]);
    stage.stop().await;
}

#[tokio::test]
async fn configuration_typing_and_status_frames_are_sent() {
    let stage = Stage::new().await;
    stage.say("hello");
    let (mut client, _) = stage.connect("since=0").await;
    client.message().await;
    client.say(&json!({ "type": "get_config", "reqID": 1, "data": { "context_token": "x" } })).await;
    let config = client.hear("config").await;
    assert_eq!(config["data"]["channel"]["id"], stage.channel.to_string());
    let ticket = config["data"]["typing_ticket"].as_str().unwrap();
    client.say(&json!({ "type": "send_typing", "data": { "ticket": ticket, "status": "typing" } })).await;
    let sim = &stage.world.sim;
    stage
        .world
        .until("the sign", async || (!sim.typing(Some(&stage.bot.account.wx_id)).is_empty()).then_some(()))
        .await;
    client.say(&json!({ "type": "send_typing", "reqID": 3, "data": { "ticket": "made up" } })).await;
    assert_eq!(client.hear("error").await["data"]["code"], "INVALID_PARAMS");
    let channels = stage.world.hub.channels();
    let rename = ChannelPatch { name: Some("renamed".to_owned()), ..ChannelPatch::default() };
    channels.update(&stage.world.owner, stage.bot.id, stage.channel, rename).await.unwrap();
    let config = client.hear("config").await;
    assert_eq!(config["data"]["channel"]["name"], "renamed");
    stage.stop().await;
}

#[tokio::test]
async fn outbound_messages_are_shown_where_wanted() {
    let websocket = WebSocketSettings { include_outbound: true, ..WebSocketSettings::default() };
    let stage = Stage::with(NewChannel { websocket, ..NewChannel::named("both") }, |_| {}).await;
    stage.say("hello");
    let (mut client, _) = stage.connect("since=0").await;
    client.message().await;
    stage.world.send(&stage.bot, "good day").await.unwrap();
    stage.world.wait_sent(&stage.bot, 1).await;
    let frame = client.hear("message").await;
    assert_eq!(
        (&frame["data"]["direction"], &frame["data"]["content"]),
        (&json!("outbound"), &json!("good day"))
    );
    stage.stop().await;
}

const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\nnot really a picture";

#[tokio::test]
async fn messages_say_where_their_files_are() {
    let stage = Stage::new().await;
    let wx_id = &stage.bot.account.wx_id;
    let image = stage.world.sim.store_file(wx_id, IMAGE).unwrap().image();
    stage.world.sim.inject(json!({ "wx_id": wx_id, "items": [image] })).unwrap();
    let (mut socket, _) = stage.connect("since=0").await;
    let file = socket.hear("message").await["data"]["media"][0].clone();
    assert_eq!((&file["type"], &file["item"]), (&json!("image"), &json!(0)));
    let url = file["url"].as_str().unwrap();
    assert!(url.contains("/api/media/med_") && url.contains("sig="), "{url}");
    // A later request returns the outcome, even after other requests.
    let client = stage.client().await;
    let told = stage
        .world
        .until("the file is there", async || {
            let channels = stage.world.hub.channels();
            let page =
                channels.poll(&client, None, None, Duration::ZERO, std::future::pending()).await.unwrap();
            let message: Value = serde_json::from_slice(page.entries[0].data()).unwrap();
            (message["media"][0]["status"] == "ready").then(|| message["media"][0].clone())
        })
        .await;
    assert_eq!((&told["content_type"], &told["size"]), (&json!("image/png"), &json!(IMAGE.len())));
    stage.say("and a text");
    assert!(socket.hear("message").await["data"].get("media").is_none(), "a text has no files");
    stage.stop().await;
}

#[tokio::test]
async fn a_send_names_an_upload() {
    let stage = Stage::new().await;
    stage.say("hello");
    let (mut socket, _) = stage.connect("since=0").await;
    socket.message().await;
    let (client, media) = (stage.client().await, stage.world.hub.media());
    let (file_name, content_type) = ("a.png".to_owned(), "image/png".to_owned());
    let new = NewUpload { file_name, content_type, size: IMAGE.len() as u64 };
    let ticket = media.start_upload(&client, new).await.unwrap();
    let link: url::Url = ticket.url.as_str().parse().unwrap();
    let value = |name: &str| link.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    let request = UploadRequest {
        id: &ticket.upload_id.to_string(),
        expires: &value("expires"),
        signature: &value("sig"),
        content_type: Some("image/png"),
        length: None,
    };
    let body = futures_util::stream::iter([Ok(Bytes::from_static(IMAGE))]);
    media.receive_upload(request, body).await.unwrap();
    let send =
        json!({ "type": "send_text", "reqID": 1, "data": { "media": { "upload_id": ticket.upload_id } } });
    socket.say(&send).await;
    assert_eq!(socket.hear("send_ack").await["data"]["success"], true);
    let sent = stage.world.wait_sent(&stage.bot, 1).await;
    assert_eq!(stage.world.sim.opened(&sent[0]).unwrap(), IMAGE);
    socket.say(&send).await;
    let again = socket.hear("send_ack").await;
    assert_eq!(
        (&again["data"]["success"], &again["data"]["code"]),
        (&json!(false), &json!("INVALID_PARAMS"))
    );
    stage.stop().await;
}
