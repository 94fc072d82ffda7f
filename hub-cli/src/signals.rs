//! The signals that end the program.

use tokio::signal;

/// The signal that ends the program; handled from the call on, not only while it is awaited.
#[cfg(unix)]
pub fn stopped() -> impl Future<Output = ()> {
    use signal::unix::{SignalKind, signal};
    // Not SIGHUP: handling it would defeat `nohup`.
    let listeners = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    async move {
        // Without a handler they end the program by default.
        let (Ok(mut interrupt), Ok(mut terminate)) = listeners else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

/// The signal that ends a program.
#[cfg(not(unix))]
pub fn stopped() -> impl Future<Output = ()> {
    async {
        let _ = signal::ctrl_c().await;
    }
}
