//! Every command that reads prints the same with a server and with the files of its hub.

use hub_core::demo::ADA;
use serde_json::Value;

use crate::{
    examples::leaves,
    program::{ends, run},
    stage::Stage,
};

/// Commands that read a hub, with arguments; `TRACE` is replaced by the id of a trace.
const READS: [(&str, &[&str]); 26] = [
    ("bots list", &[]),
    ("bots show", &["demo"]),
    ("bots status", &["demo"]),
    ("bots contacts", &["demo"]),
    ("bots messages", &["demo"]),
    ("channels list", &["--bot", "demo"]),
    ("channels show", &["demo", "--bot", "demo"]),
    ("channels test-filter", &["demo", "--bot", "demo", "--keywords", "order"]),
    ("channels plugins list", &["--bot", "demo", "--channel", "demo"]),
    ("tail", &["--bot", "demo", "--follow=false", "--since", "tr_00000000000000000000000000"]),
    ("traces list", &["--bot", "demo"]),
    ("traces show", &["TRACE"]),
    ("traces explain", &["TRACE"]),
    ("traces export", &["--bot", "demo"]),
    ("traces diff", &["TRACE", "TRACE"]),
    ("plugins list", &["--author", "ada"]),
    ("plugins pending", &[]),
    ("plugins show", &["tagger"]),
    ("plugins versions", &["tagger"]),
    ("apps list", &[]),
    ("apps show", &["weather"]),
    ("apps events", &["weather", "--bot", "demo"]),
    ("apps api-logs", &["weather", "--bot", "demo"]),
    ("users list", &[]),
    ("users show", &["ada"]),
    ("users sessions list", &["ada"]),
];

/// The same, of what a server counts or writes down while it is asked.
const READS_OF_CHANGING_VALUES: [(&str, &[&str]); 5] = [
    ("stats", &[]),
    ("audit list", &["--limit", "1"]),
    ("ai-config show", &[]),
    // The public URL contains the port that the server got.
    ("channels ilink-url", &["demo", "--bot", "demo"]),
    ("channels ilink-clients", &["demo", "--bot", "demo"]),
];

/// Commands that change something, work without a hub, or work on its files alone.
const OTHERS: [&str; 85] = [
    "channels set-ilink",
    "channels ilink-login",
    "demo",
    "login",
    "logout",
    "whoami",
    "profiles list",
    "profiles use",
    "profiles delete",
    "send",
    "listen",
    "replay",
    "events",
    "traces attempt",
    "traces cancel",
    "traces to-test",
    "signature sign",
    "signature verify",
    "bots bind",
    "bots rename",
    "bots delete",
    "bots reconnect",
    "channels create",
    "channels edit",
    "channels delete",
    "channels rotate-key",
    "channels clients",
    "channels test-ai",
    "channels set-webhook",
    "channels set-websocket",
    "channels set-ai",
    "channels set-filter",
    "channels plugins install",
    "channels plugins uninstall",
    "channels plugins order",
    "channels plugins enable",
    "channels plugins disable",
    "debug request",
    "debug response",
    "debug repl",
    "plugins new",
    "plugins lint",
    "plugins test",
    "plugins submit",
    "plugins approve",
    "plugins reject",
    "plugins withdraw",
    "plugins delete",
    "apps create",
    "apps edit",
    "apps verify",
    "apps delete",
    "apps install",
    "apps uninstall",
    "apps rotate-token",
    "apps authorize",
    "users create",
    "users edit",
    "users disable",
    "users enable",
    "users delete",
    "users sessions revoke",
    "users invite",
    "users reset-link",
    "users create-admin",
    "ai-config set",
    "ai-config test",
    "db backup",
    "db restore",
    "db status",
    "db migrate",
    "db check",
    "db vacuum",
    "db prune",
    "db encrypt rotate-key",
    "doctor",
    "config init",
    "config check",
    "config list",
    "config schema",
    "openapi export",
    "completions",
    "man",
    "version",
    "help",
];

#[test]
fn every_command_is_compared_with_both_transports_or_listed_as_changing() {
    let reads = READS.iter().chain(&READS_OF_CHANGING_VALUES).map(|(command, _)| *command);
    let known: Vec<&str> = reads.chain(OTHERS).collect();
    let leaves: Vec<String> = leaves().into_iter().map(|(command, _)| command).collect();
    let unknown =
        leaves.iter().filter(|command| !command.starts_with("sim ") && !known.contains(&command.as_str()));
    assert_eq!(
        unknown.collect::<Vec<_>>(),
        [""; 0],
        "compare them with both transports, or list them with the others"
    );
    let gone = known.iter().filter(|command| !leaves.iter().any(|leaf| leaf == *command));
    assert_eq!(gone.collect::<Vec<_>>(), [&""; 0], "they are no commands");
}

