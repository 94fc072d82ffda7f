//! Bots: bound by a code, looked at, renamed, taken away; and what the simulated network does to them.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use hub_core::{demo::ADA, network::sim::QrAction};
use serde_json::Value;

use crate::{
    program::{command, ends, fails, prints, refuses, stderr},
    pty::Terminal,
    stage::Stage,
};

/// `bots bind` with these arguments, without a terminal.
fn bind(stage: &Stage, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    bind_with(stage.signed_in(), arguments)
}

fn bind_with(mut command: Command, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    command.args(["bots", "bind", "--network", "sim"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let states = BufReader::new(child.stdout.take().unwrap());
    (child, states)
}

fn next(states: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    states.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn link(state: &Value) -> String {
    state["qr_text"].as_str().unwrap().to_owned()
}

#[test]
fn without_a_terminal_a_bind_prints_a_document_per_state() {
    let stage = Stage::new();
    let image = stage.path().join("code.png").display().to_string();
    let (child, mut states) = bind(&stage, &["--name", "Shop", "--png", &image]);
    let waiting = next(&mut states);
    assert_eq!(waiting["status"], "waiting");
    assert!(waiting["expires_at"].is_string() && waiting["bind_id"].is_string(), "{waiting}");
    assert!(std::fs::read(&image).unwrap().starts_with(b"\x89PNG"));
    // A code that runs out is replaced.
    stage.simulator.qr(&link(&waiting), QrAction::Expire).unwrap();
    let again = next(&mut states);
    assert_eq!(again["status"], "waiting");
    assert_ne!(again["qr_text"], waiting["qr_text"]);
    let link = link(&again);
    stage.simulator.scan(&link).unwrap();
    let scanned = next(&mut states);
    assert_eq!((&scanned["status"], &scanned["qr_text"]), (&"scanned".into(), &Value::Null));
    stage.simulator.confirm(&link, None).unwrap();
    let confirmed = next(&mut states);
    assert_eq!((&confirmed["status"], &confirmed["bot"]["name"]), (&"confirmed".into(), &"Shop".into()));
    let online = next(&mut states);
    assert_eq!((&online["status"], &online["bot"]["status"]), (&"online".into(), &"online".into()));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("show this as a QR code: "), "{}", stderr(&output));
}

/// The simulator is the one inside the server on this machine, and the server takes the bot up.
#[test]
fn a_bind_on_local_files_uses_the_network_of_the_running_server() {
    let stage = Stage::new();
    let mut command = command(stage.path());
    command.env("HUB_SIM_URL", &stage.sim);
    let (child, mut states) = bind_with(command, &["--owner", "ada", "--name", "Shop"]);
    stage.simulator.confirm(&link(&next(&mut states)), None).unwrap();
    while next(&mut states)["status"] != "online" {}
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn code_stdin_reads_the_number_of_the_phone_from_stdin() {
    let stage = Stage::new();
    let asks = |more: &[&str]| {
        let (child, mut states) = bind(&stage, more);
        let code = QrAction::RequireCode { code: "4711".to_owned() };
        let link = link(&next(&mut states));
        stage.simulator.qr(&link, code).unwrap();
        assert_eq!(next(&mut states)["status"], "need_code");
        (child, states, link)
    };
    let (child, _states, _) = asks(&[]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("hint: add --code-stdin"), "{}", stderr(&output));

    let (mut child, mut states, link) = asks(&["--code-stdin"]);
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "4711").unwrap();
    let mut state = next(&mut states);
    assert_ne!(state["status"], "waiting");
    stage.simulator.confirm(&link, None).unwrap();
    while state["status"] != "online" {
        state = next(&mut states);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_bind_that_times_out_or_is_refused_by_the_network_has_its_exit_code() {
    let stage = Stage::new();
    let late = stage.server(&["bots", "bind", "--network", "sim", "--wait", "1s"]);
    assert_eq!(late.status.code(), Some(8));
    assert!(stderr(&late).contains("the code was not confirmed in time"), "{}", stderr(&late));
    let here = ["--network", "sim", "--wait", "1s"];
    fails(&stage.server(&["bots", "bind", "--network", "no-such"]), 2, "INVALID_PARAMS");
    fails(&stage.server(&[&["bots", "bind", "--owner", "bob"], &here[..]].concat()), 2, "INVALID_PARAMS");
    refuses(stage.path(), &[&["bots", "bind"], &here[..]].concat(), 2, "INVALID_PARAMS");
    for wait in ["3", "soon", "m"] {
        assert_eq!(stage.server(&["bots", "bind", "--wait", wait]).status.code(), Some(2));
    }
}

/// A person binds an account at a terminal.
#[test]
fn at_a_terminal_a_bind_replaces_the_code_in_place() {
    let stage = Stage::new();
    let mut command = stage.signed_in();
    command.env("NO_COLOR", "1").args(["bots", "bind", "--network", "sim", "--name", "Shop"]);
    let terminal = Terminal::start(&command);
    let mut at = terminal.wait_for(0, "● waiting → scanned");
    let seen = terminal.seen();
    assert!(seen.contains('▀') && seen.contains("code 1, 0:0"), "{seen}");
    let shown = |seen: &str| seen.lines().rfind(|line| line.starts_with("http")).unwrap().trim().to_owned();
    let first = shown(&seen);
    stage.simulator.qr(&first, QrAction::Expire).unwrap();
    at = terminal.wait_for(at, "code 2, 0:0");
    let seen = terminal.seen();
    let second = shown(&seen);
    assert_ne!(first, second);
    // Back to the top of the old code, and everything below is wiped: link, bar and states too.
    let rows = seen.split(&first).next().unwrap().lines().count() + 3;
    assert!(seen.contains(&format!("\u{1b}[{rows}A\u{1b}[J")), "{rows}: {seen:?}");
    stage.simulator.scan(&second).unwrap();
    at = terminal.wait_for(at, "✓ waiting → ● scanned");
    stage.simulator.confirm(&second, None).unwrap();
    terminal.wait_for(at.saturating_sub(1), "● online");
    let (exit, seen) = terminal.end();
    assert_eq!(exit, 0, "{seen}");
    let last = seen.lines().last().unwrap();
    assert!(last.starts_with("bot_") && last.contains("Shop\tonline"), "{last}");
}

/// Interrupted by the key.
#[test]
fn ctrl_c_ends_a_bind_with_130() {
    let stage = Stage::new();
    let mut command = stage.signed_in();
    command.env("NO_COLOR", "1").args(["bots", "bind", "--network", "sim", "--invert"]);
    let mut terminal = Terminal::start(&command);
    terminal.wait_for(0, "● waiting");
    terminal.press("\u{3}");
    let (exit, seen) = terminal.end();
    assert_eq!(exit, 130, "{seen}");
    assert!(seen.trim_end().ends_with("interrupted"), "{seen}");
}

/// A connection is watched.
#[test]
fn bots_status_watch_runs_until_it_is_interrupted() {
    let stage = Stage::new();
    stage.say("order 42");
    let mut command = stage.signed_in();
    command.args(["bots", "status", "demo", "--watch"]);
    let mut terminal = Terminal::start(&command);
    let at = terminal.wait_for(0, "online");
    ends(&stage.server(&["sim", "expire-session", "--bot", &stage.demo.wx_id]), 0);
    // The status in its column, not the reason "an expired login".
    terminal.wait_for(at, "expired   ");
    terminal.press("\u{3}");
    assert_eq!(terminal.end().0, 130);
    let refused = stage.server(&["bots", "reconnect", "demo"]);
    assert!(fails(&refused, 6, "CONFLICT").contains("hint: hub-cli bots bind"));
}

#[test]
fn bot_documents_are_the_same_with_files_and_with_a_server() {
    let stage = Stage::new();
    stage.say("order 42");
    let both = |arguments: &[&str]| {
        let (files, _) = ends(&stage.files(&[arguments, &["--json"]].concat()), 0);
        let files: Value = serde_json::from_str(&files).unwrap();
        let server = stage.document(arguments);
        let (files, server): (Vec<_>, Vec<_>) = match (&files["items"], &server["items"]) {
            (Value::Array(files), Value::Array(server)) => (files.clone(), server.clone()),
            _ => (vec![files], vec![server]),
        };
        assert_eq!(files.len(), server.len(), "{arguments:?}");
        for (mut files, mut server) in files.into_iter().zip(server) {
            // A link to a file and the time of the last poll are others each time.
            for document in [&mut files, &mut server] {
                let fields = document.as_object_mut().unwrap();
                fields.remove("media");
                fields.remove("last_poll_at");
            }
            assert_eq!(files, server, "{arguments:?}");
        }
        stage.document(arguments)
    };
    assert_eq!(both(&["bots", "list"])["items"][0]["name"], "demo");
    assert_eq!(both(&["bots", "show", "demo"])["wx_id"], stage.demo.wx_id);
    assert_eq!(both(&["bots", "status", "demo"])["status"], "online");
    assert_eq!(both(&["bots", "contacts", "demo"])["items"][0]["user_id"], ADA);
    let messages = both(&["bots", "messages", "demo"]);
    assert_eq!(messages["items"].as_array().unwrap().len(), 2);
    let inbound =
        both(&["bots", "messages", "demo", "--direction", "inbound", "--q", "ORDER", "--since", "1h"]);
    assert_eq!(inbound["items"][0]["content"], "order 42");
    assert!(both(&["bots", "messages", "demo", "--user", "x"])["items"].as_array().unwrap().is_empty());

    assert_eq!(stage.document(&["bots", "rename", "demo", "Shop"])["name"], "Shop");
    assert!(prints(stage.path(), &["bots", "rename", "Shop", "demo"], 0).contains("\tdemo\t"));
    assert_eq!(stage.document(&["bots", "reconnect", "demo"])["name"], "demo");
    assert_eq!(stage.document(&["bots", "delete", "demo", "--dry-run"])["deleted"], false);
    for (arguments, exit, code) in [
        (&["bots", "show", "nobody"][..], 5, "NOT_FOUND"),
        (&["bots", "rename", "demo", ""], 2, "INVALID_PARAMS"),
        (&["bots", "delete", "demo"], 2, "INVALID_PARAMS"),
        (&["bots", "messages", "demo", "--since", "soon"], 2, "INVALID_PARAMS"),
        (&["bots", "contacts", "demo", "--limit", "0"], 2, "INVALID_PARAMS"),
    ] {
        fails(&stage.server(arguments), exit, code);
        refuses(stage.path(), arguments, exit, code);
    }
    assert_eq!(stage.document(&["bots", "delete", "demo", "--yes"])["deleted"], true);
    let (rows, told) = ends(&stage.server(&["bots", "list"]), 0);
    assert_eq!((rows.as_str(), told.trim()), ("", "there are no bots: hub-cli bots bind"));
}

#[test]
fn a_search_passes_over_pages_without_a_match() {
    let stage = Stage::new();
    stage.say("needle");
    for number in 0..1_000 {
        stage.simulator.say(&stage.demo.wx_id, Some(ADA), &format!("order {number}")).unwrap();
    }
    let newest = |filter: &[&str]| {
        let arguments =
            [&["bots", "messages", "demo", "--direction", "inbound", "--limit", "1"], filter].concat();
        stage.document(&arguments)["items"][0]["content"].clone()
    };
    assert!((0..500).any(|_| newest(&[]) == "order 999"), "the messages do not arrive");
    assert_eq!(newest(&["--q", "needle"]), "needle");
}

#[test]
fn sim_faults_affect_the_network_and_the_receiver() {
    let stage = Stage::new();
    let accounts = stage.document(&["sim", "accounts"]);
    assert_eq!(accounts["items"][0]["wx_id"], stage.demo.wx_id);
    assert_eq!(stage.document(&["sim", "receiver", "fail", "--times", "1"])["mode"], "fail");
    let script = stage.path().join("day.toml");
    std::fs::write(&script, "[[step]]\nsay = \"order 1\"\nas = \"Ada\"\n[[step]]\nwait = \"1s\"\n").unwrap();
    let played = |steps: &[&str]| {
        let (played, _) = ends(&stage.server(&["sim", "script", script.to_str().unwrap()]), 0);
        let did: Vec<&str> = played.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
        assert_eq!(did, steps);
    };
    played(&["say", "wait"]);
    let first = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let mut requests = stage.document(&["sim", "receiver", "show"]);
        Some(requests["items"][0].take()).filter(Value::is_object)
    });
    let first = first.expect("the receiver was asked");
    assert_eq!((&first["behaviour"], &first["verified"]), (&"fail".into(), &true.into()));
    std::fs::write(&script, "[[step]]\noutage = \"1s\"\n[[step]]\nreceiver = \"answer\"\n").unwrap();
    played(&["outage", "receiver"]);
    std::fs::write(&script, "[[step]]\nsay = \"order 2\"\n[[step]]\nrest = true\n").unwrap();
    fails(&stage.server(&["sim", "script", script.to_str().unwrap()]), 6, "INVALID_PARAMS");
    fails(&stage.server(&["sim", "outage", "2h"]), 2, "INVALID_PARAMS");
    fails(&stage.server(&["sim", "expire-session", "--bot", "x@im.bot"]), 5, "NOT_FOUND");
    fails(&stage.server(&["sim", "scan", "http://sim.local/nothing"]), 5, "NOT_FOUND");
    // A phone, from another shell than the bind.
    let (child, mut states) = bind(&stage, &["--name", "Shop"]);
    let link = link(&next(&mut states));
    assert_eq!(stage.document(&["sim", "scan", &link, "--no-confirm"])["status"], "scanned");
    let account = stage.document(&["sim", "scan", &link, "--as", "Bob"]);
    assert_eq!(account["owner_user_id"], "bob@im.wechat");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}
