//! The command line of Message Hub. Data goes to stdout, everything else to stderr; without a terminal nothing asks.

use std::process::ExitCode;

mod args;
mod ask;
mod browser;
mod commands;
mod exit;
mod jq;
mod likeness;
mod local;
mod names;
mod panics;
mod printer;
mod profiles;
mod reach;
mod remote;
mod screen;
mod signals;
mod sim_client;
mod table;

use args::Cli;
use exit::{Exit, Failure};

fn main() -> ExitCode {
    hub_core::sandbox::run_worker_if_asked();
    panics::tell();
    // What the fault is was told where it happened.
    std::panic::catch_unwind(run).unwrap_or_else(|_| Exit::Failed.into())
}

fn run() -> ExitCode {
    // Ends here when a shell asks what can stand in a line.
    clap_complete::CompleteEnv::with_factory(names::command).complete();
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
        if cli.sees_to_signals() {
            return commands::run(cli, &printer).await;
        }
        tokio::select! {
            // First the command: while it reads stdin, a signal does what it always does.
            biased;
            done = commands::run(cli, &printer) => done,
            // What the command held is dropped with it: files of the demo are gone before the process ends.
            () = async { signals::stopped().await } => Err(Failure::interrupted()),
        }
    });
    match done.and_then(|exit| printer::Printer::flush().map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(failure) => printer.fail(&failure),
    }
}
