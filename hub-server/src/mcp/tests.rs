//! `/mcp` through the whole application: Ada's app on Ada's bot, whose person is Ann.

use poem::http::Method;
use serde_json::{Value, json};

use crate::testing::{
    Reply,
    app_on_bot::{BOT, Fixture, Scene, text},
};

const ALL: [&str; 3] = ["message:write", "contact:read", "bot:read"];

impl Scene<'_> {
    async fn ask(&self, method: &str, params: Value) -> Reply {
        self.client().post("/mcp", &question(method, params)).await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let reply = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(reply.response.status(), 200, "{}", reply.json);
        reply.json["result"].clone()
    }

    /// The sentence with which a tool refuses.
    async fn refusal(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        text(&result["content"][0], "text").to_owned()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "written where it is passed")]
fn question(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

fn hello(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } })
}

#[tokio::test]
async fn a_client_says_hello_in_the_version_that_it_speaks() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    for (requested, agreed) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let reply = scene.ask("initialize", hello(requested)).await;
        let result = &reply.json["result"];
        assert_eq!(result["protocolVersion"], agreed, "{}", reply.json);
        assert_eq!((&result["serverInfo"]["name"], &reply.json["id"]), (&json!("message-hub"), &json!(7)));
        assert!(result["capabilities"]["tools"].is_object());
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!((reply.header("mcp-session-id"), reply.header("cache-control")), (None, Some("no-store")));
    }
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let noted = scene.client().post("/mcp", &initialized).await;
    assert_eq!((noted.response.status().as_u16(), noted.bytes.len()), (202, 0));
    let versioned = scene.client().with("MCP-Protocol-Version", "2025-06-18");
    assert_eq!(versioned.post("/mcp", &question("ping", json!({}))).await.json["result"], json!({}));
    let unknown = scene.client().with("MCP-Protocol-Version", "1999-01-01");
    let unknown = unknown.post("/mcp", &question("tools/list", json!({}))).await;
    assert_eq!((unknown.response.status().as_u16(), &unknown.json["error"]["code"]), (400, &json!(-32600)));
}

#[tokio::test]
async fn the_tools_are_listed_with_their_schemas() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let listed = scene.ask("tools/list", json!({})).await;
    let tools = listed.json["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| text(tool, "name")).collect();
    assert_eq!(names, ["send_message", "list_contacts", "get_bot_info"]);
    for tool in tools {
        assert_eq!(
            (&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]),
            (&json!("object"), &json!("object"))
        );
        assert!(tool["description"].is_string() && tool["annotations"]["readOnlyHint"].is_boolean());
    }
    assert!(tools[0]["inputSchema"]["properties"]["to_user_id"].is_object());
}

#[tokio::test]
async fn every_tool_does_what_the_bot_api_does() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let sent =
        scene.call("send_message", json!({ "content": "hello", "base64": null, "unheard_of": 1 })).await;
    let structured = &sent["structuredContent"];
    assert_eq!((&sent["isError"], &structured["success"]), (&json!(false), &json!(true)), "{sent}");
    assert_eq!(serde_json::from_str::<Value>(text(&sent["content"][0], "text")).unwrap(), *structured);
    let messages = scene.ada.get(&format!("/api/bots/{BOT}/messages")).await;
    let message = &messages.data()["items"][0];
    assert_eq!((&message["content"], &message["to_user_id"]), (&json!("hello"), &json!("ann")));
    assert_eq!(message["id"], structured["message_id"]);
    let contacts = scene.call("list_contacts", json!({ "limit": 1 })).await;
    assert_eq!(contacts["structuredContent"]["contacts"][0]["user_name"], "Ann", "{contacts}");
    // Arguments may be left out where nothing is needed.
    let bot = scene.ask("tools/call", json!({ "name": "get_bot_info" })).await;
    assert_eq!(bot.json["result"]["structuredContent"]["bot_id"], BOT.to_string(), "{}", bot.json);
    // Each call is in the log of the app's calls, the message with its trace; recorded after the response.
    let path = format!("/api/bots/{BOT}/apps/{}/api-logs", scene.app_id);
    let mut log = Vec::new();
    for _ in 0..200 {
        log = scene.ada.get(&path).await.data()["items"].as_array().unwrap().clone();
        if log.len() == 3 {
            break;
        }
    }
    let call = log.last().unwrap();
    assert_eq!(
        (text(call, "method"), text(call, "path"), &call["trace_id"]),
        ("POST", "/mcp", &structured["trace_id"])
    );
    assert_eq!(log.len(), 3);
    assert!(text(call, "request_body").contains("send_message"));
}

#[tokio::test]
async fn a_tool_refuses_with_the_hubs_code_and_sentence() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&["message:write"]).await;
    for tool in ["list_contacts", "get_bot_info"] {
        let refusal = scene.refusal(tool, json!({})).await;
        assert!(refusal.starts_with("FORBIDDEN: "), "{refusal}");
    }
    let closed = scene.refusal("send_message", json!({ "to_user_id": "eve", "content": "hi" })).await;
    assert!(closed.starts_with("WINDOW_CLOSED: nothing was sent"), "{closed}");
    for (arguments, field) in [
        (json!({}), "content: "),
        (json!({ "content": 7 }), "content: "),
        (json!({ "base64": "%%%" }), "base64: "),
        (json!({ "url": "http://127.0.0.1/a.png" }), "media.url: "),
        (json!({ "content": "x".repeat(70_000) }), "content: "),
    ] {
        let refusal = scene.refusal("send_message", arguments).await;
        assert!(
            refusal.starts_with("INVALID_PARAMS: ") && refusal.contains(&format!("\n{field}")),
            "{refusal}"
        );
    }
    let messages = scene.ada.get(&format!("/api/bots/{BOT}/messages")).await;
    assert_eq!(messages.data()["items"], json!([]));
    // A tool that there is not is no refusal of a tool.
    for name in ["no_such_tool", "", "send_message "] {
        let reply = scene.ask("tools/call", json!({ "name": name, "arguments": {} })).await;
        assert_eq!(reply.json["error"]["code"], -32602, "{}", reply.json);
    }
    let unknown = scene.ask("no/such_method", json!({})).await;
    assert_eq!(unknown.json["error"]["code"], -32601, "{}", unknown.json);
}

