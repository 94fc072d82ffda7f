//! `completions`: the script of a shell.

use clap::CommandFactory;
use clap_complete::{Shell, generate};
use serde_json::Value;

use crate::{
    args::{Cli, CompletionsArgs},
    exit::Failure,
    printer::{Format, Printer},
};

pub const FIELDS: [&str; 0] = [];

pub fn run(args: &CompletionsArgs, printer: &Printer) -> Result<(), Failure> {
    let script = script(args.shell);
    match printer.format {
        Format::Text => printer.one(Value::Null, &script),
        Format::Json(_) => printer.one(Value::from(script), ""),
    }
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "hub-cli", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_has_a_script_that_knows_the_commands() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for word in ["hub-cli", "signature", "set-webhook", "--as-recorded"] {
                // Fish and elvish name long options without their dashes.
                assert!(script.contains(word.trim_start_matches('-')), "{shell}: {word}");
            }
        }
    }
}
