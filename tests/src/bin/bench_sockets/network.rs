//! The chat network as a process of its own.

use std::{io::Write, sync::Arc};

use hub_core::{
    local_http::{self, Limits},
    network::sim::{SimCaps, SimConfig, Simulator},
    random::Random,
    tasks::Tasks,
    time::Clock,
};
use tokio::net::TcpListener;

use crate::Result;

/// Undelivered messages per bot.
const PENDING: usize = 2_000_000;

/// Serves until killed; the address is printed.
pub async fn run() -> Result<()> {
    let caps = SimCaps { pending: PENDING, ..SimCaps::default() };
    let config = SimConfig { caps, ..SimConfig::default() };
    let simulator = Simulator::new(config, Clock::system(), Random::system());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    local_http::serve(listener, Arc::new(simulator), Limits::default(), Tasks::new()).await;
    Ok(())
}
