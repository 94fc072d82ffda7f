//! Plugins at the command line, on files: an author's day, and a reviewer's.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

const TAGGER: &str = include_str!("../../examples/plugins/tagger.js");

fn hub_cli(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hub-cli"));
    command.env_clear().env("LANG", "C.UTF-8").env("HUB_DATA_DIR", folder).stdin(Stdio::null());
    command.args(arguments).output().unwrap()
}

/// What is printed by a command that ends in this way.
#[track_caller]
fn ends(folder: &Path, arguments: &[&str], exit: i32) -> String {
    let output = hub_cli(folder, arguments);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

/// The document of a command that works.
#[track_caller]
fn document(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&ends(folder, &[arguments, &["--json"]].concat(), 0)).unwrap()
}

#[track_caller]
fn fails(folder: &Path, arguments: &[&str], exit: i32, code: &str) {
    let output = hub_cli(folder, arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(exit), 0), "{arguments:?}: {told}");
    assert!(told.contains(&format!("error[{code}]: ")), "{arguments:?}: {told}");
}

/// A hub with the admin ada.
fn hub() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hub-cli"));
    command.env_clear().env("HUB_DATA_DIR", folder.path()).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut made = command.args(["users", "create-admin", "ada", "--password-file", "-"]).spawn().unwrap();
    made.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    assert!(made.wait().unwrap().success());
    folder
}

/// A file beside the hub's.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn words(document: &Value, field: &str) -> Vec<String> {
    let items = document["items"].as_array().unwrap().iter();
    items.map(|item| item[field].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_version_is_submitted_reviewed_and_taken_back() {
    let folder = hub();
    let path = folder.path();
    let script = file(path, "tagger.js", TAGGER);
    fails(path, &["plugins", "submit", &script], 2, "INVALID_PARAMS");
    fails(path, &["plugins", "submit", &script, "--author", "nobody"], 5, "NOT_FOUND");
    let submitted = document(path, &["plugins", "submit", &script, "--author", "ada"]);
    assert_eq!((&submitted["name"], &submitted["status"]), (&json!("tagger"), &json!("pending")));
    assert_eq!(submitted["pending_version"]["version"], "1.2.0");
    assert_eq!(words(&document(path, &["plugins", "list", "--author", "ada"]), "name"), ["tagger"]);
    fails(path, &["plugins", "list", "--mine"], 2, "INVALID_PARAMS");
    let pending = document(path, &["plugins", "pending"])["items"][0].clone();
    assert!(pending["diff"].as_str().unwrap().contains("+function onRequest"), "{pending}");
    assert!(!pending["permissions"]["words"].as_array().unwrap().is_empty());
    let wrong = "0".repeat(64);
    fails(path, &["plugins", "approve", "tagger", "--content-hash", &wrong], 6, "CONFLICT");
    let hash = pending["content_hash"].as_str().unwrap();
    let approved = document(path, &["plugins", "approve", "tagger", "--content-hash", hash]);
    assert_eq!(words(&approved, "status"), ["approved"]);
    assert_eq!(words(&document(path, &["plugins", "list"]), "version"), ["1.2.0"]);

    let newer = TAGGER.replace("1.2.0", "1.3.0");
    let script = file(path, "tagger.js", &newer);
    document(path, &["plugins", "submit", &script, "--author", "ada"]);
    let shown = ends(path, &["plugins", "show", "tagger"], 0);
    assert!(
        shown.contains("-// @version      1.2.0") && shown.contains("+// @version      1.3.0"),
        "{shown}"
    );
    assert!(shown.contains("changes the webhook request"), "{shown}");
    document(path, &["plugins", "reject", "tagger", "--reason", "not yet"]);
    let versions = document(path, &["plugins", "versions", "tagger"]);
    assert_eq!(words(&versions, "version"), ["1.3.0", "1.2.0"]);
    assert_eq!(words(&versions, "reason"), ["not yet", ""]);
    let ranged = document(path, &["plugins", "show", "tagger", "--diff", "1.3.0..1.2.0"]);
    assert!(ranged["diff"].as_str().unwrap().contains("+// @version      1.2.0"), "{ranged}");
    fails(path, &["plugins", "show", "tagger", "--diff", "1.3.0..9"], 5, "NOT_FOUND");

    fails(path, &["plugins", "withdraw", "tagger", "1.2.0"], 2, "INVALID_PARAMS");
    fails(path, &["plugins", "withdraw", "tagger", "9", "--yes"], 5, "NOT_FOUND");
    fails(path, &["plugins", "withdraw", "tagger", "1.3.0", "--yes"], 6, "CONFLICT");
    let withdraw = ["plugins", "withdraw", "tagger", "1.2.0", "--reason", "found out", "--yes"];
    assert_eq!(document(path, &withdraw)["status"], "withdrawn");
    assert!(words(&document(path, &["plugins", "list"]), "name").is_empty());
    fails(path, &["plugins", "delete", "tagger"], 2, "INVALID_PARAMS");
    document(path, &["plugins", "delete", "tagger", "--yes"]);
    fails(path, &["plugins", "show", "tagger"], 5, "NOT_FOUND");
    let log = document(path, &["audit", "list", "--actor", "operator"]);
    let acts = ["plugin.deleted", "plugin.withdrawn", "plugin.rejected", "plugin.approved", "user.created"];
    assert_eq!(words(&log, "action"), acts);
    assert_eq!(words(&log, "target_name")[..4], ["tagger"; 4]);
}

#[test]
fn what_a_source_lacks_is_found_and_mended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let bare = file(path, "marker.js", "function onRequest(ctx) { ctx.skip(); }\n");
    assert!(ends(path, &["plugins", "lint", &bare], 6).contains("there is no metadata block"));
    assert_eq!(ends(path, &["plugins", "lint", &bare, "--fix"], 0), "");
    let mended = std::fs::read_to_string(&bare).unwrap();
    assert!(mended.starts_with("// ==UserScript==\n// @name         marker\n"), "{mended}");
    assert!(mended.ends_with("function onRequest(ctx) { ctx.skip(); }\n"), "{mended}");
    assert_eq!(ends(path, &["plugins", "lint", &bare], 0), "");
    fails(path, &["plugins", "lint", "-", "--fix"], 2, "INVALID_PARAMS");

    let broken = file(
        path,
        "broken.js",
        "// ==UserScript==\n// @name x\n// @colour red\n// ==/UserScript==\nlet 1;\n",
    );
    let sarif: Value =
        serde_json::from_str(&ends(path, &["plugins", "lint", &bare, &broken, "--format", "sarif"], 6))
            .unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let told: Vec<_> = results
        .iter()
        .map(|result| {
            let place = &result["locations"][0]["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uri"], broken);
            (
                result["ruleId"].as_str().unwrap(),
                result["level"].as_str().unwrap(),
                place["region"]["startLine"].clone(),
            )
        })
        .collect();
    assert_eq!(told, [("metadata", "warning", json!(3)), ("syntax", "error", json!(5))]);
    let listed: Value =
        serde_json::from_str(&ends(path, &["plugins", "lint", &broken, "--format", "json"], 6)).unwrap();
    assert_eq!(words(&listed, "rule"), ["metadata", "syntax"]);
}

