//! The first page of help: the commands by what they are for, everyday ones first.

use std::fmt::Write as _;

use clap::{Command, builder::StyledStr};

const GROUPS: [(&str, &[&str]); 5] = [
    ("Everyday", &["demo", "send", "tail", "listen", "replay", "traces", "signature"]),
    ("Manage", &["bots", "channels", "apps", "sim", "events"]),
    ("Plugins", &["plugins", "debug"]),
    ("Admin", &["users", "stats", "audit", "ai-config", "db", "doctor"]),
    (
        "Setup",
        &[
            "login",
            "logout",
            "whoami",
            "profiles",
            "config",
            "openapi",
            "completions",
            "man",
            "version",
            "help",
        ],
    ),
];

/// The same commands, whose first page shows them in groups. clap has one heading for all of them.
pub fn grouped(root: Command) -> Command {
    let (header, literal) = (*root.get_styles().get_header(), *root.get_styles().get_literal());
    let mut page = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    // Writing to a String cannot fail.
    for (group, names) in GROUPS {
        let _ = writeln!(page, "\n{header}{group}:{header:#}");
        for name in names {
            let about = root.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(page, "  {literal}{name:<11}{literal:#}  {about}");
        }
    }
    let _ = write!(page, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    root.help_template(StyledStr::from(page))
}

/// The same commands, whose first page fits a terminal of 24 rows: the groups after the first without descriptions.
pub fn brief(root: Command) -> Command {
    let (header, literal) = (*root.get_styles().get_header(), *root.get_styles().get_literal());
    let mut page = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (number, (group, names)) in GROUPS.into_iter().enumerate() {
        // Writing to a String cannot fail.
        if number == 0 {
            let _ = writeln!(page, "\n{header}{group}:{header:#}");
            for name in names {
                let about = root.find_subcommand(name).and_then(Command::get_about);
                let about = about.map(ToString::to_string).unwrap_or_default();
                let _ = writeln!(page, "  {literal}{name:<11}{literal:#}  {about}");
            }
            page.push('\n');
        } else {
            let lines: Vec<String> = names.chunks(BRIEF_COMMANDS).map(|line| line.join("  ")).collect();
            let lines = lines.join(&format!("\n{:10}", ""));
            let _ = writeln!(page, "{header}{group}:{header:#}{:1$}{lines}", "", 9 - group.len());
        }
    }
    page.push_str("\nEvery command and option: hub-cli --help    One command: hub-cli COMMAND --help");
    root.help_template(StyledStr::from(page))
}

/// Names in a line of the brief page.
const BRIEF_COMMANDS: usize = 7;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn the_first_page_fits_a_terminal_and_names_every_command() {
        let root = Cli::command();
        let page = brief(root.clone()).render_help().to_string();
        // The prompt below it needs a row.
        assert!(page.trim_end().lines().count() < 24, "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 80 && !line.contains('{')), "{page}");
        let words: BTreeSet<&str> = page.split_whitespace().collect();
        for command in root.get_subcommands() {
            assert!(words.contains(command.get_name()), "{} is not in {page}", command.get_name());
        }
    }

    #[test]
    fn every_command_is_in_one_group_and_fits_its_line() {
        let root = Cli::command();
        let named: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let once: BTreeSet<&str> = named.iter().copied().collect();
        let all: BTreeSet<&str> = root.get_subcommands().map(Command::get_name).collect();
        assert_eq!((once, named.len()), (all.clone(), all.len()));
        let page = grouped(root.clone()).render_help().to_string();
        for name in all {
            let line = page.lines().find(|line| line.starts_with(&format!("  {name} "))).unwrap();
            assert!(line.chars().count() <= 80 && line.len() > 15 && !line.contains('{'), "{line}");
        }
    }
}
