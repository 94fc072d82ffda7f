//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Measures a node with many idle bots
#[derive(Debug, Parser)]
#[command(name = "bench-bots")]
pub struct Options {
    #[command(subcommand)]
    pub role: Option<Role>,
    /// Bots of the hub.
    #[arg(long, default_value_t = 10_000)]
    pub bots: usize,
    /// Bots of one user.
    #[arg(long, default_value_t = 500)]
    pub bots_of_user: usize,
    /// Seconds over which the idle hub is measured.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// The database; both if absent.
    #[arg(long)]
    pub database: Option<Database>,
    /// The server to start, in place of this workspace's release build.
    #[arg(long, value_name = "PROGRAM")]
    pub hub_server: Option<PathBuf>,
}

/// Processes that the benchmark starts of itself.
#[derive(Debug, Subcommand)]
pub enum Role {
    /// The chat network.
    #[command(hide = true)]
    Network,
}

/// A database to measure on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Database {
    Sqlite,
    Postgres,
}
