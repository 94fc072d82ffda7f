//! Repeated requests at an interval.

use std::time::Duration;

use hub_core::time::Clock;

use crate::exit::Failure;

/// Calls `poll` until it returns a value, and waits `interval` between two calls.
pub async fn every<T>(
    interval: Duration,
    mut poll: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let clock = Clock::system();
    loop {
        if let Some(found) = poll().await? {
            return Ok(found);
        }
        clock.sleep(interval).await;
    }
}

/// As [`every`], for at most `limit`; `None` when that is over.
pub async fn within<T>(
    interval: Duration,
    limit: Duration,
    mut poll: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let clock = Clock::system();
    let until = clock.instant() + limit;
    every(interval, async || {
        let found = poll().await?;
        Ok((found.is_some() || clock.instant() >= until).then_some(found))
    })
    .await
}
