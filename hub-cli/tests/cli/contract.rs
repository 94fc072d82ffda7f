//! Promises of every command, kept by going through the whole tree (`ux` 2.5).

use std::{
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use hub_core::{demo::ADA, time::Stopwatch};
use serde_json::Value;

use crate::{
    hubs::{hub_with_demo, temp},
    program::{command, document, ends, prints, run, stderr, stdout},
    pty::Terminal,
    stage::Stage,
};

/// The longest that any command may take with nothing to do; far more than one needs on a busy machine.
const CAP: Duration = Duration::from_secs(60);

/// Every command without commands below it: its words, and its examples.
fn leaves() -> Vec<(Vec<String>, Vec<String>)> {
    fn walk(tree: &Value, found: &mut Vec<(Vec<String>, Vec<String>)>) {
        let below = tree["commands"].as_array().unwrap();
        if below.is_empty() {
            let words = tree["name"].as_str().unwrap().split(' ').skip(1).map(str::to_owned).collect();
            let examples =
                tree["examples"].as_array().unwrap().iter().map(|e| e.as_str().unwrap().to_owned());
            found.push((words, examples.collect()));
        }
        for tree in below {
            walk(tree, found);
        }
    }
    let mut found = Vec::new();
    walk(&document(temp().path(), &["help"]), &mut found);
    assert!(found.len() > 90, "{}", found.len());
    found
}

#[test]
fn c1_every_command_has_two_examples_an_exit_code_and_something_to_see_also() {
    for (words, examples) in leaves() {
        assert!(examples.len() >= 2, "{words:?}: {examples:?}");
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments.insert(0, "help");
        let help = prints(temp().path(), &arguments, 0);
        assert!(help.contains("Exit codes: "), "{words:?}");
        assert!(help.contains("See also: "), "{words:?}");
    }
}

/// Waits for a program, but not for ever; `None` when it had to be ended.
fn within_cap(mut command: Command) -> Option<std::process::Output> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let watch = Stopwatch::start();
    let pipes = [
        Box::new(child.stdout.take().unwrap()) as Box<dyn std::io::Read + Send>,
        Box::new(child.stderr.take().unwrap()),
    ];
    let readers = pipes.map(|mut pipe| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            bytes
        })
    });
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if watch.elapsed() >= CAP {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let [stdout, stderr] = readers.map(|reader| reader.join().unwrap());
    Some(std::process::Output { status, stdout, stderr })
}

