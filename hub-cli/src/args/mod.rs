//! The grammar of the command line. One file per noun; every leaf command shows examples that a test runs through the
//! parser.

use std::{ffi::OsString, process::ExitCode};

use clap::{
    ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};

mod ai_config;
mod apps;
mod audit;
mod bots;
mod channel_plugins;
mod channel_sinks;
mod channels;
mod completions;
mod config;
mod confirm;
mod db;
mod debug;
mod doctor;
mod events;
mod exit_codes;
mod groups;
mod help;
mod hub;
mod ilink;
mod listen;
mod login;
mod man;
mod openapi;
mod plugins;
mod replay;
mod send;
mod signature;
mod sim;
mod tail;
mod traces;
mod user_sessions;
mod users;
mod values;

pub use ai_config::*;
pub use apps::*;
pub use audit::*;
pub use bots::*;
pub use channel_plugins::*;
pub use channel_sinks::*;
pub use channels::*;
pub use completions::*;
pub use config::*;
pub use confirm::Confirm;
pub use db::*;
pub use debug::*;
pub use doctor::*;
pub use events::*;
use exit_codes::Ends;
pub use help::*;
pub use hub::*;
pub use ilink::*;
pub use listen::*;
pub use login::*;
pub use man::*;
pub use openapi::*;
pub use plugins::*;
pub use replay::*;
pub use send::*;
pub use signature::*;
pub use sim::*;
pub use tail::*;
pub use traces::*;
pub use user_sessions::*;
pub use users::*;
pub use values::duration;
use values::{closed, hours};

use crate::{
    exit::{Exit, Failure},
    fields::Fields,
    jq::Jq,
    printer::{Color, Extras, Format, Printer, Verbosity},
};

/// The command line of Message Hub.
///
/// Data goes to stdout, everything else to stderr. Deletions have to be confirmed: at a terminal by an answer,
/// elsewhere with --yes. For scripts: `hub-cli help exit-codes`, `env`, `formatting`, `config` and `filters`.
#[derive(Debug, Parser)]
#[command(name = "hub-cli", version, disable_help_subcommand = true, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  hub-cli demo\n  hub-cli sim say \"order 42\" --as Ada")]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    pub command: Command,
    /// The fields that the command declares.
    #[arg(skip)]
    pub fields: Fields,
}

