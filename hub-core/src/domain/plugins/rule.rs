//! `@match`: which messages a plugin is run for.

use std::{fmt, sync::Arc};

use crate::{
    filter::{Expression, FilterInput},
    network::MessageKind,
};

/// The types that can be named.
const KINDS: [MessageKind; 5] =
    [MessageKind::Text, MessageKind::Image, MessageKind::Voice, MessageKind::File, MessageKind::Video];

/// Rules that select the messages of a plugin. One matching rule is enough; without rules every message matches.
#[derive(Clone, Default)]
pub struct MatchRules {
    /// The rules as written; empty if every message matches by default.
    written: Vec<String>,
    everything: bool,
    kinds: Vec<MessageKind>,
    expression: Option<Arc<Expression>>,
}

impl MatchRules {
    /// Reads the values of `@match` lines; errors are passed to `flaw` with their line.
    pub(super) fn read(lines: &[(u32, &str)], mut flaw: impl FnMut(u32, String)) -> Self {
        let mut rules = Self::default();
        for (line, value) in lines {
            if let Some(text) = value.strip_prefix("expr:") {
                let text = text.trim();
                if rules.expression.is_some() {
                    flaw(*line, "can have one expression only".to_owned());
                    continue;
                }
                match Expression::compile(text) {
                    Ok(expression) => rules.expression = Some(Arc::new(expression)),
                    Err(reason) => flaw(*line, format!("expr: {reason}")),
                }
                rules.written.push(format!("expr: {text}"));
                continue;
            }
            for word in value.split(',').map(str::trim) {
                match KINDS.into_iter().find(|kind| kind.as_str() == word) {
                    _ if word == "*" => rules.everything = true,
                    Some(kind) => rules.kinds.push(kind),
                    None => {
                        let known = "*, text, image, voice, file, video, or expr: with an expression";
                        flaw(*line, format!("must be {known}"));
                        continue;
                    }
                }
                if !rules.written.iter().any(|rule| rule == word) {
                    rules.written.push(word.to_owned());
                }
            }
        }
        rules
    }

    /// The rules as they were written, at least one.
    pub fn as_written(&self) -> Vec<String> {
        if self.written.is_empty() { vec!["*".to_owned()] } else { self.written.clone() }
    }

    /// Whether the plugin is run for a message.
    ///
    /// # Errors
    /// The reason why the expression cannot be evaluated for this message. The caller decides how to treat it.
    pub fn matches(&self, message: &FilterInput<'_>) -> Result<bool, String> {
        if self.written.is_empty() || self.everything || self.kinds.contains(&message.kind) {
            return Ok(true);
        }
        self.expression.as_ref().map_or(Ok(false), |expression| expression.matches(message))
    }
}

impl fmt::Debug for MatchRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MatchRules").field(&self.written).finish()
    }
}
