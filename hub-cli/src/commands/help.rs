//! `help`: topics, and the long help of commands; for programs, the tree of commands.

use clap::{Arg, Command};
use serde_json::{Value, json};

use crate::{
    args::{Cli, HelpArgs, TOPICS},
    exit::Failure,
    printer::{Format, Printer},
};

pub fn run(args: &HelpArgs, printer: &Printer) -> Result<(), Failure> {
    if let [word] = &args.topic[..]
        && let Some((topic, text)) = TOPICS.iter().find(|(topic, _)| topic == word)
    {
        return printer.one(json!({ "name": topic, "about": text }), text);
    }
    let mut root = Cli::tree();
    root.build();
    let found = find(&mut root, &args.topic)?;
    match printer.format {
        Format::Text => printer.one(Value::Null, &found.render_long_help().to_string()),
        Format::Json(_) => printer.one(tree(found, true), ""),
    }
}

fn find<'c>(root: &'c mut Command, words: &[String]) -> Result<&'c mut Command, Failure> {
    let mut found = root;
    for word in words {
        let Some(next) = found.find_subcommand_mut(word) else {
            let topics: Vec<_> = TOPICS.iter().map(|(topic, _)| *topic).collect();
            return Err(Failure::not_found(format!("there is no command or topic {}", words.join(" ")))
                .with_hint(format!("topics: {}; commands: hub-cli --help", topics.join(", "))));
        };
        found = next;
    }
    Ok(found)
}

/// A command with its subcommands. Global options are only at the root.
fn tree(command: &Command, first: bool) -> Value {
    let shown = |argument: &&Arg| !argument.is_hide_set() && (first || !argument.is_global_set());
    let below = command.get_subcommands().filter(|command| !command.is_hide_set());
    json!({
        "name": command.get_bin_name().unwrap_or_else(|| command.get_name()),
        "about": command.get_about().map(ToString::to_string),
        "examples": examples(command),
        "arguments": command.get_arguments().filter(shown).map(argument).collect::<Vec<_>>(),
        "commands": below.map(|command| tree(command, false)).collect::<Vec<_>>(),
    })
}

fn argument(argument: &Arg) -> Value {
    let values = argument.get_possible_values();
    let takes = argument.get_action().takes_values();
    let names = argument.get_value_names().unwrap_or_default();
    json!({
        "flag": argument.get_long().map(|name| format!("--{name}")),
        "value": takes.then(|| names.iter().map(clap::builder::Str::as_str).collect::<Vec<_>>().join(" ")),
        "help": argument.get_help().map(ToString::to_string),
        "required": argument.is_required_set(),
        "values": values.iter().map(clap::builder::PossibleValue::get_name).collect::<Vec<_>>(),
    })
}

/// The example lines of a command's help; they may begin with a pipe.
fn examples(command: &Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().filter(|line| line.starts_with("  ") && line.contains("hub-cli "));
    lines.map(|line| line.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves<'t>(tree: &'t Value, found: &mut Vec<&'t Value>) {
        match tree["commands"].as_array().unwrap().as_slice() {
            [] => found.push(tree),
            below => below.iter().for_each(|tree| leaves(tree, found)),
        }
    }

    #[test]
    fn the_tree_has_every_command_with_examples_and_arguments() {
        let mut root = Cli::tree();
        root.build();
        let tree = tree(&root, true);
        let mut found = Vec::new();
        leaves(&tree, &mut found);
        assert!(found.len() > 60, "{}", found.len());
        for leaf in &found {
            assert!(leaf["examples"].as_array().unwrap().len() >= 2, "{leaf}");
            assert!(leaf["about"].as_str().is_some_and(|about| !about.is_empty()), "{leaf}");
        }
        let sign = found.iter().find(|leaf| leaf["name"] == "hub-cli signature sign").unwrap();
        let flags: Vec<&str> =
            sign["arguments"].as_array().unwrap().iter().filter_map(|a| a["flag"].as_str()).collect();
        assert!(flags.contains(&"--secret-file") && !flags.contains(&"--json"), "{flags:?}");
        assert!(tree["arguments"].as_array().unwrap().iter().any(|argument| argument["flag"] == "--json"));
    }

    #[test]
    fn help_for_an_unknown_command_is_not_found() {
        let mut root = Cli::tree();
        root.build();
        assert_eq!(find(&mut root, &["sim".into(), "say".into()]).unwrap().get_name(), "say");
        let failure = find(&mut root, &["sim".into(), "sing".into()]).unwrap_err();
        assert_eq!(failure.exit as u8, 5);
    }
}