#[test]
fn commands_that_read_print_the_same_with_a_server_and_with_files() {
    let stage = Stage::new();
    let trace = stage.say("order 42").trace_id.to_string();
    prepare(&stage);
    for (command, arguments) in READS {
        let arguments = line(command, arguments, &trace);
        assert_eq!(read(&stage, &arguments, true), read(&stage, &arguments, false), "{arguments:?}");
    }
    for (command, arguments) in READS_OF_CHANGING_VALUES {
        let arguments = line(command, arguments, &trace);
        let [files, server] =
            [true, false].map(|files| read(&stage, &arguments, files).iter().map(names).collect());
        let (files, server): (Vec<Value>, Vec<Value>) = (files, server);
        assert_eq!(files, server, "{arguments:?}");
    }
}

#[test]
fn errors_are_the_same_with_a_server_and_with_files() {
    let stage = Stage::new();
    for arguments in [
        &["bots", "show", "demp"][..],
        &["bots", "rename", "demo", ""],
        &["bots", "contacts", "demo", "--limit", "0"],
        &["bots", "messages", "demo", "--cursor", "x"],
        &["channels", "show", "none", "--bot", "demo"],
        &["channels", "create", "demo", "--bot", "demo", "--handle", "!"],
        &["channels", "edit", "demo", "--bot", "demo", "--lane-hold-s", "3601"],
        &["channels", "set-webhook", "demo", "--bot", "demo", "--method", "rot13"],
        &["channels", "set-filter", "demo", "--bot", "demo", "--expression", "content ==="],
        &["send", "demo", "stranger@im.wechat", "hi"],
        &["traces", "show", "tr_00000000000000000000000000"],
        &["plugins", "show", "none"],
        &["apps", "show", "none"],
        &["users", "show", "nobody"],
        &["users", "edit", "ada", "--role", "member"],
        &["users", "invite", "--days", "91"],
    ] {
        let refused = |files: bool| {
            let arguments = [arguments, &["--json"]].concat();
            let output = if files { run(stage.path(), &arguments) } else { stage.server(&arguments) };
            let mut document: Value = serde_json::from_slice(&output.stderr).unwrap_or_default();
            let fields = document.as_object_mut().unwrap();
            fields.remove("server");
            fields["error"].as_object_mut().unwrap().remove("request_id");
            (output.status.code(), document)
        };
        let (files, server) = (refused(true), refused(false));
        assert_ne!(files.0, Some(0), "{arguments:?}");
        assert_eq!(files, server, "{arguments:?}");
    }
}

/// A plugin and an app, each with what its lists show.
fn prepare(stage: &Stage) {
    let script = stage.path().join("tagger.js");
    let source = "// ==UserScript==\n// @name tagger\n// @version 1.0.0\n// ==/UserScript==\n\
                  function onRequest(ctx) {}\n";
    std::fs::write(&script, source).unwrap();
    stage.document(&["plugins", "submit", script.to_str().unwrap()]);
    stage.document(&["channels", "plugins", "install", "tagger", "--bot", "demo", "--channel", "demo"]);
    stage.document(&["apps", "create", "Weather", "--scope", "message:write"]);
    let installed = stage.document(&["apps", "install", "weather", "--bot", "demo"]);
    let mut send = stage.signed_in();
    send.env("HUB_APP_TOKEN", installed["app_token"].as_str().unwrap());
    send.args(["send", "demo", ADA, "sunny", "--via-app", "weather", "--wait"]);
    ends(&send.output().unwrap(), 0);
}

fn line<'a>(command: &'a str, arguments: &[&'a str], trace: &'a str) -> Vec<&'a str> {
    let arguments = arguments.iter().map(|argument| if *argument == "TRACE" { trace } else { argument });
    command.split(' ').chain(arguments).chain(["--json"]).collect()
}

fn read(stage: &Stage, arguments: &[&str], files: bool) -> Vec<Value> {
    let output = if files { run(stage.path(), arguments) } else { stage.server(arguments) };
    let (out, _) = ends(&output, 0);
    let mut documents: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!documents.is_empty(), "{arguments:?} prints something");
    for document in &mut documents {
        let is_page = document["items"].is_array();
        let items = if is_page {
            document["items"].as_array_mut().unwrap().iter_mut().collect()
        } else {
            vec![document]
        };
        for item in items {
            let fields = item.as_object_mut().unwrap();
            // A link to a file has a signature of its own each time; the others are of the last poll and request.
            for name in ["media", "last_poll_at", "last_seen_at"] {
                fields.remove(name);
            }
        }
    }
    documents
}

/// A document with its names alone.
fn names(document: &Value) -> Value {
    match document {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), names(value))).collect(),
        Value::Array(items) => items.iter().take(1).map(names).collect(),
        _ => Value::Null,
    }
}
