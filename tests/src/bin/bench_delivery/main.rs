//! `cargo run --release -p hub-tests --bin bench-delivery`: how fast messages go from the network's answer to
//! their webhook, and what that costs. Simulator, receiver and hub (the shipped program) are processes of
//! their own; next to each figure is a bare client that posts the same signed bodies to the same receiver
//! in the same run. `tests/BENCHMARKS.md` has the last table and says how to read it.

mod database;
mod flow;
mod hub;
mod load;
mod marker;
mod moments;
mod options;
mod peer;
mod phases;
mod process;
mod program;
mod receiver;
mod reference;
mod report;
mod simulator;
mod stage;
mod support;

use clap::Parser;
use options::{Command, Options, Role};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Failure> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let Command { role, options } = Command::parse();
    // Clients want one, although nothing here is encrypted; no one else was here to set it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut runtime = match role {
        // Sends with every processor, like the hub.
        Some(Role::Reference(_)) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    runtime.enable_all().build()?.block_on(async {
        match role {
            None => run(&options).await,
            Some(Role::Simulator) => simulator::run().await,
            Some(Role::Receiver) => receiver::run().await,
            Some(Role::Reference(work)) => reference::run(&work).await,
        }
    })
}

async fn run(options: &Options) -> Result<()> {
    let program = program::find(options.hub_server.as_deref())?;
    let mut tables = Vec::new();
    for database in options.databases() {
        tables.push(phases::measure(options, &program, database).await?);
    }
    report::print(options, &tables)
}
