//! Parsers of values.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

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
    let wrong = || "must be a number with a unit: 90s, 3m, 1h".to_owned();
    let unit = match text.chars().next_back() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        _ => return Err(wrong()),
    };
    let count: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(u64::from(count) * unit))
}
