//! Text on a terminal: safe characters and width.

use std::fmt::Write as _;

use hub_core::time::Timestamp;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A text as one line that cannot change the terminal: control characters and everything that reorders text
/// are dropped, line breaks become spaces.
pub fn clean(text: &str) -> String {
    let spaced = text.chars().map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c });
    spaced.filter(|c| !c.is_control() && !is_bidi_control(*c)).collect()
}

/// A line of source as [`clean`] leaves it, with its indentation.
pub fn code_line(line: &str) -> String {
    clean(&line.replace('\t', "    "))
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text of several lines without control characters: they are escaped as in JSON.
pub fn escape(text: &str) -> String {
    let hostile = |c: &char| (c.is_control() && *c != '\n') || is_bidi_control(*c);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if hostile(&c) {
            // Writing to a String cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// A relative time: `42s ago`, `3m ago`, `5h ago`, `12d ago`; `in 3m` for the future.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    let (distance, is_past) = if at <= now { (now.since(at), true) } else { (at.since(now), false) };
    let text = match distance.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    };
    if is_past { format!("{text} ago") } else { format!("in {text}") }
}

/// A time to the second: `2026-01-31T12:00:00Z`.
pub fn to_the_second(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('.').map_or_else(|| text.clone(), |(second, _)| format!("{second}Z"))
}

/// Columns of a text; a CJK character takes two.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// At most `columns` columns of a text, with `…` in place of the rest.
pub fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let mut cut = String::new();
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if wide > left {
            break;
        }
        left -= wide;
        cut.push(c);
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// A text in lines of at most `columns` columns, broken between words where that is possible.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            if width(&line) + 1 + width(word) > columns {
                lines.push(std::mem::take(&mut line));
            } else {
                line.push(' ');
            }
        }
        for c in word.chars() {
            if !line.is_empty() && width(&line) + c.width().unwrap_or(0) > columns {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

/// A text in exactly `columns` columns, or more when it is longer.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_removed_from_terminal_text() {
        for (hostile, shown) in [
            ("a\u{1b}[31mb", "a[31mb"),
            ("\u{1b}]52;c;ZXZpbA==\u{7}x", "]52;c;ZXZpbA==x"),
            ("abc\u{202e}fed\u{2066}", "abcfed"),
            ("one\ntwo\r\tthree", "one two  three"),
            ("\u{9b}31m😀", "31m😀"),
        ] {
            assert_eq!(clean(hostile), shown);
        }
    }

    #[test]
    fn control_characters_in_json_are_escaped() {
        assert_eq!(
            escape("{\"a\":\"\u{9b}31m\u{202e}x\u{7f}\"}\n你"),
            "{\"a\":\"\\u009b31m\\u202ex\\u007f\"}\n你"
        );
    }

    #[test]
    fn times_are_shown_relative_to_now() {
        let now = Timestamp::from_millis(1_000_000_000);
        let at = |seconds: i64| Timestamp::from_millis(1_000_000_000 - seconds * 1000);
        let shown = [0, 59, 60, 3_600, 90_000, 172_800, -90].map(|seconds| ago(at(seconds), now));
        assert_eq!(shown, ["0s ago", "59s ago", "1m ago", "1h ago", "25h ago", "2d ago", "in 1m"]);
    }

    #[test]
    fn times_are_shown_to_the_second() {
        assert_eq!(to_the_second(Timestamp::from_millis(1_704_164_645_678)), "2024-01-02T03:04:05Z");
    }

    #[test]
    fn texts_are_wrapped_between_words_and_long_words_are_broken() {
        assert_eq!(wrap("attempt 1 failed: dns", 12), ["attempt 1", "failed: dns"]);
        assert_eq!(wrap("see https://a.example/long", 10), ["see", "https://a.", "example/lo", "ng"]);
        assert_eq!(wrap("你好世界", 5), ["你好", "世界"]);
        assert_eq!(wrap("ab", 0), ["a", "b"]);
        assert_eq!(wrap("", 9), [""]);
    }

    #[test]
    fn texts_fit_their_columns() {
        assert_eq!(fit("hello", 5), "hello");
        assert_eq!(fit("hello", 4), "hel…");
        assert_eq!(fit("你好世界", 8), "你好世界");
        // A wide character is not cut in half.
        assert_eq!(fit("你好世界", 6), "你好…");
        assert_eq!(width(&fit("你好世界", 6)), 5);
        assert_eq!(fit("x", 0), "");
        assert_eq!(pad("你", 4), "你  ");
    }
}
