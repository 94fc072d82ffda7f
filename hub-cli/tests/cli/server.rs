//! What works on files works on a server too: channels, sends, what happens.

use serde_json::Value;

use crate::{
    program::{documents, ends, fails, stderr},
    stage::Stage,
};

#[test]
fn channels_are_created_changed_and_deleted_on_a_server() {
    let stage = Stage::new();
    let on_demo = |arguments: &[&str]| {
        let arguments = [&["channels"], arguments, &["--bot", "demo"]].concat();
        stage.document(&arguments)
    };
    let made = on_demo(&["create", "orders", "--handle", "orders", "--include-outbound"]);
    assert!(made["api_key"].as_str().unwrap().starts_with("hubc_"), "{made}");
    assert_eq!((&made["handle"], &made["websocket"]["include_outbound"]), (&"orders".into(), &true.into()));
    assert_eq!(on_demo(&["list"])["items"].as_array().unwrap().len(), 2);
    let rotated = on_demo(&["rotate-key", "orders", "--grace", "24h"]);
    assert!(rotated["old_key_expires_at"].is_string() && rotated["api_key"] != made["api_key"]);
    assert_eq!(on_demo(&["edit", "orders", "--enabled", "false"])["enabled"], false);
    let secret = stage.path().join("secret");
    std::fs::write(&secret, "a secret of the webhook\n").unwrap();
    let secret = secret.to_str().unwrap();
    let set = ["--url", "http://receiver.local/hook", "--method", "hmac", "--secret-file", secret];
    let channel = on_demo(&[&["set-webhook", "orders"], &set[..]].concat());
    assert_eq!(
        (&channel["webhook"]["enabled"], &channel["webhook"]["auth"]["method"]),
        (&true.into(), &"hmac".into())
    );
    // The secret is another than the receiver's: it answers, and says that it was not fooled.
    let changed = stage.server(&[
        "channels",
        "set-webhook",
        "orders",
        "--bot",
        "demo",
        "--timeout-ms",
        "900",
        "--test",
        "--json",
    ]);
    let changed: Value = serde_json::from_slice(&changed.stdout).unwrap();
    assert_eq!(
        (&changed["webhook"]["timeout_ms"], &changed["webhook"]["auth"]["has_secret"]),
        (&900.into(), &true.into())
    );
    assert!(changed["test"]["steps"].as_array().is_some_and(|steps| !steps.is_empty()), "{changed}");
    assert_eq!(on_demo(&["set-ai", "orders", "--system-prompt", "Be brief."])["ai"]["enabled"], true);
    assert_eq!(
        on_demo(&["set-ai", "orders", "--off"])["ai"]["system_prompt"],
        "Be brief.",
        "what is not named stays"
    );
    assert_eq!(on_demo(&["set-filter", "orders", "--keywords", "order"])["filter"]["keywords"][0], "order");
    assert_eq!(
        on_demo(&["set-filter", "orders", "--message-types", "text"])["filter"]["keywords"][0],
        "order"
    );
    let origin = on_demo(&["set-websocket", "orders", "--allow-origin", "https://a.example"]);
    assert_eq!(origin["websocket"]["include_outbound"], true);
    assert_eq!(on_demo(&["show", "orders"])["name"], "orders");
    for (arguments, exit, code) in [
        (&["set-filter", "orders", "--expression", "content ==="][..], 2, "INVALID_PARAMS"),
        (&["set-webhook", "orders", "--method", "rot13"], 2, "INVALID_PARAMS"),
        (&["rotate-key", "orders", "--grace", "73"], 2, "INVALID_PARAMS"),
        (&["create", "more", "--handle", "orders"], 6, "CONFLICT"),
        (&["show", "nothing"], 5, "NOT_FOUND"),
        (&["delete", "orders"], 2, "INVALID_PARAMS"),
    ] {
        let arguments = [&["channels"], arguments, &["--bot", "demo"]].concat();
        fails(&stage.server(&arguments), exit, code);
    }
    assert_eq!(on_demo(&["delete", "orders", "--yes"])["deleted"], true);
}

#[test]
fn a_send_is_accepted_sent_and_shown_by_tail() {
    let stage = Stage::new();
    let before = stage.say("order 42");
    let sent = stage.document(&["send", "demo", "ada@im.wechat", "on its way", "--wait"]);
    assert_eq!(sent["status"], "sent");
    let since = before.trace_id.to_string();
    let tail = ["tail", "--bot", "demo", "--follow=false", "--json", "--since"];
    let (lines, _) = ends(&stage.server(&[&tail[..], &[&since]].concat()), 0);
    let lines = documents(&lines);
    assert!(lines.iter().any(|line| line["content"] == "on its way"), "{lines:?}");
    assert!(
        lines.iter().any(|line| line["trace_id"] == sent["trace_id"] && line["summary"].is_string()),
        "{lines:?}"
    );
    let refused = stage.server(&["send", "demo", "stranger@im.wechat", "hi"]);
    fails(&refused, 1, "WINDOW_CLOSED");
    assert!(!stderr(&refused).contains("hubu_"));
}

#[test]
fn channel_plugins_are_installed_ordered_and_disabled_on_a_server() {
    let stage = Stage::new();
    let at = ["--bot", "demo", "--channel", "demo"];
    let list = stage.document(&[&["channels", "plugins", "list"], &at[..]].concat());
    let before = list["items"].as_array().unwrap().len();
    for (number, name) in ["first", "second"].into_iter().enumerate() {
        let script = stage.path().join(format!("{name}.js"));
        let source = format!(
            "// ==UserScript==\n// @name {name}\n// @version 1.0.{number}\n// ==/UserScript==\nfunction onRequest(ctx) {{}}\n"
        );
        std::fs::write(&script, source).unwrap();
        stage.document(&["plugins", "submit", script.to_str().unwrap()]);
        let done = stage.document(&[&["channels", "plugins", "install", name], &at[..]].concat());
        assert_eq!((&done["name"], &done["enabled"]), (&name.into(), &true.into()));
    }
    let ordered = stage.document(&[&["channels", "plugins", "order", "second", "first"], &at[..]].concat());
    let names: Vec<&str> =
        ordered["items"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(names[..2], ["second", "first"]);
    let off = stage.document(&[&["channels", "plugins", "disable", "first"], &at[..]].concat());
    assert_eq!(off["enabled"], false);
    assert_eq!(
        stage.document(&[&["channels", "plugins", "enable", "first"], &at[..]].concat())["enabled"],
        true
    );
    for name in ["first", "second"] {
        stage.document(&[&["channels", "plugins", "uninstall", name, "--yes"], &at[..]].concat());
    }
    let list = stage.document(&[&["channels", "plugins", "list"], &at[..]].concat());
    assert_eq!(list["items"].as_array().unwrap().len(), before);
    fails(&stage.server(&[&["channels", "plugins", "install", "nothing"], &at[..]].concat()), 5, "NOT_FOUND");
}
