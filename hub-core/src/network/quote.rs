//! Quotes: what a message refers to.

use data_encoding::HEXLOWER;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

/// A reference to an earlier message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quote {
    /// The network's id of the quoted message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_id: Option<String>,
    /// The quoted text: from the message itself, else looked up, else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Which part of the quoted text is meant; applied once the text is known.
    #[serde(skip)]
    pub selection: Option<Selection>,
}

impl Quote {
    /// Sets the text from the whole text of the quoted message, cut to the selection. A text that is there
    /// already wins: what the network sent counts more than what was stored.
    pub fn resolve(&mut self, whole: &str) {
        let selection = self.selection.take();
        self.text.get_or_insert_with(|| selection.map_or(whole, |part| part.apply(whole)).to_owned());
    }
}

/// A part of a text, as the iLink network describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// How the part begins.
    pub start: String,
    /// How the part ends.
    pub end: String,
    /// Which occurrence of `start`, from 0.
    pub start_index: usize,
    /// Which occurrence of `end`, from 0: counted from the beginning of the text or from behind `start`.
    pub end_index: usize,
    /// Hex MD5 of the part.
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

/// Where the `index`-th occurrence of `needle` begins.
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

    #[test]
    fn resolving_cuts_the_stored_text_and_respects_a_sent_one() {
        let selection = Some(part("b", "c", 0, 0, None));
        let mut quote = Quote { selection: selection.clone(), ..Quote::default() };
        quote.resolve("abcd");
        assert_eq!((quote.text.as_deref(), &quote.selection), (Some("bc"), &None));
        let mut sent = Quote { text: Some("sent".into()), selection, ..Quote::default() };
        sent.resolve("abcd");
        assert_eq!(sent.text.as_deref(), Some("sent"));
    }
}
