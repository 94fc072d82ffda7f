//! Apps over WebSockets of their own: events, sends, and what waits for them.

use std::time::Duration;

use futures_util::SinkExt;
use hub_core::{
    apps::{AppEventState, AppPatch, Apps},
    page::PageRequest,
    traces::TraceStatus,
};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{
    app_scene::{ALL, Scene, WS, install, make},
    client::{Client, open, open_narrow},
};

#[tokio::test]
async fn an_app_receives_events_and_replies_over_its_socket() {
    let scene = Scene::new(&["message"], &ALL).await;
    let mut client = scene.try_connect("").await.unwrap_or_else(|refused| panic!("{}", refused.json));
    let init = client.hear("init").await;
    for greeting in [&init, &init["data"]] {
        assert_eq!(greeting["installation_id"], scene.installation.id.to_string());
        assert_eq!(greeting["bot_id"], scene.stage.bot.id.to_string());
        assert_eq!((&greeting["app_name"], &greeting["app_slug"]), (&json!("Weather"), &json!("weather")));
    }
    scene.stage.say("/weather  Berlin now ");
    let told = scene.event(&mut client).await;
    assert_eq!((&told["v"], &told["bot"]["id"]), (&json!(1), &json!(scene.stage.bot.id.to_string())));
    assert_eq!(told["installation_id"], scene.installation.id.to_string());
    let (event, data) = (&told["event"], &told["event"]["data"]);
    assert_eq!(
        (&event["type"], &data["command"], &data["text"]),
        (&json!("command"), &json!("weather"), &json!("Berlin now"))
    );
    let person = data["sender"]["id"].as_str().unwrap();
    assert_eq!(person, scene.stage.bot.account.owner_user_id);

    client
        .say(&json!({ "type": "send", "req_id": "r1", "to": person, "content": "sunny", "msg_type": "text" }))
        .await;
    let ack = client.hear("ack").await;
    assert_eq!((&ack["req_id"], &ack["ok"]), (&json!("r1"), &json!(true)), "{ack}");
    assert!(ack["message_id"].as_str().unwrap().starts_with("msg_"), "{ack}");
    assert_eq!(scene.stage.world.wait_sent(&scene.stage.bot, 1).await[0].text, "sunny");

    let logged = scene.logged(AppEventState::Delivered, 1).await;
    assert_eq!(logged[0].id.to_string(), event["id"].as_str().unwrap());
    assert_eq!(
        (logged[0].attempts, logged[0].written_at.is_some(), logged[0].response_status),
        (1, true, None)
    );
    let trace = scene.stage.world.trace(&scene.stage.bot, logged[0].trace_id.unwrap()).await;
    assert_eq!(
        (trace.status, told["trace_id"].as_str()),
        (TraceStatus::Ok, Some(&*trace.trace_id.to_string()))
    );
    let call = &scene.calls(1).await[0];
    assert_eq!((&*call.method, &*call.path, call.status), ("WS", WS, 200));
    assert!(call.request_body.contains("sunny") && call.response_body.contains("msg_"), "{call:?}");
    scene.stop().await;
}

#[tokio::test]
async fn an_event_of_a_file_over_a_socket_has_a_signed_link_to_it() {
    let scene = Scene::new(&["message"], &ALL).await;
    let mut client = scene.connect("").await;
    let wx_id = &scene.stage.bot.account.wx_id;
    let file = scene.stage.world.sim.store_file(wx_id, b"a,b\n1,2\n").unwrap().file("table.csv");
    scene.stage.world.sim.inject(json!({ "wx_id": wx_id, "items": [file] })).unwrap();
    let told = scene.event(&mut client).await;
    assert_eq!(told["event"]["type"], "message.file");
    let item = &told["event"]["data"]["items"][0];
    let url = item["media"]["url"].as_str().unwrap();
    assert!(url.contains("/api/media/med_") && url.contains("sig="), "{item}");
    assert_eq!((&item["url"], &item["media"]["file_name"]), (&json!(url), &json!("table.csv")));
    scene.stage.stop().await;
}

