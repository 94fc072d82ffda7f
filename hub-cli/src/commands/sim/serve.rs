//! `sim serve`: a simulated network in a separate process.

use std::{net::SocketAddr, time::Duration};

use hub_core::{
    network::sim::{SimConfig, Simulator},
    random::Random,
    tasks::Tasks,
    time::Clock,
};
use tokio::net::TcpListener;

use crate::{exit::Failure, printer::Printer, signals::stopped};

pub async fn run(listen: SocketAddr, printer: &Printer) -> Result<(), Failure> {
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        Failure::usage(format!("cannot listen on {listen}: {error}"))
            .with_hint("choose another address with --listen")
    })?;
    let address = listener.local_addr().unwrap_or(listen);
    if !address.ip().is_loopback() {
        printer.note(
            "warning: the simulator needs no authentication; anyone who can reach this address controls it",
        );
    }
    let simulator = Simulator::new(SimConfig::default(), Clock::system(), Random::system());
    let tasks = Tasks::new();
    tasks.spawn("simulator", simulator.serve(listener, tasks.clone()));
    let stopped = stopped();
    // The line that scripts wait for: the same with every output format.
    Printer::ready(&format!("ready http://{address}"));
    stopped.await;
    tasks.stop();
    tasks.wait(&Clock::system(), Duration::from_secs(3)).await;
    Ok(())
}
