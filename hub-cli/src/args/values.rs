//! Parsers of values.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hub_server::config::parse_duration;

/// Parses the words of a closed set of the hub.
pub fn closed<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let find = move |text: String| all.into_iter().find(|one| word(*one) == text).ok_or("unknown");
    PossibleValuesParser::new(all.map(word)).try_map(find)
}

/// A number of hours: `24`, `24h`.
pub fn hours(text: &str) -> Result<u32, String> {
    text.trim_end_matches('h').parse().map_err(|_| "must be a number of hours like 24h".to_owned())
}

/// A length of time: `90s`, `3m`, `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "must be a number with a unit: 90s, 3m, 1h".to_owned())
}
