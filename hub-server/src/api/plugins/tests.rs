//! The marketplace through the whole application: authors, an administrator, owners of channels.

use hub_core::{id::BotId, plugins::manifest::MAX_SOURCE};
use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{App, Caller, Reply};

/// Ada, who came first and so administrates, Bob who writes plugins, and Eve; each with a bot and a channel.
struct Fixture {
    app: App,
}

struct Person<'a> {
    is: Caller<'a>,
    bot: BotId,
    channel: String,
}

impl Fixture {
    async fn new() -> Self {
        Self { app: App::new().await }
    }

    async fn person(&self, name: &str, number: u128) -> Person<'_> {
        let is = self.app.user(name).await;
        let bot = BotId::from_u128(number);
        let insert = format!(
            "INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id,
                credentials, credentials_rev, cursor, config_rev, lease_fence, created_at)
            SELECT '{bot}', id, 'b', 'sim', 'online', 0, '', '', '', 0, '', 0, 0, 0 FROM users
            WHERE username = '{name}'"
        );
        let store = &self.app.hub.context().store;
        store.write(move |tx| Box::pin(async move { tx.channels().execute(insert).await })).await.unwrap();
        let made = is.post(&format!("/api/bots/{bot}/channels"), &json!({ "name": "orders" })).await;
        let channel = made.data()["id"].as_str().unwrap().to_owned();
        Person { is, bot, channel }
    }

    async fn people(&self) -> (Person<'_>, Person<'_>, Person<'_>) {
        (self.person("ada", 1).await, self.person("bob", 2).await, self.person("eve", 3).await)
    }
}

impl Person<'_> {
    async fn submit(&self, script: &str) -> Reply {
        self.is.post("/api/plugins", &json!({ "script": script })).await
    }

    async fn put(&self, path: &str, body: Value) -> Reply {
        self.is.send(Method::PUT, path, |request| request.body_json(&body)).await
    }

    async fn delete(&self, path: &str) -> Reply {
        self.is.send(Method::DELETE, path, |request| request).await
    }

    async fn approve(&self, id: &str, hash: Option<&str>) -> Reply {
        self.is.post(&format!("/api/admin/plugins/{id}/approve"), &json!({ "content_hash": hash })).await
    }

    async fn reject(&self, id: &str, reason: &str) -> Reply {
        self.is.post(&format!("/api/admin/plugins/{id}/reject"), &json!({ "reason": reason })).await
    }

    fn plugins(&self, rest: &str) -> String {
        format!("/api/bots/{}/channels/{}/plugins{rest}", self.bot, self.channel)
    }

    async fn install(&self, body: Value) -> Reply {
        self.is.post(&self.plugins("/install"), &body).await
    }

    /// Names, versions and places of what is installed.
    async fn installed(&self) -> Vec<String> {
        let list = self.is.get(&self.plugins("")).await;
        let show = |item: &Value| {
            let text = |name: &str| item[name].as_str().unwrap().to_owned();
            format!("{} {} {}", item["position"], text("name"), text("version"))
        };
        list.data()["items"].as_array().unwrap().iter().map(show).collect()
    }

    async fn listed(&self, query: &str) -> Vec<String> {
        let list = self.is.get(&format!("/api/plugins{query}")).await;
        let items = list.data()["items"].as_array().unwrap();
        items.iter().map(|item| format!("{} {}", item["name"], item["version"]).replace('"', "")).collect()
    }
}

