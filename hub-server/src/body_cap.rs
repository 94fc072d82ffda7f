//! Bodies are counted while they are read: the process never holds more than the cap. Without authentication the cap
//! is 16 KiB; authentication raises it to that of the route.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body_util::{BodyExt, combinators::BoxBody};
use hyper::body::{Body, Frame, SizeHint};
use poem::{Request, http::header};

use crate::envelope::{ApiError, OverCap, too_large};

/// Cap of an unauthenticated body, in bytes.
pub(crate) const STRANGER: usize = 16 * 1024;

/// The cap of one request's body; extractors of credentials find it in the request.
#[derive(Debug, Clone)]
pub(crate) struct BodyCap {
    now: Arc<AtomicUsize>,
    route: usize,
}

impl BodyCap {
    /// The caller is authenticated.
    pub(crate) fn raise(&self) {
        self.now.store(self.route, Ordering::Relaxed);
    }
}

/// Rejects a declared length over the cap of the route, and makes reading fail at the current cap, also for chunked
/// bodies. (poem's own `SizeLimit` responds with 411 to every request without a declared length.)
pub(crate) fn limit(request: &mut Request, route: usize) -> Result<(), ApiError> {
    let declared = request.header(header::CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok());
    if declared.is_some_and(|length| length > route as u64) {
        return Err(too_large().into());
    }
    let cap = BodyCap { now: Arc::new(AtomicUsize::new(STRANGER.min(route))), route };
    request.set_data(cap.clone());
    let inner: BoxBody<Bytes, io::Error> = request.take_body().into();
    if !inner.is_end_stream() {
        request.set_body(poem::Body::from(Capped { inner, cap, read: 0 }.boxed()));
    }
    Ok(())
}

struct Capped {
    inner: BoxBody<Bytes, io::Error>,
    cap: BodyCap,
    read: usize,
}

impl Body for Capped {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let cap = self.cap.now.load(Ordering::Relaxed);
        let over = || Poll::Ready(Some(Err(io::Error::other(OverCap))));
        if self.inner.size_hint().lower() > (cap - cap.min(self.read)) as u64 {
            return over(); // The declared length is too large.
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.read = self.read.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        }
        if self.read > cap { over() } else { Poll::Ready(frame) }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
