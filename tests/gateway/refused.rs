use std::time::Duration;

use hub_core::{tasks::Tasks, time::Clock};
use reqwest::Method;
use serde_json::{Value, json};

use super::stage::{Program, Stage, forged_token, reply, texts};
use crate::support::{
    http::{Caller, until},
    hub_process::HubProcess,
};

fn is_expired(answer: &Value) -> bool {
    *answer == json!({ "errcode": -14, "errmsg": "session timeout" })
}

#[tokio::test]
async fn tokens_cursors_and_context_tokens_of_others_are_refused_and_lose_nothing() {
    let stage = Stage::start().await;
    let (one, two) = (stage.log_in().await, stage.log_in().await);
    for token in ["", "a1b2c3d4e5f6@im.bot:00112233", &forged_token()] {
        let stranger = Program::with_token(&stage.hub.url, token);
        assert!(is_expired(&stranger.poll("").await), "{token}");
    }
    stage.network.say(&stage.wx_id, "first").await;
    let (of_one, of_two) = (one.poll("").await, two.poll("").await);
    assert_eq!((texts(&of_one), texts(&of_two)), (vec!["first"], vec!["first"]));
    let cursor = |answer: &Value| answer["get_updates_buf"].as_str().unwrap().to_owned();
    // As without one: from another program, another hub, the network, an earlier login, garbage.
    let long = "x".repeat(5_000);
    let ours = cursor(&of_one);
    let mut foreign =
        vec![cursor(&of_two), "AAAA".to_owned(), "null".to_owned(), "不是游标".to_owned(), long];
    foreign.push(ours[..ours.len() - 4].to_owned());
    for foreign in foreign {
        assert_eq!(texts(&one.poll(&foreign).await), ["first"], "{foreign} acknowledges nothing");
    }
    let (mine, foreign) = (&of_one["msgs"][0], &of_two["msgs"][0]);
    assert_eq!(one.send(foreign, "c0", "x").await, json!({ "ret": -2, "errmsg": "prepare failed" }));
    let mut unknown = mine.clone();
    unknown["from_user_id"] = json!("unknown@im.wechat");
    assert_eq!(one.send(&unknown, "c0", "x").await["ret"], -3);
    let sent = one.send(mine, "c1", "hello").await;
    assert_eq!((&sent["ret"], one.send(mine, "c1", "hello").await), (&json!(0), sent.clone()), "sent once");
    let shown = stage.outbound(1).await;
    assert_eq!((shown.len(), &shown[0]["text"]), (1, &json!("hello")));

    // A quote of that reply names it by the id that the program got, once the hub has stored that of the network.
    let list = format!("/api/bots/{}/messages", stage.bot);
    until("the outcome of the send", async || {
        let messages = stage.ada.get(&list).await;
        let mut messages = messages["items"].as_array().unwrap().iter();
        messages.any(|message| message["status"] == "sent").then_some(())
    })
    .await;
    let quoted = json!({ "type": 1, "text_item": { "text": "which?" },
        "ref_msg": { "svr_id": shown[0]["message_id"] } });
    let message = json!({ "messages": [{ "wx_id": stage.wx_id, "items": [quoted] }] });
    stage.network.control.control("/_sim/messages", Some(message)).await;
    let next = one.poll(&cursor(&of_one)).await;
    let reference = &next["msgs"][0]["item_list"][0]["ref_msg"];
    assert_eq!(reference["svr_id"], sent["message_id"], "{next}");
    assert_eq!(reference["message_item"]["text_item"]["text"], "hello");
}

#[tokio::test]
async fn a_program_goes_on_where_it_was_after_the_hub_was_killed() {
    let stage = Stage::start().await;
    let program = stage.log_in().await;
    stage.network.say(&stage.wx_id, "one").await;
    let first = program.poll("").await;
    assert_eq!(texts(&first), ["one"]);
    let Stage { folder, network, hub, wx_id, .. } = stage;
    hub.process.kill().await;
    for text in ["two", "three"] {
        network.say(&wx_id, text).await;
    }
    let hub = HubProcess::start(folder.path(), &network, &[]).await;
    let program = program.at(&hub.url);
    let mut found: Vec<String> = Vec::new();
    let mut cursor = first["get_updates_buf"].as_str().unwrap().to_owned();
    while found.len() < 2 {
        let answer = program.poll(&cursor).await;
        found.extend(texts(&answer).into_iter().map(str::to_owned));
        cursor = answer["get_updates_buf"].as_str().unwrap().to_owned();
    }
    assert_eq!(found, ["two", "three"]);
    // Without a cursor: what was not acknowledged.
    assert_eq!(texts(&program.poll("").await).last(), Some(&"three"));
}

