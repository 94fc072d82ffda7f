//! Values in the sentences of causes.

use super::{Cause, FilterPart, FilterParts};
use crate::time::Timestamp;

/// A stored sentence that states a cause.
pub trait Sentence {
    /// Returns its cause, [`Cause::Other`] for any other text; `None` if there is no text.
    fn cause(&self) -> Option<Cause>;
}

impl Sentence for String {
    fn cause(&self) -> Option<Cause> {
        (!self.is_empty()).then(|| Cause::read(self))
    }
}

impl Sentence for Option<String> {
    fn cause(&self) -> Option<Cause> {
        self.as_ref().and_then(Sentence::cause)
    }
}

/// A value in a sentence.
pub(super) trait Value: Sized {
    fn read(text: &str, depth: usize) -> Option<Self>;
}

impl Value for Box<Cause> {
    fn read(text: &str, depth: usize) -> Option<Self> {
        Some(Box::new(Cause::at(text, depth)))
    }
}

impl Value for String {
    fn read(text: &str, _: usize) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Value for FilterParts {
    fn read(text: &str, _: usize) -> Option<Self> {
        text.split(", ").map(FilterPart::parse).collect::<Option<_>>().map(Self)
    }
}

macro_rules! parsed {
    ($($type:ty)*) => {
        $(impl Value for $type {
            fn read(text: &str, _: usize) -> Option<Self> {
                text.parse().ok()
            }
        })*
    };
}

parsed! { Timestamp u16 u32 u64 usize i64 }

/// The texts at the places of a sentence, if it matches the whole text.
pub(super) fn values<'t>(sentence: &str, text: &'t str) -> Option<Vec<&'t str>> {
    let (first, mut places) = sentence.split_once('{').unwrap_or((sentence, ""));
    let mut rest = text.strip_prefix(first)?;
    let mut found = Vec::new();
    while let Some((_, after)) = places.split_once('}') {
        let (literal, more) = after.split_once('{').unwrap_or((after, ""));
        let is_last = more.is_empty();
        let end = if is_last { rest.strip_suffix(literal)?.len() } else { rest.find(literal)? };
        found.push(&rest[..end]);
        rest = &rest[end + literal.len()..];
        places = more;
    }
    rest.is_empty().then_some(found)
}
