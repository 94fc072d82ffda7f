//! Channels, on the files of a hub.

use hub_core::egress::EgressConfig;
use hub_server::running_server;
use serde_json::{Value, json};

use crate::{
    hubs::{hub_with_demo, temp},
    program::{command, document, prints, refuses, run, stderr, stdout},
};

#[test]
fn edit_has_a_flag_for_every_setting_of_the_api() {
    let api: Value = serde_json::from_str(include_str!("../../../openapi/hub.json")).unwrap();
    let settings = api["components"]["schemas"]["UpdateChannel"]["properties"].as_object().unwrap();
    assert!(settings.len() >= 5, "{settings:?}");
    let help = prints(temp().path(), &["help", "channels", "edit"], 0);
    for setting in settings.keys() {
        let flag = format!("--{} ", setting.replace('_', "-"));
        assert!(help.contains(&flag), "{flag}: {help}");
    }
}

#[test]
fn the_settings_of_a_channel_are_edited_and_shown() {
    let folder = hub_with_demo();
    let set = |arguments: &[&str]| {
        document(folder.path(), &[&["channels"], arguments, &["--bot", "demo"]].concat())
    };
    set(&["create", "orders", "--on-plugin-error", "drop"]);
    let edited = set(&["edit", "orders", "--handle", "help", "--lane-hold-s", "120", "--enabled", "false"]);
    let shown = set(&["show", "orders"]);
    assert_eq!(edited, shown);
    for (setting, value) in [
        ("handle", json!("help")),
        ("lane_hold_s", json!(120)),
        ("enabled", json!(false)),
        ("on_plugin_error", json!("drop")),
    ] {
        assert_eq!(shown[setting], value, "{setting}");
    }
    assert_eq!(set(&["edit", "orders", "--no-handle"]).get("handle"), None);
    let one =
        prints(folder.path(), &["channels", "show", "orders", "--bot", "demo", "--json=lane_hold_s"], 0);
    assert_eq!(one.trim(), r#"{"lane_hold_s":120}"#);
}

#[test]
fn channel_settings_are_set_by_flags_or_from_a_file() {
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
    // Whether there is a network or not, no one takes it there.
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

#[test]
fn the_url_of_a_gateway_is_that_of_the_server() {
    let folder = hub_with_demo();
    let printed = |settings: &[(&str, &str)]| {
        let mut command = command(folder.path());
        command.envs(settings.iter().copied()).args(["channels", "ilink-url", "demo", "--bot", "demo"]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).lines().map(|url| url.trim_end_matches('/').to_owned()).collect::<Vec<_>>()
    };
    for (settings, url) in [
        (&[][..], "http://localhost:9800"),
        (&[("HUB_LISTEN", "127.0.0.1:7711")], "http://localhost:7711"),
        (&[("HUB_LISTEN", "0.0.0.0:80,192.168.1.5:9801")], "http://192.168.1.5:9801"),
        (
            &[("HUB_LISTEN", "127.0.0.1:7711"), ("HUB_PUBLIC_URL", "http://localhost:1/hub")],
            "http://localhost:1/hub",
        ),
    ] {
        let cdn = format!("{url}/c2c");
        assert_eq!(printed(settings), [url.to_owned(), cdn], "{settings:?}");
    }
    // A server that runs knows best.
    let url = url::Url::parse("http://localhost:45678/").unwrap();
    let _mark = running_server::announce(folder.path(), &EgressConfig::default(), &url).unwrap().unwrap();
    assert_eq!(printed(&[("HUB_LISTEN", "127.0.0.1:0")])[0], "http://localhost:45678");
}

#[test]
fn a_refused_private_address_names_the_setting() {
    let folder = hub_with_demo();
    let url = "http://127.0.0.1:5678/hook";
    let set = |allowed_here: &str| {
        let mut command = command(folder.path());
        command.env("HUB_EGRESS_ALLOW", allowed_here);
        command.args(["channels", "set-webhook", "demo", "--bot", "demo", "--url", url]);
        command.output().unwrap()
    };
    let refused = |allowed_here: &str, expected: &str| {
        let output = set(allowed_here);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    };
    refused("", "hint: start the server with HUB_EGRESS_ALLOW=127.0.0.1:5678");
    let serve = |allow: &[&str]| {
        let allow = allow.iter().map(|rule| rule.parse().unwrap()).collect();
        let url = url::Url::parse("http://localhost:9800").unwrap();
        let rules = EgressConfig { allow, ..EgressConfig::default() };
        running_server::announce(folder.path(), &rules, &url).unwrap().unwrap()
    };
    let narrow = serve(&["10.0.0.0/8"]);
    refused("127.0.0.1:5678", "to allow it, add 127.0.0.1:5678 to the setting egress_allow");
    drop(narrow);
    let _wide = serve(&["127.0.0.1:5678"]);
    let output = set("");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_channel_is_created_once_under_its_name() {
    let folder = hub_with_demo();
    let create = |more: &[&str]| {
        run(folder.path(), &[&["channels", "create", "mine", "--bot", "demo", "--json"], more].concat())
    };
    let made: Value = serde_json::from_str(&stdout(&create(&[]))).unwrap();
    assert!(made["api_key"].is_string(), "{made}");
    refuses(folder.path(), &["channels", "create", "MINE", "--bot", "demo"], 6, "CONFLICT");
    let there = create(&["--if-absent"]);
    assert_eq!(there.status.code(), Some(0), "{}", stderr(&there));
    let there: Value = serde_json::from_str(&stdout(&there)).unwrap();
    assert_eq!((&there["id"], &there["api_key"]), (&made["id"], &Value::Null));
}

#[test]
fn hmac_without_a_secret_generates_one_and_shows_it_once() {
    let folder = hub_with_demo();
    assert_eq!(run(folder.path(), &["channels", "create", "signed", "--bot", "demo"]).status.code(), Some(0));
    let set = |more: &[&str]| {
        let start =
            ["channels", "set-webhook", "signed", "--bot", "demo", "--url", "https://example.com/hook"];
        let output = run(folder.path(), &[&start[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let first = set(&["--method", "hmac"]);
    assert!(first.contains("whsec_") && first.contains("shown only now"), "{first}");
    let again = set(&["--json"]);
    assert!(!again.contains("whsec_") && !again.contains("\"secret\""), "{again}");
}
