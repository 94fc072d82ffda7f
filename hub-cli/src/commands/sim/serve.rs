//! `sim serve`: a simulated network in a process of its own.

use std::{net::SocketAddr, time::Duration};

use hub_core::{
    network::sim::{SimConfig, Simulator},
    random::Random,
    tasks::Tasks,
    time::Clock,
};
use tokio::{net::TcpListener, signal};

use crate::{exit::Failure, printer::Printer};

pub async fn run(listen: SocketAddr, printer: &Printer) -> Result<(), Failure> {
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        Failure::usage(format!("cannot listen on {listen}: {error}"))
            .with_hint("choose another address with --listen")
    })?;
    let address = listener.local_addr().unwrap_or(listen);
    if !address.ip().is_loopback() {
        printer.note("warning: the simulator has no password; whoever reaches this address controls it");
    }
    let simulator = Simulator::new(SimConfig::default(), Clock::system(), Random::system());
    let tasks = Tasks::new();
    tasks.spawn("simulator", simulator.serve(listener, tasks.clone()));
    let stopped = stopped();
    // The one line that scripts wait for: always the same, whatever the output looks like.
    Printer::ready(&format!("ready http://{address}"));
    stopped.await;
    tasks.stop();
    tasks.wait(&Clock::system(), Duration::from_secs(3)).await;
    Ok(())
}

/// The signal that ends a server, heard from the call on, not from when it is waited for.
#[cfg(unix)]
pub fn stopped() -> impl Future<Output = ()> {
    use signal::unix::{SignalKind, signal};
    let heard = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    async move {
        // Where they cannot be heard they end the program, as they always do.
        let (Ok(mut interrupt), Ok(mut terminate)) = heard else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

/// The signal that ends a server.
#[cfg(not(unix))]
pub fn stopped() -> impl Future<Output = ()> {
    async {
        let _ = signal::ctrl_c().await;
    }
}