#[tokio::test]
async fn a_refused_send_is_answered_and_logged() {
    let scene = Scene::new(&[], &["message:read"]).await;
    let mut client = scene.connect("").await;
    let refused = async |client: &mut Client, frame: Value| {
        client.say(&frame).await;
        let error = client.hear("error").await;
        assert!(error["error"].is_string(), "{error}");
        assert_eq!(error["req_id"], frame["req_id"]);
        error["code"].as_str().unwrap().to_owned()
    };
    let send = |to: &str| json!({ "type": "send", "req_id": 7, "to": to, "content": "hi" });
    assert_eq!(refused(&mut client, send("ann")).await, "FORBIDDEN", "message:write was not granted");
    assert_eq!(scene.calls(1).await[0].status, 403);
    let words = vec!["message:write".to_owned()];
    let patch = hub_core::apps::InstallationPatch { scopes: Some(words), ..Default::default() };
    let patched = AppPatch { scopes: Some(vec!["message:write".to_owned()]), ..AppPatch::default() };
    let (apps, world) = (scene.stage.world.hub.apps(), &scene.stage.world);
    apps.update(&world.owner, scene.app.id, patched).await.unwrap();
    apps.change_installation(&world.owner, scene.stage.bot.id, scene.app.id, patch).await.unwrap();
    assert_eq!(refused(&mut client, send("")).await, "INVALID_PARAMS", "no one is the default here");
    assert_eq!(refused(&mut client, json!({ "type": "send", "to": "ann" })).await, "INVALID_PARAMS");
    let sticker = json!({ "type": "send", "to": "ann", "content": "x", "msg_type": "sticker" });
    assert_eq!(refused(&mut client, sticker).await, "INVALID_PARAMS");
    assert_eq!(refused(&mut client, send("nobody-ever-seen")).await, "WINDOW_CLOSED");
    assert_eq!(refused(&mut client, json!({ "type": "fly", "req_id": "f" })).await, "unknown_type");
    assert_eq!(refused(&mut client, json!({ "type": "ack", "id": "msg_1" })).await, "INVALID_PARAMS");
    for text in ["", "no json", "[]", "{}"] {
        client.0.send(Message::text(text)).await.unwrap();
        assert_eq!(client.hear("error").await["code"], "INVALID_PARAMS", "{text}");
    }
    client.0.send(Message::binary(vec![1])).await.unwrap();
    assert_eq!(client.hear("error").await["code"], "INVALID_PARAMS");
    client.say(&json!({ "type": "ping", "req_id": "p" })).await;
    assert_eq!(client.hear("pong").await["req_id"], "p");
    for _ in 7..49 {
        client.say(&json!({ "type": "fly" })).await;
        client.hear("error").await;
    }
    client.say(&json!({ "type": "fly" })).await;
    assert_eq!(client.closed().await.0, 1008);
    let mut client = scene.connect("").await;
    client.0.send(Message::text("x".repeat(64 * 1024 + 1))).await.unwrap();
    assert_eq!(client.closed().await.0, 1009);
    scene.stop().await;
}

#[tokio::test]
async fn events_without_a_connected_app_are_queued_in_order() {
    let mut scene = Scene::new(&["message.text"], &ALL).await;
    let said: Vec<String> = (0..70).map(|n| format!("text {n}")).collect();
    for text in &said[..60] {
        scene.stage.say(text);
    }
    assert_eq!(scene.logged(AppEventState::Pending, 60).await.len(), 60);
    // The hub starts again, and so does the app.
    scene.stage.restart().await;
    scene.stage.world.jump(Duration::from_secs(60 * 60)).await;
    let mut client = scene.connect("").await;
    assert_eq!(scene.contents(&mut client, 60).await, said[..60], "more than a page");
    for text in &said[60..] {
        scene.stage.say(text);
    }
    assert_eq!(scene.contents(&mut client, 10).await, said[60..]);
    let told = scene.logged(AppEventState::Delivered, 70).await;
    assert!(told.iter().all(|event| event.attempts == 1));
    drop(client);
    let sockets = scene.stage.world.hub.context().node.app_sockets.clone();
    let gone = async || (sockets.count() == 0).then_some(());
    scene.stage.world.until("the hub knows that the app is gone", gone).await;
    // Not for ever: as long as a webhook would be tried.
    scene.stage.say("too late");
    scene.logged(AppEventState::Pending, 1).await;
    scene.stage.world.jump(hub_core::apps::sockets::socket_wait()).await;
    // What is too old is looked for every ten minutes, and a round may have begun before the jump.
    scene.stage.world.jump(Duration::from_secs(11 * 60)).await;
    let failed = scene.logged(AppEventState::Failed, 1).await;
    assert!(failed[0].error.as_deref().unwrap().contains("no socket"), "{failed:?}");
    let mut client = scene.connect("").await;
    scene.stage.say("in time");
    assert_eq!(scene.content(&mut client).await, "in time");
    scene.stop().await;
}

