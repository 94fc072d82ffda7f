//! The first example of every command, run as it is, where no one looks and no one can be asked .

use std::{
    io::Read,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use hub_core::time::Stopwatch;
use serde_json::Value;

use crate::{
    hubs::{hub_with_demo, temp},
    program::{command, document, ends, feed, run, run_with_input},
    stage::Stage,
};

/// The promise is 5 s on a machine that does nothing else. A debug build next to the other tests on two busy cores
/// may take some times as long; a command that waits for a key or an answer that never comes takes forever.
const EXAMPLE_TIMEOUT: Duration = Duration::from_secs(45);

/// Every command without commands below it: its words, and its examples.
pub fn leaves() -> Vec<(String, Vec<String>)> {
    fn walk(tree: &Value, found: &mut Vec<(String, Vec<String>)>) {
        let below = tree["commands"].as_array().unwrap();
        if below.is_empty() {
            let (_, words) = tree["name"].as_str().unwrap().split_once(' ').unwrap();
            let examples =
                tree["examples"].as_array().unwrap().iter().map(|e| e.as_str().unwrap().to_owned());
            found.push((words.to_owned(), examples.collect()));
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

/// What goes on until someone interrupts it: what is on stderr once it is at work, and how it then ends.
const UNTIL_INTERRUPTED: [(&str, &str, i32); 8] = [
    ("login", "code: ", 130),
    ("tail", "ready", 130),
    ("events", "ready", 130),
    ("listen", "ready channel=", 130),
    ("bots bind", "show this as a QR code: ", 130),
    ("apps authorize", "Open this in a browser", 130),
    ("sim serve", "ready http://", 0),
    ("sim app", "ready http://", 0),
];

/// What asks a server, or the simulator of one; all else works on files.
const NEEDS_A_SERVER: [&str; 7] =
    ["login", "events", "listen", "bots bind", "bots reconnect", "apps authorize", "sim "];

/// Those that do not end with 0: their examples name what is not there, or is there already.
const EXIT_CODES: [(&str, i32); 19] = [
    // The iLink sink of the channel is off.
    ("channels ilink-login", 6),
    // No one works on these files.
    ("replay", 7),
    ("channels clients", 7),
    ("channels test-ai", 1),
    ("traces to-test", 5),
    // No delivery is parked.
    ("traces attempt", 6),
    ("traces cancel", 6),
    ("signature verify", 9),
    // The surroundings have a channel of that name.
    ("channels create", 6),
    ("channels plugins order", 5),
    ("plugins new", 6),
    // On files no one is signed in whose it could be.
    ("apps create", 2),
    ("apps verify", 7),
    ("apps install", 6),
    ("sim scan", 5),
    ("users disable", 6),
    ("users create-admin", 6),
    ("ai-config test", 6),
    // The folder of a test is no safe place for a hub: others may read it.
    ("doctor", 9),
];

/// What lets them listen where no one else does.
fn more(words: &str) -> &'static str {
    match words {
        "sim serve" | "sim app" => "--listen 127.0.0.1:0",
        _ => "",
    }
}

/// A folder with all that the examples name: files of a plugin's author, and a hub in `hub`.
fn surroundings() -> tempfile::TempDir {
    let folder = hub_with_demo();
    let work = temp();
    let hub = work.path().join("hub");
    std::fs::rename(folder.path(), &hub).unwrap();
    for (name, text) in [
        ("tagger.js", include_str!("../../../examples/plugins/tagger.js")),
        ("body.json", "{}"),
        ("hook.secret", "a secret of the webhook\n"),
        ("openai.key", "sk-of-nobody\n"),
        ("password", "correct horse\n"),
        ("invoice.pdf", "%PDF-1.4\n"),
        ("morning.toml", "[[step]]\nsay = \"good morning\"\nas = \"Ada\"\n"),
    ] {
        std::fs::write(work.path().join(name), text).unwrap();
    }
    std::fs::create_dir_all(work.path().join(".local/share/bash-completion/completions")).unwrap();
    let created = ["users", "create-admin", "ada", "--password-file", "-"];
    ends(&run_with_input(&hub, &created, "correct horse\n"), 0);
    let path = |name: &str| work.path().join(name).display().to_string();
    for arguments in [
        &["channels", "create", "orders", "--bot", "demo"][..],
        &["plugins", "submit", &path("tagger.js"), "--author", "ada"],
        &["channels", "plugins", "install", "tagger", "--bot", "demo", "--channel", "demo"],
        &["plugins", "new", "tagger", "--dir", &path("")],
        &[
            "apps",
            "create",
            "Weather",
            "--webhook-url",
            "https://weather.example/events",
            "--command",
            "weather",
            "--scope",
            "message:read",
            "--owner",
            "ada",
        ],
        &["apps", "install", "weather", "--bot", "demo"],
        &["db", "backup", "--to", &path("hub.tar")],
    ] {
        ends(&run(&hub, arguments), 0);
    }
    work
}

/// A program that ended, or that had to be ended.
struct Ended {
    status: Option<ExitStatus>,
    out: String,
    err: String,
}

/// Waits for a program, but not for ever; interrupts it once this is on stderr.
fn within_cap(mut command: Command, ready: Option<&str>) -> Ended {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pipes = [
        Box::new(child.stdout.take().unwrap()) as Box<dyn Read + Send>,
        Box::new(child.stderr.take().unwrap()),
    ];
    let readers = pipes.map(|mut pipe| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut piece) {
                sink.lock().unwrap().extend_from_slice(&piece[..read]);
            }
        });
        (seen, reader)
    });
    let text = |index: usize| String::from_utf8_lossy(&readers[index].0.lock().unwrap()).into_owned();
    let (mut watch, mut waits_for) = (Stopwatch::start(), ready);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if waits_for.is_some_and(|ready| text(1).contains(ready)) {
            let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            assert!(interrupt.unwrap().success());
            (watch, waits_for) = (Stopwatch::start(), None);
        }
        if watch.elapsed() >= EXAMPLE_TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        thread::sleep(Duration::from_millis(10));
    };
    let readers = readers.map(|(seen, reader)| {
        reader.join().unwrap();
        String::from_utf8_lossy(&seen.lock().unwrap()).into_owned()
    });
    let [out, err] = readers;
    Ended { status, out, err }
}

