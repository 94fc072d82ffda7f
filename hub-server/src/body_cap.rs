//! Bodies are counted while they are read: nothing in the process ever holds more than the cap. A stranger's
//! body may have 16 KiB; whoever authenticates raises the cap to the one of the route (reliability N1).

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

use crate::envelope::{ApiError, too_large};

/// What a stranger may send, in bytes.
pub(crate) const STRANGER: usize = 16 * 1024;

/// The body is over its cap.
#[derive(Debug, thiserror::Error)]
#[error("the body is over its cap")]
pub(crate) struct OverCap;

/// The cap of one request's body; extractors of credentials find it in the request.
#[derive(Debug, Clone)]
pub(crate) struct BodyCap {
    now: Arc<AtomicUsize>,
    route: usize,
}

impl BodyCap {
    /// The caller has shown who they are.
    pub(crate) fn raise(&self) {
        self.now.store(self.route, Ordering::Relaxed);
    }
}

/// Refuses a declared length over the cap of the route, and makes reading fail at the cap that holds by then,
/// also for chunked bodies. (poem's own `SizeLimit` answers 411 to every request without a declared length.)
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
            return over(); // It says itself that it is too long.
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