#[tokio::test]
async fn an_app_that_acknowledges_gets_again_what_it_did_not() {
    let scene = Scene::new(&["message.text"], &ALL).await;
    let said: Vec<String> = (0..70).map(|n| format!("text {n}")).collect();
    for text in &said {
        scene.stage.say(text);
    }
    scene.logged(AppEventState::Pending, 70).await;
    let mut client = scene.connect("ack=true").await;
    let mut ids = Vec::new();
    for text in &said[..64] {
        let event = scene.event(&mut client).await;
        assert_eq!(event["event"]["data"]["content"], **text);
        ids.push(event["event"]["id"].clone());
    }
    // So many may be under way; one answer makes room for one more.
    client.say(&json!({ "type": "ping" })).await;
    client.hear("pong").await;
    for id in &ids[..2] {
        client.say(&json!({ "type": "ack", "id": id })).await;
    }
    assert_eq!(scene.contents(&mut client, 2).await, said[64..66]);
    scene.logged(AppEventState::Delivered, 2).await;
    drop(client);
    let mut client = scene.connect("ack=true").await;
    assert_eq!(scene.contents(&mut client, 64).await, said[2..66], "all that it did not acknowledge");
    drop(client);
    // Without a word about it, what is written counts.
    let mut client = scene.connect("").await;
    assert_eq!(scene.contents(&mut client, 68).await, said[2..]);
    scene.logged(AppEventState::Delivered, 70).await;
    scene.stop().await;
}

#[tokio::test]
async fn of_several_sockets_the_newest_receives_events_and_the_others_take_over() {
    let scene = Scene::new(&["message.text"], &ALL).await;
    let mut first = scene.connect("").await;
    let mut second = scene.connect("").await;
    for text in ["one", "two"] {
        scene.stage.say(text);
    }
    assert_eq!(scene.contents(&mut second, 2).await, ["one", "two"]);
    drop(second);
    scene.stage.say("three");
    assert_eq!(scene.content(&mut first).await, "three");
    // A socket on standby may send.
    let _third = scene.connect("").await;
    let to = &scene.stage.bot.account.owner_user_id;
    first.say(&json!({ "type": "send", "to": to, "content": "hello" })).await;
    first.hear("ack").await;
    scene.stop().await;
}

#[tokio::test]
async fn one_socket_serves_all_installations_that_have_none_of_their_own() {
    let scene = Scene::new(&["message.text", "app.installed", "app.uninstalled"], &ALL).await;
    let mut whole = scene.try_connect_app("").await.unwrap_or_else(|refused| panic!("{}", refused.json));
    let init = whole.hear("init").await;
    for greeting in [&init, &init["data"]] {
        assert_eq!(greeting["app_id"], scene.app.id.to_string());
        assert_eq!((&greeting["app_slug"], &greeting["scope"]), (&json!("weather"), &json!("app")));
    }
    assert_eq!(scene.event(&mut whole).await["event"]["type"], "app.installed");
    let other = scene.stage.world.bot().await;
    let (there, _) = install(&scene.stage, other.id, scene.app.id).await;
    let told = scene.event(&mut whole).await;
    assert_eq!(
        (&told["event"]["type"], &told["installation_id"]),
        (&json!("app.installed"), &json!(there.id.to_string()))
    );
    scene.stage.say("here");
    assert_eq!(scene.content(&mut whole).await, "here");
    let mut own = scene.connect("").await;
    scene.stage.say("for its own");
    assert_eq!(scene.content(&mut own).await, "for its own");
    scene.stage.world.say(&other, "there");
    assert_eq!(scene.content(&mut whole).await, "there");
    drop(own);
    scene.stage.say("here again");
    assert_eq!(scene.content(&mut whole).await, "here again");

    let to = &other.account.owner_user_id;
    let send = |id: &Value| json!({ "type": "send", "to": to, "content": "hello", "installation_id": id });
    whole.say(&send(&json!(there.id.to_string()))).await;
    whole.hear("ack").await;
    assert_eq!(scene.stage.world.wait_sent(&other, 1).await[0].text, "hello");
    let (foreign, _) = make(&scene.stage, "Other", &[], &ALL).await;
    let (foreign, _) = install(&scene.stage, other.id, foreign.id).await;
    for (id, code) in [
        (json!(foreign.id.to_string()), "NOT_FOUND"),
        (json!("ins_01BX5ZZKBKACTAV9WEVGEMMVRZ"), "NOT_FOUND"),
        (Value::Null, "INVALID_PARAMS"),
        (json!(other.id.to_string()), "INVALID_PARAMS"),
    ] {
        whole.say(&send(&id)).await;
        assert_eq!(whole.hear("error").await["code"], code, "{id}");
    }
    scene.stage.world.hub.apps().uninstall(&scene.stage.world.owner, other.id, scene.app.id).await.unwrap();
    let told = scene.event(&mut whole).await;
    assert_eq!(
        (&told["event"]["type"], &told["installation_id"]),
        (&json!("app.uninstalled"), &json!(there.id.to_string()))
    );
    scene.stop().await;
}

