//! Quotes: references of a message to an earlier one.

use data_encoding::HEXLOWER;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use super::MessageKind;
use crate::id::MessageId;

/// A reference to an earlier message, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quote {
    /// Id of the quoted message, if the hub has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The network's id of the quoted message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_id: Option<String>,
    /// Kind of the quoted message, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<MessageKind>,
    /// The whole text of the quoted message: from the message that quotes it, otherwise looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Quoted part of the text; all of it if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_text: Option<Selection>,
    /// The network's summary of the quoted message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Name of the quoted file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
}

impl Quote {
    /// Adds what the store has of the quoted message: its id, its kind, and its text or the name of its file. What the
    /// network sent takes precedence.
    pub fn resolve(&mut self, id: MessageId, kind: MessageKind, content: &str) {
        self.message_id = Some(id);
        self.kind.get_or_insert(kind);
        let text = if kind == MessageKind::File { &mut self.file_name } else { &mut self.text };
        if text.is_none() && !content.is_empty() {
            *text = Some(content.to_owned());
        }
    }

    /// Returns the quoted part of the text; otherwise the name of the file, otherwise the summary.
    pub fn meant(&self) -> Option<&str> {
        let part = |text| self.partial_text.as_ref().map_or(text, |part| part.apply(text));
        let text = self.text.as_deref().map(part);
        text.or(self.file_name.as_deref()).or(self.title.as_deref())
    }
}

/// A part of a text, as the iLink network describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Text at the beginning of the part.
    pub start: String,
    /// Text at the end of the part.
    pub end: String,
    /// Index of the occurrence of `start`, from 0.
    #[serde(rename = "startindex")]
    pub start_index: usize,
    /// Index of the occurrence of `end`, from 0: counted from the beginning of the text or from the end of `start`.
    #[serde(rename = "endindex")]
    pub end_index: usize,
    /// Hex MD5 of the part.
    #[serde(rename = "quotemd5", default, skip_serializing_if = "Option::is_none")]
    pub md5: Option<String>,
}

impl Selection {
    /// The selected part of `text`, from the beginning of `start` to the end of `end`; the whole of `text`
    /// when no reading fits.
    ///
    /// Senders disagree about where `end_index` counts from, so both readings are tried and the hash decides; without
    /// a hash the first that exists is taken.
    pub fn apply<'t>(&self, text: &'t str) -> &'t str {
        self.readings(text)
            .into_iter()
            .flatten()
            .find(|part| self.md5.as_deref().is_none_or(|md5| has_md5(part, md5)))
            .unwrap_or(text)
    }

    /// The part with `end` counted from the beginning of the text, and counted from behind `start`.
    fn readings<'t>(&self, text: &'t str) -> [Option<&'t str>; 2] {
        let Some(from) = nth(text, &self.start, self.start_index) else { return [None, None] };
        let behind = from + self.start.len();
        let ends = [
            nth(text, &self.end, self.end_index),
            nth(&text[behind..], &self.end, self.end_index).map(|at| behind + at),
        ];
        ends.map(|at| {
            let to = at? + self.end.len();
            (to >= behind).then(|| &text[from..to])
        })
    }
}

/// Returns the position of the `index`-th occurrence of `needle`.
fn nth(text: &str, needle: &str, index: usize) -> Option<usize> {
    if needle.is_empty() { None } else { text.match_indices(needle).nth(index).map(|(at, _)| at) }
}

fn has_md5(text: &str, md5: &str) -> bool {
    HEXLOWER.encode(&Md5::digest(text)).eq_ignore_ascii_case(md5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: &str, end: &str, start_index: usize, end_index: usize, md5: Option<&str>) -> Selection {
        let md5 = md5.map(ToOwned::to_owned);
        Selection { start: start.into(), end: end.into(), start_index, end_index, md5 }
    }

    #[test]
    fn both_ways_of_counting_the_end_find_the_hashed_part() {
        let hash = Some("c43a5009e108d27985d51161f0579a7a");
        for end_index in [2, 0] {
            assert_eq!(part("abc", "abc", 1, end_index, hash).apply("abcabcXYZabc"), "abcXYZabc");
        }
        let upper = hash.map(str::to_uppercase);
        assert_eq!(part("abc", "abc", 1, 0, upper.as_deref()).apply("abcabcXYZabc"), "abcXYZabc");
    }

    #[test]
    fn a_quote_that_does_not_match_is_of_the_whole_message() {
        let text = "abcabcXYZabc";
        let wrong = Some("00000000000000000000000000000000");
        for selection in [
            part("abc", "abc", 1, 2, wrong),
            part("nothing", "abc", 0, 0, None),
            part("abc", "nothing", 0, 0, None),
            part("abc", "abc", 9, 0, None),
            part("", "abc", 0, 0, None),
            part("abc", "", 0, usize::MAX, None),
        ] {
            assert_eq!(selection.apply(text), text, "{selection:?}");
        }
    }

    #[test]
    fn without_a_hash_the_first_reading_that_exists_counts() {
        assert_eq!(part("first", "offer", 0, 0, None).apply("my first good offer!"), "first good offer");
        // The first "。" of the text lies before the start: only the second reading is a part.
        assert_eq!(part("再见", "。", 0, 0, None).apply("你好。再见了。"), "再见了。");
    }

    fn resolve(quote: &mut Quote, kind: MessageKind, content: &str) {
        quote.resolve(MessageId::from_u128(7), kind, content);
    }

    #[test]
    fn what_the_network_sent_takes_precedence_over_the_stored_message() {
        let partial_text = Some(part("b", "c", 0, 0, None));
        let mut quote = Quote { partial_text: partial_text.clone(), ..Quote::default() };
        resolve(&mut quote, MessageKind::Text, "abcd");
        assert_eq!((quote.text.as_deref(), quote.meant()), (Some("abcd"), Some("bc")));
        let mut sent = Quote { text: Some("a bit: c".into()), partial_text, ..Quote::default() };
        resolve(&mut sent, MessageKind::Text, "abcd");
        assert_eq!((sent.meant(), sent.kind), (Some("bit: c"), Some(MessageKind::Text)));
        let mut file = Quote { title: Some("[file]".into()), ..Quote::default() };
        assert_eq!(file.meant(), Some("[file]"));
        resolve(&mut file, MessageKind::File, "a.pdf");
        assert_eq!((file.text.as_deref(), file.file_name.as_deref()), (None, Some("a.pdf")));
        assert_eq!(file.meant(), Some("a.pdf"));
        let mut image = Quote::default();
        resolve(&mut image, MessageKind::Image, "");
        assert_eq!((image.kind, image.meant()), (Some(MessageKind::Image), None));
    }
}
