//! `cargo run --release -p hub-tests --bin bench-timing`: whether the time of a response reveals what its body does
//! not: that an account exists, that it has a passkey, that an object belongs to another user and is not just absent.
//! The hub is the shipped program in a process of its own; requests go over one connection, one at a time, in random
//! order. `tests/BENCHMARKS.md` explains the results.

mod cases;
#[path = "../../../support/http.rs"]
#[expect(clippy::unwrap_used, dead_code, reason = "written for tests: what goes wrong ends the run")]
mod http_caller;
mod hub;
#[path = "../bench_delivery/process.rs"]
#[expect(dead_code, reason = "shared with the other benchmark")]
mod process;
#[path = "../bench_delivery/program.rs"]
mod program;
mod report;
mod statistics;

use std::path::PathBuf;

use clap::Parser;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Failure> = std::result::Result<T, E>;

/// Compares the times of answers that look alike
#[derive(Debug, Parser)]
#[command(name = "bench-timing")]
pub struct Options {
    /// A few samples of everything: whether it runs, not what the times tell.
    #[arg(long)]
    pub quick: bool,
    /// How often every password is tried; passkeys and ids take two fifths and four times of that.
    #[arg(long, default_value_t = 500)]
    pub samples: usize,
    /// The server to measure, in place of this workspace's release build.
    #[arg(long, value_name = "PROGRAM")]
    pub hub_server: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let samples = if options.quick { 20 } else { options.samples };
        let folder = tempfile::tempdir()?;
        let hub = hub::Hub::start(&options, folder.path()).await?;
        let compared = [
            cases::passwords(&hub, samples).await?,
            cases::passkeys(&hub, (samples * 2).div_ceil(5)).await?,
            cases::ids(&hub, samples * 4).await?,
        ];
        report::print(&compared.concat())
    })
}
