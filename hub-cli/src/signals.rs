//! The signals that end a program: what a person presses, and what whoever started it sends.

use tokio::signal;

/// The signal that ends a program, heard from the call on, not from when it is waited for.
#[cfg(unix)]
pub fn stopped() -> impl Future<Output = ()> {
    use signal::unix::{SignalKind, signal};
    // Not the hangup: listening for it would undo what `nohup` asked for.
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

/// The signal that ends a program.
#[cfg(not(unix))]
pub fn stopped() -> impl Future<Output = ()> {
    async {
        let _ = signal::ctrl_c().await;
    }
}
