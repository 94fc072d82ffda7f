//! The signals that end a program: what a person presses, what whoever started it sends, and a terminal that is closed.

use tokio::signal;

/// The signal that ends a program, heard from the call on, not from when it is waited for.
#[cfg(unix)]
pub fn stopped() -> impl Future<Output = ()> {
    use signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let heard: std::io::Result<Vec<_>> = kinds.into_iter().map(signal).collect();
    async move {
        // Where they cannot be heard they end the program, as they always do.
        let Ok(mut heard) = heard else { return std::future::pending().await };
        let waits = heard.iter_mut().map(|signal| Box::pin(signal.recv()));
        futures_util::future::select_all(waits).await;
    }
}

/// The signal that ends a program.
#[cfg(not(unix))]
pub fn stopped() -> impl Future<Output = ()> {
    async {
        let _ = signal::ctrl_c().await;
    }
}
