//! Suggestions for mistyped names.

const MAX_SUGGESTIONS: usize = 3;
/// Minimum similarity of a suggestion.
const MIN_SIMILARITY: f64 = 0.7;

/// The hint for an unknown name: the most similar names, or else `hint`.
pub fn hint(wanted: &str, names: impl IntoIterator<Item = String>, hint: &str) -> String {
    let wanted = wanted.to_lowercase();
    let similarity = |name: &String| strsim::jaro_winkler(&wanted, &name.to_lowercase());
    let mut similar: Vec<(f64, String)> = names
        .into_iter()
        .map(|name| (similarity(&name), name))
        .filter(|(like, _)| *like >= MIN_SIMILARITY)
        .collect();
    similar.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.cmp(other)));
    similar.dedup_by(|(_, one), (_, other)| one == other);
    if similar.is_empty() {
        return hint.to_owned();
    }
    let names: Vec<String> = similar.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect();
    format!("did you mean {}?", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_three_similar_names_are_suggested() {
        let names = ["weather", "wether", "whether", "Feather", "shop", "weather"].map(str::to_owned);
        assert_eq!(hint("wheather", names, "-"), "did you mean whether, weather, wether?");
        let names = || ["demo".to_owned(), "shop".to_owned()];
        assert_eq!(hint("Demp", names(), "-"), "did you mean demo?");
        assert_eq!(hint("xyz", names(), "hub-cli bots list"), "hub-cli bots list");
    }
}
