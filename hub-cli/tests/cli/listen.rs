//! `listen` at a terminal, and what it records.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{
    hubs::temp,
    program::{ends, stderr},
    pty::Terminal,
    replay::sink::Sink,
    stage::Stage,
};

/// The key of a channel to which everything goes, and its hub.
fn stage() -> (Stage, String) {
    let stage = Stage::new();
    let made = stage.document(&["channels", "rotate-key", "demo", "--bot", "demo"]);
    let key = made["api_key"].as_str().unwrap().to_owned();
    (stage, key)
}

fn listen(stage: &Stage, key: &str, to: &str, more: &[&str]) -> Command {
    let mut command = stage.signed_in();
    command.args(["listen", "--server", &stage.url, "--forward-to", to, "--key", key]).args(more);
    command
}

/// The command in a shell that says how it ended, and how the terminal is then.
fn then_look_at_the_terminal(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    let program = command.get_program().to_string_lossy().into_owned();
    // A shell that has a trap outlives the key that interrupts.
    shell.args(["-c", "trap : INT; \"$0\" \"$@\"; echo \"exit $?\"; stty -a"]).arg(program);
    shell.args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell.env("PATH", "/usr/bin:/bin");
    shell
}

#[track_caller]
fn assert_is_as_before(seen: &str) {
    let (_, terminal) = seen.rsplit_once("exit ").unwrap();
    let words: Vec<&str> = terminal.split([' ', ';', '\r', '\n']).collect();
    assert!(words.contains(&"icanon") && words.contains(&"echo") && words.contains(&"isig"), "{terminal}");
}

#[test]
fn the_panel_shows_messages_and_ends_with_q() {
    let (stage, key) = stage();
    let sink = Sink::new(|number| match number {
        0 => (200, "{\"reply\":\"coming\"}".to_owned()),
        _ => (503, "busy".to_owned()),
    });
    let mut command = then_look_at_the_terminal(&listen(&stage, &key, &sink.url, &["--ui"]));
    let mut terminal = Terminal::start(command.env("NO_COLOR", "1"));
    let at = terminal.wait_for(0, "q or Ctrl-C ends it");
    assert!(terminal.seen().contains(&format!("ready channel=demo forward={}", sink.url)));
    stage.say("order \u{1b}]0;owned\u{7}42");
    let at = terminal.wait_for(at.saturating_sub(1), "delivered 1 · ok 1 · failed 0 · replied 1");
    assert!(!terminal.seen().contains("\u{1b}]0;"), "what people write cannot change the terminal");
    stage.say("order 43");
    terminal.wait_for(at.saturating_sub(1), "delivered 2 · ok 1 · failed 1 · replied 1");
    terminal.wait_for(at.saturating_sub(1), "busy");
    terminal.press("x");
    terminal.press("q");
    let (_, seen) = terminal.end();
    let (_, end) = seen.rsplit_once("delivered 2 · ok 1 · failed 1 · replied 1 · ").unwrap();
    assert!(end.contains("exit 0"), "{seen:?}");
    assert_is_as_before(&seen);
}

#[test]
fn ctrl_c_ends_the_panel_with_a_summary_and_130() {
    let (stage, key) = stage();
    let sink = Sink::kind();
    let mut command = then_look_at_the_terminal(&listen(&stage, &key, &sink.url, &["--ui"]));
    let mut terminal = Terminal::start(command.env("NO_COLOR", "1"));
    terminal.wait_for(0, "q or Ctrl-C ends it");
    stage.say("order 42");
    terminal.wait_for(0, "delivered 1");
    terminal.press("\u{3}");
    let (_, seen) = terminal.end();
    assert!(seen.contains("interrupted: delivered 1 · ok 1") && seen.contains("exit 130"), "{seen:?}");
    assert_is_as_before(&seen);
}

#[test]
fn a_failing_panel_restores_the_terminal() {
    let (stage, key) = stage();
    let mut command = then_look_at_the_terminal(&listen(&stage, &key, "http://127.0.0.1:1/", &["--ui"]));
    let terminal = Terminal::start(command.env("NO_COLOR", "1"));
    terminal.wait_for(0, "q or Ctrl-C ends it");
    // The key is not valid any more.
    stage.document(&["channels", "rotate-key", "demo", "--bot", "demo"]);
    let (_, seen) = terminal.end();
    assert!(seen.contains("exit 4"), "{seen:?}");
    assert_is_as_before(&seen);
}

#[test]
fn without_a_terminal_listen_prints_lines() {
    let (stage, _) = stage();
    let refused = listen(&stage, "hubc_nobody", "http://127.0.0.1:1/", &["--ui"]).output().unwrap();
    let (out, err) = ends(&refused, 4);
    assert!(out.is_empty() && err.contains("printing lines instead") && !err.contains('\u{1b}'), "{err}");
}

