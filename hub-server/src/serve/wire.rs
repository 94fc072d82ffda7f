//! The stream between a socket and hyper. It passes on one checked head at a time, enforces the deadlines of heads,
//! idle connections and slow readers, and reads on for a moment before it closes with unread bytes.
//!
//! A head that is refused is replaced by a placeholder, which makes hyper ask the service for the answer: so
//! that every refusal is an ordinary, well-formed response with the envelope.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::{
    Shared,
    connection_count::ConnectionSlot,
    connection_state::{ConnectionState, Passed},
    head::{self, Framing, Verdict},
    pace::{Pace, Sleep, sleep},
    refusal::Refusal,
};

/// Size of a read in bytes.
const CHUNK: usize = 8 * 1024;

const PLACEHOLDER: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";

/// Expected part of the connection.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// A head, of which a part may have arrived.
    Head,
    /// The rest of a checked head, from the buffer.
    Pass(usize, Then),
    After(Then),
}

#[derive(Debug, Clone, Copy)]
enum Then {
    Body(Framing),
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    ForHead,
    Idle,
}

pub(super) struct Wire {
    stream: TcpStream,
    state: Arc<ConnectionState>,
    shared: Arc<Shared>,
    phase: Phase,
    /// Bytes read from the socket and not passed on.
    buffer: BytesMut,
    /// Number of bytes in the buffer that were checked.
    seen: usize,
    /// Whether the connection had a request before.
    served: bool,
    timer: Option<(Waiting, Sleep)>,
    reader: Option<Pace>,
    lingering: Option<Sleep>,
    _place: ConnectionSlot,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) fn new(
        stream: TcpStream,
        place: ConnectionSlot,
        state: Arc<ConnectionState>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            stream,
            state,
            shared,
            phase: Phase::Head,
            buffer: BytesMut::new(),
            seen: 0,
            served: false,
            timer: None,
            reader: None,
            lingering: None,
            _place: place,
        }
    }

    /// Reads until a head can be passed on or was rejected. Returns `false` if the client disconnected or stayed
    /// idle.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            if self.judge() {
                return Poll::Ready(Ok(true));
            }
            let mut chunk = [0; CHUNK];
            let mut read = ReadBuf::new(&mut chunk);
            match Pin::new(&mut self.stream).poll_read(cx, &mut read) {
                Poll::Ready(Ok(())) if read.filled().is_empty() => {
                    if self.buffer.is_empty() {
                        return Poll::Ready(Ok(false));
                    }
                    self.refuse(Refusal::BadHead("the head ends in its middle"));
                    return Poll::Ready(Ok(true));
                }
                Poll::Ready(Ok(())) => self.buffer.extend_from_slice(read.filled()),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    ready!(self.poll_deadline(cx));
                    if self.buffer.is_empty() {
                        self.shared.stats.close_idle();
                        return Poll::Ready(Ok(false));
                    }
                    self.refuse(Refusal::SlowHead);
                    return Poll::Ready(Ok(true));
                }
            }
        }
    }

    /// Ready when the deadline of a head or of an idle connection has passed.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.state.is_busy(cx) {
            self.timer = None; // hyper only looks whether the client is still there.
            return Poll::Pending;
        }
        let waiting = if self.served && self.buffer.is_empty() { Waiting::Idle } else { Waiting::ForHead };
        if self.timer.as_ref().is_none_or(|(running, _)| *running != waiting) {
            let limits = &self.shared.limits;
            let limit = if waiting == Waiting::Idle { limits.idle } else { limits.head };
            self.timer = Some((waiting, sleep(&self.shared.clock, limit)));
        }
        let Some((_, timer)) = &mut self.timer else { return Poll::Pending };
        ready!(timer.as_mut().poll(cx));
        self.timer = None;
        Poll::Ready(())
    }

    /// Judges what is in the buffer; `true` when a head or a placeholder can be passed on.
    fn judge(&mut self) -> bool {
        // Empty lines before a request are ignored (RFC 9112 §2.2).
        while self.buffer.starts_with(b"\r\n") {
            self.buffer.advance(2);
            self.seen = self.seen.saturating_sub(2);
        }
        if self.seen >= self.buffer.len() {
            return false;
        }
        let verdict = head::judge(&self.buffer, self.seen, &self.shared.limits);
        self.seen = self.buffer.len();
        match verdict {
            Verdict::More => return false,
            Verdict::Head(length, framing) => {
                self.served = true;
                self.state.pass(Passed::Request { last: framing == Framing::Open });
                self.phase = Phase::Pass(length, Then::Body(framing));
            }
            Verdict::Refused(refusal) => self.refuse(refusal),
        }
        self.timer = None;
        true
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.state.pass(Passed::Refused(refusal));
        self.buffer = BytesMut::from(PLACEHOLDER);
        self.phase = Phase::Pass(PLACEHOLDER.len(), Then::Nothing);
    }

    /// Moves bytes from the buffer and returns their number.
    fn pass_on(&mut self, to: &mut ReadBuf<'_>, most: usize) -> usize {
        let count = most.min(self.buffer.len()).min(to.remaining());
        to.put_slice(&self.buffer[..count]);
        self.buffer.advance(count);
        self.seen = 0;
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new(); // An idle connection keeps no buffer.
        }
        count
    }

    /// Reads at most `most` bytes, buffered ones first.
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
        most: u64,
    ) -> Poll<io::Result<usize>> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if !self.buffer.is_empty() {
            return Poll::Ready(Ok(self.pass_on(to, most)));
        }
        let most = most.min(to.remaining());
        let mut part = ReadBuf::new(to.initialize_unfilled_to(most));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let count = part.filled().len();
        to.advance(count);
        Poll::Ready(Ok(count))
    }

    /// Discards received bytes. Ready at the end of the stream.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut chunk = [0; CHUNK];
        let mut read = ReadBuf::new(&mut chunk);
        match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read)) {
            Ok(()) if !read.filled().is_empty() => {
                // One chunk per turn, so that other tasks run, too.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Called while the client does not read the response.
    fn poll_slow_reader<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if self.state.is_upgraded() {
            return Poll::Pending;
        }
        let Shared { limits, clock, stats, .. } = &*self.shared;
        let pace = self.reader.get_or_insert_with(|| Pace::new(limits.answer, clock));
        ready!(pace.poll_too_slow(cx));
        stats.cut_slow_reader();
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read the response")))
    }

    fn note_written(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Some(pace), Poll::Ready(Ok(count))) = (&mut self.reader, written) {
            pace.add(*count);
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match this.phase {
                Phase::Head => {
                    if !ready!(this.poll_head(cx))? {
                        return Poll::Ready(Ok(()));
                    }
                }
                Phase::Pass(length, then) => {
                    let left = length - this.pass_on(to, length);
                    this.phase = if left == 0 { Phase::After(then) } else { Phase::Pass(left, then) };
                    return Poll::Ready(Ok(()));
                }
                Phase::After(Then::Body(Framing::Sized(0))) => this.phase = Phase::Head,
                Phase::After(Then::Body(Framing::Sized(left))) => {
                    let count = ready!(this.poll_body(cx, to, left))?;
                    this.phase = Phase::After(Then::Body(Framing::Sized(left - count as u64)));
                    return Poll::Ready(Ok(()));
                }
                Phase::After(Then::Body(Framing::Open)) => {
                    ready!(this.poll_body(cx, to, u64::MAX))?;
                    return Poll::Ready(Ok(()));
                }
                Phase::After(Then::Nothing) => {
                    // The end of the stream would make hyper drop the response.
                    ready!(this.poll_discard(cx));
                    return Poll::Pending;
                }
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, from);
        self.note_written(&written);
        if written.is_pending() { self.poll_slow_reader(cx) } else { written }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, from);
        self.note_written(&written);
        if written.is_pending() { self.poll_slow_reader(cx) } else { written }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes when it has written everything.
        self.reader = None;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        if matches!(self.phase, Phase::Head) && self.buffer.is_empty() || self.state.is_upgraded() {
            return Poll::Ready(Ok(()));
        }
        let limit = self.shared.limits.linger;
        let this = &mut *self;
        let timer = this.lingering.get_or_insert_with(|| sleep(&this.shared.clock, limit));
        if timer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        this.poll_discard(cx).map(Ok)
    }
}