#[tokio::test]
async fn a_slow_app_delays_no_other_and_loses_nothing() {
    const MESSAGES: usize = 40;
    let scene = Scene::new(&["message.text"], &ALL).await;
    let (fast, _) = make(&scene.stage, "Fast", &["message.text"], &ALL).await;
    let (_, fast) = install(&scene.stage, scene.stage.bot.id, fast.id).await;
    let target = format!("{WS}?token={}", scene.token);
    let mut slow = open_narrow(scene.stage.address, &target).await.ok().unwrap();
    slow.hear("init").await;
    let mut quick = open(scene.stage.address, &format!("{WS}?token={fast}"), &[]).await.ok().unwrap();
    quick.hear("init").await;
    let mut channel = scene.stage.connect("").await.0;
    // Far more than what is on the way to who does not read.
    let text = |n: usize| format!("{n} {}", "x".repeat(100_000));
    for n in 0..MESSAGES {
        // One at a time: the network's answers have a size, too.
        scene.stage.say(&text(n));
        assert!(scene.content(&mut quick).await == text(n), "{n}");
        assert!(channel.message().await.1 == text(n), "{n}");
    }
    let sockets = &scene.stage.world.hub.context().node.app_sockets;
    assert!(sockets.count() == 2 || sockets.count() == 1, "the slow one may be gone by now");
    scene.stage.world.until("the slow one is closed", async || (sockets.count() == 1).then_some(())).await;
    drop(slow);
    let mut again = scene.connect("").await;
    let mut seen = vec![false; MESSAGES];
    while !seen[MESSAGES - 1] {
        let content = scene.content(&mut again).await;
        seen[content.split(' ').next().unwrap().parse::<usize>().unwrap()] = true;
    }
    let first = seen.iter().position(|seen| *seen).unwrap();
    assert!(seen[first..].iter().all(|seen| *seen), "{seen:?}");
    let told = scene.logged(AppEventState::Delivered, MESSAGES).await;
    assert_eq!(told.len(), MESSAGES, "what did not come again was written before");
    scene.stop().await;
}

#[tokio::test]
async fn apps_receive_the_status_of_their_bot() {
    let scene = Scene::new(&["bot.status"], &["bot:read"]).await;
    let (blind, _) = make(&scene.stage, "Blind", &["bot.status"], &["message:read"]).await;
    install(&scene.stage, scene.stage.bot.id, blind.id).await;
    let mut client = scene.connect("").await;
    scene.stage.world.sim.expire(&scene.stage.bot.account.wx_id).unwrap();
    let mut last = Value::Null;
    while last["status"] != "expired" {
        let told = scene.event(&mut client).await;
        assert_eq!(told["event"]["type"], "bot.status");
        let data = told["event"]["data"].clone();
        assert_eq!(data["bot_id"], scene.stage.bot.id.to_string());
        assert_ne!(data["status"], data["previous"]);
        if !last.is_null() {
            assert_eq!(data["previous"], last["status"], "nothing is left out");
        }
        last = data;
    }
    assert!(last["reason"].is_string(), "{last}");
    assert_eq!(last["reason_cause"]["code"], "bind_again", "{last}");
    let page = PageRequest::parse(&Apps::event_list(scene.stage.bot.id, blind.id), None, None).unwrap();
    let apps = scene.stage.world.hub.apps();
    let told = apps.events(&scene.stage.world.owner, scene.stage.bot.id, blind.id, &page).await.unwrap();
    assert!(told.items.is_empty(), "it may not read about the bot");
    scene.stop().await;
}
