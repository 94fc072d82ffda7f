//! The clients of the WebSocket sink, the logins of the iLink sink, and the test of the AI sink.

use hub_core::{
    accounts::ClientInfo,
    channels::log::{Ended, News, Start},
};
use serde_json::Value;

use super::{
    channel_tests::channel,
    tests::{hidden, submit, text},
};
use crate::testing::{App, Caller, Reply};

#[tokio::test]
async fn connected_clients_are_shown_and_disconnected() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let (page, api) = channel(&ann, &simulator).await;
    let websocket = format!("{page}/websocket");
    assert!(text(&ann.get(&websocket).await).contains("No client is connected to this node."));
    let key = ann.post(&format!("{api}/regenerate-key"), &Value::Null).await;
    let key = key.data()["api_key"].as_str().unwrap().to_owned();
    let channels = app.hub.channels();
    let client = channels.authenticate_key(&key).await.unwrap();
    let described = ClientInfo { ip: Some([203, 0, 113, 7].into()), user_agent: "<b>orders</b>".to_owned() };
    let mut listener = channels.connect(&client, Start::Unspecified, described).await.unwrap();
    let listed = ann.get(&format!("{api}/clients")).await.data().clone();
    let found = &listed["clients"][0];
    assert_eq!((&found["address"], &found["user_agent"]), (&"203.0.113.7".into(), &"<b>orders</b>".into()));
    assert_eq!((&found["sent_seq"], found.get("acked_seq"), &found["lag"]), (&0.into(), None, &0.into()));
    assert_eq!(listed["on_other_nodes"], 0);
    bob.get(&format!("{api}/clients")).await.error(404, "NOT_FOUND");

    let shown = text(&ann.get(&websocket).await);
    assert!(shown.contains("203.0.113.7") && shown.contains("&lt;b&gt;orders&lt;/b&gt;"), "{shown}");
    assert!(shown.contains("data-region=\"clients\" data-poll=\"3000\""), "{shown}");
    let fields = [("do", "close"), ("client", hidden(&shown, "client"))];
    assert_eq!(submit(&bob, &websocket, &fields).await.response.status(), 404);
    assert_eq!(submit(&ann, &websocket, &[("do", "close"), ("client", "x")]).await.response.status(), 404);
    let closed = submit(&ann, &websocket, &fields).await;
    assert_eq!(closed.header("location"), Some(&*format!("{websocket}?done=deleteChannelClient")));
    assert_eq!(listener.news(), Some(News::Ended(Ended::Closed)));
    drop(listener);
    let id = hidden(&shown, "client");
    let gone = ann.send(poem::http::Method::DELETE, &format!("{api}/clients/{id}"), |request| request).await;
    gone.error(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_model_of_a_channel_is_asked_one_question() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let (page, api) = channel(&ann, &simulator).await;
    let test = format!("{api}/ai/test");
    let result = ann.post(&test, &Value::Null).await.data().clone();
    assert_eq!((&result["ok"], &result["error"]["class"]), (&false.into(), &"not_asked".into()), "{result}");
    bob.post(&test, &Value::Null).await.error(404, "NOT_FOUND");
    let secret = "sk-a-key-of-the-channel";
    let custom = serde_json::json!({ "source": "custom", "base_url": "http://ai.invalid/v1", "model": "<i>m</i>",
        "api_key": secret, "enabled": true });
    ann.send(poem::http::Method::PUT, &format!("{api}/ai"), |request| request.body_json(&custom))
        .await
        .data();
    let result = ann.post(&test, &Value::Null).await.data().clone();
    assert_eq!(
        (&result["model"], &result["error"]["class"]),
        (&"<i>m</i>".into(), &"dns".into()),
        "{result}"
    );
    let shown = submit(&ann, &format!("{page}/ai"), &[("do", "test")]).await;
    let page = text(&shown);
    assert_eq!(shown.response.status(), 200);
    assert!(page.contains("The model did not respond") && page.contains("<code>dns</code>"), "{page}");
    assert!(page.contains("&lt;i&gt;m&lt;/i&gt;") && !page.contains(secret), "{page}");
}

