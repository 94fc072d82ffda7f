//! Cutting long texts into parts that the network shows whole (`docs/ilink.md#content`).

use unicode_normalization::char::is_combining_mark;

use super::fence::Fence;

/// Most bytes of one part; the network refuses above 16,384.
pub(super) const MAX_BYTES: usize = 16_000;
/// Characters by which a cut steps back to spare a grapheme; longer ones are not text.
const LONGEST_GRAPHEME: usize = 32;

/// Cuts `text` into parts of at most `limit` characters and [`MAX_BYTES`] bytes: at a blank line, else a
/// line, a sentence, a space, and only then within a word, never within a code point. Code fences are closed
/// at the end of a part and opened again in the next. A text that fits is returned as it is; a blank text
/// has no parts. `limit` has to leave room for two fence lines.
pub(super) fn split(text: &str, limit: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut fence: Option<Fence> = None;
    while !rest.trim().is_empty() {
        let mut part = fence.as_ref().map(|open| format!("{}\n", open.opening())).unwrap_or_default();
        let room = Room { chars: limit - part.chars().count(), bytes: MAX_BYTES - part.len() };
        if room.holds(rest) {
            part.push_str(rest);
            parts.push(part);
            break;
        }
        let cut = cut(rest, fence.as_ref(), room);
        if !cut.piece.trim().is_empty() {
            part.push_str(cut.piece);
            part.push_str(&cut.closing);
            parts.push(part);
        }
        (rest, fence) = (cut.rest, cut.open);
    }
    parts
}

#[derive(Clone, Copy)]
struct Room {
    chars: usize,
    bytes: usize,
}

impl Room {
    fn holds(self, text: &str) -> bool {
        text.len() <= self.bytes && text.chars().nth(self.chars).is_none()
    }

    /// The end of the longest beginning of `text` that has room, before a grapheme that would be torn.
    fn end(self, text: &str) -> usize {
        let fitting = text.char_indices().take(self.chars).map(|(at, c)| at + c.len_utf8());
        let end = fitting.take_while(|end| *end <= self.bytes).last().unwrap_or(text.len());
        grapheme_start(text, end)
    }

    fn without(self, reserve: usize) -> Self {
        Self { chars: self.chars - reserve, bytes: self.bytes - reserve }
    }
}

/// One piece off the front of a text.
struct Cut<'t> {
    piece: &'t str,
    /// Line that closes the code at the end of the piece; empty outside code.
    closing: String,
    /// The code that continues in the rest.
    open: Option<Fence>,
    rest: &'t str,
}

fn cut<'t>(text: &'t str, before: Option<&Fence>, room: Room) -> Cut<'t> {
    let behind = |at: usize| Fence::after_text(before.cloned(), &text[..at]);
    let mut at = break_before(text, room.end(text));
    if behind(at).is_some() {
        at = break_before(text, room.without(Fence::LONGEST_LINE + 1).end(text));
    }
    let (piece, rest) = text.split_at(at);
    match behind(at) {
        None => {
            // The indentation of a new line means something, the space between two words does not.
            let between_lines = piece.ends_with('\n') || rest.starts_with(['\n', '\r']);
            let rest = if between_lines { rest.trim_start_matches(['\n', '\r']) } else { rest.trim_start() };
            Cut { piece: piece.trim_end(), closing: String::new(), open: None, rest }
        }
        Some(fence) => cut_code(piece, rest, before, fence),
    }
}

/// A cut within code: no block is left empty, neither at the end of this part nor at the start of the next.
fn cut_code<'t>(piece: &'t str, rest: &'t str, before: Option<&Fence>, fence: Fence) -> Cut<'t> {
    let whole_lines = piece.ends_with('\n');
    let piece = piece.strip_suffix('\n').unwrap_or(piece);
    let (earlier, _opening) = piece.rsplit_once('\n').unwrap_or(("", piece));
    if whole_lines && Fence::after_text(before.cloned(), earlier).is_none() {
        return Cut { piece: earlier.trim_end(), closing: String::new(), open: Some(fence), rest };
    }
    let closing = format!("\n{}", fence.closing());
    let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
    if whole_lines && fence.is_closed_by(line) {
        return Cut { piece, closing, open: None, rest: behind };
    }
    Cut { piece, closing, open: Some(fence), rest }
}

