//! All commands on one page of Markdown: `REFERENCE.md`.
//!
//! `clap-markdown` leaves out variables, and lists global options again for each command.

use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::args::{Cli, TOPICS};

pub fn page() -> String {
    let mut root = Cli::tree();
    root.build();
    let mut page =
        "# The command line of Message Hub\n\nWritten by `hub-cli man --markdown`; a test compares it.\n\n"
            .to_owned();
    page.push_str("## Options of every command\n\n");
    arguments(&root, Arg::is_global_set, &mut page);
    command(&root, &mut page);
    for (topic, text) in TOPICS {
        let _ = write!(page, "## Topic: {topic}\n\n```text\n{}\n```\n\n", text.trim_end());
    }
    page.trim_end().to_owned()
}

fn command(found: &Command, page: &mut String) {
    let mut below = found.get_subcommands().filter(|sub| !sub.is_hide_set()).peekable();
    if below.peek().is_none() {
        leaf(found, page);
    }
    below.for_each(|sub| command(sub, page));
}

fn leaf(leaf: &Command, page: &mut String) {
    let name = leaf.get_bin_name().unwrap_or_else(|| leaf.get_name());
    let about =
        leaf.get_long_about().or_else(|| leaf.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "## {name}\n\n{}\n\n", about.trim());
    let usage = leaf.clone().render_usage().to_string();
    let _ = write!(page, "```text\n{}\n```\n\n", usage.trim());
    arguments(leaf, |argument| !argument.is_global_set(), page);
    if let Some(after) = leaf.get_after_help() {
        let _ = write!(page, "```text\n{}\n```\n\n", after.to_string().trim());
    }
}

fn arguments(command: &Command, wanted: impl Fn(&Arg) -> bool, page: &mut String) {
    let shown = |argument: &&Arg| {
        !argument.is_hide_set()
            && wanted(argument)
            && !matches!(argument.get_id().as_str(), "help" | "version")
    };
    let mut any = false;
    for argument in command.get_arguments().filter(shown) {
        any = true;
        let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string);
        let help = help.unwrap_or_default().replace('\n', " ");
        let default: Vec<_> =
            argument.get_default_values().iter().filter_map(|value| value.to_str()).collect();
        let default = if default.is_empty() || !argument.get_action().takes_values() {
            String::new()
        } else {
            format!(" [default: {}]", default.join(" "))
        };
        let variable = argument.get_env().and_then(|name| name.to_str());
        let variable = variable.map(|name| format!(" [env: {name}]")).unwrap_or_default();
        // The alternate form is the one without the styles of a terminal.
        let _ = writeln!(page, "- `{argument:#}`: {help}{default}{variable}");
    }
    if any {
        page.push('\n');
    }
}
