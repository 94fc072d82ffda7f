//! Reasons that `hub_core` stores in English, in the language of the page as far as it has words for them.

use maud::{Markup, html};

use crate::console::words::Words;

/// Texts in texts in texts are translated; deeper ones stay English.
const MAX_DEPTH: usize = 4;

/// A part of a sentence.
#[derive(Debug, PartialEq, Eq)]
struct Piece<'s> {
    text: &'s str,
    /// Whether it is English on a page of another language.
    is_foreign: bool,
}

/// A sentence; commands in it are between backquotes. What has no translation is marked as English.
pub(in crate::console) fn sentence(words: &Words, text: &str) -> Markup {
    let mut pieces = Vec::new();
    translate(words.traces.reasons, text, MAX_DEPTH, &mut pieces);
    html! {
        @for piece in pieces {
            @if piece.is_foreign && words.lang != "en" {
                span lang="en" { bdi { (commands(piece.text)) } }
            } @else if piece.is_foreign {
                bdi { (commands(piece.text)) }
            } @else {
                (commands(piece.text))
            }
        }
    }
}

/// A text in which commands and settings are between backquotes.
pub(in crate::console) fn commands(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code data-computed { (part) } } @else { (part) }
        }
    }
}

fn translate<'s>(
    patterns: &[(&'static str, &'static str)],
    text: &'s str,
    depth: usize,
    pieces: &mut Vec<Piece<'s>>,
) {
    let found =
        patterns.iter().find_map(|(pattern, translation)| Some((captures(pattern, text)?, translation)));
    let Some((captures, translation)) = found.filter(|_| depth > 0) else {
        if !text.is_empty() {
            pieces.push(Piece { text, is_foreign: true });
        }
        return;
    };
    let mut rest: &'static str = translation;
    while let Some(open) = rest.find(['{', '[']) {
        let is_translated = rest[open..].starts_with('{');
        let number =
            rest[open + 1..].find(['}', ']']).and_then(|end| rest[open + 1..][..end].parse::<usize>().ok());
        pieces.push(Piece { text: &rest[..open], is_foreign: false });
        if let Some(captured) = number.and_then(|number| captures.get(number)) {
            if is_translated {
                translate(patterns, captured, depth - 1, pieces);
            } else {
                pieces.push(Piece { text: captured, is_foreign: false });
            }
        }
        rest = rest[open..].split_once(['}', ']']).map_or("", |(_, after)| after);
    }
    pieces.push(Piece { text: rest, is_foreign: false });
}

/// The texts at the `{}` of a pattern, if it matches the whole text.
fn captures<'s>(pattern: &str, text: &'s str) -> Option<Vec<&'s str>> {
    let mut literals = pattern.split("{}");
    let mut rest = text.strip_prefix(literals.next()?)?;
    let mut found = Vec::new();
    let mut literals = literals.peekable();
    while let Some(literal) = literals.next() {
        let is_last = literals.peek().is_none();
        let at = if is_last { rest.strip_suffix(literal)?.len() } else { rest.find(literal)? };
        found.push(&rest[..at]);
        rest = &rest[at + literal.len()..];
    }
    rest.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use hub_core::network::NetworkError;

    use super::*;
    use crate::{appearance::Language, console::words::of};

    fn shown(text: &str) -> String {
        sentence(of(Language::Chinese), text).into_string()
    }

    #[test]
    fn reasons_are_translated_and_what_has_no_words_stays_english() {
        assert_eq!(shown("timeout: no response"), "超时：<span lang=\"en\"><bdi>no response</bdi></span>");
        assert_eq!(shown("`reply` is empty"), "<code data-computed>reply</code> 是空的");
        assert_eq!(shown("no such <user>"), "<span lang=\"en\"><bdi>no such &lt;user&gt;</bdi></span>");
        let english = sentence(of(Language::English), "anything `else`").into_string();
        assert_eq!(english, "<bdi>anything <code data-computed>else</code></bdi>");
    }

    #[test]
    fn every_reason_of_the_status_of_a_bot_has_a_translation() {
        let source = include_str!("../../../../hub-core/src/delivery/status_reasons.rs");
        let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        let literals: Vec<_> = lines.flat_map(|line| line.split('"').skip(1).step_by(2)).collect();
        assert_eq!(literals.len(), 5, "{literals:?}");
        for literal in literals {
            let page = shown(&literal.replace("{reason}", "disabled"));
            assert!(!page.starts_with("<span lang=\"en\">"), "{page}");
        }
    }

    #[test]
    fn no_translation_loses_a_value() {
        for (pattern, translation) in of(Language::Chinese).traces.reasons {
            for number in 0..pattern.matches("{}").count() {
                let is_used = translation.contains(&format!("{{{number}}}"))
                    || translation.contains(&format!("[{number}]"));
                assert!(is_used || pattern.ends_with("; {}"), "{pattern} loses {number}");
            }
        }
    }

    #[test]
    fn failures_of_the_network_are_translated() {
        let message = || "said".to_owned();
        for error in [
            NetworkError::LoginExpired(message()),
            NetworkError::Throttled { message: message(), retry_after: None },
            NetworkError::Refused { code: -9, message: message() },
            NetworkError::Unreachable(message()),
        ] {
            let page = shown(&error.to_string());
            assert!(!page.starts_with("<span lang=\"en\">"), "{page}");
            assert!(page.contains("<span lang=\"en\"><bdi>said</bdi></span>"), "{page}");
        }
    }
}