/// The best place to cut `text` at or before `end`. Places in the first half are passed over: short parts
/// waste sends, of which a window has only ten.
fn break_before(text: &str, end: usize) -> usize {
    let (head, tail) = text.split_at(end);
    let behind = |mark: &str| head.rfind(mark).map(|at| at + mark.len());
    let blank_line = behind("\n\n").max(behind("\n\r\n"));
    let line = if tail.starts_with('\n') { Some(end) } else { behind("\n") };
    let space = if tail.starts_with(char::is_whitespace) {
        Some(end)
    } else {
        head.char_indices().rfind(|(_, c)| c.is_whitespace()).map(|(at, c)| at + c.len_utf8())
    };
    let places = [blank_line, line, sentence_end(text, end), space];
    places.into_iter().flatten().find(|at| *at >= end / 2).unwrap_or(end)
}

/// Returns the end of the last sentence that is whole at `end`.
fn sentence_end(text: &str, end: usize) -> Option<usize> {
    let ends = |at: usize, c: char| match c {
        '。' | '！' | '？' | '…' => true,
        '.' | '!' | '?' => text[at + 1..].starts_with(char::is_whitespace),
        _ => false,
    };
    text[..end].char_indices().rfind(|(at, c)| ends(*at, *c)).map(|(at, c)| at + c.len_utf8())
}

/// `end`, or the start of the grapheme that a cut at `end` would tear.
fn grapheme_start(text: &str, end: usize) -> usize {
    let mut at = end;
    for _ in 0..LONGEST_GRAPHEME {
        let (head, tail) = text.split_at(at);
        let (Some(before), Some(after)) = (head.chars().next_back(), tail.chars().next()) else { break };
        if !belong_together(head, before, after) {
            return at;
        }
        at -= before.len_utf8();
    }
    end
}