#[tokio::test]
async fn bad_pages_of_contacts_are_refused() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    for (arguments, field) in [
        (json!({ "limit": 0 }), "limit"),
        (json!({ "limit": 201 }), "limit"),
        (json!({ "limit": "many" }), "limit"),
        (json!({ "cursor": "x" }), "cursor"),
    ] {
        let refusal = scene.refusal("list_contacts", arguments).await;
        assert!(refusal.contains(&format!("\n{field}: ")), "{refusal}");
    }
}

#[tokio::test]
async fn only_the_token_of_an_app_opens_it() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let list = question("tools/list", json!({}));
    let nobody = fixture.app.stranger().post("/mcp", &list).await;
    nobody.error(401, "UNAUTHORIZED");
    assert_eq!(nobody.header("www-authenticate"), Some("Bearer"));
    // A session is nothing here, and neither is any other key.
    scene.ada.post("/mcp", &list).await.error(401, "UNAUTHORIZED");
    for token in ["huba_unknown", "hubu_unknown", "", &scene.token[..40]] {
        let caller = fixture.app.stranger().with("Authorization", &format!("Bearer {token}"));
        let refused = caller.post("/mcp", &list).await;
        refused.error(401, "INVALID_TOKEN");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
    }
    assert_eq!(scene.client().post("/mcp", &list).await.response.status(), 200);
    let path = format!("/api/bots/{BOT}/apps/{}", scene.app_id);
    scene.ada.send(Method::DELETE, &path, |request| request).await.data();
    scene.client().post("/mcp", &list).await.error(401, "INVALID_TOKEN");
}

#[tokio::test]
async fn pages_of_others_and_names_of_others_do_not_get_in() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let list = question("tools/list", json!({}));
    for (name, value) in
        [("Origin", "https://evil.example"), ("Origin", "null"), ("Host", "evil.example:9800")]
    {
        scene.client().with(name, value).post("/mcp", &list).await.error(403, "FORBIDDEN");
    }
    for (name, value) in [("Origin", "http://localhost:9800"), ("Host", "localhost:9800"), ("Accept", "*/*")]
    {
        let reply = scene.client().with(name, value).post("/mcp", &list).await;
        assert_eq!(reply.response.status(), 200, "{name}: {}", reply.json);
    }
}

#[tokio::test]
async fn a_malformed_message_is_refused() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let send = async |content_type: &'static str, body: String| {
        scene
            .client()
            .send(Method::POST, "/mcp", |request| request.content_type(content_type).body(body))
            .await
    };
    for (body, code) in [
        ("{\"jsonrpc\":", -32700),
        ("", -32700),
        ("[]", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
        ("7", -32600),
        ("{}", -32600),
        ("{\"id\":1,\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", -32600),
    ] {
        let reply = send("application/json", body.to_owned()).await;
        assert_eq!(
            (reply.response.status().as_u16(), &reply.json["error"]["code"]),
            (400, &json!(code)),
            "{body}: {}",
            reply.json
        );
        assert_eq!((&reply.json["jsonrpc"], reply.json.get("result")), (&json!("2.0"), None), "{body}");
    }
    send("text/plain", question("ping", json!({})).to_string()).await.error(415, "UNSUPPORTED_MEDIA_TYPE");
    let huge = question(
        "tools/call",
        json!({ "name": "send_message", "arguments": { "content": "x".repeat(1_100_000) } }),
    );
    scene.client().post("/mcp", &huge).await.error(413, "PAYLOAD_TOO_LARGE");
    // A stranger's is not read at all.
    fixture.app.stranger().post("/mcp", &huge).await.error(401, "UNAUTHORIZED");
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let reply = scene.client().send(method, "/mcp", |request| request).await;
        reply.error(405, "METHOD_NOT_ALLOWED");
        assert_eq!(reply.header("allow"), Some("POST"));
    }
}

/// The version without a handshake: each request names its protocol version.
#[tokio::test]
async fn a_client_of_the_newest_version_needs_no_hello() {
    let fixture = Fixture::new().await;
    let scene = fixture.scene(&ALL).await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {} });
    let caller =
        |method: &str| scene.client().with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method);
    let discovered =
        caller("server/discover").post("/mcp", &question("server/discover", json!({ "_meta": meta }))).await;
    let versions = discovered.json["result"]["supportedVersions"].as_array();
    assert!(versions.is_some_and(|all| all.contains(&json!("2026-07-28"))), "{}", discovered.json);
    let params = json!({ "name": "get_bot_info", "arguments": {}, "_meta": meta });
    let called = caller("tools/call")
        .with("Mcp-Name", "get_bot_info")
        .post("/mcp", &question("tools/call", params.clone()))
        .await;
    assert_eq!(called.json["result"]["structuredContent"]["name"], "Shop", "{}", called.json);
    // The headers that a proxy reads have to match the body.
    let other = caller("tools/call")
        .with("Mcp-Name", "send_message")
        .post("/mcp", &question("tools/call", params))
        .await;
    assert_eq!(other.response.status(), 400, "{}", other.json);
}
