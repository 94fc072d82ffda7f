//! The pages of a channel.

use serde_json::Value;

use super::tests::{hidden, submit, text};
use crate::testing::{App, Caller, bind};

/// Ann's bot and a channel of it, made with the forms; gives the address of the channel's page, and that of the API.
pub(super) async fn channel(
    ann: &Caller<'_>,
    simulator: &hub_core::network::sim::Simulator,
) -> (String, String) {
    let bot = bind(ann, simulator, None).await["id"].as_str().unwrap().to_owned();
    let address = format!("/console/bots/{bot}");
    let page = text(&ann.get(&address).await);
    let fields = [("do", "create_channel"), ("name", "<b>orders</b>"), ("once", hidden(&page, "once"))];
    let created = submit(&ann.clone().with("Accept-Encoding", "gzip"), &address, &fields).await;
    let page = text(&created);
    assert_eq!(
        (created.response.status().as_u16(), created.header("content-encoding")),
        (200, None),
        "{page}"
    );
    let key = page.split("<code data-computed>").nth(1).unwrap().split('<').next().unwrap();
    assert!(key.starts_with("hubc_"), "{page}");
    let again = text(&submit(ann, &address, &fields).await);
    assert!(again.contains(key), "sent again, the form gives the same key");
    let listed = ann.get(&format!("/api/bots/{bot}/channels")).await;
    let items = listed.data()["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{}", listed.json);
    let id = items[0]["id"].as_str().unwrap();
    assert!(!text(&ann.get(&address).await).contains(key));
    (format!("{address}/channels/{id}"), format!("/api/bots/{bot}/channels/{id}"))
}

/// The channel as the API shows it.
async fn stored(ann: &Caller<'_>, api: &str) -> Value {
    ann.get(api).await.data().clone()
}

#[tokio::test]
async fn a_channel_is_created_switched_renamed_and_deleted() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let (page, api) = channel(&ann, &simulator).await;
    let shown = text(&ann.get(&page).await);
    assert!(shown.contains("<h1><bdi>&lt;b&gt;orders&lt;/b&gt;</bdi></h1>"), "{shown}");
    assert!(shown.contains("Every message passes.") && !shown.contains("<b>"), "{shown}");

    let off = [("do", "save"), ("enabled", "false")];
    let reply = submit(&ann, &format!("{page}/websocket"), &off).await;
    assert_eq!(reply.response.status(), 303);
    assert!(text(&ann.get(&page).await).contains("This channel delivers nowhere: every sink is off."));
    let reply = submit(&ann, &page, &[("do", "update"), ("enabled", "false")]).await;
    assert_eq!(reply.header("location"), Some(&*format!("{page}?done=updateChannel")));
    assert!(text(&ann.get(&page).await).contains("This channel is off"));

    let settings = format!("{page}/settings");
    let fields = [
        ("do", "update"),
        ("name", "订单"),
        ("handle.clear", "true"),
        ("handle", "shop"),
        ("enabled", "false"),
        ("enabled", "true"),
        ("on_plugin_error", "drop"),
        ("lane_hold_s", "0"),
    ];
    assert_eq!(submit(&ann, &settings, &fields).await.response.status(), 303);
    let now = stored(&ann, &api).await;
    assert_eq!(
        (&now["name"], &now["handle"], &now["enabled"]),
        (&"订单".into(), &"shop".into(), &true.into())
    );
    assert_eq!((&now["on_plugin_error"], &now["lane_hold_s"]), (&"drop".into(), &0.into()));
    let fields = [("do", "update"), ("name", "订单"), ("handle.clear", "true"), ("handle", "")];
    assert_eq!(submit(&ann, &settings, &fields).await.response.status(), 303);
    assert_eq!(stored(&ann, &api).await["handle"], Value::Null);

    let reply = submit(&ann, &settings, &[("do", "update"), ("name", "订单"), ("lane_hold_s", "soon")]).await;
    assert_eq!(reply.response.status(), 400);
    let refused = text(&reply);
    assert!(
        refused.contains("id=\"update-lane_hold_s-problem\"") && refused.contains("value=\"soon\""),
        "{refused}"
    );
    let long = "x".repeat(65);
    let fields = [("do", "update"), ("name", &*long), ("handle.clear", "true"), ("handle", "No!")];
    let refused = text(&submit(&ann, &settings, &fields).await);
    for field in ["name", "handle"] {
        assert!(refused.contains(&format!("id=\"update-{field}-problem\"")), "{field}: {refused}");
    }
    assert!(refused.contains("value=\"No!\""), "{refused}");

    let question = text(&ann.get(&format!("{settings}?ask=delete")).await);
    assert!(question.contains("Delete channel 订单"), "{question}");
    let reply = submit(&ann, &settings, &[("do", "delete")]).await;
    assert!(reply.header("location").unwrap().ends_with("?done=deleteChannel"));
    assert_eq!(ann.get(&page).await.response.status(), 404);
}

