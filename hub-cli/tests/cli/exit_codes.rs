//! Every exit code from a real case, with nothing on stdout.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
};

use hub_core::{data_dir, demo::ADA, store};
use serde_json::Value;

use crate::{
    hubs::{hub, hub_with_demo, temp},
    program::{command, documents, ends, prints, refuses, run, run_with_input, stderr, stdout},
    replay::sink::Sink,
};

/// The codes that `help exit-codes` lists, in its order.
fn listed() -> Vec<i32> {
    let topic = stdout(&run(temp().path(), &["help", "exit-codes"]));
    let codes = topic.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok());
    codes.collect()
}

/// Someone who has the right to work on the files, and does nothing.
fn works(path: &Path) -> hub_core::private_files::Locked {
    store::claim_file(&data_dir::database(path)).unwrap()
}

/// All of them, next to each other; the tests below know more about some.
#[test]
fn every_exit_code_comes_from_a_real_case() {
    let folder = hub_with_demo();
    let path = folder.path();
    let _working = works(path);
    let traces = path.join("traces.jsonl").display().to_string();
    ends(&run(path, &["send", "demo", ADA, "one more"]), 0);
    ends(&run(path, &["traces", "export", "--bot", "demo", "--out", &traces]), 0);
    // Two deliveries, of which the second one is refused.
    let exported = std::fs::read_to_string(&traces).unwrap();
    let delivery = exported.lines().find(|line| line.contains("receiver.local")).unwrap();
    std::fs::write(&traces, format!("{delivery}\n{delivery}\n")).unwrap();
    let sink = Sink::new(|number| (if number == 1 { 500 } else { 200 }, "{}".to_owned()));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}");
    let cases: [(i32, &[&str]); 10] = [
        (0, &["bots", "list"]),
        (1, &["send", "demo", "stranger@im.wechat", "hi"]),
        (2, &["bots", "delete", "demo", "--no-input"]),
        (3, &["replay", "--from", &traces, "--to", &sink.url]),
        (4, &["stats", "--server", &nobody]),
        (5, &["bots", "show", "nobody"]),
        (6, &["users", "create-admin", "bob", "--password-file", "/no/such/file"]),
        (7, &["sim", "accounts", "--sim", &nobody]),
        (8, &["send", "demo", ADA, "hi", "--wait", "--timeout", "1"]),
        (9, &["openapi", "export", "--check", &traces]),
    ];
    let codes: Vec<i32> = cases.iter().map(|(exit, _)| *exit).chain([130]).collect();
    assert_eq!(codes, listed());
    for (exit, arguments) in cases {
        match exit {
            0 => assert!(!prints(path, arguments, 0).is_empty()),
            // What was done is there, each line whole.
            3 => {
                let lines = documents(&prints(path, &[arguments, &["--json"]].concat(), 3));
                assert_eq!((&lines[0]["outcome"], &lines[1]["outcome"]), (&"ok".into(), &"fail".into()));
            }
            _ => {
                let (out, err) = ends(&run(path, arguments), exit);
                assert!(out.is_empty() && err.contains("error["), "{arguments:?}: {out}{err}");
            }
        }
    }
    let mut tail = command(path);
    let mut tail =
        tail.args(["tail", "--bot", "demo"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(tail.stderr.as_mut().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let interrupt = Command::new("kill").args(["-INT", &tail.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    assert_eq!(ends(&tail.wait_with_output().unwrap(), 130).0, "");
}

#[test]
fn exit_1_rejected() {
    let folder = hub_with_demo();
    refuses(folder.path(), &["send", "demo", "stranger@im.wechat", "hi"], 1, "WINDOW_CLOSED");
    refuses(folder.path(), &["send", "demo", ADA, " "], 2, "INVALID_PARAMS");
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
    refuses(empty.path(), &["traces", "list", "--bot", "demo"], 5, "NOT_FOUND");
    assert_eq!(empty.path().read_dir().unwrap().count(), 0, "looking makes nothing");
    refuses(folder.path(), &["traces", "list", "--bot", "demo"], 5, "NOT_FOUND");
    refuses(folder.path(), &["traces", "show", "tr_01KAJ6Z8QH0000000000000000"], 5, "NOT_FOUND");
    refuses(folder.path(), &["send", "demo", "ada", "hi"], 5, "NOT_FOUND");
    refuses(folder.path(), &["help", "nonsense"], 5, "NOT_FOUND");
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
    refuses(folder.path(), &missing, 6, "INVALID_PARAMS");
}

#[test]
fn exit_7_unreachable() {
    let folder = temp();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}");
    refuses(folder.path(), &["sim", "say", "hi", "--sim", &nobody], 7, "UNAVAILABLE");
    refuses(folder.path(), &["sim", "reset", "--sim", &nobody], 7, "UNAVAILABLE");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let nested = file.join("hub").display().to_string();
    refuses(folder.path(), &["db", "migrate", "--data-dir", &nested], 7, "UNAVAILABLE");
}

#[test]
fn exit_8_timed_out_and_130_interrupted() {
    let folder = hub_with_demo();
    let _working = works(folder.path());
    let wait = ["send", "demo", ADA, "hi", "--wait", "--timeout", "1"];
    refuses(folder.path(), &wait, 8, "UNAVAILABLE");
    let count = || {
        let list = run(folder.path(), &["traces", "list", "--bot", "demo"]);
        stdout(&list).lines().count()
    };
    let before = count();
    let mut command = command(folder.path());
    command.args(["send", "demo", ADA, "hi", "--wait", "--timeout", "60"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!((0..200).any(|_| count() > before), "the message was not stored");
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output)), (Some(130), String::new()));
    // A signal of the user is no error.
    let told = stderr(&output);
    assert!(told.trim_end().ends_with("interrupted") && !told.contains("error["), "{told}");
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
    let document: serde_json::Value = serde_json::from_str(&stdout(&exported_newer)).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    std::fs::write(&newer, &exported_newer.stdout).unwrap();
    assert_eq!(run(folder.path(), &["openapi", "export", "--check", &newer]).status.code(), Some(0));
    refuses(folder.path(), &["openapi", "export", "--check", &newer, "--spec", "3.0"], 9, "CONFLICT");
    std::fs::write(&file, stdout(&exported).replacen("Hub", "Pub", 1)).unwrap();
    refuses(folder.path(), &["openapi", "export", "--check", &path], 9, "CONFLICT");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = temp();
    let mut child = command(folder.path())
        .args(["openapi", "export"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}
