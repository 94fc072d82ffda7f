//! What the commands do. One file per verb that has more to it than a call.

mod create_admin;
mod demo;
mod export;
mod help;
mod migrate;
mod reset;
mod say;
mod send;
mod serve;
mod traces;
mod waterfall;

use std::io::Read;

use crate::{
    args::{Cli, Command, DbCommand, OpenapiCommand, SimCommand, TracesCommand, UsersCommand},
    exit::{Exit, Failure},
    printer::{Format, Printer},
};

/// Most that is read from stdin or from a small file, in bytes.
const MAX_INPUT: u64 = 1 << 20;

/// Runs a command.
///
/// # Errors
/// Why it failed, with its exit code.
pub async fn run(cli: Cli, printer: &Printer) -> Result<Exit, Failure> {
    if let Format::Json(Some(wanted)) = &printer.format {
        let known = fields(&cli.command);
        if wanted.len() == 1 && wanted[0] == "?" {
            let names = known.join("\n");
            return Printer::new(Format::Text, true, crate::printer::Color::Never)
                .one(serde_json::Value::Null, &names)
                .map(|()| Exit::Done);
        }
        if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(Failure::usage(format!("--json: there is no field {unknown}"))
                .with_hint(format!("fields of this command: {}", known.join(", "))));
        }
    }
    if cli.is_local_in_vain() {
        return Err(Failure::usage("--local: this command works on no data folder")
            .with_hint("send, traces, sim say, users and db do; leave --local out"));
    }
    match cli.command {
        Command::Demo(_) => demo::run(printer).await?,
        Command::Send(args) => send::run(args, printer).await?,
        Command::Traces(TracesCommand::List(args)) => traces::list(args, printer).await?,
        Command::Traces(TracesCommand::Show(args)) => traces::show(args, printer).await?,
        Command::Sim(SimCommand::Say(args)) => say::run(args, printer).await?,
        Command::Sim(SimCommand::Serve { listen }) => serve::run(listen, printer).await?,
        Command::Sim(SimCommand::Reset { target }) => reset::run(&target, printer).await?,
        Command::Users(UsersCommand::CreateAdmin(args)) => create_admin::run(args, printer).await?,
        Command::Db(DbCommand::Migrate { local }) => migrate::run(&local, printer).await?,
        Command::Openapi(OpenapiCommand::Export(args)) => export::run(&args, printer)?,
        Command::Help(args) => help::run(&args, printer)?,
    }
    Ok(Exit::Done)
}

/// The names in a command's JSON document, or in the items of its list.
fn fields(command: &Command) -> &'static [&'static str] {
    match command {
        Command::Demo(_) => &demo::FIELDS,
        Command::Send(_) => &send::FIELDS,
        Command::Traces(TracesCommand::List(_)) => &traces::LIST_FIELDS,
        Command::Traces(TracesCommand::Show(_)) => &traces::FIELDS,
        Command::Sim(SimCommand::Say(_)) => &say::FIELDS,
        Command::Sim(SimCommand::Serve { .. }) => &[],
        Command::Sim(SimCommand::Reset { .. }) => &reset::FIELDS,
        Command::Users(UsersCommand::CreateAdmin(_)) => &create_admin::FIELDS,
        Command::Db(DbCommand::Migrate { .. }) => &migrate::FIELDS,
        Command::Openapi(OpenapiCommand::Export(_)) => &export::FIELDS,
        Command::Help(_) => &help::FIELDS,
    }
}

/// A text given as an argument; `-` reads stdin.
fn text_or_stdin(text: String) -> Result<String, Failure> {
    if text == "-" { read_all(std::io::stdin(), "stdin") } else { Ok(text) }
}

/// The content of a file; `-` reads stdin.
fn read_file(path: &str) -> Result<String, Failure> {
    if path == "-" {
        return read_all(std::io::stdin(), "stdin");
    }
    let file = std::fs::File::open(path).map_err(|error| Failure::file(path, error))?;
    read_all(file, path)
}

fn read_all(source: impl Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = source.take(MAX_INPUT + 1).read_to_string(&mut text);
    let read = read.map_err(|error| Failure::file(name, error))?;
    if u64::try_from(read).is_ok_and(|read| read > MAX_INPUT) {
        return Err(Failure::file(name, "is over 1 MiB"));
    }
    Ok(text)
}
