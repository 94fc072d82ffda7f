//! Channels, on the files of a hub.

use serde_json::Value;

use crate::{
    hubs::hub_with_demo,
    program::{refuses, run, stderr, stdout},
};

#[test]
fn a_channels_settings_are_set_one_by_one_or_from_a_file() {
    let folder = hub_with_demo();
    let set = |arguments: &[&str]| {
        let output = run(folder.path(), &[&["channels"], arguments, &["--bot", "demo", "--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        serde_json::from_str::<Value>(&stdout(&output)).unwrap()
    };
    set(&["create", "orders"]);
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "a secret of the webhook\n").unwrap();
    let channel = set(&[
        "set-webhook",
        "orders",
        "--url",
        "https://example.com/hook",
        "--method",
        "hmac",
        "--secret-file",
        secret.to_str().unwrap(),
    ]);
    assert_eq!(
        (&channel["webhook"]["enabled"], &channel["webhook"]["auth"]["method"]),
        (&true.into(), &"hmac".into())
    );
    let channel = set(&["set-webhook", "orders", "--timeout-ms", "5000", "--off"]);
    let webhook = &channel["webhook"];
    assert_eq!((&webhook["url"], &webhook["timeout_ms"]), (&"https://example.com/hook".into(), &5000.into()));
    assert_eq!(webhook["enabled"], false, "what is not named stays");
    assert!(!channel.to_string().contains("a secret of the webhook"));
    let file = folder.path().join("webhook.json");
    std::fs::write(
        &file,
        r#"{"enabled":true,"url":"https://example.com/other","auth":{"method":"none","secret":null}}"#,
    )
    .unwrap();
    let channel = set(&["set-webhook", "orders", "-f", file.to_str().unwrap()]);
    let webhook = &channel["webhook"];
    assert_eq!(
        (&webhook["url"], &webhook["timeout_ms"]),
        (&"https://example.com/other".into(), &10_000.into())
    );
    // Whether there is a network or not, nobody takes it there.
    let output =
        run(folder.path(), &["channels", "set-webhook", "orders", "--bot", "demo", "--test", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let pinged: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&pinged["test"]["status"], &pinged["webhook"]["enabled"]), (&"error".into(), &true.into()));
    let channel = set(&[
        "set-websocket",
        "orders",
        "--include-outbound",
        "true",
        "--allow-origin",
        "https://a.example",
    ]);
    assert_eq!(channel["websocket"]["allowed_origins"][0], "https://a.example");
    let channel = set(&["set-ai", "orders", "--system-prompt", "Be brief."]);
    assert_eq!(
        (&channel["ai"]["enabled"], &channel["ai"]["system_prompt"]),
        (&true.into(), &"Be brief.".into())
    );
    set(&["set-filter", "orders", "--keywords", "order,invoice"]);
    let channel = set(&["set-filter", "orders", "--message-types", "text", "--match", "any"]);
    let filter = &channel["filter"];
    assert_eq!((filter["keywords"].as_array().unwrap().len(), &filter["match"]), (2, &"any".into()));
    assert!(set(&["set-filter", "orders", "--clear"])["filter"]["keywords"].as_array().unwrap().is_empty());
    let refused = |arguments: &[&str]| {
        let arguments = [&["channels"], arguments, &["--bot", "demo"]].concat();
        refuses(folder.path(), &arguments, 2, "INVALID_PARAMS");
    };
    refused(&["set-webhook", "orders", "--url", "http://127.0.0.1:1/hook"]);
    refused(&["set-webhook", "orders", "--method", "rot13"]);
    refused(&["set-filter", "orders", "--expression", "content ==="]);
    refused(&["set-ai", "orders", "--source", "custom", "--base-url", "", "--model", ""]);
}
