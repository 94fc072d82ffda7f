//! The AI endpoint, on the files of a hub.

use serde_json::Value;

use crate::{
    hubs::hub,
    program::{refuses, run, run_with_input, stderr, stdout},
};

#[test]
fn the_ai_endpoint_is_set_shown_without_its_key_and_tested() {
    let folder = hub();
    let key = "sk-a-key-of-the-administrator";
    let unset = run(folder.path(), &["ai-config", "test"]);
    assert_eq!(unset.status.code(), Some(6), "{}", stderr(&unset));
    // A private address has to be allowed, as for the server.
    let local = ["ai-config", "set", "--base-url", "http://127.0.0.1:9/v1"];
    let blocked = run(folder.path(), &local);
    assert_eq!(blocked.status.code(), Some(2), "{}", stderr(&blocked));
    let arguments =
        ["ai-config", "set", "--api-key-file", "-", "--base-url", "http://ai.invalid/v1", "--json"];
    let set = run_with_input(folder.path(), &arguments, &format!("{key}\n"));
    let set: Value = serde_json::from_str(&stdout(&set)).unwrap();
    assert_eq!((&set["enabled"], &set["api_key"]), (&Value::Bool(true), &Value::from("***ator")));
    // What is not named stays.
    let changed = run(folder.path(), &["ai-config", "set", "--model", "m", "--daily-tokens", "100", "--off"]);
    assert_eq!(changed.status.code(), Some(0), "{}", stderr(&changed));
    let shown = run(folder.path(), &["ai-config", "show", "--json"]);
    let shown: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    let expected = serde_json::json!({ "enabled": false, "base_url": "http://ai.invalid/v1", "api_key": "***ator",
        "key_header": "", "model": "m", "models": [], "system_prompt": "", "daily_tokens": 100,
        "updated_at": shown["updated_at"] });
    assert_eq!(shown, expected);
    let text = stdout(&run(folder.path(), &["ai-config", "show"]));
    assert!(text.contains("***ator") && !text.contains(key), "{text}");
    let tested = run(folder.path(), &["ai-config", "test", "--json"]);
    assert_eq!(tested.status.code(), Some(1), "{}", stderr(&tested));
    let document: Value = serde_json::from_str(&stdout(&tested)).unwrap();
    assert_eq!((&document["ok"], &document["error"]["class"]), (&Value::Bool(false), &Value::from("dns")));
    let none = run(folder.path(), &["ai-config", "set", "--no-api-key", "--daily-tokens", "0", "--json"]);
    let none: Value = serde_json::from_str(&stdout(&none)).unwrap();
    assert_eq!((&none["api_key"], &none["daily_tokens"]), (&Value::Null, &Value::Null));
    refuses(folder.path(), &["ai-config", "set", "--api-key-file", "/nonexistent"], 6, "INVALID_PARAMS");
}
