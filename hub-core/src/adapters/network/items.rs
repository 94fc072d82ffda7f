//! Storage of the parts of a message.
//!
//! Most messages are one text, which is also their content. It is stored once: the column of the parts is then empty.

use super::{MessageItem, MessageKind};
use crate::{
    error::{Error, Result},
    text::json,
};

/// The parts of a message with this text as they are stored: JSON, or nothing if the text is all there is.
pub(crate) fn stored(items: &[MessageItem], text: &str) -> String {
    match items {
        [only] if only.is_plain(text) => String::new(),
        _ => json(items),
    }
}

/// The parts as JSON, as they were before they were stored.
pub(crate) fn whole(stored: String, text: &str) -> String {
    if stored.is_empty() { json(&[MessageItem::text(text)]) } else { stored }
}

/// As [`whole`], read.
///
/// # Errors
/// `INTERNAL_ERROR` when they are corrupt.
pub(crate) fn parsed(stored: &str, text: &str) -> Result<Vec<MessageItem>> {
    if stored.is_empty() {
        return Ok(vec![MessageItem::text(text)]);
    }
    serde_json::from_str(stored).map_err(Error::internal)
}

impl MessageItem {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            kind: MessageKind::Text,
            text: Some(text.into()),
            file_name: None,
            size: None,
            duration_ms: None,
        }
    }

    /// Whether the part is this text and nothing else.
    fn is_plain(&self, text: &str) -> bool {
        let Self { kind, text: own, file_name, size, duration_ms } = self;
        *kind == MessageKind::Text
            && own.as_deref() == Some(text)
            && file_name.is_none()
            && size.is_none()
            && duration_ms.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_is_stored_as_the_content_alone() {
        let text = || MessageItem::text("a \"b\" \0");
        assert_eq!(stored(&[text()], "a \"b\" \0"), "");
        assert_eq!(whole(String::new(), "a \"b\" \0"), json(&[text()]));
        assert_eq!(parsed("", "a \"b\" \0").unwrap(), [text()]);
        assert!(parsed("{", "").is_err());
        let sized = MessageItem { size: Some(1), ..text() };
        let other = MessageItem { kind: MessageKind::Voice, ..text() };
        for items in [vec![], vec![text(), text()], vec![sized], vec![other], vec![MessageItem::text("a")]] {
            let kept = stored(&items, "a \"b\" \0");
            assert_eq!(kept, json(&items));
            assert_eq!(whole(kept.clone(), "a \"b\" \0"), kept);
            assert_eq!(parsed(&kept, "").unwrap(), items);
        }
    }
}
