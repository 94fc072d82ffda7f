//! Names of settings, wherever a sample or a page has one.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use hub_server::config::SETTINGS;

use super::{folder, read};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// The words of a text that begin with `HUB_`.
fn variables(text: &str) -> BTreeSet<&str> {
    let part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.split(|c| !part(c)).filter(|word| word.len() > 4 && word.starts_with("HUB_")).collect()
}

#[test]
fn every_variable_of_the_samples_is_a_setting() {
    let known: BTreeSet<String> = SETTINGS
        .iter()
        .flat_map(|setting| {
            let variable = setting.variable();
            let file = setting.in_file.then(|| format!("{variable}_FILE"));
            [Some(variable), file].into_iter().flatten()
        })
        .collect();
    let mut paths = Vec::new();
    files(&folder(), &mut paths);
    assert!(paths.len() >= 12, "{paths:?}");
    paths.push(folder().join("../../README.md"));
    // Of the command line and of the example apps, which the pages start too.
    let of_others = ["HUB_SERVER", "HUB_TOKEN", "HUB_URL"];
    let mut seen = BTreeSet::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        for variable in variables(&text) {
            let fits = known.contains(variable) || of_others.contains(&variable);
            assert!(fits, "{}: {variable} is not a setting", path.display());
            seen.insert(variable.to_owned());
        }
    }
    for expected in ["HUB_PUBLIC_URL", "HUB_TRUSTED_PROXIES", "HUB_MEDIA_URL", "HUB_METRICS_TOKEN_FILE"] {
        assert!(seen.contains(expected), "the search does not find {expected}");
    }
}

#[test]
fn the_unit_offers_every_secret_as_a_credential() {
    let unit = read("systemd/hub.service");
    let mut offered: Vec<(&str, &str)> =
        unit.lines().filter_map(|line| line.strip_prefix("LoadCredential=")?.split_once(':')).collect();
    offered.sort_unstable();
    let mut secrets: Vec<&str> =
        SETTINGS.iter().filter(|setting| setting.in_file).map(|setting| setting.name).collect();
    secrets.sort_unstable();
    assert_eq!(offered.iter().map(|(name, _)| *name).collect::<Vec<_>>(), secrets);
    for (name, file) in offered {
        assert_eq!(file, format!("hub.{name}"), "relative, so that a missing one is left out");
    }
}
