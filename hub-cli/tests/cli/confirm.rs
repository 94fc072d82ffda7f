//! What is lost is asked about: by a terminal in words, of a program by a flag. Whatever is not confirmed
//! changes nothing.

use std::path::Path;

use tempfile::TempDir;

use crate::{
    hubs::{hub_with_demo, temp},
    program::{command, document, ends, fails, refuses, run, run_with_input},
    pty::Terminal,
};

const SCRIPT: &str = "// ==UserScript==\n// @name tagger\n// @version 1.0.0\n// ==/UserScript==\n";

/// A hub with something of everything that can be lost.
fn hub() -> TempDir {
    let folder = hub_with_demo();
    let path = folder.path();
    let created = ["users", "create-admin", "ada", "--password-file", "-"];
    ends(&run_with_input(path, &created, "correct horse\n"), 0);
    let script = path.join("tagger.js").display().to_string();
    std::fs::write(&script, SCRIPT).unwrap();
    for arguments in [
        &["plugins", "submit", &script, "--author", "ada"][..],
        &["channels", "plugins", "install", "tagger", "--bot", "demo", "--channel", "demo"],
        &["apps", "create", "Weather", "--scope", "message:write", "--owner", "ada"],
        &["apps", "install", "weather", "--bot", "demo"],
        &["users", "create", "bob"],
        &["db", "backup", "--to", &path.join("hub.tar").display().to_string()],
    ] {
        ends(&run(path, arguments), 0);
    }
    let profiles = r#"{"current":"work","profiles":{"work":{"server":"https://hub.example","key":"hubu_x","own_key":false,"username":"ada"}}}"#;
    let config = path.join("config/hub");
    std::fs::create_dir_all(&config).unwrap();
    hub_core::private_files::create_new(&config.join("credentials.json"), profiles.as_bytes()).unwrap();
    folder
}

/// Everything that asks: the arguments, and what has to be typed to go on.
fn losses(path: &Path) -> Vec<(Vec<String>, &'static str)> {
    let backup = path.join("hub.tar").display().to_string();
    [
        (&["channels", "plugins", "uninstall", "tagger", "--bot", "demo", "--channel", "demo"][..], "y"),
        (&["apps", "uninstall", "weather", "--bot", "demo"], "y"),
        (&["apps", "delete", "weather"], "Weather"),
        (&["plugins", "withdraw", "tagger", "1.0.0"], "tagger"),
        (&["plugins", "delete", "tagger"], "tagger"),
        (&["channels", "delete", "demo", "--bot", "demo"], "demo"),
        (&["db", "prune", "--older-than", "0s"], "prune"),
        (&["db", "restore", &backup], "yes"),
        (&["bots", "delete", "demo"], "demo"),
        (&["users", "sessions", "revoke", "bob"], "Y"),
        (&["users", "delete", "bob"], "bob"),
        (&["profiles", "delete", "work"], "y"),
    ]
    .into_iter()
    .map(|(words, answer)| (words.iter().map(|word| (*word).to_owned()).collect(), answer))
    .collect()
}

/// What there is of all that can be lost.
fn inventory(path: &Path) -> Vec<serde_json::Value> {
    [
        &["bots", "list"][..],
        &["channels", "list", "--bot", "demo"],
        &["channels", "plugins", "list", "--bot", "demo", "--channel", "demo"],
        &["apps", "list", "--bot", "demo"],
        &["plugins", "versions", "tagger"],
        &["traces", "list", "--bot", "demo"],
        &["users", "list"],
    ]
    .map(|arguments| document(path, arguments))
    .to_vec()
}

fn program(path: &Path, arguments: &[String]) -> std::process::Command {
    let mut program = command(path);
    program.env("XDG_CONFIG_HOME", path.join("config")).env("NO_COLOR", "1");
    // The profile in use is a server's.
    program.args(arguments);
    if arguments[0] != "profiles" && arguments[0] != "db" {
        program.arg("--local");
    }
    program
}

