//! The READMEs begin with two commands that need no other set-up. Either program alone is built with the features of
//! both, so that no crate is compiled twice.

use std::collections::{BTreeMap, BTreeSet};

use super::{read, workspace};
use crate::support::binaries::cargo;

/// The feature sets of each crate in a build of these packages: more than one where a crate is also built for build
/// scripts and macros.
fn features(packages: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut cargo = cargo();
    cargo.args([
        "tree",
        "--offline",
        "--locked",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--no-dedupe",
    ]);
    cargo.args(["--format", "{p}|{f}"]).current_dir(workspace());
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if let Some((name, features)) = line.split_once('|') {
            found.entry(name.to_owned()).or_default().insert(features.to_owned());
        }
    }
    found
}

#[test]
fn the_server_alone_is_built_with_the_features_of_both_programs() {
    let both = features(&["hub-server", "hub-cli"]);
    for program in ["hub-server", "hub-cli"] {
        let alone = features(&[program]);
        assert!(alone.len() > 300, "cargo tree lists {} crates", alone.len());
        let different: Vec<_> = alone
            .iter()
            .filter(|(name, features)| both.get(*name) != Some(*features))
            .map(|(name, features)| format!("{name}: alone {features:?}, with both {:?}", both.get(name)))
            .collect();
        assert!(different.is_empty(), "{program} is compiled with other features: {different:#?}");
    }
}

/// A line without its comment.
fn command(line: &str) -> &str {
    line.split(" # ").next().unwrap_or_default().trim()
}

#[test]
fn the_readmes_begin_with_two_commands_and_name_what_they_need() {
    let version = read("Cargo.toml");
    let (_, version) = version.split_once("rust-version = \"").unwrap();
    let (version, _) = version.split_once('"').unwrap();
    for page in ["README.md", "README.zh-CN.md"] {
        let text = read(page);
        let (_, first) = text.split_once("```sh\n").unwrap();
        let (first, rest) = first.split_once("```").unwrap();
        let first: Vec<&str> = first.lines().map(command).collect();
        assert_eq!(first, ["cargo run --release -p hub-server", "cargo test --workspace"], "{page}");
        assert!(rest.trim_start().starts_with("| "), "{page}: the table of purposes follows");
        assert!(text.contains(&format!("Rust {version}")), "{page} does not name Rust {version}");
        let builds: BTreeSet<&str> =
            rest.lines().filter(|line| line.starts_with("cargo ")).map(command).collect();
        assert_eq!(builds, ["cargo build --release -p hub-server -p hub-cli"].into(), "{page}");
    }
}
