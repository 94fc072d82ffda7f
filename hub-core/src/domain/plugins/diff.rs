//! Human-readable differences between two texts.

use std::time::Duration;

use serde_json::Value;
use similar::TextDiff;

/// Longest text that is compared, in bytes.
const MAX_TEXT: usize = 512 * 1024;
/// Time limit of a comparison; the result is coarser when it is reached.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);
/// Most lines of a difference that are kept.
const MAX_LINES: usize = 2_000;
/// Lines around a change.
const CONTEXT: usize = 3;

/// The difference as unified diff text without file names, empty when there is none.
pub fn unified(before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    if before.len().max(after.len()) > MAX_TEXT {
        return format!("too long to compare: {} bytes became {}\n", before.len(), after.len());
    }
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(before, after);
    let text = diff.unified_diff().context_radius(CONTEXT).missing_newline_hint(false).to_string();
    match text.match_indices('\n').nth(MAX_LINES) {
        Some((end, _)) => format!("{}\n…\n", &text[..end]),
        None => text,
    }
}

/// A body as lines: JSON is laid out, everything else is left as it is.
pub fn laid_out(body: &str) -> String {
    let json = serde_json::from_str::<Value>(body).ok().filter(|value| value.is_object() || value.is_array());
    json.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_by_line_and_json_is_laid_out() {
        assert_eq!(unified("a\n", "a\n"), "");
        let text = unified(&laid_out(r#"{"a":1,"b":2}"#), &laid_out(r#"{"a":1,"b":3,"c":[]}"#));
        for line in ["-  \"b\": 2", "+  \"b\": 3,", "+  \"c\": []", "   \"a\": 1,"] {
            assert!(text.lines().any(|found| found == line), "{line:?} in {text}");
        }
        assert_eq!(laid_out("plain"), "plain");
        assert!(unified(&"x".repeat(MAX_TEXT + 1), "y").starts_with("too long"));
    }
}
