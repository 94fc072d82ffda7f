//! A response of server-sent events, read event by event.

use std::ops::ControlFlow;

use http::{HeaderMap, StatusCode};
use hub_core::{egress::Reader, sse::Events};
use serde_json::Value;

use crate::exit::Failure;

/// Largest event of a stream, and longest error, in bytes.
const MAX_EVENT: usize = 64 * 1024;

/// Reads server-sent events and passes on each of them.
pub struct EventStream<F> {
    take: F,
    status: StatusCode,
    events: Events,
    /// The body of a failure.
    body: Vec<u8>,
    failure: Option<Failure>,
}

impl<F: FnMut(Value) -> Result<(), Failure>> EventStream<F> {
    pub fn new(take: F) -> Self {
        let events = Events::new(MAX_EVENT);
        Self { take, status: StatusCode::OK, events, body: Vec::new(), failure: None }
    }

    fn take_piece(&mut self, piece: &[u8]) -> Result<(), Failure> {
        let too_long = || Failure::unreachable("the server sent an event that is too long");
        if !self.status.is_success() {
            self.body.extend_from_slice(piece);
            return if self.body.len() > MAX_EVENT { Err(too_long()) } else { Ok(()) };
        }
        for data in self.events.feed(piece).map_err(|_| too_long())? {
            let event = serde_json::from_str(&data);
            (self.take)(event.map_err(|_| Failure::unreachable("the server sent an invalid event"))?)?;
        }
        Ok(())
    }
}

/// Result of a stream.
pub trait Ended: Reader {
    fn status(&self) -> StatusCode;
    /// The body of an error.
    fn body(&self) -> Value;
    /// The failure that stopped reading.
    fn failure(&mut self) -> Option<Failure>;
}

impl<F: FnMut(Value) -> Result<(), Failure> + Send> Reader for EventStream<F> {
    fn begin(&mut self, status: StatusCode, _: &HeaderMap) {
        self.status = status;
    }

    fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        self.failure = self.take_piece(piece).err();
        if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<F: FnMut(Value) -> Result<(), Failure> + Send> Ended for EventStream<F> {
    fn status(&self) -> StatusCode {
        self.status
    }

    fn body(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_from_pieces_of_any_size() {
        let text = "retry: 2000\n\nid: a-1\nevent: hello\ndata: {\"id\":\"a-1\"}\n\n: ping\nid: a-2\n\ndata: {\"id\":\"a-3\"}\n\ndata:{\"id\":\"a-4\"}\r\n\r\n\u{feff}data:{\ndata: \"id\":\"a-5\"}\n\n";
        for size in [1, 7, text.len()] {
            let mut seen = Vec::new();
            let mut stream = EventStream::new(|event: Value| {
                seen.push(event["id"].as_str().unwrap().to_owned());
                Ok(())
            });
            stream.begin(StatusCode::OK, &HeaderMap::new());
            for piece in text.as_bytes().chunks(size) {
                assert!(stream.take(piece).is_continue());
            }
            assert!(stream.failure().is_none());
            assert_eq!(seen, ["a-1", "a-3", "a-4", "a-5"]);
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_collected_forever() {
        let mut stream = EventStream::new(|_| Ok(()));
        stream.begin(StatusCode::OK, &HeaderMap::new());
        assert!(stream.take(&vec![b'x'; MAX_EVENT]).is_continue());
        assert!(stream.take(b"x").is_break());
    }
}
