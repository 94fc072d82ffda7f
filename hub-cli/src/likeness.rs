//! Names that somebody may have meant who typed another one (`ux` 2.1).

/// Names that are offered.
const MOST: usize = 3;
/// Least likeness of a name that is offered before all others.
const ALIKE: f64 = 0.7;

/// What to do about a name that nothing has: the names most like it, or else another `hint`.
pub fn hint(wanted: &str, names: impl IntoIterator<Item = String>, hint: &str) -> String {
    let wanted = wanted.to_lowercase();
    let likeness = |name: &String| strsim::jaro_winkler(&wanted, &name.to_lowercase());
    let mut alike: Vec<(f64, String)> =
        names.into_iter().map(|name| (likeness(&name), name)).filter(|(like, _)| *like >= ALIKE).collect();
    alike.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.cmp(other)));
    alike.dedup_by(|(_, one), (_, other)| one == other);
    if alike.is_empty() {
        return hint.to_owned();
    }
    let names: Vec<String> = alike.into_iter().take(MOST).map(|(_, name)| name).collect();
    format!("did you mean {}?", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_most_like_it_come_first_and_three_are_enough() {
        let names = ["weather", "wether", "whether", "Feather", "shop", "weather"].map(str::to_owned);
        assert_eq!(hint("wheather", names, "-"), "did you mean whether, weather, wether?");
        let names = || ["demo".to_owned(), "shop".to_owned()];
        assert_eq!(hint("Demp", names(), "-"), "did you mean demo?");
        assert_eq!(hint("xyz", names(), "hub-cli bots list"), "hub-cli bots list");
    }
}
