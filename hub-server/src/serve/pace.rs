//! Minimum transfer rate of a peer: a number of bytes in every interval, after a grace period, and a total time
//! limit.

use std::{
    fmt, io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Buf;
use hub_core::time::Clock;
use hyper::body::{Body, Frame, SizeHint};

/// Minimum rate of a transfer.
#[derive(Debug, Clone, Copy)]
pub struct PaceLimits {
    /// Time at the start without a minimum.
    pub grace: Duration,
    /// Interval after the grace period in which one portion has to be transferred.
    pub interval: Duration,
    /// Size of a portion in bytes; bytes transferred earlier count.
    pub bytes: u64,
    /// Time limit of the whole transfer, regardless of its rate.
    pub total: Option<Duration>,
}

/// A wait on the clock that can be kept between polls.
pub(super) type Sleep = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// Returns a wait that starts when it is first polled.
pub(super) fn sleep(clock: &Clock, duration: Duration) -> Sleep {
    let clock = clock.clone();
    Box::pin(async move { clock.sleep(duration).await })
}

/// Measures one transfer. It only has to be polled while the peer makes no progress.
pub(super) struct Pace {
    limits: PaceLimits,
    clock: Clock,
    timer: Option<Sleep>,
    /// Time since the first poll.
    elapsed: Duration,
    portions: u64,
    bytes: u64,
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace")
            .field("elapsed", &self.elapsed)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Pace {
    pub(super) fn new(limits: PaceLimits, clock: &Clock) -> Self {
        Self { limits, clock: clock.clone(), timer: None, elapsed: Duration::ZERO, portions: 0, bytes: 0 }
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// Ready when the peer is too slow.
    pub(super) fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let wait = if self.elapsed.is_zero() { self.limits.grace } else { self.limits.interval };
            let timer = self.timer.get_or_insert_with(|| sleep(&self.clock, wait));
            ready!(timer.as_mut().poll(cx));
            self.timer = None;
            if !self.elapsed.is_zero() {
                self.portions += 1;
            }
            self.elapsed += wait.max(Duration::from_nanos(1));
            let is_late = self.limits.total.is_some_and(|total| self.elapsed >= total);
            if is_late || self.bytes < self.portions.saturating_mul(self.limits.bytes) {
                return Poll::Ready(());
            }
        }
    }
}

/// A body that ends with an error when it is received too slowly.
pub(super) struct Paced<B> {
    inner: B,
    pace: Pace,
    too_slow: Arc<AtomicBool>,
}

impl<B> Paced<B> {
    /// Wraps a body. `too_slow` is set when the rate was the reason of an error.
    pub(super) fn new(inner: B, limits: PaceLimits, clock: &Clock, too_slow: Arc<AtomicBool>) -> Self {
        Self { inner, pace: Pace::new(limits, clock), too_slow }
    }
}

impl<B: Body<Error = io::Error> + Unpin> Body for Paced<B> {
    type Data = B::Data;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Self::Data>>>> {
        let this = &mut *self;
        match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame {
                    this.pace.add(frame.data_ref().map_or(0, Buf::remaining));
                }
                Poll::Ready(frame)
            }
            Poll::Pending => {
                ready!(this.pace.poll_too_slow(cx));
                this.too_slow.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, "the body came too slowly"))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;
    use hub_core::time::{ManualClock, Timestamp};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pace(total: Option<Duration>) -> (Pace, ManualClock) {
        let clock = ManualClock::new(Timestamp::from_millis(0));
        let limits = PaceLimits { grace: 5 * SECOND, interval: SECOND, bytes: 1024, total };
        (Pace::new(limits, &clock.clone().into()), clock)
    }

    async fn is_too_slow(pace: &mut Pace) -> bool {
        poll!(std::future::poll_fn(|cx| pace.poll_too_slow(cx))).is_ready()
    }

    #[tokio::test]
    async fn a_drip_ends_one_interval_after_the_grace() {
        let (mut pace, clock) = pace(None);
        for _ in 0..6 {
            assert!(!is_too_slow(&mut pace).await);
            pace.add(1);
            clock.advance(SECOND);
        }
        assert!(is_too_slow(&mut pace).await);
    }

    #[tokio::test]
    async fn earlier_bytes_count_and_the_total_limit_ends_the_connection() {
        let (mut steady, clock) = pace(Some(30 * SECOND));
        steady.add(1024 * 1024);
        for _ in 0..30 {
            assert!(!is_too_slow(&mut steady).await);
            clock.advance(SECOND);
        }
        assert!(is_too_slow(&mut steady).await, "30 s are over");
        let (mut pace, clock) = pace(None);
        pace.add(100 * 1024);
        for _ in 0..100 {
            clock.advance(SECOND);
            assert!(!is_too_slow(&mut pace).await);
        }
    }
}