#[test]
fn recordings_of_listen_are_replayed_with_the_same_bodies() {
    let (stage, key) = stage();
    let (folder, first, second) =
        (temp(), Sink::new(|number| (if number == 0 { 200 } else { 500 }, "{}".into())), Sink::kind());
    let file = folder.path().join("orders.jsonl");
    let file = file.to_str().unwrap();
    let secret = "a secret of at least sixteen characters";
    let more = ["--record", file, "--secret", secret, "--header", "Authorization: Bearer of-mine"];
    let mut listening = listen(&stage, &key, &first.url, &more);
    let mut listening = listening.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(listening.stderr.take().unwrap()).lines();
    assert!(told.next().unwrap().unwrap().starts_with("ready channel=demo"));
    for text in ["order 42", "two\nlines \u{1f600}"] {
        stage.say(text);
    }
    first.wait(2);
    let lines = || std::fs::read_to_string(file).unwrap_or_default();
    let watch = hub_core::time::Stopwatch::start();
    while lines().lines().count() < 2 {
        assert!(watch.elapsed().as_secs() < 30, "{}", lines());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    listening.kill().unwrap();
    listening.wait().unwrap();
    let recorded = lines();
    for hidden in [secret, &key, "of-mine"] {
        assert!(!recorded.contains(hidden), "{hidden} is in {recorded}");
    }
    let traces: Vec<Value> = recorded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&traces[0]["status"], &traces[1]["status"]), (&"ok".into(), &"error".into()));
    assert_eq!((&traces[0]["summary"], &traces[1]["summary"]), (&"status 200".into(), &"status 500".into()));

    ends(&stage.files(&["replay", "--from", file, "--to", &second.url]), 0);
    let bodies = |sink: &Sink| sink.requests().into_iter().map(|request| request.body).collect::<Vec<_>>();
    assert_eq!(bodies(&second), bodies(&first));
    let refused = listen(&stage, &key, &first.url, &["--record", folder.path().to_str().unwrap()]).output();
    let refused = refused.unwrap();
    assert_eq!(refused.status.code(), Some(6), "{}", stderr(&refused));
}

#[test]
fn of_two_listeners_with_one_key_only_the_first_reply_is_sent() {
    let (stage, key) = stage();
    let start = |reply: &'static str| {
        let sink = Sink::new(move |_| (200, format!("{{\"reply\":\"{reply}\"}}")));
        let mut command = listen(&stage, &key, &sink.url, &[]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().starts_with("ready channel=demo"));
        let (tell, told) = std::sync::mpsc::sync_channel(1_000);
        std::thread::spawn(move || lines.try_for_each(|line| tell.send(line)));
        (child, told, sink)
    };
    let listeners = [start("tea"), start("coffee")];
    stage.say("which one?");
    for (.., sink) in &listeners {
        sink.wait(1);
    }
    let said = "the reply was not sent: another listener of this channel has replied";
    let is_told = || listeners.iter().any(|(_, told, _)| told.try_iter().any(|line| line.contains(said)));
    let watch = hub_core::time::Stopwatch::start();
    while !is_told() {
        assert!(watch.elapsed().as_secs() < 30, "neither listener says that the other one answered");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let sent = || stage.simulator.outbound(Some(&stage.demo.wx_id), 0);
    let replies = || sent().into_iter().filter(|one| ["tea", "coffee"].contains(&&*one.text)).count();
    while replies() == 0 {
        assert!(watch.elapsed().as_secs() < 30, "no reply was sent");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(replies(), 1);
    for (mut child, ..) in listeners {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// The names of the temporary channels of the demo's bot.
fn temporary(stage: &Stage) -> Vec<String> {
    let listed = stage.document(&["channels", "list", "--bot", "demo"]);
    let names =
        listed["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("hub-cli listen") && name.ends_with("(temporary)")).collect()
}

#[test]
fn listen_on_a_bot_creates_a_temporary_channel() {
    let stage = Stage::new();
    let sink = Sink::new(|_| (200, "{}".to_owned()));
    let start = || {
        let mut command = stage.signed_in();
        command.args(["listen", "--bot", "demo", "--forward-to", &sink.url]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let ready = lines.find(|line| line.starts_with("ready channel=hub-cli listen")).unwrap();
        (child, lines, ready)
    };
    // Two at a time receive everything, each over its own channel.
    let (first, second) = (start(), start());
    assert_ne!(first.2, second.2);
    assert_eq!(temporary(&stage).len(), 2);
    stage.say("order 42");
    sink.wait(2);
    for ((mut child, ..), signal) in [(first, "-INT"), (second, "-TERM")] {
        let before = temporary(&stage).len();
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        assert_eq!(temporary(&stage).len(), before - 1, "{signal} leaves a channel behind");
    }
    let mut unknown = stage.signed_in();
    unknown.args(["listen", "--bot", "nothing", "--forward-to", &sink.url]);
    assert_eq!(unknown.output().unwrap().status.code(), Some(5));
    let mut neither = stage.signed_in();
    neither.args(["listen", "--forward-to", &sink.url]);
    let (_, err) = ends(&neither.output().unwrap(), 2);
    assert!(err.contains("--key"), "{err}");
}
