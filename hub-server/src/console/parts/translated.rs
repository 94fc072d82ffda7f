//! Sentences of `hub_core`, which are English, in the language of the page as far as it has words for them.

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
    translate(words.traces.sentences, text, MAX_DEPTH, &mut pieces);
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

/// A text in which commands are between backquotes.
fn commands(text: &str) -> Markup {
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
    fn sentences_are_translated_and_what_has_no_words_stays_english() {
        assert_eq!(
            shown(
                "The delivery to the channel orders failed after 3 attempts: the receiver responded with status 500."
            ),
            "投递到频道 orders 在 3 次尝试后失败：接收方返回状态 500。"
        );
        assert_eq!(
            shown("Enable it: `hub-cli channels edit X`. Then replay the message: `hub-cli replay tr_1`."),
            "打开它：<code data-computed>hub-cli channels edit X</code>。然后重放消息：<code data-computed>hub-cli replay \
             tr_1</code>。"
        );
        assert_eq!(
            shown("The chat network refused the message: no such <user>."),
            "聊天网络拒绝了消息：<span lang=\"en\"><bdi>no such &lt;user&gt;</bdi></span>。"
        );
        assert_eq!(shown("anything else"), "<span lang=\"en\"><bdi>anything else</bdi></span>");
        let english = sentence(of(Language::English), "anything `else`").into_string();
        assert_eq!(english, "<bdi>anything <code data-computed>else</code></bdi>");
    }

    /// The literals of a source file that are sentences, with `{}` for each value.
    fn literals(source: &str) -> Vec<String> {
        let mut found = Vec::new();
        let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in lines {
            for literal in line.split('"').skip(1).step_by(2) {
                let mut pattern = String::new();
                let mut parts = literal.split('{');
                pattern.push_str(parts.next().unwrap_or_default());
                for part in parts {
                    pattern.push_str("{}");
                    pattern.push_str(part.split_once('}').map_or("", |(_, after)| after));
                }
                let letters = pattern.chars().filter(char::is_ascii_alphabetic).count();
                if pattern.trim().contains(' ') && letters > 4 && !pattern.trim().starts_with(['`', '-']) {
                    found.push(pattern);
                }
            }
        }
        found
    }

    #[test]
    fn every_sentence_of_an_explanation_has_a_translation() {
        // Parts of longer sentences, which have patterns of their own.
        let parts = [
            "The message was delivered to {}{}: {}.{}",
            ", at attempt {}",
            " A reply waits: {}.",
            " No reply was sent: {}.",
            "; later messages do not wait for it",
            "{} --bot {}",
        ];
        let sources = [
            include_str!("../../../../hub-core/src/traces/explain/verdict.rs"),
            include_str!("../../../../hub-core/src/traces/explain/checks.rs"),
            include_str!("../../../../hub-core/src/delivery/status_reasons.rs"),
        ];
        let all: Vec<String> = sources.into_iter().flat_map(literals).collect();
        assert!(all.len() > 80, "{all:#?}");
        let patterns = of(Language::Chinese).traces.sentences;
        for literal in all.iter().filter(|literal| !parts.contains(&literal.as_str())) {
            let text = literal.replace("{}", "1");
            let is_translated =
                patterns.iter().any(|(pattern, _)| *pattern != "{}" && captures(pattern, &text).is_some());
            assert!(is_translated, "no translation of: {literal}");
        }
        // And no translation of what is not said any more: its words are in the sources, or in those of the states.
        for (pattern, translation) in patterns {
            for number in 0..pattern.matches("{}").count() {
                let is_used = translation.contains(&format!("{{{number}}}"))
                    || translation.contains(&format!("[{number}]"));
                assert!(is_used || pattern.ends_with("{}."), "{pattern} loses {number}");
            }
        }
    }

    #[test]
    fn failures_of_the_network_are_translated() {
        let told = || "said".to_owned();
        for error in [
            NetworkError::LoginExpired(told()),
            NetworkError::Throttled { message: told(), retry_after: None },
            NetworkError::Refused { code: -9, message: told() },
            NetworkError::Unreachable(told()),
        ] {
            let page = shown(&error.to_string());
            assert!(!page.starts_with("<span lang=\"en\">"), "{page}");
            assert!(page.contains("<span lang=\"en\"><bdi>said</bdi></span>"), "{page}");
        }
    }
}
