//! Shell completion of names of the hub that a command would use.
//!
//! It takes at most 150 ms: later results are not offered, and errors are not reported.

use std::{sync::mpsc, thread, time::Duration};

use clap::{Arg, Command, CommandFactory, Parser};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use serde_json::Value;

use crate::{
    args::{self, BotsCommand, Cli, HubArgs, PageArgs},
    client::Client,
    exit::Failure,
    printer,
    profiles::Profiles,
};

/// Timeout of the hub. A build that is not optimised needs more, and is not what a person completes with.
const TIMEOUT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 30_000 } else { 150 });
/// Maximum number of bots whose channels are offered.
const MAX_BOTS: usize = 20;
/// Maximum number of names of a kind.
const MAX_OFFERED: u32 = 100;

/// Ids of arguments that name an object of the hub.
const COMPLETED_ARGUMENTS: [(&str, Kind); 5] = [
    ("bot", Kind::Bots),
    ("channel", Kind::Channels),
    ("plugin", Kind::Plugins),
    ("plugins", Kind::Plugins),
    ("profile", Kind::Profiles),
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    Bots,
    Channels,
    Plugins,
    Profiles,
}

/// The commands, with completers for these arguments.
pub fn command() -> Command {
    with_names(Cli::command())
}

/// `mut_args` keeps the order of positional arguments, which `mut_arg` does not.
fn with_names(command: Command) -> Command {
    let complete = |argument: Arg| match COMPLETED_ARGUMENTS.iter().find(|(id, _)| argument.get_id() == id) {
        Some((_, kind)) => argument.add(ArgValueCandidates::new(|| candidates(*kind))),
        None => argument,
    };
    command.mut_args(complete).mut_subcommands(with_names)
}

/// The names that are found in time.
fn candidates(kind: Kind) -> Vec<CompletionCandidate> {
    printer::disable_notes();
    let (sender, receiver) = mpsc::sync_channel(1);
    // Not awaited after the timeout: the process ends without it.
    thread::spawn(move || {
        let _ = sender.send(find(kind).unwrap_or_default());
    });
    let found = receiver.recv_timeout(TIMEOUT).unwrap_or_default();
    found
        .into_iter()
        .map(|(name, help)| CompletionCandidate::new(name).help((!help.is_empty()).then(|| help.into())))
        .collect()
}

/// Names with their descriptions.
type Names = Vec<(String, String)>;

fn find(kind: Kind) -> Result<Names, Failure> {
    if let Kind::Profiles = kind {
        let profiles = Profiles::load()?.all;
        return Ok(profiles.into_iter().map(|(name, profile)| (name, profile.server.to_string())).collect());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client::open(&surroundings()?, false).await?;
        match kind {
            Kind::Bots => list(&client, "/api/bots", "status").await,
            Kind::Channels => channels(&client).await,
            Kind::Plugins => list(&client, "/api/plugins", "description").await,
            Kind::Profiles => Ok(Names::new()),
        }
    })
}

/// The hub without flags: the rest of the line is not known here.
fn surroundings() -> Result<HubArgs, Failure> {
    match Cli::try_parse_from(["hub-cli", "bots", "list"]).map(|cli| cli.command) {
        Ok(args::Command::Bots(BotsCommand::List(args))) => Ok(args.hub),
        _ => Err(Failure::usage("the environment is invalid")),
    }
}

async fn channels(client: &Client) -> Result<Names, Failure> {
    let mut found = Names::new();
    for bot in client.bots().await?.into_iter().take(MAX_BOTS) {
        found.extend(list(client, &format!("/api/bots/{bot}/channels"), "id").await?);
    }
    Ok(found)
}

async fn list(client: &Client, path: &str, help: &str) -> Result<Names, Failure> {
    let page = PageArgs { limit: MAX_OFFERED, cursor: None };
    Ok(names(&client.list(path, &[], &page).await?, help))
}

fn names(page: &Value, help: &str) -> Names {
    let items = page["items"].as_array().into_iter().flatten();
    let text = |item: &Value, field: &str| crate::screen::clean(item[field].as_str().unwrap_or_default());
    items.map(|item| (text(item, "name"), text(item, help))).filter(|(name, _)| !name.is_empty()).collect()
}
