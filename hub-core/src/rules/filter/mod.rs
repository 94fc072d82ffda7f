//! Filters of channels on messages.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::{
    error::{Problems, Result},
    network::MessageKind,
    text::is_within,
    words::words,
};

mod cost;
mod expression;

pub use crate::filter::expression::{Expression, MAX_EXPRESSION};

const MAX_ENTRIES: usize = 100;
const MAX_USER_ID: usize = 256;
const MAX_KEYWORD: usize = 256;

words! {
    /// How the lists of a filter combine.
    #[derive(Default)]
    pub enum Match {
        /// Every list that is not empty must match.
        #[default]
        All = "all",
        /// One list that is not empty must match.
        Any = "any",
    }
}

/// A filter. A list matches if one of its entries matches; an empty list is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, hub_macros::Api)]
#[serde(default, deny_unknown_fields)]
#[api(name = "FilterRules", checked, set(
    "SetFilter",
    "A new filter. A list matches if one of its entries matches; an empty list is ignored."
), example = {
    "expression": "size(content) < 500",
    "keywords": ["order"],
    "match": "all",
    "message_types": ["text"],
    "user_ids": [],
})]
pub struct Filter {
    /// Ids of senders.
    #[api(items = ..=MAX_ENTRIES, chars = 1..=MAX_USER_ID)]
    pub user_ids: Vec<String>,
    /// Texts that the content contains, regardless of case and width of letters.
    #[api(items = ..=MAX_ENTRIES, chars = 1..=MAX_KEYWORD)]
    pub keywords: Vec<String>,
    /// `text`, `image`, `voice`, `video`, `file`, `other`.
    #[api(items = ..=MAX_ENTRIES, chars = 0..=64)]
    pub message_types: Vec<String>,
    /// How the lists combine.
    #[serde(rename = "match")]
    pub mode: Match,
    /// A CEL expression over the fields of the webhook payload, which must be true in addition to the lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[api(chars = 0..=MAX_EXPRESSION)]
    pub expression: Option<String>,
}

/// Fields of a message that a filter checks; expressions use the names of the webhook's payload.
#[derive(Debug, Clone, Copy)]
pub struct FilterInput<'a> {
    /// `content`.
    pub content: &'a str,
    /// `sender.user_id`.
    pub user_id: &'a str,
    /// `sender.user_name`.
    pub user_name: &'a str,
    /// `sessionID`.
    pub session_id: &'a str,
    /// `msg_type` as a number, `message_type` by name.
    pub kind: MessageKind,
    /// `timestamp`, in Unix seconds.
    pub timestamp: i64,
    /// `bot_id`.
    pub bot_id: &'a str,
    /// `channel_id`.
    pub channel_id: &'a str,
}

/// Decision of a filter about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether the channel takes the message.
    pub passed: bool,
    /// For the trace: `passed`, or what did not match: `sender`, `keyword`, `type` (several with commas),
    /// `expression`, or `expression error: …`.
    pub reason: Cow<'static, str>,
}

impl Filter {
    /// Checks everything.
    ///
    /// # Errors
    /// As [`Filter::compile`].
    pub fn validate(&self) -> Result<()> {
        self.compile().map(drop)
    }

    /// Checks everything, and makes the filter ready for use. Takes milliseconds when there is an expression.
    ///
    /// # Errors
    /// `INVALID_PARAMS` naming every bad field.
    pub fn compile(&self) -> Result<CompiledFilter> {
        let mut problems = Problems::default();
        self.check_bounds(&mut problems);
        let keywords: Vec<String> = self.keywords.iter().take(MAX_ENTRIES).map(|word| fold(word)).collect();
        for (index, word) in self.keywords.iter().enumerate().take(MAX_ENTRIES) {
            let is_blank = !word.is_empty() && keywords[index].trim().is_empty();
            problems.check(!is_blank, format!("keywords[{index}]"), "must not be blank");
        }
        for (index, name) in self.message_types.iter().enumerate().take(MAX_ENTRIES) {
            problems.check(
                MessageKind::parse(name).is_some(),
                format!("message_types[{index}]"),
                "must be one of text, image, voice, video, file, other",
            );
        }
        // A longer one is out of its bounds.
        let expression = self.expression.as_deref().filter(|text| is_within(text, MAX_EXPRESSION));
        let expression = expression.map(Expression::compile).transpose();
        let expression = expression.unwrap_or_else(|reason| {
            problems.add("expression", reason);
            None
        });
        problems.finish()?;
        let wanted = |kind: &MessageKind| self.message_types.iter().any(|name| kind.as_str() == name);
        let kinds = MessageKind::ALL.into_iter().filter(wanted);
        Ok(CompiledFilter(Arc::new(Compiled {
            user_ids: self.user_ids.clone(),
            keywords,
            kinds: kinds.collect(),
            mode: self.mode,
            expression,
        })))
    }
}

/// A filter ready for use. Cheap to clone.
#[derive(Clone)]
pub struct CompiledFilter(Arc<Compiled>);

struct Compiled {
    user_ids: Vec<String>,
    keywords: Vec<String>,
    kinds: Vec<MessageKind>,
    mode: Match,
    expression: Option<Expression>,
}

impl CompiledFilter {
    /// Whether a message passes, and if not, why.
    pub fn matches(&self, input: &FilterInput<'_>) -> Decision {
        let filter = &*self.0;
        let refused = |reason| Decision { passed: false, reason };
        if let Some(reason) = filter.unmatched_lists(input) {
            return refused(reason.into());
        }
        match filter.expression.as_ref().map(|expression| expression.matches(input)) {
            None | Some(Ok(true)) => Decision { passed: true, reason: "passed".into() },
            Some(Ok(false)) => refused("expression".into()),
            Some(Err(error)) => refused(format!("expression error: {error}").into()),
        }
    }
}

impl Compiled {
    /// The names of the lists that keep the message out.
    fn unmatched_lists(&self, input: &FilterInput<'_>) -> Option<String> {
        let keyword = || {
            let content = fold(input.content);
            self.keywords.iter().any(|word| content.contains(word.as_str()))
        };
        // `None` for an empty list, which is ignored.
        let lists = [
            (
                "sender",
                (!self.user_ids.is_empty()).then(|| self.user_ids.iter().any(|id| id == input.user_id)),
            ),
            ("keyword", (!self.keywords.is_empty()).then(keyword)),
            ("type", (!self.kinds.is_empty()).then(|| self.kinds.contains(&input.kind))),
        ];
        let missed: Vec<&str> =
            lists.iter().filter(|(_, matched)| *matched == Some(false)).map(|(name, _)| *name).collect();
        let one_matched = lists.iter().any(|(_, matched)| *matched == Some(true));
        let passed = missed.is_empty() || (self.mode == Match::Any && one_matched);
        (!passed).then(|| missed.join(", "))
    }
}

impl fmt::Debug for CompiledFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompiledFilter")
    }
}

/// Folds compatibility forms (full width, ligatures) and case, which are the same to a person who searches.
fn fold(text: &str) -> String {
    text.nfkc().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
