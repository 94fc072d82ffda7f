//! Messages and their traces at the command line, on the files of a stopped hub.

use std::process::Output;

use hub_core::demo::ADA;
use serde_json::Value;

use crate::{
    hubs::{hub_with_demo, temp},
    program::{document, documents, ends, fails, refuses, run, stderr, stdout},
    stage::Stage,
};

#[test]
fn sends_and_traces_of_a_stopped_hub() {
    let folder = hub_with_demo();
    let sent = run(folder.path(), &["send", "demo", ADA, "hello", "--json"]);
    let sent: Value = serde_json::from_str(&stdout(&sent)).unwrap();
    assert_eq!(sent["status"], "queued");
    let list = run(folder.path(), &["traces", "list", "--bot", "demo", "--json"]);
    let list: Value = serde_json::from_str(&stdout(&list)).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert_eq!(list["items"][0]["trace_id"], sent["trace_id"]);
    assert!(list["next_cursor"].is_null());
    let rows = run(folder.path(), &["traces", "list", "--bot", "demo", "--status", "ok"]);
    assert_eq!(stdout(&rows).lines().count(), 1, "no header in a pipe");
    assert_eq!(stdout(&rows).lines().next().unwrap().split('\t').count(), 7);
    let trace = list["items"][1]["trace_id"].as_str().unwrap();
    let shown = run(folder.path(), &["traces", "show", trace]);
    assert!(stdout(&shown).lines().all(|line| line.chars().count() <= 80), "{}", stdout(&shown));
    let shown = run(folder.path(), &["traces", "show", trace, "--json=status,steps"]);
    let shown: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    assert_eq!((&shown["status"], &shown["steps"][0]["name"]), (&"ok".into(), &"received".into()));
}

#[test]
fn a_file_is_sent_with_a_text_or_without_one() {
    let stage = Stage::new();
    stage.say("hello");
    let folder = temp();
    let file = folder.path().join("a \"bill\" für Ann.txt");
    std::fs::write(&file, "12 shoes").unwrap();
    let path = file.to_str().unwrap();
    let with_text = ["send", "demo", ADA, "your bill", "--file", path, "--wait", "--json"];
    for send in [&with_text[..], &["send", "demo", ADA, "--file", path, "--wait", "--json"]] {
        for output in [stage.files(send), stage.server(send)] {
            let sent = documents(&ends(&output, 0).0).remove(0);
            assert_eq!(sent["status"], "sent");
            let message = stage.message(sent["message_id"].as_str().unwrap());
            let media = &message.media[0];
            assert_eq!((media.file_name.as_str(), media.size), ("a \"bill\" für Ann.txt", Some(8)));
            assert_eq!(message.content == "your bill", send == with_text, "{message:?}");
        }
    }
    fails(&stage.server(&["send", "demo", ADA, "hi", "--file", "nowhere.txt"]), 6, "INVALID_PARAMS");
    ends(&stage.server(&["send", "demo", ADA]), 2);
    let large = folder.path().join("large");
    std::fs::File::create(&large).unwrap().set_len((50 << 20) + 1).unwrap();
    let told =
        fails(&stage.files(&["send", "demo", ADA, "--file", large.to_str().unwrap()]), 6, "INVALID_PARAMS");
    assert!(told.contains("50 MiB"), "{told}");
}

