//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// What this process is.
#[derive(Debug, Parser)]
#[command(name = "bench-sockets", about = "Measures WebSockets and long polls of channel clients")]
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
    Network,
    /// The bare server.
    #[command(hide = true)]
    Bare,
}

/// What is measured.
#[derive(Debug, Args)]
pub struct Options {
    /// A hundredth of everything: whether it runs, not how fast.
    #[arg(long)]
    pub quick: bool,
    /// Sockets that are open and say nothing.
    #[arg(long, default_value_t = 5_000)]
    pub idle: usize,
    /// Sockets that get messages.
    #[arg(long, default_value_t = 500)]
    pub sockets: usize,
    /// Channels they are on; each has a bot of its own, and as many sockets as the others.
    #[arg(long, default_value_t = 10)]
    pub channels: usize,
    /// Messages that come out of the sockets per second, all together.
    #[arg(long, default_value_t = 2_000)]
    pub rate: usize,
    /// Seconds of that.
    #[arg(long, default_value_t = 30)]
    pub seconds: usize,
    /// Long polls that are woken.
    #[arg(long, default_value_t = 300)]
    pub polls: usize,
    /// Messages that a client has missed.
    #[arg(long, default_value_t = 100_000)]
    pub missed: usize,
    /// The server to measure, in place of this workspace's release build.
    #[arg(long, value_name = "PROGRAM")]
    pub hub_server: Option<PathBuf>,
}

/// The sizes of a run.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub idle: usize,
    /// Sockets of one channel.
    pub sockets: usize,
    pub channels: usize,
    /// Messages that people write, per second; each comes out of all sockets of its channel.
    pub rate: usize,
    pub messages: usize,
    pub polls: usize,
    pub missed: usize,
}

impl Options {
    pub fn sizes(&self) -> Sizes {
        let part = |count: usize| if self.quick { count.div_ceil(100) } else { count };
        let channels = if self.quick { 2 } else { self.channels.max(1) };
        let sockets = (part(self.sockets) / channels).max(1);
        let rate = (part(self.rate) / sockets).max(1);
        let seconds = if self.quick { 2 } else { self.seconds };
        Sizes {
            idle: part(self.idle),
            sockets,
            channels,
            rate,
            messages: rate * seconds,
            polls: part(self.polls).max(10),
            missed: part(self.missed),
        }
    }
}
