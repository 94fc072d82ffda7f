//! Names that a shell completes while somebody types: those of the hub that a command would work on.
//!
//! Whoever presses a key does not wait: what is not known in 150 ms is not offered, and nothing that goes wrong is
//! said.

use std::{sync::mpsc, thread, time::Duration};

use clap::{Command, CommandFactory, Parser};
use clap_complete::{ArgValueCandidates, CompletionCandidate};
use serde_json::Value;

use crate::{
    args::{self, BotsCommand, Cli, HubArgs, PageArgs},
    exit::Failure,
    printer,
    profiles::Profiles,
    reach::{Reach, Whose},
};

/// How long the hub has.
const BUDGET: Duration = Duration::from_millis(150);
/// Bots whose channels are offered.
const MAX_BOTS: usize = 20;
/// Things of a kind that are offered.
const MOST: u32 = 100;

/// Arguments, by their ids, that name something of the hub.
const NAMED: [(&str, Kind); 5] = [
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

/// The commands, with what can be offered for the arguments that name something.
pub fn command() -> Command {
    with_names(Cli::command())
}

fn with_names(mut command: Command) -> Command {
    for (id, kind) in NAMED {
        if command.get_arguments().any(|argument| argument.get_id() == id) {
            command = command
                .mut_arg(id, |argument| argument.add(ArgValueCandidates::new(move || candidates(kind))));
        }
    }
    let below: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    below.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_names))
}

/// What is found in time.
fn candidates(kind: Kind) -> Vec<CompletionCandidate> {
    printer::hush();
    let (tell, told) = mpsc::sync_channel(1);
    // Not waited for when it is late: the process ends without it.
    thread::spawn(move || {
        let _ = tell.send(find(kind).unwrap_or_default());
    });
    let found = told.recv_timeout(BUDGET).unwrap_or_default();
    found
        .into_iter()
        .map(|(name, help)| CompletionCandidate::new(name).help((!help.is_empty()).then(|| help.into())))
        .collect()
}

/// Names, each with what it is.
type Names = Vec<(String, String)>;

fn find(kind: Kind) -> Result<Names, Failure> {
    if let Kind::Profiles = kind {
        let profiles = Profiles::load()?.all;
        return Ok(profiles.into_iter().map(|(name, profile)| (name, profile.server.to_string())).collect());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let reach = Reach::open(&surroundings()?, false).await?;
        match kind {
            Kind::Bots => bots(&reach).await,
            Kind::Channels => channels(&reach).await,
            Kind::Plugins => plugins(&reach).await,
            Kind::Profiles => Ok(Names::new()),
        }
    })
}

/// The hub that is meant when no flag says which: what stands further on in the line is not known here.
fn surroundings() -> Result<HubArgs, Failure> {
    match Cli::try_parse_from(["hub-cli", "bots", "list"]).map(|cli| cli.command) {
        Ok(args::Command::Bots(BotsCommand::List(list))) => Ok(list.hub),
        _ => Err(Failure::usage("the environment is not acceptable")),
    }
}

fn page() -> PageArgs {
    PageArgs { limit: MOST, cursor: None }
}

async fn bots(reach: &Reach) -> Result<Names, Failure> {
    Ok(names(&reach.bot_page(&page()).await?, "status"))
}

async fn channels(reach: &Reach) -> Result<Names, Failure> {
    let mut found = Names::new();
    for bot in reach.bots().await?.into_iter().take(MAX_BOTS) {
        found.extend(names(&reach.channels(bot, &page()).await?, "id"));
    }
    Ok(found)
}

async fn plugins(reach: &Reach) -> Result<Names, Failure> {
    Ok(names(&reach.plugins(Whose::Everybody, &page()).await?, "description"))
}

fn names(page: &Value, help: &str) -> Names {
    let items = page["items"].as_array().into_iter().flatten();
    let text = |item: &Value, field: &str| crate::screen::clean(item[field].as_str().unwrap_or_default());
    items.map(|item| (text(item, "name"), text(item, help))).filter(|(name, _)| !name.is_empty()).collect()
}
