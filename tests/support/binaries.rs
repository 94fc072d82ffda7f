//! The programs of the workspace, built once per run in the profile of the tests, or taken from the folder that
//! `HUB_TEST_PROGRAMS` names (a release build, for example).

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// A program of this workspace: `hub-server` or `hub-cli`. The first call builds both.
pub fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(build).join(name)
}

/// Cargo, without what it tells this program about its package: some build scripts would run again because of it,
/// here and at the next build outside, and half of the dependencies with them.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            cargo.env_remove(name);
        }
    }
    cargo
}

fn build() -> PathBuf {
    if let Some(folder) = std::env::var_os("HUB_TEST_PROGRAMS") {
        return folder.into();
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let mut build = cargo();
    // The packages and features of `cargo test --workspace`: every crate is there already, only the programs are linked.
    build.args(["build", "--locked", "--workspace", "--bin", "hub-server", "--bin", "hub-cli"]);
    build.args(["--features", "hub-server/testing"]);
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        build.arg("--release");
        "release"
    };
    let built = build.current_dir(&workspace).status().unwrap();
    assert!(built.success(), "the programs could not be built");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    // A relative folder is meant from where the tests were started, which for cargo is the workspace.
    workspace.join(target).join(profile)
}
