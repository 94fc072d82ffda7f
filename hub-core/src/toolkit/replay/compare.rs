//! Comparison of a response with the recorded one.

use serde::Serialize;

use super::RecordedResponse;
use crate::{
    plugins::diff,
    redact::{self, MASK},
};

/// Differences between a response and the recorded one. Secrets were masked in the recording: a mask matches any
/// text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Differences {
    /// The recorded and the received status; `None` for no response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<(Option<u16>, Option<u16>)>,
    /// The bodies as a unified difference, JSON laid out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

impl Differences {
    /// Compares a recorded response with a new one.
    pub fn of(recorded: Option<&RecordedResponse>, status: Option<u16>, body: &str) -> Self {
        let before = recorded.map(|answer| answer.status);
        let mut differences = Self { status: (before != status).then_some((before, status)), body: None };
        if let Some(recorded) = recorded
            && !redact::is_cut(&recorded.body)
            && status.is_some()
            && !fits(&recorded.body, body)
        {
            let text = diff::unified(&diff::laid_out(&recorded.body), &diff::laid_out(body));
            differences.body = (!text.is_empty()).then_some(text);
        }
        differences
    }

    /// Whether there is any.
    pub const fn any(&self) -> bool {
        self.status.is_some() || self.body.is_some()
    }
}

/// Whether a text equals the recorded one, where masks match any text.
fn fits(recorded: &str, text: &str) -> bool {
    let mut parts = recorded.split(MASK);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(body: &str) -> RecordedResponse {
        RecordedResponse { status: 200, body: body.to_owned() }
    }

    #[test]
    fn a_mask_matches_any_text() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("***", "", true),
            ("a***c***e", "abcde", true),
            ("a***c***e", "abde", false),
            ("a***a", "a", false),
            ("{\"k\":\"***\"}", "{\"k\":\"secret\"}", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn statuses_and_bodies_are_compared() {
        assert!(!Differences::of(Some(&recorded("{}")), Some(200), "{}").any());
        assert!(
            !Differences::of(Some(&recorded("{\"a\":1,\"b\":2}")), Some(200), "{ \"b\":2,\"a\":1 }").any()
        );
        let other = Differences::of(Some(&recorded("{\"a\":1}")), Some(500), "{\"a\":2}");
        assert_eq!(other.status, Some((Some(200), Some(500))));
        assert!(other.body.unwrap().contains("-  \"a\": 1\n+  \"a\": 2"));
        let gone = Differences::of(Some(&recorded("x")), None, "");
        assert_eq!((gone.status, gone.body), (Some((Some(200), None)), None));
        assert_eq!(Differences::of(None, Some(200), "x").status, Some((None, Some(200))));
        let cut = "x".repeat(redact::MAX_BODY) + "… (cut, 99999 bytes)";
        assert!(!Differences::of(Some(&recorded(&cut)), Some(200), "y").any());
    }
}
