//! Notifications to the service manager (`sd_notify(3)`): startup, readiness, shutdown and, with a watchdog,
//! liveness. Nothing happens without `NOTIFY_SOCKET`.

use hub_core::{tasks::Tasks, time::Clock};
use sd_notify::NotifyState;

/// The hub is starting: a migration may take some time.
pub fn starting() {
    notify(&[NotifyState::Status("Opening the database")]);
}

/// Requests are served.
pub fn ready(public_url: &url::Url) {
    let status = format!("Serving {public_url}");
    notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// The hub accepts nothing new and finishes work in flight.
pub fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("Finishing work in flight")]);
}

/// If the service manager has a watchdog for this process, notifies it twice per interval that tasks still run, until
/// the tasks are stopped. A database that does not respond does not count: a restart would not help.
pub fn feed_watchdog(clock: &Clock, tasks: &Tasks) {
    let Some(timeout) = sd_notify::watchdog_enabled().filter(|timeout| !timeout.is_zero()) else { return };
    let (clock, stop) = (clock.clone(), tasks.stop_token().clone());
    tasks.spawn("watchdog", async move {
        loop {
            notify(&[NotifyState::Watchdog]);
            tokio::select! {
                () = clock.sleep(timeout / 2) => {}
                () = stop.cancelled() => return,
            }
        }
    });
}

/// The hub also works if the notification fails.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be notified");
    }
}