fn belong_together(head: &str, before: char, after: char) -> bool {
    const JOINER: char = '\u{200d}';
    let flag = |c: char| ('\u{1f1e6}'..='\u{1f1ff}').contains(&c);
    let extends = |c| matches!(c, JOINER | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}');
    extends(after)
        || is_combining_mark(after)
        || before == JOINER
        || (before, after) == ('\r', '\n')
        || flag(after) && head.chars().rev().take_while(|c| flag(*c)).count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_text_is_cut_into_the_fewest_parts() {
        let text: String = "春夏秋冬".chars().cycle().take(4_500).collect();
        let parts = split(&text, 2_000);
        assert_eq!(parts.iter().map(|part| part.chars().count()).collect::<Vec<_>>(), [2_000, 2_000, 500]);
        assert_eq!(parts.concat(), text);
    }

    #[test]
    fn bytes_are_limited_as_well() {
        let text = "😀".repeat(4_500);
        let parts = split(&text, 4_000);
        assert_eq!(parts.iter().map(String::len).collect::<Vec<_>>(), [16_000, 2_000]);
    }

    #[test]
    fn breaks_are_chosen_by_rank_in_the_second_half() {
        // Ten letters a word; the limit falls into the third.
        let word = |tail: &str| format!("{}{tail}", "x".repeat(90));
        for (text, parts) in [
            (format!("{}{}yyy", word("\n\n"), word(". ")), vec![word(""), word(". yyy")]),
            (format!("{}a b c {}", word("\n"), word("")), vec![word(""), format!("a b c {}", word(""))]),
            (format!("{}a b c {}", word(". "), word("")), vec![word("."), format!("a b c {}", word(""))]),
            (format!("{}a。b c {}", word(""), word("")), vec![word("a。"), format!("b c {}", word(""))]),
            (format!("{}aa b {}", word(" "), word("")), vec![word(" aa b"), word("")]),
            (
                format!("a\n\n{}{}", word(""), word("")),
                vec![format!("a\n\n{}", "x".repeat(97)), "x".repeat(83)],
            ),
        ] {
            assert_eq!(split(&text, 100), parts, "{text:?}");
        }
    }

    #[test]
    fn graphemes_stay_whole() {
        for grapheme in ["👨‍👩‍👧", "e\u{301}", "🇨🇳", "👍🏽", "❤️", "1️⃣", "\r\n"]
        {
            let text = format!("{}{grapheme}{}", "x".repeat(99), "y".repeat(50));
            let parts = split(&text, 100);
            let torn = parts.iter().any(|part| part.contains(grapheme)) || grapheme == "\r\n";
            assert!(torn, "{grapheme:?} in {parts:?}");
            assert_eq!(parts[0], "x".repeat(99));
        }
        let flags = "🇨🇳".repeat(80);
        assert!(split(&flags, 101).iter().all(|part| part.chars().count() % 2 == 0));
        let endless = format!("a{}", "\u{301}".repeat(300));
        assert_eq!(split(&endless, 100).concat(), endless);
    }

    #[test]
    fn code_is_closed_and_opened_again() {
        let line = "let x = 1; // nine\n";
        let text = format!("Intro\n```rust\n{}```\nOutro", line.repeat(10));
        let parts = split(&text, 150);
        assert_eq!(parts[0], format!("Intro\n```rust\n{}```", line.repeat(5)));
        assert_eq!(parts[1], format!("```rust\n{}```\nOutro", line.repeat(5)));
        for part in &parts {
            assert_eq!(Fence::after_text(None, part), None, "{part}");
        }
    }

    #[test]
    fn no_empty_block_is_left_at_a_cut() {
        let prose = "p".repeat(104);
        // The opening line would end the first part.
        let text = format!("{prose}\n```sh\n{}\n```", "c".repeat(120));
        assert_eq!(split(&text, 150), [prose.clone(), format!("```sh\n{}\n```", "c".repeat(120))]);
        // The closing line would begin the second.
        let text = format!("```sh\n{}\n```\n{}", "c".repeat(95), "p".repeat(120));
        assert_eq!(split(&text, 150), [format!("```sh\n{}\n```", "c".repeat(95)), "p".repeat(120)]);
    }

    #[test]
    fn a_short_text_is_unchanged_and_a_blank_one_has_no_parts() {
        for text in [" a ", "a\n\n", "```\nopen", "\u{a0}x"] {
            assert_eq!(split(text, 100), [text]);
        }
        for text in ["", " \n\t ", &"\n".repeat(500)] {
            assert!(split(text, 100).is_empty());
        }
    }

    #[test]
    fn every_part_keeps_the_limits_and_no_word_is_lost() {
        let random = crate::random::Random::seeded(10);
        let tokens = [
            "word ",
            "字",
            "。",
            ". ",
            "\n",
            "\n\n",
            "```\n",
            "\n~~~~ py\n",
            "\n```",
            "👨‍👩‍👧",
            "  ",
            "`",
            "\r\n",
        ];
        for _ in 0..300 {
            let pick = || tokens[usize::try_from(random.below(tokens.len() as u64)).unwrap()];
            let text: String = (0..400).map(|_| pick()).collect();
            let parts = split(&text, 200);
            assert!(parts.iter().all(|part| part.chars().count() <= 200 && !part.trim().is_empty()));
            // Opening lines are repeated, so the parts may hold more than the text, in the same order.
            let all = parts.concat();
            let mut written = all.chars();
            let letters = text.chars().filter(|c| c.is_alphanumeric());
            assert!(letters.into_iter().all(|letter| written.any(|c| c == letter)), "{text:?}");
        }
    }
}
