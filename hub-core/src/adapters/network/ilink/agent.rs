//! The name this client calls itself by (`docs/ilink.md#base-information`).

/// The name without a configured one.
pub(super) const DEFAULT: &str = concat!("MessageHub/", env!("CARGO_PKG_VERSION"));

/// Most bytes of the whole.
const MAX_AGENT: usize = 256;
/// Most characters of a product's name and of its version.
const MAX_NAME: usize = 32;
/// Most characters of a comment.
const MAX_COMMENT: usize = 64;

/// The valid parts of an operator's text: products `name/version`, each with at most one ` (comment)`;
/// [`DEFAULT`] when there are none.
pub(super) fn sanitize_agent(text: &str) -> String {
    let mut agent = String::new();
    let mut behind_product = false;
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (part, next) = rest.split_at(part_len(rest));
        let comment = part.strip_prefix('(');
        let valid = comment.map_or_else(|| is_product(part), |comment| behind_product && is_comment(comment));
        if valid {
            let space = if agent.is_empty() { "" } else { " " };
            if agent.len() + space.len() + part.len() > MAX_AGENT {
                break;
            }
            agent.push_str(space);
            agent.push_str(part);
        }
        behind_product = valid && comment.is_none();
        rest = next.trim_start();
    }
    if agent.is_empty() { DEFAULT.to_owned() } else { agent }
}

/// Length of the comment or the word at the start of `text`.
fn part_len(text: &str) -> usize {
    if text.starts_with('(') {
        text.find(')').map_or(text.len(), |at| at + 1)
    } else {
        text.find(char::is_whitespace).unwrap_or(text.len())
    }
}

fn is_product(text: &str) -> bool {
    let word = |word: &str, extra: &str| {
        (1..=MAX_NAME).contains(&word.len())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
    };
    text.split_once('/').is_some_and(|(name, version)| word(name, "_.-") && word(version, "_.+-"))
}

/// Whether this is the text of a comment behind its opening parenthesis, closed.
fn is_comment(text: &str) -> bool {
    let printable = |c: char| matches!(c, ' '..='~') && c != '(';
    text.strip_suffix(')')
        .is_some_and(|text| (1..=MAX_COMMENT).contains(&text.len()) && text.chars().all(printable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_parts_are_sent() {
        for (text, agent) in [
            ("OurHub/1.4.0", "OurHub/1.4.0"),
            ("A/1 (x; y)  B_c.d-e/2+3", "A/1 (x; y) B_c.d-e/2+3"),
            ("A/1 (one) (two)", "A/1 (one)"),
            ("(first) A/1", "A/1"),
            ("bad A/1 (ok) /2 B/", "A/1 (ok)"),
            ("A/1\r\nX-Evil: 1", "A/1"),
            ("A/1 (open", "A/1"),
            ("A/1 (a(b) C/3", "A/1 C/3"),
            ("中/1 A/1 (中)", "A/1"),
            ("", DEFAULT),
            ("OpenClaw", DEFAULT),
        ] {
            assert_eq!(sanitize_agent(text), agent, "{text:?}");
        }
        let long = sanitize_agent(&"abcdefghij/0123456789 ".repeat(30));
        assert!(long.len() <= MAX_AGENT && long.ends_with("0123456789"));
        assert_eq!(sanitize_agent(&format!("{}/1", "n".repeat(33))), DEFAULT);
    }
}
