//! What the service manager is told (`sd_notify(3)`): what the hub is about, when it is ready, when it stops, and
//! where a watchdog is on, that it still moves. Nothing of it happens without `NOTIFY_SOCKET`.

use hub_core::{tasks::Tasks, time::Clock};
use sd_notify::NotifyState;

/// The hub starts: a migration may take a while.
pub fn starting() {
    tell(&[NotifyState::Status("Opening the database")]);
}

/// Requests are served.
pub fn ready(public_url: &url::Url) {
    let status = format!("Serving {public_url}");
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// The hub takes nothing new and finishes what it has begun.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("Finishing what is in flight")]);
}

/// Where the service manager has a watchdog for this process, tells it twice within its patience that tasks still
/// get their turn, until the tasks are stopped. That the database does not answer is not its business: a restart
/// would not help.
pub fn feed_watchdog(clock: &Clock, tasks: &Tasks) {
    let Some(patience) = sd_notify::watchdog_enabled().filter(|patience| !patience.is_zero()) else { return };
    let (clock, stop) = (clock.clone(), tasks.stop_token().clone());
    tasks.spawn("watchdog", async move {
        loop {
            tell(&[NotifyState::Watchdog]);
            tokio::select! {
                () = clock.sleep(patience / 2) => {}
                () = stop.cancelled() => return,
            }
        }
    });
}

/// The hub works also when nobody can be told.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}
