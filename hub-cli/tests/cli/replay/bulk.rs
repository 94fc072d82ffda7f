//! Replays of thousands of traces, and their interruption.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{
    program::{command, command_of, documents, ends, run},
    pty::Terminal,
    replay::sink::Sink,
};

fn id(number: usize) -> String {
    format!("tr_01KAJ6Z8QH{number:016}")
}

/// An export of so many traces with bodies of a few kilobytes.
fn export(folder: &Path, count: usize) -> String {
    let path = folder.join("many.jsonl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let step = |name: &str, detail: Value| {
        json!({ "name": name, "kind": "webhook", "status": "ok", "started_at": "2026-01-02T03:04:05.678Z",
            "duration_ms": 1, "detail": detail })
    };
    for number in 0..count {
        let body =
            json!({ "type": "message", "content": format!("order {number}"), "more": "x".repeat(4_000) });
        let line = json!({
            "trace_id": id(number), "message_id": "msg_01KAJ6Z8QH0000000000000000",
            "bot_id": "bot_01KAJ6Z8QH0000000000000000", "channel_id": "ch_01KAJ6Z8QH0000000000000000",
            "status": "ok", "summary": "status 200", "started_at": "2026-01-02T03:04:05.678Z", "duration_ms": 2,
            "attempts": 1,
            "steps": [
                step("request", json!({ "method": "POST", "url": "http://shop.test/hook", "body": body.to_string(),
                    "headers": [["content-type", "application/json"]] })),
                step("response", json!({ "status": 200, "body": "{}" })),
            ],
        });
        writeln!(file, "{line}").unwrap();
    }
    file.flush().unwrap();
    path.display().to_string()
}

/// The most memory that a process ever used, in KiB.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
}

#[test]
fn thousands_of_replays_are_counted_in_bounded_memory() {
    let release = std::env::var_os("HUB_TEST_PROGRAMS").map(PathBuf::from);
    let release = release.filter(|folder| !folder.ends_with("debug"));
    let program = match &release {
        Some(folder) => folder.join("hub-cli"),
        None => PathBuf::from(env!("CARGO_BIN_EXE_hub-cli")),
    };
    // As many as a debug build sends in a few seconds: without bounds they would not fit into the memory either.
    let count = if release.is_none() && cfg!(debug_assertions) { 3_000 } else { 10_000 };
    let folder = tempfile::tempdir().unwrap();
    let file = export(folder.path(), count);
    let sink = Sink::new(|number| (if number % 100 == 7 { 500 } else { 200 }, "{}".to_owned()));
    let mut command = command_of(&program, folder.path());
    command.args(["replay", "--from", &file, "--to", &sink.url, "--concurrency", "8", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut outcomes, mut most) = ([0, 0], 0);
    for line in lines {
        let report: Value = serde_json::from_str(&line.unwrap()).unwrap();
        outcomes[usize::from(report["outcome"] == "fail")] += 1;
        if outcomes.iter().sum::<usize>() % 100 == 0 {
            most = most.max(peak(child.id()).unwrap_or(0));
        }
    }
    let output = child.wait_with_output().unwrap();
    let (_, err) = ends(&output, 3);
    let failed = count / 100;
    assert_eq!((outcomes, sink.count()), ([count - failed, failed], count));
    let summary = &documents(&err)[0];
    let told = ["total", "ok", "failed", "skipped"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!(told, [count, count - failed, failed, 0].map(|count| count as u64));
    assert_eq!(summary["resume_from"], json!(id(count - 1)));
    if cfg!(target_os = "linux") {
        assert!(most > 0 && most < 100 * 1024, "{most} KiB");
    }
}

/// A bar in one line, drawn again at most 20 times per second whatever happens meanwhile.
#[test]
fn the_replay_bar_is_redrawn_at_a_limited_rate() {
    let folder = tempfile::tempdir().unwrap();
    let file = export(folder.path(), 1_500);
    let sink = Sink::kind();
    let mut command = command(folder.path());
    command.args(["replay", "--from", &file, "--to", &sink.url, "--concurrency", "8"]);
    let (exit, seen) = Terminal::start(command.env("NO_COLOR", "1")).end();
    assert_eq!((exit, sink.count()), (0, 1_500), "{seen}");
    let drawn: Vec<&str> = seen.split("replay ").skip(1).collect();
    let (summary, bars) = drawn.split_last().unwrap();
    let seconds = summary.strip_prefix("1,500/1,500 ok 1,500 fail 0 · ").unwrap();
    let seconds: usize = seconds.trim_end().strip_suffix(" s").unwrap().parse().unwrap();
    assert!(bars.iter().any(|bar| bar.contains("/s · eta ")), "{seen:?}");
    let counts: Vec<usize> =
        bars.iter().map(|bar| bar.split('/').next().unwrap().replace(',', "").parse().unwrap()).collect();
    assert!(counts.len() > 1 && counts.is_sorted(), "{counts:?}");
    assert_eq!(seen.matches('\n').count(), 1, "the bar stays in its line, and goes: {seen:?}");
    // The summary's seconds are whole ones; a second's worth may come at once after a pause.
    assert!(counts.len() <= 20 * (seconds + 2), "{} in {seconds} s", counts.len());
}

#[test]
fn an_interrupted_replay_prints_resume_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = export(folder.path(), 400);
    let sink = Sink::kind();
    let mut command = command(folder.path());
    // So slowly that it is not over before someone interrupts it.
    command.args(["replay", "--from", &file, "--to", &sink.url, "--rate", "20"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sink.wait(3);
    let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let (out, err) = ends(&child.wait_with_output().unwrap(), 130);
    let sent = out.lines().count();
    assert_eq!(sent, sink.count(), "what was under way is waited for");
    assert!(err.contains(&format!("interrupted: replay {sent}/400 ok {sent} fail 0")), "{err}");
    let last = id(sent - 1);
    assert!(err.contains(&format!("hint: continue with --resume-from {last}")), "{err}");

    let (out, _) =
        ends(&run(folder.path(), &["replay", "--from", &file, "--to", &sink.url, "--resume-from", &last]), 0);
    assert_eq!((out.lines().count(), sink.count()), (400 - sent, 400), "each exactly once");
    assert!(out.starts_with(&id(sent)), "{out}");
}
