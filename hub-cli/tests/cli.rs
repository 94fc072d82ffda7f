//! The contract of the command line: what reaches stdout and stderr, and every exit code from a real case.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    io::Write,
    net::TcpListener,
    path::Path,
    process::{Command, Output, Stdio},
};

use hub_core::{
    Hub, data_dir,
    demo::{ADA, DemoReceiver, RECEIVER_HOST, connector, seed},
    egress::EgressConfig,
    network::sim::{SimConfig, Simulator},
    random::Random,
    store::StoreConfig,
    time::Clock,
};
use serde_json::Value;

/// The binary without anything of the surroundings.
fn hub_cli(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hub-cli"));
    command.env_clear().env("LANG", "C.UTF-8").env("HUB_DATA_DIR", folder).stdin(Stdio::null());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    hub_cli(folder).args(arguments).output().unwrap()
}

fn run_with_input(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = hub_cli(folder);
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A failure leaves stdout empty, names its code in both forms, and says the same in JSON.
fn assert_fails(folder: &Path, arguments: &[&str], exit: i32, code: &str) {
    let human = run(folder, arguments);
    assert_eq!(human.status.code(), Some(exit), "{arguments:?}: {}", stderr(&human));
    assert_eq!(stdout(&human), "", "{arguments:?}");
    assert!(stderr(&human).contains(&format!("error[{code}]: ")), "{arguments:?}: {}", stderr(&human));
    let json = run(folder, &[arguments, &["--json"]].concat());
    assert_eq!(json.status.code(), Some(exit), "{arguments:?}");
    assert_eq!(stdout(&json), "");
    let document: Value = serde_json::from_str(&stderr(&json)).unwrap();
    assert_eq!(document["success"], false);
    assert_eq!(document["error"]["code"], code);
    assert_eq!(document["exit_code"], exit);
    assert!(document["error"]["message"].is_string());
}

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A hub with an admin.
fn hub() -> tempfile::TempDir {
    let folder = temp();
    let made = run_with_input(
        folder.path(),
        &["users", "create-admin", "ada", "--password-file", "-"],
        "correct horse\n",
    );
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    folder
}

/// A hub with a demo bot to which Ada wrote; nothing runs on it any more.
fn hub_with_demo() -> tempfile::TempDir {
    let folder = temp();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (clock, random) = (Clock::system(), Random::system());
        let simulator = Simulator::new(SimConfig::quick(), clock.clone(), random.clone());
        let receiver = DemoReceiver::new(clock.clone());
        let mut egress = EgressConfig::default();
        egress.in_process.insert(RECEIVER_HOST.to_owned(), std::sync::Arc::new(receiver.clone()));
        let hub = Hub::builder()
            .store(StoreConfig::Sqlite(data_dir::database(folder.path())))
            .secret_key(data_dir::load_key(folder.path(), &random).unwrap())
            .network(connector(&simulator, clock, random).unwrap())
            .egress(egress);
        let hub = hub.open().await.unwrap();
        let demo = seed(&hub, &simulator, &receiver).await.unwrap().unwrap();
        hub.start().await.unwrap();
        simulator.say(&demo.wx_id, Some(ADA), "order 42").unwrap();
        let patience = std::time::Duration::from_secs(20);
        assert_eq!(simulator.wait_outbound(None, 0, patience).await.len(), 1);
        hub.shutdown().await;
    });
    folder
}

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
    assert_eq!(stdout(&rows).lines().next().unwrap().split('\t').count(), 5);
    let trace = list["items"][1]["trace_id"].as_str().unwrap();
    let shown = run(folder.path(), &["traces", "show", trace]);
    assert!(stdout(&shown).lines().all(|line| line.chars().count() <= 80), "{}", stdout(&shown));
    let shown = run(folder.path(), &["traces", "show", trace, "--json=status,steps"]);
    let shown: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    assert_eq!((&shown["status"], &shown["steps"][0]["name"]), (&"ok".into(), &"received".into()));
}

#[test]
fn exit_1_refused() {
    let folder = hub_with_demo();
    assert_fails(folder.path(), &["send", "demo", "stranger@im.wechat", "hi"], 1, "WINDOW_CLOSED");
    assert_fails(folder.path(), &["send", "demo", ADA, " "], 2, "INVALID_PARAMS");
}

#[test]
fn exit_8_timed_out_and_130_interrupted() {
    let folder = hub_with_demo();
    let wait = ["send", "demo", ADA, "hi", "--wait", "--timeout", "1"];
    assert_fails(folder.path(), &wait, 8, "UNAVAILABLE");
    let count = || {
        let list = run(folder.path(), &["traces", "list", "--bot", "demo"]);
        stdout(&list).lines().count()
    };
    let before = count();
    let mut command = hub_cli(folder.path());
    command.args(["send", "demo", ADA, "hi", "--wait", "--timeout", "60"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!((0..200).any(|_| count() > before), "the message was not stored");
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(130), String::new()));
}