/// Options of the output, of every command.
#[derive(Debug, Args)]
struct Global {
    /// Print one JSON document; with a list, only these fields; with ?, the names of the fields
    #[arg(long, global = true, value_name = "FIELDS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", help_heading = "Output")]
    json: Option<String>,
    /// Print one JSON document per line, for each item or event; with a list of fields, only these
    #[arg(long, global = true, value_name = "FIELDS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", conflicts_with = "json", help_heading = "Output")]
    jsonl: Option<String>,
    /// Filter the JSON with this jq expression; strings are printed raw
    #[arg(long, global = true, value_name = "EXPR", value_parser = Jq::parse, help_heading = "Output")]
    jq: Option<Jq>,
    /// Print times of day in tables instead of relative times
    #[arg(long, global = true, help_heading = "Output")]
    utc: bool,
    /// Never prompt, not even at a terminal
    #[arg(long, global = true, help_heading = "Output")]
    no_input: bool,
    /// Print only data and errors; twice, only data: the exit code shows the outcome
    #[arg(long, short, global = true, action = ArgAction::Count, help_heading = "Output")]
    quiet: u8,
    /// Print each request to a server with its response status; disables progress bars
    #[arg(long, short, global = true, conflicts_with = "quiet", help_heading = "Output")]
    verbose: bool,
    /// Show no progress
    #[arg(long, global = true, help_heading = "Output")]
    no_progress: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    color: Color,
    /// Open the data folder or database directly; an error for commands that need a server
    #[arg(long, global = true, help_heading = "Hub")]
    local: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Process a message in a hub in this process, and show each step
    ///
    /// Ada, a user of a simulated chat network, orders something. The hub stores the message, filters it, posts it,
    /// signed, to a receiver, and sends the receiver's reply to the chat. It needs no port and no account, and leaves no
    /// files.
    #[command(
        after_help = "Examples:\n  hub-cli demo\n  hub-cli demo --json=reply,verified\n\nSee also: hub-cli sim say, hub-cli traces show",
        add = Ends(&[(0, "completed"), (1, "a step took longer than 10 s")]),
        add = Fields::own(&["said", "reply", "verified", "receiver", "trace_id", "trace", "elapsed_ms"])
    )]
    Demo,
    Login(LoginArgs),
    Logout(LogoutArgs),
    Whoami(WhoamiArgs),
    #[command(subcommand, alias = "profile")]
    Profiles(ProfilesCommand),
    Send(SendArgs),
    Tail(TailArgs),
    Events(EventsArgs),
    Listen(Box<ListenArgs>),
    Replay(Box<ReplayArgs>),
    #[command(subcommand, alias = "trace")]
    Traces(TracesCommand),
    #[command(subcommand)]
    Signature(SignatureCommand),
    #[command(subcommand, alias = "bot")]
    Bots(BotsCommand),
    #[command(subcommand, alias = "channel")]
    Channels(ChannelsCommand),
    #[command(subcommand)]
    Debug(DebugCommand),
    #[command(subcommand, alias = "plugin")]
    Plugins(PluginsCommand),
    #[command(subcommand, alias = "app")]
    Apps(AppsCommand),
    #[command(subcommand)]
    Sim(SimCommand),
    #[command(subcommand, alias = "user")]
    Users(UsersCommand),
    Stats(StatsArgs),
    #[command(subcommand)]
    Audit(AuditCommand),
    #[command(subcommand)]
    AiConfig(AiConfigCommand),
    #[command(subcommand)]
    Db(DbCommand),
    Doctor(DoctorArgs),
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(subcommand)]
    Openapi(OpenapiCommand),
    Completions(CompletionsArgs),
    Man(ManArgs),
    /// Show the version
    #[command(
        after_help = "Examples:\n  hub-cli version\n  hub-cli version --json\n\nSee also: hub-cli debug request --remote warns when a server has another version",
        add = Fields::own(&["version"])
    )]
    Version,
    Help(HelpArgs),
}

/// A command line that is not executed: help, version or an error.
#[derive(Debug)]
pub struct Refused {
    error: clap::Error,
    json: bool,
}

impl Cli {
    /// All commands; the first page groups them.
    pub fn tree() -> clap::Command {
        groups::grouped(exit_codes::with_exit_codes(Self::command()))
    }