#[tokio::test]
async fn a_replaced_key_is_shown_once_with_the_end_of_the_old_one() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let (page, _) = channel(&ann, &simulator).await;
    let reply = submit(&ann, &page, &[("do", "regenerate"), ("grace_hours", "24")]).await;
    let shown = text(&reply);
    assert_eq!(reply.response.status(), 200);
    assert!(shown.contains("hubc_") && shown.contains("The old key stays valid until"), "{shown}");
    let reply = submit(&ann, &page, &[("do", "regenerate"), ("grace_hours", "73")]).await;
    assert_eq!(reply.response.status(), 400);
    assert!(text(&reply).contains("id=\"regenerate-grace_hours-problem\""));
    assert!(
        text(&submit(&ann, &page, &[("do", "regenerate"), ("grace_hours", "")]).await)
            .contains("no longer valid")
    );
}

#[tokio::test]
async fn a_filter_is_saved_in_all_its_parts_and_a_bad_expression_shows_line_and_column() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let (page, api) = channel(&ann, &simulator).await;
    let filter = format!("{page}/filter");
    let fields = [
        ("do", "save"),
        ("message_types", "text"),
        ("message_types", "image"),
        ("keywords", "order\r\n<i>订单</i>\r\n"),
        ("user_ids", "ada@im.wechat"),
        ("match", "any"),
        ("expression", "size(content) < 500"),
    ];
    assert_eq!(submit(&ann, &filter, &fields).await.response.status(), 303);
    let now = stored(&ann, &api).await["filter"].clone();
    let expected = serde_json::json!({
        "user_ids": ["ada@im.wechat"], "keywords": ["order", "<i>订单</i>"], "message_types": ["text", "image"],
        "match": "any", "expression": "size(content) < 500",
    });
    assert_eq!(now, expected);
    let shown = text(&ann.get(&filter).await);
    assert!(shown.contains("if one of this is true") && shown.contains("&lt;i&gt;订单&lt;/i&gt;"), "{shown}");
    assert!(
        shown.contains("value=\"image\" checked") && !shown.contains("value=\"video\" checked"),
        "{shown}"
    );

    let fields = [("do", "save"), ("message_types", "video"), ("expression", "true &&\n  content ==")];
    let reply = submit(&ann, &filter, &fields).await;
    let refused = text(&reply);
    assert_eq!(reply.response.status(), 400);
    assert!(
        refused.contains("id=\"save-expression-problem\"") && refused.contains("(line 2, column "),
        "{refused}"
    );
    assert!(
        refused.contains("value=\"video\" checked") && !refused.contains("value=\"image\" checked"),
        "{refused}"
    );
    assert_eq!(submit(&ann, &filter, &[("do", "save")]).await.response.status(), 303);
    assert_eq!(stored(&ann, &api).await["filter"]["match"], "all", "an empty form lets every message pass");
}

