//! Rules for every command of the tree.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use hub_core::demo::ADA;
use serde_json::Value;

use crate::{
    examples::leaves,
    hubs::temp,
    program::{command, ends, fails, feed, prints, run, stdout},
    pty::Terminal,
    stage::Stage,
};

#[test]
fn the_help_of_every_command_has_examples_exit_codes_and_related_commands() {
    for (words, examples) in leaves() {
        assert!(examples.len() >= 2, "{words:?}: {examples:?}");
        let arguments: Vec<&str> = std::iter::once("help").chain(words.split(' ')).collect();
        let help = prints(temp().path(), &arguments, 0);
        assert!(help.contains("Exit codes: "), "{words:?}");
        assert!(help.contains("See also: "), "{words:?}");
    }
}

#[test]
fn a_user_signs_in_by_a_code_at_a_terminal() {
    let stage = Stage::new();
    let mut command = stage.signed_in();
    let config = temp();
    command.env_remove("HUB_TOKEN").env("XDG_CONFIG_HOME", config.path()).args(["login"]);
    let mut terminal = Terminal::start(&command);
    terminal.wait_for(0, "code: ");
    let seen = terminal.seen();
    assert!(seen.contains("http://localhost:9800/"), "{seen}");
    terminal.press("\u{3}");
    let (exit, seen) = terminal.end();
    assert_eq!(exit, 130, "{seen}");
    assert_eq!(std::fs::read_dir(config.path()).unwrap().count(), 0, "no one is signed in");
}

#[test]
fn a_login_confirmed_on_another_device_signs_in_at_the_terminal() {
    let (stage, config) = (Stage::new(), temp());
    let mut command = stage.signed_in();
    command.env_remove("HUB_TOKEN").env("XDG_CONFIG_HOME", config.path()).env("NO_COLOR", "1").arg("login");
    let terminal = Terminal::start(&command);
    terminal.wait_for(0, "waiting");
    let seen = terminal.seen();
    let behind = |mark: &str| {
        let line = seen.lines().find_map(|line| Some(&line[line.find(mark)? + mark.len()..])).unwrap();
        line.trim().to_owned()
    };
    stage.confirm(&behind("  http://"), &behind("code: "));
    let (exit, seen) = terminal.end();
    assert_eq!(exit, 0, "{seen}");
    assert!(seen.ends_with(&format!("confirmed\r\nsigned in to {}/ as ada\r\n", stage.url)), "{seen:?}");
}