#[test]
fn without_a_terminal_a_deletion_needs_a_flag() {
    let folder = hub();
    let path = folder.path();
    let before = inventory(path);
    for (arguments, _) in losses(path) {
        let told = fails(&program(path, &arguments).output().unwrap(), 2, "INVALID_PARAMS");
        assert!(told.contains("hint: add --yes"), "{arguments:?}: {told}");
        let (out, told) = ends(&program(path, &arguments).arg("--dry-run").output().unwrap(), 0);
        let told = out + &told;
        assert!(told.contains("nothing was changed") || told.contains("would "), "{arguments:?}: {told}");
        let both = program(path, &arguments).args(["--yes", "--dry-run"]).output().unwrap();
        assert_eq!(both.status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(inventory(path), before);
    assert!(path.join("config/hub/credentials.json").metadata().unwrap().len() > 100, "the profile is there");
    refuses(path, &["replay", "--bot", "demo"], 2, "INVALID_PARAMS");
}

#[test]
fn at_a_terminal_deletions_ask_for_confirmation() {
    let folder = hub();
    let path = folder.path();
    let before = inventory(path);
    let losses = losses(path);
    for (arguments, answer) in &losses {
        let question =
            if answer.to_lowercase().starts_with('y') { "continue? [y/N]" } else { "to continue:" };
        for (keys, exit) in [("no\r", 2), ("\r", 2), ("\u{4}", 2), ("\u{3}", 130)] {
            let mut terminal = Terminal::start(&program(path, arguments));
            terminal.wait_for(0, question);
            terminal.press(keys);
            let (ended, seen) = terminal.end();
            assert_eq!(ended, exit, "{arguments:?} {keys:?}: {seen}");
            assert_eq!(seen.contains("nothing was changed"), exit == 2, "{arguments:?} {keys:?}: {seen}");
        }
        let mut silent = program(path, arguments);
        silent.arg("--no-input");
        let (ended, seen) = Terminal::start(&silent).end();
        assert!(ended == 2 && !seen.contains(question), "{arguments:?}: {seen}");
    }
    assert_eq!(inventory(path), before);
    for (arguments, answer) in &losses {
        // The restore brings back what went before it.
        let mut terminal = Terminal::start(&program(path, arguments));
        let asked = terminal.wait_for(0, "continue");
        terminal.press(&format!("{answer}\r"));
        let (ended, seen) = terminal.end();
        let withdrawn = arguments[..2] == ["plugins", "delete"];
        assert!(ended == 0, "{arguments:?}: {seen}");
        assert!(withdrawn || seen.len() > asked, "{arguments:?}: {seen}");
    }
    refuses(path, &["bots", "show", "demo", "--local"], 5, "NOT_FOUND");
    refuses(path, &["users", "show", "bob", "--local"], 5, "NOT_FOUND");
    let profiles = program(path, &["profiles".to_owned(), "list".to_owned()]).output().unwrap();
    assert!(ends(&profiles, 0).1.contains("not signed in: hub-cli login"));
}

#[test]
fn a_confirmation_needs_the_exact_name() {
    let folder = hub_with_demo();
    for (typed, exit) in [("dem\r", 2), ("Demo\r", 2), (" demo \r", 0)] {
        let mut delete = command(folder.path());
        delete.args(["bots", "delete", "demo"]);
        let mut terminal = Terminal::start(&delete);
        terminal.wait_for(
            0,
            "this permanently deletes demo with its channels, messages and contacts\r\ntype demo to continue:",
        );
        terminal.press(typed);
        let (ended, seen) = terminal.end();
        assert_eq!(ended, exit, "{typed:?}: {seen}");
    }
    refuses(folder.path(), &["bots", "show", "demo"], 5, "NOT_FOUND");
}

#[test]
fn a_restore_without_an_existing_hub_needs_no_confirmation() {
    let (folder, empty) = (hub_with_demo(), temp());
    let file = folder.path().join("hub.tar").display().to_string();
    ends(&run(folder.path(), &["db", "backup", "--to", &file]), 0);
    let (_, told) = ends(&run(empty.path(), &["db", "restore", &file, "--dry-run"]), 0);
    assert!(told.contains("would be the first hub in "), "{told}");
    assert!(!empty.path().join("hub.db").exists());
    let mut restore = command(empty.path());
    restore.args(["db", "restore", &file]);
    let (ended, seen) = Terminal::start(&restore).end();
    assert_eq!(ended, 0, "{seen}");
    let (_, told) = ends(&run(empty.path(), &["db", "restore", &file, "--dry-run"]), 0);
    assert!(told.contains("would replace the hub in "), "{told}");
}

#[test]
fn a_bulk_replay_asks_before_anything_is_sent() {
    let folder = hub_with_demo();
    let mut replay = command(folder.path());
    replay.args(["replay", "--bot", "demo"]);
    for (keys, exit) in [("n\r", 2), ("\u{3}", 130), ("y\r", 7)] {
        let mut terminal = Terminal::start(&replay);
        terminal.wait_for(0, "people may receive replies\r\ncontinue? [y/N]");
        terminal.press(keys);
        // With a yes it goes on to find that no one works on these files.
        let (ended, seen) = terminal.end();
        assert_eq!(ended, exit, "{keys:?}: {seen}");
    }
    assert_eq!(
        document(folder.path(), &["traces", "list", "--bot", "demo"])["items"].as_array().unwrap().len(),
        1
    );
}