#[tokio::test]
async fn a_webhook_gets_a_secret_once_and_its_test_names_the_phase_that_failed() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let (page, api) = channel(&ann, &simulator).await;
    let webhook = format!("{page}/webhook");
    let refused = submit(&ann, &webhook, &[("do", "test")]).await;
    assert_eq!(refused.response.status(), 400);

    let url = ("url", "https://receiver.invalid/hook?<b>");
    let fields = [
        ("do", "save"),
        url,
        ("enabled", "true"),
        ("auth.method", "hmac"),
        ("auth.header_name", ""),
        ("auth.secret", ""),
        ("retry.schedule_s", "5\n30"),
        ("ordering", "none"),
        ("timeout_ms", "2000"),
        ("max_concurrency", "3"),
        ("rate_limit_per_s", ""),
        ("auto_reply", "false"),
        ("auto_reply", "true"),
    ];
    let saved = submit(&ann, &webhook, &fields).await;
    let once = text(&saved);
    assert_eq!((saved.response.status().as_u16(), saved.header("content-encoding")), (200, None), "{once}");
    let secret = once.split("<code data-computed>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    assert!(!text(&ann.get(&webhook).await).contains(&secret));
    let now = stored(&ann, &api).await["webhook"].clone();
    assert_eq!(
        (&now["retry"]["schedule_s"], &now["ordering"]),
        (&serde_json::json!([5, 30]), &"none".into())
    );
    assert_eq!((&now["auth"]["has_secret"], &now["auto_reply"]), (&true.into(), &true.into()));

    let api_test = ann.post(&format!("{api}/webhook/test"), &Value::Null).await;
    let step = &api_test.data()["steps"][0]["detail"];
    assert_eq!(step["error"]["phase"], "dns", "{step}");
    assert_eq!(step["phases"], serde_json::json!({}), "{step}");
    let tested = submit(&ann, &webhook, &[("do", "test")]).await;
    let shown = text(&tested);
    assert_eq!(tested.response.status(), 200, "{shown}");
    assert!(shown.contains("The test was not delivered") && shown.contains("Failed at DNS"), "{shown}");
    assert!(!shown.contains(&secret) && !shown.contains("<b>"), "{shown}");

    let fields =
        [("do", "save"), url, ("auth.method", "none"), ("auth.secret.clear", "true"), ("auth.secret", "")];
    assert_eq!(submit(&ann, &webhook, &fields).await.response.status(), 303);
    assert_eq!(stored(&ann, &api).await["webhook"]["auth"]["has_secret"], false);
}

#[tokio::test]
async fn a_private_address_is_refused_with_the_setting_that_allows_it() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let (page, api) = channel(&ann, &simulator).await;
    let fields = [
        ("do", "save"),
        ("url", "http://127.0.0.1:3000/hook"),
        ("auth.method", "hmac"),
        ("auth.secret", "a typed secret"),
        ("retry.schedule_s", "soon"),
        ("max_concurrency", "65"),
    ];
    let reply = submit(&ann, &format!("{page}/webhook"), &fields).await;
    assert_eq!(reply.response.status(), 400);
    let schema = text(&reply);
    assert!(
        schema.contains("save-max_concurrency-problem") && schema.contains("save-retry.schedule_s-problem"),
        "{schema}"
    );
    assert!(!schema.contains("a typed secret"), "secrets are typed again");
    let reply = submit(&ann, &format!("{page}/webhook"), &fields[..4]).await;
    let refused = text(&reply);
    assert_eq!(reply.response.status(), 400);
    assert!(refused.contains("<code data-computed>HUB_EGRESS_ALLOW=127.0.0.1:3000</code>"), "{refused}");
    assert!(refused.contains("value=\"http://127.0.0.1:3000/hook\""), "{refused}");
    let chinese = ann.clone().with("Accept-Language", "zh");
    let chinese = text(&submit(&chinese, &format!("{page}/webhook"), &fields[..4]).await);
    for part in [
        "要允许它，请把 127.0.0.1:3000 加入配置项 egress_allow",
        "用 <code data-computed>HUB_EGRESS_ALLOW=127.0.0.1:3000</code> 启动服务器",
    ] {
        assert!(chinese.contains(part), "{part}: {chinese}");
    }
    assert_eq!(stored(&ann, &api).await["webhook"]["url"], Value::Null);
}

#[tokio::test]
async fn the_model_of_a_channel_is_configured_and_its_key_is_never_shown() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let (page, api) = channel(&ann, &simulator).await;
    let ai = format!("{page}/ai");
    let fields = [
        ("do", "save"),
        ("enabled", "true"),
        ("source", "custom"),
        ("base_url", "https://ai.example/v1"),
        ("api_key", "sk-planted"),
        ("model", "m"),
        ("system_prompt", "</textarea><b>"),
        ("max_history", "3"),
        ("max_tokens", ""),
        ("temperature", "0.5"),
        ("timeout_ms", "5000"),
        ("error_reply", "later"),
        ("tools", "true"),
    ];
    assert_eq!(submit(&ann, &ai, &fields).await.response.status(), 303);
    let now = stored(&ann, &api).await["ai"].clone();
    assert_eq!(
        (&now["temperature"], &now["tools"], &now["has_api_key"]),
        (&0.5.into(), &true.into(), &true.into())
    );
    let shown = text(&ann.get(&ai).await);
    assert!(!shown.contains("sk-planted") && shown.contains("&lt;/textarea&gt;&lt;b&gt;"), "{shown}");
    let fields = [("do", "save"), ("source", "custom"), ("temperature", "3"), ("max_history", "x")];
    let refused = text(&submit(&ann, &ai, &fields).await);
    assert!(
        refused.contains("save-temperature-problem") && refused.contains("save-max_history-problem"),
        "{refused}"
    );
}