/// Without a terminal, without stdin, on a hub with a bot and on nothing at all: the first example of each command, or
/// a server that runs until it is stopped, ended by the address that is taken.
#[test]
fn c4_no_command_hangs_or_colours_without_a_terminal() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let folder = hub_with_demo();
    let work = temp();
    let leaves = leaves();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let look = |words: &[String]| {
        let mut command = command(folder.path());
        // What goes on until it is stopped ends at once where there is nothing to go on with.
        let ends: &[&str] = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["tail"] => &["--bot", "demo", "--follow=false"],
            ["sim", "serve" | "app"] => &["--listen", &taken],
            ["listen"] => {
                &["--forward-to", "http://127.0.0.1:9", "--server", "http://127.0.0.1:9", "--key", "x"]
            }
            ["man"] => &["--out", "pages"],
            ["debug", "repl"] => &["/dev/null"],
            ["completions"] => &["bash"],
            _ => &[],
        };
        command.current_dir(work.path()).env("HUB_SIM_URL", "http://127.0.0.1:9").args(words).args(ends);
        command.env("TERM", "xterm-256color").arg("--no-input");
        let Some(output) = within_cap(command) else { return Some(format!("{words:?} hangs")) };
        let (out, err) = (stdout(&output), stderr(&output));
        if out.contains('\u{1b}') || err.contains('\u{1b}') {
            return Some(format!("{words:?} shows an escape: {out}{err}"));
        }
        // C3: what fails has said nothing but why.
        let fails = !output.status.success() && !matches!(output.status.code(), Some(3 | 9));
        if fails && (!out.is_empty() || err.trim().is_empty()) {
            return Some(format!("{words:?} fails with data on stdout, or without a reason: {out}{err}"));
        }
        (output.status.code() == Some(101)).then(|| format!("{words:?} panics: {err}"))
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((words, _)) = leaves.get(next.fetch_add(1, Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(look(words));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn c5_a_person_signs_in_by_a_code_at_a_terminal() {
    let stage = Stage::new();
    let mut command = stage.signed_in();
    let config = temp();
    command.env_remove("HUB_TOKEN").env("XDG_CONFIG_HOME", config.path()).args(["login"]);
    let mut terminal = Terminal::start(&command);
    terminal.wait_for(0, "code: ");
    let seen = terminal.seen();
    assert!(seen.contains('▀') && seen.contains("http://localhost:9800/"), "{seen}");
    terminal.press("\u{3}");
    let (exit, seen) = terminal.end();
    assert_eq!(exit, 130, "{seen}");
    assert_eq!(std::fs::read_dir(config.path()).unwrap().count(), 0, "nobody is signed in");
}

/// `ux` C6: a whole session of a program, with nothing but documents and exit codes.
#[test]
fn c6_a_program_needs_nothing_but_documents_and_exit_codes() {
    let stage = Stage::new();
    let config = temp();
    let program = |arguments: &[&str], input: &str, exit: i32| {
        let mut command = command(config.path());
        command
            .env_remove("HUB_DATA_DIR")
            .env("XDG_CONFIG_HOME", config.path())
            .env("HUB_SIM_URL", &stage.sim);
        let output = crate::program::feed(command.args(arguments).args(["--json", "--no-input"]), input);
        let (out, _) = ends(&output, exit);
        serde_json::from_str::<Value>(if out.is_empty() { "null" } else { &out }).unwrap()
    };
    let does = |arguments: &[&str]| program(arguments, "", 0);
    let signed_in = program(&["login", "--server", &stage.url, "--with-token"], &stage.key, 0);
    assert_eq!(signed_in["username"], "ada");
    assert_eq!(does(&["whoami"])["username"], "ada");
    let channel = does(&["channels", "create", "orders", "--bot", "demo"]);
    let channel = channel["id"].as_str().unwrap();
    let script = config.path().join("p.js");
    std::fs::write(
        &script,
        "// ==UserScript==\n// @name stamp\n// @version 1.0.0\n// ==/UserScript==\n\
         function onRequest(ctx) { ctx.req.headers['X-Stamp'] = 'yes' }\n",
    )
    .unwrap();
    let version = does(&["plugins", "submit", script.to_str().unwrap()]);
    assert_eq!(version["status"], "pending", "{version}");
    let installed = does(&["channels", "plugins", "install", "stamp", "--bot", "demo", "--channel", "demo"]);
    assert_eq!(installed["enabled"], true);
    does(&["sim", "say", "order 7", "--as", "Ada"]);
    let trace = (0..600).find_map(|_| {
        let traces = does(&["traces", "list", "--bot", "demo", "--channel", "demo", "--limit", "1"]);
        let trace = &traces["items"][0];
        let over = trace["status"].is_string() && trace["status"] != "pending";
        (!over).then(|| thread::sleep(Duration::from_millis(50)));
        over.then(|| trace["trace_id"].as_str().unwrap().to_owned())
    });
    let trace = trace.expect("a trace");
    let shown = does(&["traces", "show", &trace]).to_string();
    assert!(shown.to_lowercase().contains("x-stamp"), "{shown}");
    assert_eq!(does(&["send", "demo", ADA, "on its way", "--wait"])["status"], "sent");
    let again = program(&["replay", &trace], "", 0);
    assert_eq!(again["trace_id"], trace.as_str());
    // Ada is this hub's first user, and reviews.
    let approved = does(&["plugins", "approve", "stamp"]);
    assert!(approved.to_string().contains("approved"), "{approved}");
    program(&["channels", "delete", channel, "--bot", "demo"], "", 2);
    does(&["channels", "delete", channel, "--bot", "demo", "--yes"]);
    program(&["channels", "show", channel, "--bot", "demo"], "", 5);
    assert_eq!(does(&["logout"])["key_ended"], false);
    program(&["whoami"], "", 4);
}

/// `ux` C9: what people write is shown and cannot do anything.
#[test]
fn c9_a_message_cannot_change_the_terminal() {
    let stage = Stage::new();
    let hostile = format!(
        "\u{1b}[31mred\u{1b}]52;c;ZXZpbA==\u{7} \u{9b}2J \u{202e}olleh\u{2066} \u{1f600} {}",
        "x".repeat(10_000)
    );
    stage.simulator.say(&stage.demo.wx_id, Some(ADA), "hello").unwrap();
    stage.say(&hostile);
    let trace = stage.traces()[0].trace_id.to_string();
    let forbidden = ['\u{7}', '\u{9b}', '\u{202e}', '\u{2066}'];
    for arguments in [
        &["bots", "messages", "demo"][..],
        &["bots", "messages", "demo", "--json"],
        &["bots", "messages", "demo", "--jq", ".items[].content"],
        &["bots", "contacts", "demo"],
        &["traces", "list", "--bot", "demo"],
        &["traces", "show", &trace],
        &["traces", "show", &trace, "--json"],
        &["tail", "--bot", "demo", "--follow=false", "--since", "tr_00000000000000000000000000"],
    ] {
        let mut command = stage.signed_in();
        command.env("NO_COLOR", "1").args(arguments);
        let (exit, seen) = Terminal::start(&command).end();
        assert_eq!(exit, 0, "{arguments:?}: {seen}");
        assert!(!seen.contains(forbidden) && !seen.contains('\u{1b}'), "{arguments:?}: {seen:?}");
    }
    let shown = run(stage.path(), &["bots", "messages", "demo", "--direction", "inbound", "--limit", "1"]);
    assert!(stdout(&shown).contains("[31mred]52;c;ZXZpbA=="), "it is there: {}", stdout(&shown));
    assert!(stdout(&shown).contains('\u{1f600}'));
}
