//! `completions`: the shell completion script.

use clap_complete::{Shell, env::Shells};
use serde_json::Value;

use crate::{
    args::CompletionsArgs,
    exit::Failure,
    printer::{Format, Printer},
};

/// The variable of completion requests.
pub const VARIABLE: &str = "COMPLETE";

pub fn run(args: &CompletionsArgs, printer: &Printer) -> Result<(), Failure> {
    let script = script(args.shell)?;
    match printer.format {
        Format::Text => printer.one(Value::Null, &script),
        Format::Json(_) => printer.one(Value::from(script), ""),
    }
}

fn script(shell: Shell) -> Result<String, Failure> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let completer = shells.completer(&name);
    let completer = completer.ok_or_else(|| Failure::usage(format!("{name} cannot be completed")))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "hub-cli", "hub-cli", "hub-cli", &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_has_a_script_that_asks_the_program() {
        for shell in Shell::value_variants() {
            let script = script(*shell).unwrap();
            assert!(script.contains("hub-cli") && script.contains(VARIABLE), "{shell}: {script}");
        }
    }
}