#[tokio::test]
async fn of_two_polls_the_newer_gets_the_message_and_a_revoked_program_hears_of_it_in_its_poll() {
    let stage = Stage::start().await;
    let program = stage.log_in().await;
    let (clock, tasks) = (Clock::system(), Tasks::new());
    let poll = |program: &Program| {
        let program = program.clone();
        tasks.spawn("poll", async move { program.poll("").await })
    };
    let older = poll(&program);
    clock.sleep(Duration::from_millis(500)).await;
    let newer = poll(&program);
    clock.sleep(Duration::from_millis(500)).await;
    let third = poll(&program);
    let first = older.await.unwrap().unwrap();
    assert_eq!((&first["ret"], texts(&first).len()), (&json!(0), 0), "a third poll ends the oldest");
    let (older, newer) = (newer, third);
    stage.network.say(&stage.wx_id, "hello").await;
    let answer = newer.await.unwrap().unwrap();
    assert_eq!(texts(&answer), ["hello"]);
    assert!(!older.is_finished(), "the older poll is held");
    stage.revoke(&program.client).await;
    assert!(is_expired(&older.await.unwrap().unwrap()));
    assert!(is_expired(&program.poll("").await));
    let message = &answer["msgs"][0];
    assert!(is_expired(&program.send(message, "late", "x").await));

    // What it was given is in the trace of the message.
    let traces = stage.ada.get(&format!("/api/bots/{}/traces", stage.bot)).await;
    let id = traces["items"][0]["trace_id"].as_str().unwrap();
    let trace = stage.ada.get(&format!("/api/bots/{}/traces/{id}", stage.bot)).await;
    let steps = trace["steps"].as_array().unwrap();
    let given = steps.iter().find(|step| step["name"] == "ilink").expect("a step of the sink");
    assert_eq!(given["detail"]["ilink_client"], program.client);
}

#[tokio::test]
async fn polls_of_clients_that_gave_up_take_no_place() {
    let stage = Stage::start().await;
    let program = stage.log_in().await;
    for _ in 0..5 {
        let poll = program.call("getupdates", json!({ "get_updates_buf": "" }));
        let given_up = tokio::time::timeout(Duration::from_millis(300), poll).await;
        assert!(given_up.is_err(), "{given_up:?}");
    }
    stage.network.say(&stage.wx_id, "hello").await;
    let (status, answer) = program.call("getupdates", json!({ "get_updates_buf": "" })).await;
    assert_eq!((status.as_u16(), texts(&answer)), (200, vec!["hello"]));
}

#[tokio::test]
async fn what_is_no_call_is_not_found_and_limits_have_the_form_of_the_network() {
    let stage = Stage::with(&[("HUB_RATE_DEFAULT", "40")]).await;
    let program = stage.log_in().await;
    let caller = Caller::stranger(&stage.hub.url);
    let some = || Some(json!({ "a": "b" }));
    for (method, path, body) in [
        (Method::POST, "/ilink/bot/unknown", some()),
        (Method::POST, "/ilink/unknown", some()),
        (Method::GET, "/ilink/bot/getupdates", None),
        (Method::PUT, "/ilink/bot/getupdates", some()),
        (Method::DELETE, "/ilink/bot/sendmessage", None),
        (Method::PUT, "/c2c/upload?encrypted_query_param=x&filekey=y", some()),
        (Method::POST, "/c2c/download?encrypted_query_param=x", some()),
        (Method::GET, "/c2c/unknown", None),
    ] {
        let (status, answer, _) = caller.call(method.clone(), path, body).await;
        assert_eq!((status.as_u16(), answer), (404, Value::Null), "{method} {path}");
    }
    let large = json!({ "get_updates_buf": "x".repeat(2 << 20) });
    let (status, answer) = program.call("getupdates", large).await;
    assert_eq!((status.as_u16(), answer), (413, Value::Null), "without the envelope of the hub");
    for _ in 0..80 {
        let (status, answer) = program.call("msg/notifystart", json!({})).await;
        if status.as_u16() != 200 {
            let expected = json!({ "ret": -2, "errmsg": "rate limited" });
            assert_eq!((status.as_u16(), answer), (429, expected));
            return;
        }
    }
    panic!("the limit of requests was never reached");
}

