//! The simulated network as a process of its own.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{
    hubs::temp,
    program::{command, fails, refuses, run, stderr},
    stage::Stage,
};

#[test]
fn sim_serve_runs_a_separate_simulator() {
    use std::io::{BufRead, BufReader};
    let folder = temp();
    let mut command = command(folder.path());
    command.args(["sim", "serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let ready = lines.next().unwrap().unwrap();
    let url = ready.strip_prefix("ready ").unwrap().to_owned();
    refuses(folder.path(), &["sim", "say", "hi", "--sim", &url], 5, "NOT_FOUND");
    let reset = run(folder.path(), &["sim", "reset", "--sim", &url]);
    assert_eq!(reset.status.code(), Some(0), "{}", stderr(&reset));
    let taken = url.trim_start_matches("http://");
    refuses(folder.path(), &["sim", "serve", "--listen", taken], 2, "INVALID_PARAMS");
    Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn sim_say_prints_the_reply_and_the_trace() {
    let stage = Stage::new();
    let mut command = command(stage.path());
    command.env("HUB_SIM_URL", &stage.sim).args(["sim", "say", "order 42", "--as", "Ada", "--wait", "20s"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("demo → Ada: 42 is on its way"), "{text}");
    assert!(lines.next().is_some_and(|line| line.starts_with("trace tr_")), "{text}");
    assert_eq!(lines.next(), None, "{text}");
}

#[test]
fn sim_contacts_lists_the_people_of_a_bot() {
    let stage = Stage::new();
    let people = || stage.document(&["sim", "contacts"])["items"].as_array().unwrap().clone();
    let is_carol = |person: &Value| person["user_id"] == "carol@im.wechat";
    assert!(!people().iter().any(is_carol), "she has not written yet");
    stage.document(&["sim", "say", "hello", "--as", "Carol"]);
    let carol = people().into_iter().find(is_carol).unwrap();
    assert!(carol["last_message_at"].is_string() && carol["sends_left"].as_u64() > Some(0), "{carol}");
    assert_eq!(carol["owner"], false);
    let mut stranger = stage.signed_in();
    stranger.args(["sim", "contacts", "--bot", "0@im.bot"]);
    fails(&stranger.output().unwrap(), 5, "NOT_FOUND");
}