#[test]
fn a_simulator_of_its_own() {
    use std::io::{BufRead, BufReader};
    let folder = temp();
    let mut command = hub_cli(folder.path());
    command.args(["sim", "serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let ready = lines.next().unwrap().unwrap();
    let url = ready.strip_prefix("ready ").unwrap().to_owned();
    assert_fails(folder.path(), &["sim", "say", "hi", "--sim", &url], 5, "NOT_FOUND");
    let reset = run(folder.path(), &["sim", "reset", "--sim", &url]);
    assert_eq!(reset.status.code(), Some(0), "{}", stderr(&reset));
    let taken = url.trim_start_matches("http://");
    assert_fails(folder.path(), &["sim", "serve", "--listen", taken], 2, "INVALID_PARAMS");
    Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

/// Replaces what differs from run to run: ids and times.
fn normalise(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let Some((head, bar)) = line.split_once(" ms  ").filter(|_| line.starts_with("  ")) else {
            let id = line.find("tr_").map(|at| &line[at..at + 29]);
            let line = id.map_or_else(|| line.to_owned(), |id| line.replace(id, "TRACE"));
            let words = line.split("  ").map(|part| if part.ends_with(" ms") { "TIME" } else { part });
            lines.push(words.collect::<Vec<_>>().join("  "));
            continue;
        };
        assert!(head.trim().parse::<u64>().is_ok(), "{line}");
        // Columns: 8 for the offset, then name and status, 7 for the duration, 16 for the bar.
        let parts: Vec<&str> = bar.split("  ").filter(|part| !part.trim().is_empty()).collect();
        let words = parts.iter().filter(|part| !part.contains(['▏', '█']) && !part.trim().ends_with(" ms"));
        lines.push(format!("AT {}", words.map(|part| part.trim()).collect::<Vec<_>>().join(" | ")));
    }
    lines.join("\n")
}

const DEMO: &str = r#"chat
  Ada → demo   order 42
  demo → Ada   42 is on its way

receiver
  POST http://receiver.local/hook  attempt 1
  signature verified (X-Signature, webhook-signature)

trace TRACE  ok  TIME  status 200
AT received | ok | text
AT filter | ok | matched
AT request | ok | POST http://receiver.lo…
AT response | ok | 200 {"reply":"42 is on …
AT reply | pending | queued to ada@im.wechat
AT reply | ok | sent to ada@im.wechat"#;

#[test]
fn the_demo_delivers_and_leaves_nothing_behind() {
    let (folder, temporary) = (temp(), temp());
    let output = hub_cli(folder.path()).arg("demo").env("TMPDIR", temporary.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(normalise(&stdout(&output)), DEMO);
    assert!(stdout(&output).lines().all(|line| line.chars().count() <= 80));
    assert!(!stdout(&output).contains('\u{1b}'), "no colour in a pipe");
    assert_eq!(temporary.path().read_dir().unwrap().count(), 0);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    let narrow = hub_cli(folder.path()).args(["demo", "-q"]).env("COLUMNS", "40").output().unwrap();
    assert!(stdout(&narrow).lines().skip(9).all(|line| line.chars().count() <= 48), "{}", stdout(&narrow));
    assert_eq!(stderr(&narrow), "");
}

#[test]
fn the_demo_as_a_document() {
    let folder = temp();
    let output = run(folder.path(), &["demo", "--json"]);
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(document["reply"], "42 is on its way");
    assert_eq!(document["verified"], true);
    assert_eq!(document["trace"]["status"], "ok");
    let fields = run(folder.path(), &["demo", "--json=?"]);
    let mut listed: Vec<String> = stdout(&fields).lines().map(str::to_owned).collect();
    listed.sort();
    let mut keys: Vec<String> = document.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    assert_eq!(listed, keys);
    let some = run(folder.path(), &["demo", "--json=verified,reply"]);
    let some: Value = serde_json::from_str(&stdout(&some)).unwrap();
    assert_eq!(some, serde_json::json!({ "verified": true, "reply": "42 is on its way" }));
    assert_eq!(stderr(&output), "", "no prose beside a document");
}

#[test]
fn colour_is_forced_and_refused() {
    let folder = temp();
    assert!(stdout(&run(folder.path(), &["demo", "--color", "always"])).contains('\u{1b}'));
    let forced = hub_cli(folder.path()).arg("demo").env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(stdout(&forced).contains('\u{1b}'));
    let refused = hub_cli(folder.path()).arg("demo").env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output();
    assert!(!stdout(&refused.unwrap()).contains('\u{1b}'));
}

#[test]
fn exit_2_wrong_usage() {
    let folder = hub();
    for arguments in [&["no-such-command"][..], &["traces", "list"], &[]] {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
        assert!(!stderr(&output).is_empty());
    }
    let json = run(folder.path(), &["no-such-command", "--json"]);
    let document: Value = serde_json::from_str(&stderr(&json)).unwrap();
    assert_eq!((&document["error"]["code"], &document["exit_code"]), (&"INVALID_PARAMS".into(), &2.into()));
    let short = ["users", "create-admin", "bob", "--password-file", "-"];
    let output = run_with_input(folder.path(), &short, "short");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(!stderr(&output).contains("short\n"));
    let output = run(folder.path(), &["demo", "--json=no_such_field"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("elapsed_ms"), "the hint lists the fields");
}

#[test]
fn exit_5_not_found() {
    let (empty, folder) = (temp(), hub());
    assert_fails(empty.path(), &["traces", "list", "--bot", "demo"], 5, "NOT_FOUND");
    assert_eq!(empty.path().read_dir().unwrap().count(), 0, "looking makes nothing");
    assert_fails(folder.path(), &["traces", "list", "--bot", "demo"], 5, "NOT_FOUND");
    assert_fails(folder.path(), &["traces", "show", "tr_01KAJ6Z8QH0000000000000000"], 5, "NOT_FOUND");
    assert_fails(folder.path(), &["send", "demo", "ada", "hi"], 5, "NOT_FOUND");
    assert_fails(folder.path(), &["help", "nonsense"], 5, "NOT_FOUND");
}

#[test]
fn exit_6_conflict_or_unreadable_file() {
    let folder = hub();
    let again = run_with_input(
        folder.path(),
        &["users", "create-admin", "ada", "--password-file", "-", "--json"],
        "correct horse\n",
    );
    assert_eq!(again.status.code(), Some(6));
    let document: Value = serde_json::from_str(&stderr(&again)).unwrap();
    assert_eq!(document["error"]["code"], "CONFLICT");
    let missing = ["users", "create-admin", "bob", "--password-file", "/no/such/file"];
    assert_fails(folder.path(), &missing, 6, "INVALID_PARAMS");
}

#[test]
fn exit_7_nobody_answers() {
    let folder = temp();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}");
    assert_fails(folder.path(), &["sim", "say", "hi", "--sim", &nobody], 7, "UNAVAILABLE");
    assert_fails(folder.path(), &["sim", "reset", "--sim", &nobody], 7, "UNAVAILABLE");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let nested = file.join("hub").display().to_string();
    assert_fails(folder.path(), &["db", "migrate", "--data-dir", &nested], 7, "UNAVAILABLE");
}

#[test]
fn exit_9_a_check_failed() {
    let folder = temp();
    let exported = run(folder.path(), &["openapi", "export"]);
    assert_eq!(exported.status.code(), Some(0));
    let document: Value = serde_json::from_str(&stdout(&exported)).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let file = folder.path().join("hub.json");
    std::fs::write(&file, &exported.stdout).unwrap();
    let path = file.display().to_string();
    let same = run(folder.path(), &["openapi", "export", "--check", &path]);
    assert_eq!((same.status.code(), stdout(&same)), (Some(0), String::new()));
    let yaml = folder.path().join("hub.yaml").display().to_string();
    std::fs::write(&yaml, run(folder.path(), &["openapi", "export", "--format", "yaml"]).stdout).unwrap();
    assert_eq!(run(folder.path(), &["openapi", "export", "--check", &yaml]).status.code(), Some(0));
    let newer = folder.path().join("hub.v3_1.json").display().to_string();
    let exported_newer = run(folder.path(), &["openapi", "export", "--spec", "3.1"]);
    let document: Value = serde_json::from_str(&stdout(&exported_newer)).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    std::fs::write(&newer, &exported_newer.stdout).unwrap();
    assert_eq!(run(folder.path(), &["openapi", "export", "--check", &newer]).status.code(), Some(0));
    assert_fails(folder.path(), &["openapi", "export", "--check", &newer, "--spec", "3.0"], 9, "CONFLICT");
    std::fs::write(&file, stdout(&exported).replacen("Hub", "Pub", 1)).unwrap();
    assert_fails(folder.path(), &["openapi", "export", "--check", &path], 9, "CONFLICT");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let folder = temp();
    let mut child = hub_cli(folder.path())
        .args(["openapi", "export"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn an_admin_as_a_document() {
    let folder = temp();
    let made = run_with_input(
        folder.path(),
        &["users", "create-admin", "Ada", "--password-file", "-", "--json"],
        "correct horse\nsecond line\n",
    );
    let document: Value = serde_json::from_str(&stdout(&made)).unwrap();
    assert_eq!((&document["username"], &document["role"]), (&"ada".into(), &"admin".into()));
    assert!(document["id"].as_str().unwrap().starts_with("usr_"));
    assert!(!stdout(&made).contains("correct horse") && !stderr(&made).contains("correct horse"));
}

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
        "model": "m", "models": [], "system_prompt": "", "max_tokens": null, "daily_tokens": 100,
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
    assert_fails(folder.path(), &["ai-config", "set", "--api-key-file", "/nonexistent"], 6, "INVALID_PARAMS");
}

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
        assert_fails(folder.path(), &arguments, 2, "INVALID_PARAMS");
    };
    refused(&["set-webhook", "orders", "--url", "http://127.0.0.1:1/hook"]);
    refused(&["set-webhook", "orders", "--method", "rot13"]);
    refused(&["set-filter", "orders", "--expression", "content ==="]);
    refused(&["set-ai", "orders", "--source", "custom", "--base-url", "", "--model", ""]);
}

#[test]
fn tail_shows_messages_and_traces_and_goes_on_behind_one() {
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
fn help_tells_what_scripts_need() {
    let folder = temp();
    let codes = run(folder.path(), &["help", "exit-codes"]);
    for code in ["  0  done", "  7  nobody answers", "130  interrupted"] {
        assert!(stdout(&codes).contains(code), "{code}");
    }
    assert!(stdout(&run(folder.path(), &["help", "env"])).contains("HUB_DATA_DIR"));
    assert!(stdout(&run(folder.path(), &["help", "sim", "say"])).contains("--as <PERSON>"));
    assert_eq!(run(folder.path(), &["--version"]).status.code(), Some(0));
}

/// A plugin's first hour: the template passes its own case, is shown at work, and is told where it breaks.
#[test]
fn a_plugin_is_started_tried_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let here = folder.path().display().to_string();
    let made = run(folder.path(), &["plugins", "new", "tagger", "--dir", &here]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    assert_fails(folder.path(), &["plugins", "new", "tagger", "--dir", &here], 6, "CONFLICT");
    let script = at("tagger/tagger.js");
    let linted = run(folder.path(), &["plugins", "lint", &script]);
    assert_eq!((linted.status.code(), &*stdout(&linted)), (Some(0), ""), "{}", stderr(&linted));
    let tested = run(folder.path(), &["plugins", "test", &at("tagger")]);
    assert_eq!(tested.status.code(), Some(0), "{}{}", stdout(&tested), stderr(&tested));
    let tried = run(folder.path(), &["debug", "request", &script, "--text", "hello you"]);
    let shown = stdout(&tried);
    assert_eq!(tried.status.code(), Some(0), "{shown}{}", stderr(&tried));
    for part in [
        "tagger.js 0.1.0   onRequest",
        "sandbox ok",
        "log   from Ada",
        "reply \"Hello!\"",
        "+   X-Plugin: tagger",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let json = run(folder.path(), &["debug", "request", &script, "--json=replies,skipped"]);
    let document: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(document["skipped"], false);

    std::fs::write(
        &script,
        "// ==UserScript==\n// @name x\n// ==/UserScript==\nfunction onRequest(ctx) {\n  ctx.a.b = 1;\n}\n",
    )
    .unwrap();
    let broken = run(folder.path(), &["debug", "request", &script]);
    assert_eq!(broken.status.code(), Some(1));
    let shown = stdout(&broken);
    assert!(shown.contains("error[throw]") && shown.contains("tagger.js:5:"), "{shown}");
    assert!(shown.contains("    5 |   ctx.a.b = 1;"), "{shown}");
    assert_eq!(run(folder.path(), &["plugins", "test", &at("tagger")]).status.code(), Some(9));
    std::fs::write(&script, "// ==UserScript==\n// @timeout 0\n// ==/UserScript==\nfunction (").unwrap();
    let linted = run(folder.path(), &["plugins", "lint", &script]);
    assert_eq!(linted.status.code(), Some(6));
    assert!(
        stdout(&linted).contains("tagger.js:2\terror\t@timeout must be 1 to 10000"),
        "{}",
        stdout(&linted)
    );
    assert_fails(folder.path(), &["debug", "request", &script], 2, "INVALID_PARAMS");
}

#[test]
fn javascript_is_typed_against_the_context() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("p.js");
    std::fs::write(
        &script,
        "const rate = 2;\nfunction onRequest(ctx) { ctx.req.body.n = rate; ctx.reply('r'); }\n",
    )
    .unwrap();
    let script = script.display().to_string();
    let typed = "1 + rate\nconst x = ctx.msg.content\nx.length\nonRequest(ctx)\nthis is wrong\n";
    let output = run_with_input(folder.path(), &["debug", "repl", &script, "--text", "order"], typed);
    let shown = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in ["3", "5", "reply \"r\"", "\"n\": 2", "! this is not JavaScript"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}