#[tokio::test]
async fn a_bot_that_needs_a_login_refuses_its_programs_as_the_network_does() {
    let stage = Stage::start().await;
    let program = stage.log_in().await;
    stage.network.say(&stage.wx_id, "hello").await;
    let heard = program.poll("").await;
    let expire = json!({ "wx_id": stage.wx_id });
    stage.network.control.control("/_sim/expire", Some(expire)).await;
    until("the bot has expired", async || {
        let bot = stage.ada.get(&format!("/api/bots/{}", stage.bot)).await;
        (bot["status"] == "expired").then_some(())
    })
    .await;
    assert!(is_expired(&program.poll("").await));
    assert!(is_expired(&program.send(&heard["msgs"][0], "c", "x").await));
    assert!(is_expired(&program.call("msg/notifystart", json!({})).await.1));
    let (_, qr, _) = Caller::stranger(&stage.hub.url)
        .call(Method::GET, "/ilink/bot/get_bot_qrcode?bot_type=3", None)
        .await;
    let login = stage.open(qr["qrcode_img_content"].as_str().unwrap()).await;
    let confirm = json!({ "login_id": login, "channel_id": stage.channel });
    let (status, answer, _) = stage.ada.call(Method::POST, "/api/ilink/logins/confirm", Some(confirm)).await;
    assert_eq!(status.as_u16(), 409, "{answer}");
}

#[tokio::test]
async fn texts_in_progress_are_accepted_and_the_finished_one_is_sent_once() {
    let stage = Stage::start().await;
    let program = stage.log_in().await;
    stage.network.say(&stage.wx_id, "hello").await;
    let heard = program.poll("").await;
    let send = async |state: u64, text: &str| {
        let mut body = reply(&heard["msgs"][0], "stream", text);
        body["msg"]["message_state"] = json!(state);
        program.call("sendmessage", body).await.1["ret"].clone()
    };
    for (state, text) in [(1, "the"), (1, "the whole"), (2, "the whole text"), (2, "the whole text")] {
        assert_eq!(send(state, text).await, 0, "{state} {text}");
    }
    assert_eq!(program.send(&heard["msgs"][0], "next", "next").await["ret"], 0);
    let shown = stage.outbound(2).await;
    let texts: Vec<_> = shown.iter().map(|one| &one["text"]).collect();
    assert_eq!(texts, ["the whole text", "next"]);
}

#[tokio::test]
async fn a_long_text_keeps_the_cut_of_its_program() {
    let stage = Stage::start().await;
    let program = stage.log_in().await;
    stage.network.say(&stage.wx_id, "hello").await;
    let heard = program.poll("").await;
    for (n, (length, parts)) in [(4_000, 1), (2_001, 1), (16_000, 4)].into_iter().enumerate() {
        let text = "x".repeat(length);
        assert_eq!(program.send(&heard["msgs"][0], &n.to_string(), &text).await["ret"], 0);
        let shown = stage.outbound(n + parts).await;
        assert_eq!(shown.len(), n + parts, "{length} characters");
    }
}

#[tokio::test]
async fn a_limit_of_the_hub_is_refused_and_not_accepted_for_later() {
    let stage = Stage::with(&[("HUB_SENDS_PER_FIVE_MINUTES", "3")]).await;
    let program = stage.log_in().await;
    stage.network.say(&stage.wx_id, "hello").await;
    let message = &program.poll("").await["msgs"][0];
    for n in 0..3 {
        assert_eq!(program.send(message, &n.to_string(), "x").await["ret"], 0, "{n}");
    }
    for n in ["3", "4", "3"] {
        let refused = json!({ "ret": -2, "errmsg": "rate limited" });
        assert_eq!(program.send(message, n, "x").await, refused, "{n}");
    }
    assert_eq!(program.send(message, "2", "x").await["ret"], 0, "a repeat has the first response");
    assert_eq!(stage.outbound(3).await.len(), 3);
}