    /// Parses the arguments.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<(Self, Printer), Refused> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let wanted = std::env::var("HUB_FORMAT").ok().filter(|wanted| !wanted.is_empty());
        let json =
            wanted.as_deref().is_some_and(|wanted| wanted != "text") || arguments.iter().any(requests_json);
        let refused = |error| Refused { error: without_tip(error), json };
        let cli = Self::parse_from_all(&arguments).map_err(refused)?;
        let global = &cli.global;
        let flags = global.jsonl.as_deref().or(global.json.as_deref()).or(global.jq.as_ref().map(|_| ""));
        let (fields, lines) = match (flags, wanted.as_deref()) {
            (Some(fields), _) => (Some(fields), global.jsonl.is_some()),
            (None, None | Some("text")) => (None, false),
            (None, Some("json")) => (Some(""), false),
            (None, Some("jsonl")) => (Some(""), true),
            (None, Some(other)) => {
                let wrong = format!("HUB_FORMAT is {other}: expected text, json or jsonl");
                return Err(refused(Self::tree().error(ErrorKind::InvalidValue, wrong)));
            }
        };
        let format = fields.map_or(Format::Text, |fields| {
            let fields = fields.split(',').map(str::trim).filter(|field| !field.is_empty());
            let fields: Vec<String> = fields.map(str::to_owned).collect();
            Format::Json((!fields.is_empty()).then_some(fields))
        });
        let extras = Extras {
            lines,
            jq: global.jq.clone(),
            utc: global.utc,
            no_input: global.no_input,
            no_progress: global.no_progress,
        };
        let verbosity = match global.quiet {
            0 if global.verbose => Verbosity::Verbose,
            0 => Verbosity::Normal,
            1 => Verbosity::Quiet,
            _ => Verbosity::Silent,
        };
        let printer = Printer::new(format, verbosity, global.color).with(extras);
        Ok((cli, printer))
    }

    /// Parses. `--json=?` only lists the fields of a command, so its required arguments are filled in.
    fn parse_from_all(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let parse = |arguments: &[OsString]| -> Result<Self, clap::Error> {
            let first_page = matches!(arguments, [_]) || matches!(arguments, [_, flag] if flag == "-h");
            let mut tree = if first_page { groups::brief(Self::command()) } else { Self::tree() };
            let matches = tree.try_get_matches_from_mut(arguments)?;
            let (mut command, mut below, mut fields) = (&tree, &matches, Fields::default());
            while let Some((name, matches)) = below.subcommand()
                && let Some(found) = command.find_subcommand(name)
            {
                (command, below) = (found, matches);
                fields = command.get().copied().unwrap_or(fields);
            }
            Ok(Self { fields, ..Self::from_arg_matches(&matches)? })
        };
        parse(arguments).or_else(|error| {
            let asks = arguments.iter().any(|argument| argument == "--json=?" || argument == "--jsonl=?");
            let missing = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing)) if asks => missing.clone(),
                _ => return Err(error),
            };
            let made_up = missing.iter().flat_map(|missing| {
                let flag = missing.split_whitespace().next().filter(|word| word.starts_with("--"));
                // A valid value for arguments of text, of a path and of an address.
                flag.into_iter().chain(["http://x"]).map(OsString::from)
            });
            let arguments: Vec<OsString> = arguments.iter().cloned().chain(made_up).collect();
            parse(&arguments).map_err(|_| error)
        })
    }

    /// Whether the store is requested for a command that does not use one.
    pub fn rejects_local(&self) -> bool {
        let on_a_store = matches!(
            self.command,
            Command::Send(_)
                | Command::Traces(_)
                | Command::Replay(_)
                | Command::Tail(_)
                | Command::Bots(_)
                | Command::Channels(_)
                | Command::Debug(_)
                | Command::Plugins(_)
                | Command::Apps(_)
                | Command::Sim(SimCommand::Say(_))
                | Command::Users(_)
                | Command::Stats(_)
                | Command::Audit(_)
                | Command::AiConfig(_)
                | Command::Db(_)
                | Command::Doctor(_)
        );
        self.global.local && !on_a_store
    }

    /// Whether the files are to be used although a server is named.
    pub fn is_local(&self) -> bool {
        self.global.local
    }

    /// Whether this command handles signals itself.
    pub fn handles_signals(&self) -> bool {
        matches!(
            self.command,
            Command::Listen(_)
                | Command::Replay(_)
                | Command::Sim(
                    SimCommand::Serve { .. }
                        | SimCommand::App(_)
                        | SimCommand::Outage(_)
                        | SimCommand::Script(_)
                )
        )
    }
}

impl Refused {
    /// Help and versions go to stdout; an error goes to stderr, as JSON if JSON was requested.
    pub fn report(self) -> ExitCode {
        if !self.error.use_stderr() {
            // A closed pipe is the reader's choice.
            let _ = self.error.print();
            return Exit::Done.into();
        }
        if self.json {
            let text = self.error.to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let failure = Failure::usage(first).with_hint("add --help for the arguments");
            return Printer::new(Format::Json(None), Verbosity::Normal, Color::Never).fail(&failure);
        }
        let bare = self.error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        let _ = self.error.print();
        if bare {
            Exit::Usage.into()
        } else {
            ExitCode::from(u8::try_from(self.error.exit_code()).unwrap_or(2))
        }
    }
}

/// The error without the tip to pass an unknown flag as a value, which is right only for words with a dash that are no
/// flags, such as the text of a message.
fn without_tip(mut error: clap::Error) -> clap::Error {
    let is_flag = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(unknown))
        if unknown.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic())));
    if is_flag && let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().contains("as a value"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

/// Whether an argument requests JSON, so that a usage error is printed as JSON too.
fn requests_json(argument: &OsString) -> bool {
    let names = ["--json", "--jsonl", "--jq"];
    argument.to_str().is_some_and(|text| names.contains(&text.split('=').next().unwrap_or_default()))
}

#[cfg(test)]
mod tests;