#[test]
fn tail_shows_messages_and_traces_and_continues_after_a_trace() {
    let folder = hub_with_demo();
    let tail = |more: &[&str]| {
        let arguments = [&["tail", "--bot", "demo", "--follow=false", "--json"], more].concat();
        let output = run(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let lines: Vec<Value> =
            stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines
    };
    assert!(tail(&[]).is_empty(), "from now on");
    let start = "tr_00000000000000000000000000";
    let all = tail(&["--since", start]);
    let said = all.iter().find(|line| line["direction"] == "inbound").expect("the message");
    assert_eq!((&said["content"], &said["from_user_id"]), (&"order 42".into(), &ADA.into()));
    let trace = all.iter().rfind(|line| line["summary"].is_string()).expect("the trace");
    assert_eq!(tail(&["--since", start, "--status", "ok"]).len(), 1, "one trace, and no message");
    let last = trace["trace_id"].as_str().unwrap();
    run(folder.path(), &["send", "demo", ADA, "and one more"]);
    let rest = tail(&["--since", last]);
    assert!(rest.iter().any(|line| line["content"] == "and one more"), "{rest:?}");
    assert!(rest.iter().all(|line| line["content"] != "order 42"), "{rest:?}");
}

#[test]
fn tail_follows_one_channel_since_a_time() {
    let stage = Stage::new();
    stage.document(&["channels", "create", "orders", "--bot", "demo"]);
    ends(&stage.server(&["channels", "set-filter", "orders", "--bot", "demo", "--keywords", "order"]), 0);
    stage.say("order 42");
    stage.say("hello");
    let tail = |more: &[&str]| {
        let arguments = [&["tail", "--bot", "demo", "--follow=false", "--json"], more].concat();
        let [files, server] = [stage.files(&arguments), stage.server(&arguments)].map(|output| {
            let lines = documents(&ends(&output, 0).0);
            let said = lines.iter().filter(|line| line["direction"] == "inbound").count();
            (said, lines.iter().filter(|line| line["summary"].is_string()).count())
        });
        assert_eq!(files, server, "{more:?}");
        server
    };
    assert_eq!(tail(&["--since", "1h"]).0, 2);
    // That its filter skipped the other one is reported too.
    assert_eq!(tail(&["--since", "1h", "--channel", "orders"]), (1, 2));
    assert_eq!(tail(&["--since", "1h", "--channel", "orders", "--status", "ok"]), (0, 1));
    assert_eq!(tail(&["--since", "2099-01-01T00:00:00Z", "--channel", "demo"]), (0, 0));
    assert_eq!(tail(&["--channel", "demo"]), (0, 0), "from now on");
    let refused = |more: &[&str], exit, code| {
        fails(&stage.server(&[&["tail", "--bot", "demo", "--follow=false"], more].concat()), exit, code)
    };
    refused(&["--since", "soon"], 2, "INVALID_PARAMS");
    let told = refused(&["--channel", "odrers"], 5, "NOT_FOUND");
    assert!(told.contains("did you mean orders?"), "{told}");
}

#[test]
fn a_send_as_an_app_is_in_its_log() {
    let stage = Stage::new();
    stage.say("hello");
    for (name, scope) in [("Weather", "message:write"), ("Reader", "message:read")] {
        stage.document(&["apps", "create", name, "--scope", scope]);
    }
    let token = stage.document(&["apps", "install", "weather", "--bot", "demo"])["app_token"].clone();
    let deaf = stage.document(&["apps", "install", "reader", "--bot", "demo"])["app_token"].clone();
    let send = ["send", "demo", ADA, "sunny", "--via-app", "weather", "--wait", "--json"];
    let with = |token: &Value, arguments: &[&str]| {
        stage.signed_in().env("HUB_APP_TOKEN", token.as_str().unwrap()).args(arguments).output().unwrap()
    };
    let mut traces = Vec::new();
    for send in [&|| stage.files(&send), &|| with(&token, &send)] as [&dyn Fn() -> Output; 2] {
        let sent = documents(&ends(&send(), 0).0).remove(0);
        assert_eq!(sent["status"], "sent");
        traces.push(sent["trace_id"].clone());
        let calls = stage.document(&["apps", "api-logs", "weather", "--bot", "demo"]);
        let call = &calls["items"][0];
        assert_eq!(
            (&call["trace_id"], &call["path"], &call["status_code"]),
            (&sent["trace_id"], &"/bot/v1/messages/send".into(), &200.into())
        );
        assert!(call["request_body"].as_str().unwrap().contains("sunny"), "{call}");
        assert_eq!(calls["items"].as_array().unwrap().len(), traces.len());
    }
    assert_ne!(traces[0], traces[1]);

    let told = fails(&stage.server(&send[..6]), 2, "INVALID_PARAMS");
    assert!(told.contains("HUB_APP_TOKEN") && told.contains("rotate-token"), "{told}");
    let told = fails(&with(&deaf, &send[..6]), 2, "INVALID_PARAMS");
    assert!(told.contains("is not the app's token") && !told.contains(deaf.as_str().unwrap()), "{told}");
    let as_reader = ["send", "demo", ADA, "sunny", "--via-app", "reader"];
    let told = fails(&with(&deaf, &as_reader), 4, "FORBIDDEN");
    assert!(told.contains(&format!("server: {}/, request ", stage.url)), "{told}");
    fails(&stage.files(&as_reader), 4, "FORBIDDEN");
    let told = fails(&stage.files(&["send", "demo", ADA, "x", "--via-app", "wether"]), 5, "NOT_FOUND");
    assert!(told.contains("did you mean "), "{told}");
    stage.document(&["apps", "create", "Nowhere"]);
    for place in [Stage::files, Stage::server] {
        fails(&place(&stage, &["send", "demo", ADA, "x", "--via-app", "nowhere"]), 5, "NOT_FOUND");
    }
    let outbound = stage.document(&["bots", "messages", "demo", "--direction", "outbound", "--q", "sunny"]);
    assert_eq!(outbound["items"].as_array().unwrap().len(), 2, "nothing of what was refused");
}

#[test]
fn waits_and_replays_without_a_running_server_fail_at_once() {
    let folder = hub_with_demo();
    let traces = || document(folder.path(), &["traces", "list", "--bot", "demo"]);
    let before = traces();
    let trace = before["items"][0]["trace_id"].as_str().unwrap();
    refuses(folder.path(), &["send", "demo", ADA, "hello", "--wait"], 7, "UNAVAILABLE");
    refuses(folder.path(), &["replay", trace], 7, "UNAVAILABLE");
    refuses(folder.path(), &["replay", "--bot", "demo", "--yes"], 7, "UNAVAILABLE");
    assert_eq!(traces(), before, "nothing is stored for later");
    ends(&run(folder.path(), &["replay", trace, "--dry-run"]), 0);
}

#[test]
fn a_trace_is_shown_as_http_curl_and_har() {
    let stage = Stage::new();
    let trace = stage.say("it's order 42").trace_id.to_string();
    let shown = |form: &str| ends(&stage.server(&["traces", "show", &trace, form]), 0);
    let (raw, _) = shown("--raw");
    assert!(
        raw.starts_with("POST http://receiver.local/hook HTTP/1.1\ncontent-type: application/json\n"),
        "{raw}"
    );
    assert!(raw.contains("\nHTTP/1.1 200\n") && raw.contains("x-signature: ***"), "{raw}");

    let (curl, told) = shown("--curl");
    assert!(told.contains("omitted header, its value is not recorded: x-signature"), "{told}");
    // A shell reads it as it was meant.
    let script = format!("curl() {{ printf '%s\\0' \"$@\"; }}\n{curl}");
    let read = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    let read = String::from_utf8(read.stdout).unwrap();
    let words: Vec<&str> = read.split_terminator('\0').collect();
    assert_eq!(words[..3], ["-X", "POST", "http://receiver.local/hook"]);
    assert!(words.contains(&"content-type: application/json"), "{words:?}");
    assert!(!read.contains("x-signature"), "{words:?}");
    let body: Value = serde_json::from_str(words.last().unwrap()).unwrap();
    assert_eq!(body["content"], "it's order 42");

    let har: Value = serde_json::from_str(&shown("--har").0).unwrap();
    let entry = &har["log"]["entries"][0];
    assert_eq!((&har["log"]["version"], &entry["response"]["status"]), (&"1.2".into(), &200.into()));
    assert_eq!(entry["request"]["postData"]["mimeType"], "application/json");
    for part in ["startedDateTime", "time", "request", "response", "cache", "timings"] {
        assert!(!entry[part].is_null(), "{part} is missing: {entry}");
    }
    let sent = stage.document(&["send", "demo", ADA, "hello", "--wait"]);
    for form in ["--raw", "--curl", "--har"] {
        let nothing = stage.server(&["traces", "show", sent["trace_id"].as_str().unwrap(), form]);
        fails(&nothing, 5, "NOT_FOUND");
    }
    assert_eq!(stage.server(&["traces", "show", &trace, "--raw", "--har"]).status.code(), Some(2));
}
