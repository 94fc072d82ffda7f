//! Server-sent events (WHATWG HTML, section 9.2), read from pieces of any size.
//!
//! Own code and not `sse-stream` or `eventsource-stream`: those pull from a `Stream`, while the egress client pushes
//! bytes, and they drop the last event of servers that omit the empty line at the end.

/// Splits bytes into the data of events. Accepts every line end, a byte order mark, comments, `data:` with and without a
/// space, and data of several lines; other fields are skipped.
#[derive(Debug)]
pub struct Events {
    /// Largest event, in bytes.
    max: usize,
    /// A line that is not complete.
    line: Vec<u8>,
    /// The data lines of an event that is not complete.
    data: Option<String>,
    /// Whether the last byte was a CR: a LF after it belongs to the same line end.
    after_cr: bool,
}

/// An event, or a line of another field, is larger than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {0} bytes")]
pub struct TooLong(pub usize);

impl Events {
    /// A reader that keeps at most `max` bytes of an event.
    pub const fn new(max: usize) -> Self {
        Self { max, line: Vec::new(), data: None, after_cr: false }
    }

    /// Takes bytes and returns the data of every event that they complete.
    ///
    /// # Errors
    /// [`TooLong`]; the events before it are lost.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut complete = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            let is_second_half = self.after_cr && line.is_empty() && rest[0] == b'\n';
            self.after_cr = rest[0] == b'\r';
            bytes = &rest[1..];
            if !is_second_half {
                self.extend(line)?;
                complete.extend(self.end_line());
            }
        }
        self.after_cr &= bytes.is_empty();
        self.extend(bytes)?;
        Ok(complete)
    }

    /// The data of an event whose last line, or the empty line after it, did not come: the end of a stream completes it.
    pub fn pending(&mut self) -> Option<String> {
        let last = self.end_line();
        last.or_else(|| self.data.take())
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let kept = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if kept + bytes.len() > self.max {
            return Err(TooLong(self.max));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<String> {
        if self.line.is_empty() {
            return self.data.take();
        }
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        let value = line.strip_prefix("data:").or_else(|| (line == "data").then_some(""))?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match &mut self.data {
            None => self.data = Some(value.to_owned()),
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events, which are the same whatever the pieces are.
    fn events(stream: &str) -> Vec<String> {
        let read = |size: usize| {
            let mut events = Events::new(1000);
            let pieces = stream.as_bytes().chunks(size.max(1));
            let mut complete: Vec<String> = pieces.flat_map(|piece| events.feed(piece).unwrap()).collect();
            complete.extend(events.pending());
            complete
        };
        let whole = read(stream.len());
        for size in 1..4 {
            assert_eq!(read(size), whole, "in pieces of {size}: {stream:?}");
        }
        whole
    }

    #[test]
    fn events_are_split_as_in_the_standard() {
        for (stream, expected) in [
            ("data: a\n\ndata: b\n\n", vec!["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", vec!["a", "b", "c"]),
            ("data:a\ndata: b\n\n", vec!["a\nb"]),
            ("data:{\"a\":1}\n\ndata:  two spaces\n\n", vec!["{\"a\":1}", " two spaces"]),
            (": comment\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", vec!["a"]),
            ("\n\n\ndata: a\n\n\n\n", vec!["a"]),
            ("data: last", vec!["last"]),
            ("data: last\n", vec!["last"]),
            ("data\n\n", vec![""]),
            ("\u{feff}data: a\n\n", vec!["a"]),
            ("data: é🙂\n\n", vec!["é🙂"]),
            ("dataset: a\n\ndata : b\n\n", vec![]),
            ("nothing", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(events(stream), expected, "{stream:?}");
        }
        let mut broken = Events::new(1000);
        assert_eq!(broken.feed(b"data: a\xff\n\n").unwrap(), ["a\u{fffd}"]);
    }

    #[test]
    fn an_event_is_collected_up_to_its_limit() {
        let mut events = Events::new(10);
        assert_eq!(events.feed(b"data:12345\n\ndata:123\n").unwrap(), ["12345"]);
        assert_eq!(events.feed(b"data:45678"), Err(TooLong(10)), "lines of one event count together");
        assert_eq!(Events::new(10).feed(b": a comment that never ends"), Err(TooLong(10)));
    }
}