/// A program shows a code: the link in it, and what it polls with.
async fn shown_code(program: &Caller<'_>) -> (String, String) {
    let code = program.get("/ilink/bot/get_bot_qrcode?bot_type=3").await.json;
    let text = |name: &str| code[name].as_str().unwrap().to_owned();
    (text("qrcode_img_content"), text("qrcode"))
}

/// Opens the page of logins, and sends a form of it.
async fn act(caller: &Caller<'_>, fields: &[(&str, &str)]) -> Reply {
    let page = text(&caller.get("/console/ilink").await);
    let token = [("page_token", hidden(&page, "page_token"))];
    submit(caller, "/console/ilink", &[fields, &token].concat()).await
}

#[tokio::test]
async fn a_login_of_a_program_is_confirmed_for_a_channel_or_a_new_one() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let (page, api) = channel(&ann, &simulator).await;
    let program = app.stranger().with("User-Agent", "agent-host/1.0");
    let (link, qrcode) = shown_code(&program).await;
    let opened = act(&ann, &[("do", "open"), ("login_id", &link)]).await;
    let shown = text(&opened);
    assert!(shown.contains("agent-host/1.0") && shown.contains("· new channel"), "{shown}");
    assert!(!shown.contains("orders"), "the sink of that channel is off: {shown}");
    let login = hidden(&shown, "login_id").to_owned();
    let bot = api.split('/').nth(3).unwrap();
    let new = format!("new:{bot}");
    let confirm = async |caller, channel: &str| {
        let fields = [("do", "confirm"), ("login_id", &*login), ("channel_id", channel)];
        act(caller, &fields).await
    };
    assert_eq!(confirm(&bob, &new).await.response.status(), 404, "the bot of another user");
    let confirmed = confirm(&ann, &new).await;
    assert_eq!(confirmed.header("location"), Some("/console/ilink?done=confirmIlinkLogin"));
    let status = program.get(&format!("/ilink/bot/get_qrcode_status?qrcode={qrcode}")).await.json;
    assert_eq!(status["status"], "confirmed");
    let listed = ann.get(&format!("/api/bots/{bot}/channels")).await.data().clone();
    let names = |listed: &Value| -> Vec<String> {
        let items = listed["items"].as_array().unwrap();
        items.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&listed), ["agent-host", "<b>orders</b>"]);
    // A code is used once, and a used one creates no channel.
    assert_eq!(confirm(&ann, &new).await.response.status(), 400);
    assert_eq!(names(ann.get(&format!("/api/bots/{bot}/channels")).await.data()).len(), 2);

    // A channel whose sink is on can be chosen, and the name of a program that is there already gets a suffix.
    let on = [("do", "save"), ("enabled", "true"), ("max_clients", "1"), ("idle_days", "7")];
    assert_eq!(submit(&ann, &format!("{page}/ilink"), &on).await.response.status(), 303);
    for (channel, count) in [(api.rsplit('/').next().unwrap(), 2), (new.as_str(), 3)] {
        let (link, _) = shown_code(&program).await;
        let opened = act(&ann, &[("do", "open"), ("login_id", &link)]).await;
        let shown = text(&opened);
        assert!(shown.contains("&lt;b&gt;orders&lt;/b&gt;"), "{shown}");
        let fields = [("do", "confirm"), ("login_id", hidden(&shown, "login_id")), ("channel_id", channel)];
        assert_eq!(act(&ann, &fields).await.response.status(), 303);
        let listed = ann.get(&format!("/api/bots/{bot}/channels")).await.data().clone();
        assert_eq!(names(&listed).len(), count, "{listed}");
    }
    let shown = text(&ann.get(&format!("{page}/ilink")).await);
    assert!(shown.contains("agent-host/1.0"), "{shown}");
    let refused = act(&ann, &[("do", "refuse"), ("login_id", "gone")]).await;
    assert_eq!(refused.response.status(), 400);
}
