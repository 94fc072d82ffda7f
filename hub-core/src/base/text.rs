//! Rules for texts that people and programs give us, in one place, so that every field of every noun means the same
//! by "a name" and both databases store the same.

use std::{borrow::Cow, ops::RangeInclusive};

use crate::error::Problems;

/// Checks a single-line text that is shown in lists, by the rules of [`line_problem`].
///
/// Notes at most one problem for the field.
pub fn check_name(
    problems: &mut Problems,
    field: impl Into<Cow<'static, str>>,
    text: &str,
    length: RangeInclusive<usize>,
) {
    if let Some(reason) = line_problem(text, &length) {
        problems.add(field, reason);
    }
}

/// Whether a text has at most `max` characters.
pub fn is_within(text: &str, max: usize) -> bool {
    text.chars().nth(max).is_none()
}

/// Checks a text of several lines of at most `max` characters, by the rules of [`body_problem`].
///
/// Notes at most one problem for the field.
pub fn check_body(problems: &mut Problems, field: impl Into<Cow<'static, str>>, text: &str, max: usize) {
    if let Some(reason) = body_problem(text, &(0..=max)) {
        problems.add(field, reason);
    }
}

/// Checks an `Idempotency-Key`, a header value, or another text that machines write: 1 to `max` visible ASCII
/// characters. Notes at most one problem for the field.
pub fn check_visible_ascii(
    problems: &mut Problems,
    field: impl Into<Cow<'static, str>>,
    text: &str,
    max: usize,
) {
    let ok = (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    problems.check(ok, field, format!("must be 1 to {max} visible ASCII characters"));
}

/// Says why a text does not have that many characters.
pub fn chars_problem(text: &str, bounds: &RangeInclusive<usize>) -> Option<Cow<'static, str>> {
    // Counting stops one past the end, so that a hostile megabyte costs no more than a long name.
    let count = text.chars().take(bounds.end().saturating_add(1)).count();
    (!bounds.contains(&count)).then(|| match (*bounds.start(), *bounds.end()) {
        (1, _) if count == 0 => "must not be empty".into(),
        (0 | 1, max) => format!("must be at most {max} characters").into(),
        (min, usize::MAX) => format!("must be at least {min} characters").into(),
        (min, max) if min == max => format!("must be {min} characters").into(),
        (min, max) => format!("must be {min} to {max} characters").into(),
    })
}

/// Says why a text is no line of that many characters: no control characters or line breaks, not only white space
/// unless it may be empty, and no direction overrides, with which one name can pass for another.
pub fn line_problem(text: &str, length: &RangeInclusive<usize>) -> Option<Cow<'static, str>> {
    chars_problem(text, length).or_else(|| {
        Some(if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
            "must be one line without control characters".into()
        } else if text.chars().any(overrides_direction) {
            "must not change the direction of text".into()
        } else if *length.start() > 0 && text.trim().is_empty() {
            "must not be blank".into()
        } else {
            return None;
        })
    })
}

/// Says why a text of several lines does not have that many characters, or has control characters other than line breaks
/// and tabs.
pub fn body_problem(text: &str, length: &RangeInclusive<usize>) -> Option<Cow<'static, str>> {
    let has_control = || text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
    chars_problem(text, length)
        .or_else(|| has_control().then(|| "must not contain control characters".into()))
}

/// Embeddings, overrides and isolates of the bidirectional algorithm (Unicode Standard Annex 9, section 2).
fn overrides_direction(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// A multi-row parameter: the statements of both databases read rows out of one JSON text. Our own row types
/// always serialise. PostgreSQL cannot hold U+0000 in a text, so the inbox replaces it before it gets here.
pub(crate) fn json<T: serde::Serialize + ?Sized>(rows: &T) -> String {
    json_of_size(rows, 128)
}

/// As [`json`], for a text of about this many bytes.
pub(crate) fn json_of_size<T: serde::Serialize + ?Sized>(rows: &T, size: usize) -> String {
    let mut text = Vec::with_capacity(size);
    serde_json::to_writer(&mut text, rows).expect("rows have string keys and no failing parts");
    String::from_utf8(text).expect("JSON is UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(check: impl FnOnce(&mut Problems)) -> Option<String> {
        let mut problems = Problems::default();
        check(&mut problems);
        problems.finish().err().map(|error| error.details()[0].reason.to_string())
    }

    #[test]
    fn names_are_one_visible_line_counted_in_characters() {
        let name = |text: &str| reason(|problems| check_name(problems, "name", text, 1..=8));
        for good in ["a", "客服机器人", "Zoë & co", "\u{1F469}\u{200D}\u{1F4BB}", "八个字的名称也行"]
        {
            assert_eq!(name(good), None, "{good}");
        }
        for (bad, why) in [
            ("", "must not be empty"),
            (" \u{3000}", "must not be blank"),
            ("123456789", "must be at most 8 characters"),
            ("a\0b", "must be one line without control characters"),
            ("a\nb", "must be one line without control characters"),
            ("a\u{85}b", "must be one line without control characters"),
            ("a\u{2028}b", "must be one line without control characters"),
            ("a\u{202E}b", "must not change the direction of text"),
            ("a\u{2066}b", "must not change the direction of text"),
        ] {
            assert_eq!(name(bad).as_deref(), Some(why), "{bad:?}");
        }
        assert_eq!(reason(|problems| check_name(problems, "name", "", 0..=8)), None);
        assert_eq!(
            reason(|problems| check_name(problems, "name", "a", 2..=8)).as_deref(),
            Some("must be 2 to 8 characters")
        );
    }

    #[test]
    fn bodies_keep_line_breaks_and_are_counted_in_characters() {
        let body = |text: &str| reason(|problems| check_body(problems, "content", text, 5));
        assert_eq!(body(""), None);
        assert_eq!(body("a\r\n\tb"), None);
        assert_eq!(body("两两两两字"), None);
        assert_eq!(body("两两两两字x").as_deref(), Some("must be at most 5 characters"));
        assert_eq!(body("a\0b").as_deref(), Some("must not contain control characters"));
        assert_eq!(body("\u{1b}[0m").as_deref(), Some("must not contain control characters"));
    }

    #[test]
    fn machine_texts_are_visible_ascii() {
        let key = |text: &str| reason(|problems| check_visible_ascii(problems, "key", text, 4)).is_some();
        assert!(!key("a-~1"));
        for bad in ["", "12345", "a b", "é", "a\n"] {
            assert!(key(bad), "{bad:?}");
        }
    }
}