#[test]
fn a_code_with_a_link_to_this_machine_is_drawn_only_with_qr() {
    let stage = Stage::new();
    let config = temp();
    let login = |more: &[&str]| {
        let mut command = stage.signed_in();
        command.env_remove("HUB_TOKEN").env("XDG_CONFIG_HOME", config.path()).arg("login").args(more);
        command
    };
    for (more, drawn) in [(&[][..], false), (&["--qr"], true), (&["--code"], false)] {
        let mut terminal = Terminal::start(&login(more));
        terminal.wait_for(0, "code: ");
        terminal.press("\u{3}");
        let (exit, seen) = terminal.end();
        assert_eq!((exit, seen.contains('▀')), (130, drawn), "{more:?}: {seen}");
    }
    for (more, drawn) in [(&[][..], false), (&["--qr"], true), (&["--code"], false)] {
        let mut child = login(more).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut seen = Vec::new();
        for line in lines {
            seen.push(line);
            if seen.last().unwrap().contains("code: ") {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen.concat().contains('▀'), drawn, "{more:?}: {seen:?}");
    }
    for both in [["--qr", "--code"], ["--code", "--with-token"]] {
        assert_eq!(login(&both).output().unwrap().status.code(), Some(2), "{both:?}");
    }
}

#[test]
fn stats_watch_prints_changed_numbers() {
    let stage = Stage::new();
    let mut command = stage.signed_in();
    let mut child = command.args(["stats", "--watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap()).unwrap();
    let first = next()["messages"]["in"].as_u64().unwrap();
    stage.say("hello");
    while next()["messages"]["in"].as_u64().unwrap() == first {}
    let ended = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(ended.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130), "asked to end, it ends as if interrupted");

    let mut command = stage.signed_in();
    command.env("NO_COLOR", "1").args(["stats", "--watch"]);
    let mut terminal = Terminal::start(&command);
    let shown = terminal.wait_for(0, "failed, 10 min");
    stage.say("hello again");
    // In the place of what stood there.
    terminal.wait_for(shown, "\u{1b}[");
    terminal.press("\u{3}");
    assert_eq!(terminal.end().0, 130);
}

#[test]
fn quiet_and_verbose_set_how_much_is_printed() {
    let stage = Stage::new();
    let said = |arguments: &[&str], exit: i32| {
        let mut command = stage.signed_in();
        ends(&command.args(arguments).output().unwrap(), exit)
    };
    let (data, told) = said(&["bots", "list", "--verbose"], 0);
    assert!(data.contains("demo"), "{data}");
    assert!(
        told.contains(&format!("> GET {}/api/bots", stage.url)) && told.contains("< 200 OK in "),
        "{told}"
    );
    assert!(!told.contains(&stage.key), "{told}");
    let (_, told) = said(&["bots", "show", "nobody", "--quiet"], 5);
    assert!(told.starts_with("error[NOT_FOUND]"), "{told}");
    assert_eq!(said(&["bots", "show", "nobody", "-qq"], 5), (String::new(), String::new()));
    let (_, told) = said(&["bots", "list", "--verbose", "--quiet"], 2);
    assert!(told.contains("cannot be used with"), "{told}");
}

#[test]
fn listen_selects_its_server_like_other_commands() {
    let stage = Stage::new();
    let (config, nobody) = (temp(), "http://127.0.0.1:1");
    let key = stage.document(&["channels", "rotate-key", "demo", "--bot", "demo"])["api_key"].clone();
    let listen = |environment: &[(&str, &str)], more: &[&str]| {
        let mut command = command(config.path());
        command.env("XDG_CONFIG_HOME", config.path()).env("HUB_CHANNEL_KEY", key.as_str().unwrap());
        command.envs(environment.iter().copied());
        command.args(["listen", "--forward-to", "http://127.0.0.1:1/hook"]).args(more);
        command
    };
    let login = ["login", "--with-token", "--server", &stage.url, "--profile", "work"];
    let mut signing_in = command(config.path());
    ends(&feed(signing_in.env("XDG_CONFIG_HOME", config.path()).args(login), &stage.key), 0);
    for mut command in [
        listen(&[("HUB_SERVER", nobody)], &["--server", &stage.url]),
        listen(&[("HUB_SERVER", &stage.url)], &[]),
        listen(&[], &["--profile", "work"]),
        listen(&[], &[]),
    ] {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.starts_with("ready channel=demo ")), "it found the hub");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let there = listen(&[("HUB_SERVER", nobody)], &[]).output().unwrap();
    assert!(fails(&there, 7, "UNAVAILABLE").contains(nobody));
    let torn = listen(&[], &["--profile", "work", "--server", nobody]).output().unwrap();
    fails(&torn, 2, "INVALID_PARAMS");
}

/// Signs in by a code that Ada confirms, with only the output for programs; returns the document.
fn signs_in(stage: &Stage, command: &mut Command) -> Value {
    command.args(["login", "--server", &stage.url, "--json", "--no-input"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let asked: Value = serde_json::from_str(&line).unwrap();
    stage.confirm(asked["qr_text"].as_str().unwrap(), asked["user_code"].as_str().unwrap());
    let (out, _) = ends(&child.wait_with_output().unwrap(), 0);
    serde_json::from_str(&out).unwrap()
}

/// A whole session of a program, with nothing but documents and exit codes.
#[test]
fn json_documents_and_exit_codes_suffice_for_programs() {
    let stage = Stage::new();
    let config = temp();
    let bare = || {
        let mut command = command(config.path());
        command.env_remove("HUB_DATA_DIR").env("XDG_CONFIG_HOME", config.path());
        command.env("HUB_SIM_URL", &stage.sim);
        command
    };
    let program = |arguments: &[&str], exit: i32| {
        let output = bare().args(arguments).args(["--json", "--no-input"]).output().unwrap();
        let (out, _) = ends(&output, exit);
        serde_json::from_str::<Value>(if out.is_empty() { "null" } else { &out }).unwrap()
    };
    let does = |arguments: &[&str]| program(arguments, 0);
    assert_eq!(signs_in(&stage, &mut bare())["username"], "ada");
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
    let again = does(&["replay", &trace]);
    assert_eq!(again["trace_id"], trace.as_str());
    // Ada is this hub's first user, and reviews.
    let approved = does(&["plugins", "approve", "stamp"]);
    assert!(approved.to_string().contains("approved"), "{approved}");
    program(&["channels", "delete", channel, "--bot", "demo"], 2);
    does(&["channels", "delete", channel, "--bot", "demo", "--yes"]);
    program(&["channels", "show", channel, "--bot", "demo"], 5);
    // Backups are made next to the server, on its files.
    let (old, new, file) = (stage.path(), config.path().join("restored"), config.path().join("hub.tar"));
    let [old, new, file] = [old, &new, &file].map(|path| path.to_str().unwrap());
    assert_eq!(does(&["db", "backup", "--to", file, "--data-dir", old])["file"], file);
    let restore = ["db", "restore", file, "--data-dir", new];
    assert_eq!(does(&[&restore[..], &["--verify-only"]].concat())["restored"], false);
    assert_eq!(does(&restore)["restored"], true);
    assert_eq!(does(&["traces", "show", &trace, "--data-dir", new])["status"], "ok");
    program(&restore, 2);
    assert_eq!(does(&["logout"])["key_ended"], true);
    program(&["whoami"], 4);
}

/// What people write is shown and cannot do anything.
#[test]
fn a_message_cannot_change_the_terminal() {
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