/// What is wrong with how it ended, if anything.
fn fault(words: &str, ended: &Ended) -> Option<String> {
    let Ended { status, out, err } = ended;
    let told = |what: &str| Some(format!("{words} {what}\n  stdout: {out:?}\n  stderr: {err:?}"));
    let Some(status) = status else { return told("hangs") };
    if out.contains('\u{1b}') || err.contains('\u{1b}') {
        return told("shows an escape sequence");
    }
    let mut codes = UNTIL_INTERRUPTED
        .iter()
        .map(|(words, _, code)| (words, code))
        .chain(EXIT_CODES.iter().map(|(words, code)| (words, code)));
    let expected = codes.find(|(known, _)| **known == words).map_or(0, |(_, code)| *code);
    if status.code() != Some(expected) {
        return told(&format!("ends with {status}, not {expected}"));
    }
    // C3: what is refused has said nothing but why, and what fails says something in any case.
    let is_refusal = expected != 130 && err.lines().any(|line| line.starts_with("error["));
    if is_refusal && !out.is_empty() || expected != 0 && out.is_empty() && err.is_empty() {
        return told("is refused with data on stdout, or fails without a reason");
    }
    None
}

#[test]
fn no_example_hangs_or_colours_without_a_terminal() {
    let (surroundings, stage, copies) = (surroundings(), Stage::new(), temp());
    let hub = surroundings.path().join("hub");
    let traces = document(&hub, &["traces", "list", "--bot", "demo"]);
    let trace = traces["items"][0]["trace_id"].as_str().unwrap().to_owned();
    let key = stage.document(&["channels", "rotate-key", "demo", "--bot", "demo"])["api_key"].clone();
    for profile in ["default", "work"] {
        let login = ["login", "--with-token", "--server", &stage.url, "--profile", profile];
        let mut command = command(&hub);
        ends(&feed(command.env("HOME", surroundings.path()).args(login), &stage.key), 0);
    }
    // Somewhere to listen for the browser; no one else takes it in between.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let back = format!("http://{free}/callback");
    stage.document(&["apps", "create", "Weather", "--scope", "message:read", "--redirect-uri", &back]);
    let (of_a_server, of_files): (Vec<_>, Vec<_>) = leaves()
        .into_iter()
        .partition(|(words, _)| NEEDS_A_SERVER.iter().any(|start| format!("{words} ").starts_with(start)));
    let look = |words: &str, example: &str, command: &dyn Fn(&Path) -> Command| {
        assert!(example.starts_with("hub-cli "), "nothing is piped into it: {example}");
        let example = example
            .replace("tr_01KAJ6Z8QH0000000000000000", &trace)
            .replace("tr_01KAJ6Z8QH0000000000000001", &trace)
            .replace("hubc_abc", key.as_str().unwrap())
            .replace("outage 30s", "outage 1s");
        // What one changes is there for the others.
        let home = copies.path().join(words.replace(' ', "-"));
        let copied = Command::new("cp").arg("-a").args([surroundings.path(), &home]).status();
        assert!(copied.unwrap().success());
        let line = format!("exec {example} --no-input {}", more(words));
        let shell = through_shell(&command(&home), &home, &line);
        let ready =
            UNTIL_INTERRUPTED.iter().find(|(endless, ..)| *endless == words).map(|(_, ready, _)| *ready);
        fault(words, &within_cap(shell, ready))
    };
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        // In the order of the tree: what is reset at the end is there before.
        scope.spawn(|| {
            for (words, examples) in &of_a_server {
                wrong.lock().unwrap().extend(look(words, &examples[0], &|_| stage.signed_in()));
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((words, examples)) = of_files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let files = |home: &Path| command(&home.join("hub"));
                    wrong.lock().unwrap().extend(look(words, &examples[0], &files));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A line of a shell in a folder that is also the person's own, with what a command had of variables.
fn through_shell(command: &Command, home: &Path, line: &str) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_hub-cli")).parent().unwrap();
    let mut shell = Command::new("/bin/sh");
    shell.env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell.env("PATH", programs).env("HOME", home).env("TERM", "xterm-256color").current_dir(home);
    shell.args(["-c", line]).stdin(Stdio::null());
    shell
}
