//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, builder::RangedU64ValueParser};

/// What this process is.
#[derive(Debug, Parser)]
#[command(name = "bench-delivery", about = "Measures delivery from the network's answer to the webhook")]
pub struct Command {
    #[command(subcommand)]
    pub role: Option<Role>,
    #[command(flatten)]
    pub options: Options,
}

/// Processes that the benchmark starts of itself.
#[derive(Debug, Subcommand)]
pub enum Role {
    /// The chat network.
    #[command(hide = true)]
    Simulator,
    /// The other end of every webhook.
    #[command(hide = true)]
    Receiver,
    /// The bare client.
    #[command(hide = true)]
    Reference(Work),
}

/// What the bare client posts.
#[derive(Debug, Args)]
pub struct Work {
    /// The receiver, as host and port.
    #[arg(long)]
    pub receiver: String,
    /// How many bodies.
    #[arg(long)]
    pub messages: u64,
    /// Connections, one request on each at a time.
    #[arg(long)]
    pub connections: u64,
    /// Bodies per second; without it as many as the receiver takes.
    #[arg(long)]
    pub rate: Option<u64>,
}

/// A database to measure on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite, synchronous=FULL",
            Self::Postgres => "PostgreSQL",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Chosen {
    Sqlite,
    Postgres,
    Both,
}

fn at_least_one<T: TryFrom<u64>>() -> RangedU64ValueParser<T> {
    (1..).into()
}

/// What is measured.
#[derive(Debug, Args)]
pub struct Options {
    /// Databases to measure on.
    #[arg(long, value_enum, default_value = "both")]
    pub database: Chosen,
    /// Messages per second that people write while latency is measured; 0 leaves that part out
    /// [default: 2000 on SQLite, 1000 on PostgreSQL].
    #[arg(long)]
    pub rate: Option<u64>,
    /// Seconds of that.
    #[arg(long, default_value_t = 60, value_parser = at_least_one::<u64>())]
    pub seconds: u64,
    /// Messages that wait on the network when saturation is measured; 0 leaves that part out.
    #[arg(long, default_value_t = 50_000)]
    pub backlog: u64,
    /// Saturation once more, with a plugin in every channel.
    #[arg(long)]
    pub plugin: bool,
    /// Messages per second that the receiver answers with a reply; 0 leaves that part out.
    #[arg(long, default_value_t = 100)]
    pub reply_rate: u64,
    /// Messages queued in the hub for a receiver that is dead; 0 leaves that part out.
    #[arg(long, default_value_t = 100_000)]
    pub queued: u64,
    /// Bots.
    #[arg(long, default_value_t = 4, value_parser = at_least_one::<u64>())]
    pub bots: u64,
    /// Channels per bot; each has every message.
    #[arg(long, default_value_t = 1, value_parser = at_least_one::<u64>())]
    pub channels: u64,
    /// Nodes that share the bots, on PostgreSQL.
    #[arg(long, default_value_t = 1, value_parser = at_least_one::<usize>())]
    pub nodes: usize,
    /// People who write to each bot.
    #[arg(long, default_value_t = 50, value_parser = at_least_one::<u64>())]
    pub conversations: u64,
    /// The server to measure, in place of this workspace's release build.
    #[arg(long, value_name = "PROGRAM")]
    pub hub_server: Option<PathBuf>,
    /// Log filter of the server, whose log goes to standard error.
    #[arg(long, default_value = "info")]
    pub log: String,
    /// Prints the server's process id and waits for Enter before the load: to attach a profiler.
    #[arg(long)]
    pub attach: bool,
}

impl Options {
    pub fn databases(&self) -> Vec<Database> {
        match self.database {
            Chosen::Sqlite => vec![Database::Sqlite],
            Chosen::Postgres => vec![Database::Postgres],
            Chosen::Both => vec![Database::Sqlite, Database::Postgres],
        }
    }

    /// Messages per second on this database.
    pub fn rate_on(&self, database: Database) -> u64 {
        let aim = if database == Database::Sqlite { 2_000 } else { 1_000 };
        self.rate.unwrap_or(aim)
    }
}