#[tokio::test]
async fn uploads_are_permitted_for_one_size_and_person_and_the_sink_limits_its_clients() {
    let stage = Stage::start().await;
    let program = stage.log_in().await;
    stage.network.say(&stage.wx_id, "hello").await;
    let heard = program.poll("").await;
    let message = &heard["msgs"][0];
    let ask = |size: u64| {
        json!({
            "filekey": "00112233445566778899aabbccddeeff", "media_type": 3, "to_user_id": message["from_user_id"],
            "rawsize": size, "rawfilemd5": "cca24504019bf1f5b8247e6ed7483563", "filesize": (size / 16 + 1) * 16,
            "aeskey": "00112233445566778899aabbccddeeff", "no_need_thumb": true,
        })
    };
    let (_, oversize) = program.call("getuploadurl", ask(51 << 20)).await;
    assert_eq!(oversize["ret"], -2);
    let (_, permitted) = program.call("getuploadurl", ask(5)).await;
    let url = permitted["upload_full_url"].as_str().unwrap();
    let path = url.split_once("/c2c/").expect("an address of the hub").1;
    let put = async |path: String, bytes: Vec<u8>| -> (u16, String) {
        #[expect(clippy::disallowed_methods, reason = "a test calls the server from outside")]
        let request = reqwest::Client::new().post(format!("{}/c2c/{path}", stage.hub.url)).body(bytes);
        let answer = request.send().await.unwrap();
        let param = answer.headers().get("x-encrypted-param").map(|value| value.to_str().unwrap().to_owned());
        (answer.status().as_u16(), param.unwrap_or_default())
    };
    assert_eq!(put("upload?encrypted_query_param=x&filekey=y".to_owned(), vec![0; 16]).await.0, 413);
    assert_eq!(put(path.to_owned(), vec![0; 32]).await.0, 413);
    assert_eq!(put(path.to_owned(), vec![0; 16]).await.0, 400, "bytes that the key does not open");
    let sealed =
        [0xe9, 0xc3, 0x80, 0x60, 0x30, 0x42, 0x36, 0xca, 0x71, 0xab, 0x80, 0x83, 0x3c, 0x3e, 0x49, 0x9c];
    let (status, param) = put(path.to_owned(), sealed.to_vec()).await;
    assert_eq!(status, 200);
    assert_eq!(
        put(path.to_owned(), sealed.to_vec()).await,
        (400, String::new()),
        "a permit is good for one file"
    );
    let send = async |param: &str| {
        let mut body = reply(message, param, "");
        body["msg"]["item_list"] = json!([{ "type": 4, "file_item": {
            "media": { "encrypt_query_param": param, "aes_key": "x", "encrypt_type": 1 },
            "file_name": "a.txt", "len": "5" } }]);
        program.call("sendmessage", body).await.1
    };
    assert_eq!(send(&format!("{param}0")).await["ret"], -2);
    assert_eq!(send(&param).await["ret"], 0);
    let shown = stage.outbound(1).await;
    assert_eq!((&shown[0]["media"]["file_name"], &shown[0]["opened"]), (&json!("a.txt"), &json!(true)));

    let (status, answer, _) = stage
        .ada
        .call(Method::PUT, &format!("{}/ilink", stage.channel_path()), Some(json!({ "max_clients": 1 })))
        .await;
    assert!(status.is_success(), "{answer}");
    let stranger = Caller::stranger(&stage.hub.url);
    let (_, qr, _) =
        stranger.call(Method::POST, "/ilink/bot/get_bot_qrcode?bot_type=3", Some(json!({}))).await;
    let login = stage.open(qr["qrcode_img_content"].as_str().unwrap()).await;
    let body = json!({ "login_id": login, "channel_id": stage.channel });
    stage.ada.refused("/api/ilink/logins/confirm", body.clone(), 409, "CONFLICT").await;
    stranger.refused("/api/ilink/logins/confirm", body, 401, "UNAUTHORIZED").await;
    stage.ada.post("/api/ilink/logins/reject", json!({ "login_id": login })).await;
    let path = format!("/ilink/bot/get_qrcode_status?qrcode={}", qr["qrcode"].as_str().unwrap());
    let (_, status, _) = stranger.call(Method::GET, &path, None).await;
    assert_eq!(status["status"], "expired");
    let off = json!({ "enabled": false });
    stage.ada.call(Method::PUT, &format!("{}/ilink", stage.channel_path()), Some(off)).await;
    assert!(is_expired(&program.poll("").await), "the sink is off");
}
