//! The command line of Message Hub. Data goes to stdout, everything else to stderr; without a terminal there are no
//! prompts.

use std::process::ExitCode;

mod args;
mod ask;
mod browser;
mod client;
mod commands;
mod completion;
mod context;
mod document;
mod exit;
mod fields;
mod jq;
mod local;
mod panics;
mod poll;
mod printer;
mod profiles;
mod screen;
mod signals;
mod sim_client;
mod suggest;
mod table;

use args::Cli;
use exit::{Exit, Failure};

fn main() -> ExitCode {
    hub_core::sandbox::run_worker_if_asked();
    panics::install();
    // The panic hook has already reported it.
    std::panic::catch_unwind(run).unwrap_or_else(|_| Exit::Failed.into())
}

fn run() -> ExitCode {
    // Returns here for a completion request of a shell.
    clap_complete::CompleteEnv::with_factory(completion::command).complete();
    let (cli, printer) = match Cli::read(std::env::args_os()) {
        Ok(read) => read,
        Err(refused) => return refused.report(),
    };
    // Nothing above needs a runtime: help and versions are instant.
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return printer.fail(&Failure::new(Exit::Failed, "INTERNAL_ERROR", error.to_string())),
    };
    let done = runtime.block_on(async {
        if cli.handles_signals() {
            return commands::run(cli, &printer).await;
        }
        tokio::select! {
            // The command is parsed first: while it reads stdin, signals have their default effect.
            biased;
            done = commands::run(cli, &printer) => done,
            // The command's values are dropped before the process ends, which removes the demo's files.
            () = async { signals::stopped().await } => Err(Failure::interrupted()),
        }
    });
    match done.and_then(|exit| printer::Printer::flush().map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(failure) => printer.fail(&failure),
    }
}
