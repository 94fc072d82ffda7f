//! The command line of Message Hub. Data goes to stdout, everything else to stderr; nothing ever asks.

use std::process::ExitCode;

mod args;
mod commands;
mod exit;
mod local;
mod printer;
mod screen;
mod sim_client;

use args::Cli;
use exit::{Exit, Failure};

fn main() -> ExitCode {
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
        if cli.ends_by_signal() {
            return commands::run(cli, &printer).await;
        }
        tokio::select! {
            done = commands::run(cli, &printer) => done,
            // What the command held is dropped with it: files of the demo are gone before the process ends.
            _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
        }
    });
    match done.and_then(|exit| printer.flush().map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(failure) => printer.fail(&failure),
    }
}
