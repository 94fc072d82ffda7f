//! Marker in the text of a message: its number and conversation, by which each process recognises the message.

const START: &[u8] = b"[#";
const LENGTH: usize = 20;
/// Bytes of a text.
const TEXT: usize = 500;
const FILLER: &str = "今天的订单什么时候能送到？Please let me know as soon as it is on its way. ";

/// The number of a message and the conversation it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    pub number: u64,
    pub conversation: u64,
}

impl Marker {
    /// A text of 500 bytes that holds the marker.
    pub fn text(self) -> String {
        let mut text = format!("[#{:011}@{:05}]", self.number, self.conversation);
        while text.len() < TEXT {
            text.push_str(FILLER);
        }
        text.truncate(text.floor_char_boundary(TEXT));
        text
    }

    /// The first marker in these bytes, and what follows it.
    pub fn find(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let at = bytes.windows(START.len()).position(|window| window == START)?;
        let (marker, rest) = bytes[at..].split_at_checked(LENGTH)?;
        let text = std::str::from_utf8(marker).ok()?;
        let (number, conversation) = text[START.len()..LENGTH - 1].split_once('@')?;
        Some((Self { number: number.parse().ok()?, conversation: conversation.parse().ok()? }, rest))
    }

    /// Every marker in these bytes.
    pub fn find_all(mut bytes: &[u8]) -> impl Iterator<Item = Self> {
        std::iter::from_fn(move || {
            let (marker, rest) = Self::find(bytes)?;
            bytes = rest;
            Some(marker)
        })
    }
}
