//! `cargo run --release -p hub-tests --bin bench-sockets`: what clients of channels cost and wait, next to a bare
//! server in the same run: hyper, the same WebSocket library with the same buffers, no store and no keys. Network,
//! hub (the shipped program) and bare server are processes of their own; the clients are this one.
//! `tests/BENCHMARKS.md` says how to read it.

mod bare;
mod client;
#[path = "../../../support/http.rs"]
#[expect(clippy::unwrap_used, dead_code, reason = "written for tests: what goes wrong ends the run")]
mod http_caller;
mod hub;
mod measure;
#[path = "../bench_delivery/moments.rs"]
#[expect(dead_code, reason = "shared with the other benchmark")]
mod moments;
mod network;
mod options;
#[path = "../bench_delivery/process.rs"]
#[expect(dead_code, reason = "shared with the other benchmark")]
mod process;
#[path = "../bench_delivery/program.rs"]
mod program;
mod report;

use clap::Parser;
use options::{Command, Role};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Failure> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let Command { role, options } = Command::parse();
    // Clients want one, although nothing here is encrypted; no one else was here to set it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        match role {
            None => report::print(&options, &measure::all(&options).await?),
            Some(Role::Network) => network::run().await,
            Some(Role::Bare) => bare::run().await,
        }
    })
}
