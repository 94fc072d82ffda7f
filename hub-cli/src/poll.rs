//! Repeated requests at an interval.

use std::time::Duration;

use hub_core::time::Clock;

use crate::exit::Failure;

/// Calls `look` until it returns a value, and waits `interval` between two calls.
///
/// # Errors
/// The first failure of `look`.
pub async fn every<T>(
    interval: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let clock = Clock::system();
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        clock.sleep(interval).await;
    }
}