#[test]
fn a_run_is_held_against_what_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let script = file(path, "tagger.js", TAGGER);
    let expected = path.join("expected.json").display().to_string();
    let tried = |text: &str, more: &[&str], exit| {
        let base = ["debug", "request", &script, "--text", text, "--expect", &expected];
        ends(path, &[&base[..], more].concat(), exit)
    };
    let message = file(path, "message.json", "{\"content\": \"order 42\", \"timestamp\": 1790000000}");
    let written = ends(
        path,
        &["debug", "request", &script, "--message", &message, "--expect", &expected, "--update"],
        0,
    );
    assert!(written.contains("was written"), "{written}");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&expected).unwrap()).unwrap();
    assert_eq!((&kept["request"]["headers"]["X-Kind"], &kept["error"]), (&json!("order"), &Value::Null));
    let same = ends(path, &["debug", "request", &script, "--message", &message, "--expect", &expected], 0);
    assert!(same.contains("expect as"), "{same}");
    // What is named, and nothing else.
    std::fs::write(&expected, "{\"request\": {\"headers\": {\"X-Kind\": \"order\"}}}").unwrap();
    tried("order 43", &[], 0);
    let differs = tried("hello", &[], 9);
    assert!(differs.contains("request.headers.X-Kind is null, not \"order\""), "{differs}");
    let told: Value = serde_json::from_str(&tried("hello", &["--json=differences"], 9)).unwrap();
    assert_eq!(told["differences"].as_array().unwrap().len(), 1);
    // A failure that is expected is none.
    let throws = file(path, "throws.js", "function onRequest() { throw new Error('x') }");
    std::fs::write(&expected, "{\"error\": \"throw\"}").unwrap();
    ends(path, &["debug", "request", &throws, "--expect", &expected], 0);
    ends(path, &["debug", "request", &throws], 1);
    ends(path, &["debug", "request", &throws, "--update"], 2);
}

#[test]
fn a_request_is_really_sent_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let script = file(path, "tagger.js", TAGGER);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        // The body is one JSON object; it ends where its last brace does.
        while !request.ends_with(b"}") {
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "the request ends early");
            request.extend_from_slice(&piece[..read]);
        }
        let body = "{\"status\":\"shipped\"}";
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        String::from_utf8(request).unwrap()
    });
    let send = ["debug", "request", &script, "--text", "order 42", "--url", &url, "--send", "--json"];
    let tried: Value = serde_json::from_str(&ends(path, &send, 0)).unwrap();
    let request = receiver.join().unwrap();
    assert!(request.starts_with("POST /hook ") && request.contains("x-kind: order"), "{request}");
    assert_eq!(tried["sent"]["status"], 200);
    assert_eq!(tried["sent"]["answered"]["replies"][0]["text"], "Order 42: shipped");
    // Nobody listens any more.
    fails(path, &send[..8], 7, "UNAVAILABLE");
    let skips = file(path, "skips.js", "function onRequest(ctx) { ctx.skip() }");
    assert!(ends(path, &["debug", "request", &skips, "--send"], 0).contains("sent  nothing"));
    fails(path, &["debug", "request", &skips, "--remote", "ch_x"], 2, "INVALID_PARAMS");
}
