//! What a shell is offered while someone types.

use std::path::Path;

use crate::{
    hubs::{hub_at_a_fixed_time, temp},
    program::{command, ends},
};

/// What fish is offered for the last of these words.
fn offered(folder: &Path, words: &[&str]) -> Vec<String> {
    let mut command = command(folder);
    let output = command.env("COMPLETE", "fish").args(["--", "hub-cli"]).args(words).output().unwrap();
    let (out, err) = ends(&output, 0);
    assert_eq!(err, "", "whatever is wrong, nothing is said");
    out.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn completion_offers_commands_options_and_values() {
    let folder = temp();
    assert!(offered(folder.path(), &["chan"]).contains(&"channels".to_owned()));
    assert!(offered(folder.path(), &["channels", "set-w"]).contains(&"set-webhook".to_owned()));
    assert!(offered(folder.path(), &["replay", "--as-r"]).contains(&"--as-recorded".to_owned()));
    assert!(offered(folder.path(), &["traces", "list", "--status", ""]).contains(&"pending".to_owned()));
    assert!(offered(folder.path(), &["completions", ""]).contains(&"zsh".to_owned()));
}

#[test]
fn completion_offers_names_of_the_hub_and_ignores_a_missing_hub() {
    let folder = hub_at_a_fixed_time();
    let offers = |words: &[&str], name: &str| offered(folder.path(), words).contains(&name.to_owned());
    assert!(offers(&["bots", "show", ""], "demo"));
    assert!(offers(&["traces", "list", "--bot", "de"], "demo"));
    assert!(offers(&["send", ""], "demo"));
    assert!(!offers(&["send", "demo", ""], "demo"), "the second argument is a person");
    assert!(offers(&["channels", "show", ""], "demo"));
    assert!(!offers(&["bots", "show", "x"], "demo"));
    let nothing = temp();
    assert!(!offered(nothing.path(), &["bots", "show", ""]).contains(&"demo".to_owned()));
    assert_eq!(std::fs::read_dir(nothing.path()).unwrap().count(), 0, "looking makes nothing");
}