fn script(name: &str, version: &str) -> String {
    format!(
        "// ==UserScript==\n// @name {name}\n// @version {version}\n// @description marks orders\n// @match text\n\
         // @connect api.example.com\n// ==/UserScript==\nfunction onRequest(ctx) {{ ctx.v = '{version}'; }}\n"
    )
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[tokio::test]
async fn a_plugin_is_reviewed_before_others_see_it() {
    let fixture = Fixture::new().await;
    let (ada, bob, eve) = fixture.people().await;
    let made = bob.submit(&script("tagger", "1.0")).await;
    let plugin = made.data();
    for (name, wanted) in [("name", "tagger"), ("version", "1.0"), ("author", "bob"), ("status", "pending")] {
        assert_eq!(text(plugin, name), wanted);
    }
    assert_eq!(text(plugin, "description"), "marks orders");
    assert_eq!((&plugin["matches"], &plugin["timeout_ms"]), (&json!(["text"]), &json!(5000)));
    assert_eq!(plugin["connects"], json!(["api.example.com"]));
    assert_eq!(plugin["pending_version"]["content_hash"], plugin["content_hash"]);
    assert!(plugin.get("approved_version").is_none());
    let id = text(plugin, "id").to_owned();
    let path = format!("/api/plugins/{id}");

    // Only its author and reviewers can see it.
    assert!(eve.listed("").await.is_empty() && bob.listed("").await.is_empty());
    assert_eq!(bob.listed("?mine=true").await, ["tagger 1.0"]);
    eve.is.get(&path).await.error(404, "NOT_FOUND");
    eve.install(json!({ "plugin_id": id })).await.error(404, "NOT_FOUND");
    eve.put(&path, json!({ "script": script("tagger", "6") })).await.error(404, "NOT_FOUND");
    eve.delete(&path).await.error(404, "NOT_FOUND");
    assert_eq!(text(bob.is.get(&path).await.data(), "script"), script("tagger", "1.0"));
    assert_eq!(text(ada.is.get(&path).await.data(), "status"), "pending");
    // Its author may try it.
    assert_eq!(text(bob.install(json!({ "plugin_id": id })).await.data(), "status"), "pending");

    // Reviewing is for administrators.
    bob.approve(&id, None).await.error(403, "FORBIDDEN");
    eve.reject(&id, "no").await.error(403, "FORBIDDEN");
    bob.is.get("/api/admin/plugins/pending").await.error(403, "FORBIDDEN");
    let queue = ada.is.get("/api/admin/plugins/pending").await;
    let waits = &queue.data()["items"][0];
    assert_eq!((text(waits, "id"), text(waits, "author")), (&*id, "bob"));
    assert_eq!(text(waits, "script"), script("tagger", "1.0"));
    assert!(text(waits, "diff").contains("+function onRequest(ctx)"), "{waits}");
    let words = waits["permissions"]["words"].to_string();
    assert!(words.contains("api.example.com") && words.contains("these types: text"), "{words}");

    let approved = ada.approve(&id, Some(text(waits, "content_hash"))).await;
    assert_eq!(
        (text(approved.data(), "status"), text(approved.data(), "approved_version")),
        ("approved", "1.0")
    );
    assert_eq!(eve.listed("").await, ["tagger 1.0"]);
    assert_eq!(text(eve.is.get(&path).await.data(), "status"), "approved");
    assert_eq!(ada.is.get("/api/admin/plugins/pending").await.data()["items"], json!([]));
    ada.approve(&id, None).await.error(409, "CONFLICT");
    ada.reject(&id, "too late").await.error(409, "CONFLICT");
    for wrong in ["plg_01BX5ZZKBKACTAV9WEVGEMMVRZ", "plv_01BX5ZZKBKACTAV9WEVGEMMVRZ", "x"] {
        ada.approve(wrong, None).await.error(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn the_approved_version_is_the_reviewed_one_and_runs() {
    let fixture = Fixture::new().await;
    let (ada, bob, eve) = fixture.people().await;
    let first = bob.submit(&script("tagger", "1.0")).await.data().clone();
    let id = text(&first, "id").to_owned();
    let path = format!("/api/plugins/{id}");
    // Another version comes between the look and the click.
    let second =
        bob.put(&path, json!({ "script": script("tagger", "1.0") + "// and more" })).await.data().clone();
    assert_ne!(first["content_hash"], second["content_hash"]);
    ada.approve(&id, Some(text(&first, "content_hash"))).await.error(409, "CONFLICT");
    ada.approve(text(&first, "version_id"), None).await.error(409, "CONFLICT");
    ada.approve(text(&second, "version_id"), Some(text(&second, "content_hash"))).await.data();
    let installed = eve.install(json!({ "plugin_id": id })).await.data().clone();
    assert_eq!(installed["content_hash"], second["content_hash"]);

    // A newer version waits, and nothing changes for who has the approved one.
    let third = bob.put(&path, json!({ "script": script("tagger", "2.0") })).await.data().clone();
    assert_eq!((text(&third, "status"), text(&third, "approved_version")), ("pending", "1.0"));
    assert_eq!(text(&third, "latest_version"), "2.0");
    assert_eq!(eve.listed("").await, ["tagger 1.0"]);
    eve.install(json!({ "plugin_id": id, "version": "2.0" })).await.error(404, "NOT_FOUND");
    let queue = ada.is.get("/api/admin/plugins/pending").await;
    let waits = &queue.data()["items"][0];
    assert_eq!(text(waits, "replaces"), "1.0");
    assert!(text(waits, "diff").contains("-// and more") || text(waits, "diff").contains("-// @version 1.0"));
    let rejected = ada.reject(&id, "asks for too much").await.data().clone();
    assert_eq!((text(&rejected, "status"), text(&rejected, "reason")), ("rejected", "asks for too much"));
    assert_eq!(text(bob.is.get(&path).await.data(), "reason"), "asks for too much");
    assert_eq!(text(eve.is.get(&path).await.data(), "status"), "approved");
    // The next one is approved; who installed stays at the version they have until they move.
    bob.put(&path, json!({ "script": script("tagger", "3.0") })).await.data();
    ada.approve(&id, None).await.data();
    assert_eq!(eve.installed().await, ["0 tagger 1.0"]);
    eve.install(json!({ "plugin_id": id })).await.data();
    assert_eq!(eve.installed().await, ["0 tagger 3.0"]);
    eve.put(&eve.plugins(&format!("/{id}")), json!({ "version": "1.0" })).await.data();
    assert_eq!(eve.installed().await, ["0 tagger 1.0"]);
    let states: Vec<String> = bob.is.get(&path).await.data()["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| format!("{} {}", text(version, "version"), text(version, "status")))
        .collect();
    assert_eq!(states, ["3.0 approved", "2.0 rejected", "1.0 approved", "1.0 superseded"]);
    let seen = eve.is.get(&path).await.data()["versions"].as_array().unwrap().len();
    assert_eq!(seen, 2, "only what was approved is shown to others");
}

#[tokio::test]
async fn a_name_belongs_to_its_first_author_and_a_form_does_not_contradict() {
    let fixture = Fixture::new().await;
    let (_, bob, eve) = fixture.people().await;
    let id = text(bob.submit(&script("Tagger", "1")).await.data(), "id").to_owned();
    for name in ["Tagger", "TAGGER", "ｔａｇｇｅｒ"] {
        eve.submit(&script(name, "1")).await.error(409, "CONFLICT");
    }
    bob.submit(&script("tagger", "2")).await.error(409, "CONFLICT");
    let path = format!("/api/plugins/{id}");
    let error = bob.put(&path, json!({ "script": script("other", "2") })).await;
    assert_eq!(error.error(400, "INVALID_PARAMS")["details"][0]["field"], "name");
    for (field, value) in [("name", "other"), ("version", "9"), ("description", "x")] {
        let mut body = json!({ "script": script("mine", "1") });
        body[field] = json!(value);
        let reply = eve.is.post("/api/plugins", &body).await;
        assert_eq!(reply.error(400, "INVALID_PARAMS")["details"][0]["field"], field);
    }
    // What the block leaves out is what the form says.
    let bare = "// ==UserScript==\n// ==/UserScript==\nfunction onRequest() {}";
    let error = eve.submit(bare).await;
    assert!(text(error.error(400, "INVALID_PARAMS"), "message").contains("@name"));
    let body = json!({ "script": bare, "name": "mine", "version": "7", "description": "d" });
    let made = eve.is.post("/api/plugins", &body).await;
    assert_eq!((text(made.data(), "name"), text(made.data(), "version")), ("mine", "7"));
    let again = eve.is.clone().with("Idempotency-Key", "k");
    let body = json!({ "script": script("twice", "1") });
    let first = again.post("/api/plugins", &body).await.data()["id"].clone();
    assert_eq!(again.post("/api/plugins", &body).await.data()["id"], first);
}

#[tokio::test]
async fn bad_sources_are_refused_with_their_lines() {
    let fixture = Fixture::new().await;
    let bob = fixture.person("bob", 1).await;
    let big = script("big", "1") + &" ".repeat(MAX_SOURCE);
    for (source, says) in [
        ("function onRequest() {}".to_owned(), "metadata block"),
        (big, "at most 262144 bytes"),
        (script("x", "1").replace("@match text", "@timeout 20000"), "line 5: @timeout"),
        (script("x", "1").replace("@match text", "@name y"), "line 5: @name is in line 2"),
        (script("x", "1").replace("@match text", "@grant reply"), "line 5: @grant must be none"),
        (script("x", "1").replace("api.example.com", "*"), "line 6: @connect *"),
        (script("x", "1").replace("// ==/UserScript==", ""), "line 8: every line of the metadata block"),
    ] {
        let reply = bob.submit(&source).await;
        let error = reply.error(400, "INVALID_PARAMS");
        assert_eq!(error["details"][0]["field"], "script", "{error}");
        assert!(text(error, "message").contains(says), "{says}: {error}");
    }
    assert!(bob.listed("?mine=true").await.is_empty());
}

#[tokio::test]
async fn a_channels_plugins_have_an_order() {
    let fixture = Fixture::new().await;
    let (_, bob, eve) = fixture.people().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(text(bob.submit(&script(name, "1")).await.data(), "id").to_owned());
    }
    for id in &ids {
        bob.install(json!({ "plugin_id": id })).await.data();
    }
    assert_eq!(bob.installed().await, ["0 a 1", "1 b 1", "2 c 1"]);
    let of = |id: &str| bob.plugins(&format!("/{id}"));
    bob.put(&of(&ids[2]), json!({ "position": 0 })).await.data();
    assert_eq!(bob.installed().await, ["0 c 1", "1 a 1", "2 b 1"]);
    let off = bob.put(&of(&ids[0]), json!({ "enabled": false, "position": 99 })).await.data().clone();
    assert_eq!((&off["enabled"], &off["position"]), (&json!(false), &json!(2)));
    assert_eq!(bob.installed().await, ["0 c 1", "1 b 1", "2 a 1"]);
    bob.delete(&of(&ids[1])).await.data();
    bob.delete(&of(&ids[1])).await.error(404, "NOT_FOUND");
    bob.put(&of(&ids[1]), json!({ "enabled": true })).await.error(404, "NOT_FOUND");
    assert_eq!(bob.installed().await, ["0 c 1", "1 a 1"]);
    bob.install(json!({ "plugin_id": ids[1], "position": 1 })).await.data();
    assert_eq!(bob.installed().await, ["0 c 1", "1 b 1", "2 a 1"]);
    // The channel shows them too, and a page ends where it should.
    let channel = bob.is.get(&format!("/api/bots/{}/channels/{}", bob.bot, bob.channel)).await;
    let shown: Vec<&str> =
        channel.data()["plugins"].as_array().unwrap().iter().map(|plugin| text(plugin, "name")).collect();
    assert_eq!(shown, ["c", "b", "a"]);
    let page = bob.is.get(&bob.plugins("?limit=2")).await.data().clone();
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let rest = bob.is.get(&bob.plugins(&format!("?cursor={}", text(&page, "next_cursor")))).await;
    assert_eq!(text(&rest.data()["items"][0], "name"), "a");
    // Other people's channels do not exist.
    eve.is.get(&bob.plugins("")).await.error(404, "NOT_FOUND");
    eve.is.post(&bob.plugins("/install"), &json!({ "plugin_id": ids[0] })).await.error(404, "NOT_FOUND");
    for number in 0..14 {
        let id = text(bob.submit(&script(&format!("n{number}"), "1")).await.data(), "id").to_owned();
        let reply = bob.install(json!({ "plugin_id": id })).await;
        if number < 13 {
            reply.data()
        } else {
            reply.error(409, "CONFLICT")
        };
    }
}

#[tokio::test]
async fn a_plugin_in_use_is_not_deleted() {
    let fixture = Fixture::new().await;
    let (ada, bob, eve) = fixture.people().await;
    let made = bob.submit(&script("tagger", "1")).await.data().clone();
    let (id, version) = (text(&made, "id"), text(&made, "version_id"));
    let path = format!("/api/plugins/{id}");
    ada.approve(id, None).await.data();
    bob.install(json!({ "plugin_id": id })).await.data();
    eve.install(json!({ "plugin_id": id })).await.data();
    assert_eq!(bob.is.get(&path).await.data()["installs"], 2);
    bob.delete(&path).await.error(409, "CONFLICT");
    bob.delete(&format!("/api/plugins/{version}")).await.error(409, "CONFLICT");
    eve.delete(&format!("/api/plugins/{version}")).await.error(404, "NOT_FOUND");
    // An administrator takes a version back: it is there, and runs no more.
    ada.reject(version, "sends messages elsewhere").await.data();
    eve.is.get(&path).await.error(404, "NOT_FOUND");
    let list = eve.is.get(&eve.plugins("")).await.data().clone();
    let item = &list["items"][0];
    assert_eq!((text(item, "status"), text(item, "reason")), ("withdrawn", "sends messages elsewhere"));
    eve.install(json!({ "plugin_id": id })).await.error(404, "NOT_FOUND");
    bob.install(json!({ "plugin_id": id })).await.error(409, "CONFLICT");
    ada.delete(&path).await.data();
    assert!(eve.installed().await.is_empty());
    // Without others the author deletes, and takes versions back, as they like.
    let made = bob.submit(&script("tagger", "1")).await.data().clone();
    let (id, version) = (text(&made, "id"), text(&made, "version_id"));
    bob.install(json!({ "plugin_id": id })).await.data();
    bob.delete(&format!("/api/plugins/{version}")).await.data();
    bob.delete(&format!("/api/plugins/{version}")).await.error(409, "CONFLICT");
    assert_eq!(text(bob.is.get(&format!("/api/plugins/{id}")).await.data(), "status"), "withdrawn");
    ada.approve(version, None).await.error(409, "CONFLICT");
    bob.delete(&format!("/api/plugins/{id}")).await.data();
    assert!(bob.installed().await.is_empty() && bob.listed("?mine=true").await.is_empty());
    for (reason, status) in [("", 400), ("  ", 400)] {
        let id = text(bob.submit(&script(&format!("r{}", reason.len()), "1")).await.data(), "id").to_owned();
        assert_eq!(
            ada.reject(&id, reason).await.error(status, "INVALID_PARAMS")["details"][0]["field"],
            "reason"
        );
    }
}

#[tokio::test]
async fn a_hook_is_tried_without_sending_anything() {
    let fixture = Fixture::new().await;
    let (_, bob, eve) = fixture.people().await;
    let path = |hook: &str| format!("/api/webhooks/{}/debug/{hook}", bob.channel);
    let message = json!({ "content": "order 42", "sender": { "user_id": "ann", "user_name": "Ann" } });
    let ask = async |script: &str| {
        let body = json!({ "script": script, "message": message });
        bob.is.post(&path("request"), &body).await.data().clone()
    };
    let tried = ask(
        "function onRequest(ctx) { console.log(ctx.msg.sender.user_name); ctx.req.body.n = 1; ctx.reply('seen'); }",
    )
    .await;
    assert_eq!(tried["replies"], json!([{ "type": "text", "text": "seen" }]));
    assert_eq!(
        (&tried["request"]["body"]["n"], &tried["before"]["body"]["content"]),
        (&json!(1), &json!("order 42"))
    );
    assert_eq!((&tried["logs"][0]["text"], &tried["skipped"]), (&json!("Ann"), &json!(false)));
    assert_eq!((&tried["error"], &tried["matched"]), (&Value::Null, &json!(true)));
    assert!(tried["memory_bytes"].as_u64().unwrap() > 0 && tried["duration_ms"].is_number());
    assert_eq!(tried["permissions"]["grants"], json!(["reply", "skip"]));
    let skipped = ask("function onRequest(ctx) { ctx.skip(); }").await;
    assert_eq!((&skipped["skipped"], &skipped["request"]), (&json!(true), &Value::Null));
    // What the plugin does wrong is an answer like any other.
    for (script, kind) in [
        ("function onRequest(ctx) {\n  ctx.no.such = 1;\n}", "throw"),
        ("function onRequest(ctx) {", "syntax"),
        ("function onRequest(ctx) { ctx.req.url = 'http://evil.test/'; }", "blocked_url"),
        ("function onRequest(ctx) { ctx.req.headers.Host = 'x'; }", "output"),
        ("function onRequest(ctx) { eval('1'); }", "throw"),
    ] {
        let tried = ask(script).await;
        assert_eq!(tried["error"]["kind"], kind, "{tried}");
        assert!(tried["request"].is_null(), "{tried}");
    }
    let images = "// ==UserScript==\n// @match image\n// ==/UserScript==\nfunction onRequest() { throw 1; }";
    assert_eq!(ask(images).await["matched"], false);
    let body = json!({ "script": "function onResponse(ctx) { ctx.reply(ctx.res.status + ctx.res.body); }",
        "response": { "status": 500, "body": "oops" } });
    let tried = bob.is.post(&path("response"), &body).await.data().clone();
    assert_eq!(tried["replies"], json!([{ "type": "text", "text": "500oops" }]));
    // Bad metadata and other people's channels are refused.
    let bad =
        json!({ "script": "// ==UserScript==\n// @timeout 99999\n// ==/UserScript==", "message": message });
    bob.is.post(&path("request"), &bad).await.error(400, "INVALID_PARAMS");
    let body = json!({ "script": "1", "response": { "status": 99, "body": "" } });
    bob.is.post(&path("response"), &body).await.error(400, "INVALID_PARAMS");
    let body = json!({ "script": "1", "message": message });
    eve.is.post(&path("request"), &body).await.error(404, "NOT_FOUND");
}

#[tokio::test]
async fn trying_has_a_quota_of_its_own() {
    let app = App::with(|values| values.rate_limits.debug = 2.try_into().unwrap()).await;
    let fixture = Fixture { app };
    let bob = fixture.person("bob", 1).await;
    let path = format!("/api/webhooks/{}/debug/request", bob.channel);
    let body = json!({ "script": "1", "message": { "content": "x", "sender": { "user_id": "a", "user_name": "" } } });
    bob.is.post(&path, &body).await.data();
    bob.is.post(&path, &body).await.data();
    let refused = bob.is.post(&path, &body).await;
    refused.error(429, "RATE_LIMITED");
    assert!(refused.header("retry-after").is_some());
    bob.is.get("/api/plugins").await.data();
}

#[tokio::test]
async fn a_bad_debug_body_names_its_broken_fields_and_no_others() {
    let fixture = Fixture::new().await;
    let bob = fixture.person("bob", 1).await;
    let path = format!("/api/webhooks/{}/debug/response", bob.channel);
    for (response, expected) in [
        (json!({ "status": 200, "body": null }), vec!["response.body"]),
        (
            json!({ "status": "200", "body": "", "headers": { "a": 1 } }),
            vec!["response.status", "response.headers.a"],
        ),
        (json!({ "status": 200, "bodi": "" }), vec!["response.body", "response.bodi"]),
    ] {
        let reply = bob.is.post(&path, &json!({ "script": "1", "response": response })).await;
        let details = reply.error(400, "INVALID_PARAMS")["details"].as_array().unwrap();
        let fields: Vec<_> = details.iter().map(|detail| detail["field"].as_str().unwrap()).collect();
        assert_eq!(fields, expected);
    }
}
