//! `help`: topics, and the long help of commands.

use clap::CommandFactory;
use serde_json::Value;

use crate::{
    args::{Cli, HelpArgs, TOPICS},
    exit::Failure,
    printer::{Format, Printer},
};

pub const FIELDS: [&str; 0] = [];

pub fn run(args: &HelpArgs, printer: &Printer) -> Result<(), Failure> {
    let text = text_of(&args.topic)?;
    match printer.format {
        Format::Text => printer.one(Value::Null, &text),
        Format::Json(_) => printer.one(Value::from(text), ""),
    }
}

fn text_of(words: &[String]) -> Result<String, Failure> {
    if let [word] = words
        && let Some((_, text)) = TOPICS.iter().find(|(topic, _)| topic == word)
    {
        return Ok((*text).to_owned());
    }
    let mut command = Cli::command();
    command.build();
    let mut found = &mut command;
    for word in words {
        let Some(next) = found.find_subcommand_mut(word) else {
            let topics: Vec<_> = TOPICS.iter().map(|(topic, _)| *topic).collect();
            return Err(Failure::not_found(format!("there is no command or topic {}", words.join(" ")))
                .with_hint(format!("topics: {}; commands: hub-cli --help", topics.join(", "))));
        };
        found = next;
    }
    Ok(found.render_long_help().to_string())
}
