//! The exit codes in the help of a command: those that its arguments imply, and those that it declares.

use std::collections::BTreeMap;

use clap::{Command, builder::CommandExt};

/// Exit codes that a command declares, with their meaning. They replace implied ones.
#[derive(Debug, Clone, Copy)]
pub struct Ends(pub &'static [(u8, &'static str)]);

impl CommandExt for Ends {}

const ADMIN: [&str; 4] = ["users", "stats", "audit", "ai-config"];
/// Arguments that name an object, and its kind.
const OBJECTS: [(&str, &str); 14] = [
    ("version", "version"),
    ("plugin", "plugin"),
    ("plugins", "plugin"),
    ("app", "app"),
    ("via_app", "app"),
    ("trace", "trace"),
    ("traces", "trace"),
    ("before", "trace"),
    ("channel", "channel"),
    ("bot", "bot"),
    ("user", "user"),
    ("owner", "user"),
    ("author", "user"),
    ("session", "session"),
];

/// The commands, whose help lists their exit codes above the related commands.
pub fn with_exit_codes(command: Command) -> Command {
    described(command, false)
}

fn described(command: Command, is_admin: bool) -> Command {
    let is_admin = is_admin || ADMIN.contains(&command.get_name());
    if command.has_subcommands() {
        return command.mut_subcommands(|sub| described(sub, is_admin));
    }
    let codes = codes(&command, is_admin).into_iter();
    let codes: Vec<String> = codes.map(|(code, meaning)| format!("{code} {meaning}")).collect();
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, related) = help.split_once("See also: ").unwrap_or((&help, ""));
    command.after_help(format!("{examples}Exit codes: {}.\nSee also: {related}", codes.join(", ")))
}

fn codes(command: &Command, is_admin: bool) -> BTreeMap<u8, String> {
    let has = |id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
    let done = match command.get_name() {
        "list" | "contacts" | "messages" | "pending" | "versions" | "events" | "api-logs" | "accounts" => {
            "listed"
        }
        "show" | "status" | "stats" | "version" | "whoami" => "shown",
        "create" => "created",
        "edit" => "changed",
        "delete" => "deleted",
        _ => "done",
    };
    let mut codes = BTreeMap::from([(0, done.to_owned())]);
    let mut implied = |code, meaning: &str| drop(codes.insert(code, meaning.to_owned()));
    if has("yes") {
        implied(2, "not confirmed");
    }
    if has("profile") && has("database_url") {
        let denied = if is_admin { "not signed in or not an administrator" } else { "not signed in" };
        let objects = OBJECTS.iter().filter(|(id, _)| has(id)).map(|(_, kind)| *kind);
        let objects: Vec<&str> = objects.collect();
        let or = if objects.is_empty() { "" } else { " or " };
        implied(4, denied);
        implied(5, &format!("no such {}{or}hub", objects.join(", ")));
        implied(7, "unreachable");
    }
    if has("sim") {
        implied(7, "the simulator is unreachable");
        if has("bot") {
            implied(2, "several bots, and none is named");
            implied(5, "no such bot");
        }
    }
    for flag in ["watch", "follow"].into_iter().filter(|flag| has(flag)) {
        implied(130, &format!("interrupted (--{flag})"));
    }
    if let Some(Ends(declared)) = command.get() {
        codes.extend(declared.iter().map(|(code, meaning)| (*code, (*meaning).to_owned())));
    }
    codes
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::{args::Cli, exit};

    #[test]
    fn every_exit_code_in_the_help_of_a_command_is_in_the_table() {
        fn check(command: &Command) {
            command.get_subcommands().for_each(check);
            for code in codes(command, false).keys() {
                let line = format!("{code:>3}  ");
                assert!(
                    exit::TABLE.lines().any(|row| row.starts_with(&line)),
                    "{}: {code}",
                    command.get_name()
                );
            }
        }
        check(&Cli::command());
    }
}