#[tokio::test]
async fn websocket_origins_and_unknown_plugins_are_refused_next_to_their_fields() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let (page, api) = channel(&ann, &simulator).await;
    let socket = format!("{page}/websocket");
    let fields = [("do", "save"), ("enabled", "true"), ("allowed_origins", "https://app.example/path")];
    let reply = submit(&ann, &socket, &fields).await;
    assert_eq!(reply.response.status(), 400);
    assert!(text(&reply).contains("id=\"save-allowed_origins-problem\""), "{}", text(&reply));
    let fields = [("do", "save"), ("enabled", "true"), ("allowed_origins", "https://app.example\r\n*")];
    assert_eq!(submit(&ann, &socket, &fields).await.response.status(), 303);
    assert_eq!(stored(&ann, &api).await["websocket"]["allowed_origins"][1], "*");
    assert!(text(&ann.get(&socket).await).contains("websocat -H"));

    let plugins = format!("{page}/plugins");
    let reply = submit(&ann, &plugins, &[("do", "install"), ("plugin_id", "tagger")]).await;
    assert_eq!(reply.response.status(), 400);
    assert!(text(&reply).contains("install-plugin_id-problem"), "{}", text(&reply));
}

#[tokio::test]
async fn plugins_of_a_channel_are_installed_moved_switched_and_uninstalled() {
    let (app, simulator) = App::with_simulator().await;
    let ann = app.user("ann").await;
    let (page, api) = channel(&ann, &simulator).await;
    let page = format!("{page}/plugins");
    let mut ids = Vec::new();
    for name in ["first", "second"] {
        let script = format!(
            "// ==UserScript==\n// @name {name}\n// @version 1.0\n// @match text\n// ==/UserScript==\nfunction onRequest(ctx) {{}}\n"
        );
        let submitted = ann.post("/api/plugins", &serde_json::json!({ "script": script })).await;
        let id = submitted.data()["id"].as_str().unwrap().to_owned();
        let reply =
            submit(&ann, &page, &[("do", "install"), ("plugin_id", &id), ("version", ""), ("position", "")])
                .await;
        assert_eq!(reply.response.status(), 303, "{}", text(&reply));
        ids.push(id);
    }
    let shown = text(&ann.get(&page).await);
    assert!(shown.contains("Move second up") && shown.contains("not reviewed: runs only for you"), "{shown}");
    let names = async || {
        let plugins = stored(&ann, &api).await["plugins"].as_array().unwrap().clone();
        plugins.iter().map(|plugin| plugin["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        submit(&ann, &page, &[("do", "change"), ("plugin", &ids[1]), ("position", "0")])
            .await
            .response
            .status(),
        303
    );
    assert_eq!(names().await, ["second", "first"]);
    assert_eq!(
        submit(&ann, &page, &[("do", "change"), ("plugin", &ids[0]), ("enabled", "false")])
            .await
            .response
            .status(),
        303
    );
    assert_eq!(stored(&ann, &api).await["plugins"][1]["enabled"], false);
    assert!(text(&ann.get(&format!("{page}?plugin={}", ids[0])).await).contains("Uninstall first"));
    assert_eq!(submit(&ann, &page, &[("do", "uninstall"), ("plugin", &ids[0])]).await.response.status(), 303);
    assert_eq!(names().await, ["second"]);
    assert_eq!(submit(&ann, &page, &[("do", "uninstall"), ("plugin", &ids[0])]).await.response.status(), 404);
}

#[tokio::test]
async fn channels_of_another_owner_look_like_channels_that_do_not_exist() {
    let (app, simulator) = App::with_simulator().await;
    let (ann, bob) = (app.user("ann").await, app.user("bob").await);
    let (page, api) = channel(&ann, &simulator).await;
    for end in ["", "/filter", "/webhook", "/websocket", "/ai", "/plugins", "/settings"] {
        assert_eq!(bob.get(&format!("{page}{end}")).await.response.status(), 404, "{end}");
    }
    for (end, action) in
        [("", "regenerate"), ("/settings", "delete"), ("/webhook", "test"), ("/filter", "save")]
    {
        assert_eq!(
            submit(&bob, &format!("{page}{end}"), &[("do", action)]).await.response.status(),
            404,
            "{action}"
        );
    }
    assert_eq!(stored(&ann, &api).await["enabled"], true);
}
