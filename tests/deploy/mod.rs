//! The samples of `examples/deploy` are what they say: each file is read by the program it is for, the names in it are
//! the hub's, and what can be run here without a container engine is run.

mod board;
mod compose;
mod drill;
mod health;
mod hosted_postgres;
mod lost_key;
mod monitoring;
mod nightly;
mod refused_start;
mod restore;
mod rotation;
mod service_manager;
mod settings;
mod two_nodes;
mod unit;

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::postgres_user::find_program;

/// The folder of the samples.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/deploy")
}

/// A sample.
fn read(name: &str) -> String {
    let path = folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A sample that is YAML, with what it merges.
fn read_yaml(name: &str) -> serde_norway::Value {
    let mut document: serde_norway::Value = serde_norway::from_str(&read(name)).unwrap();
    document.apply_merge().unwrap();
    document
}

/// A program of the machine; `None` where it is not installed, which CI does not accept.
fn tool(name: &str) -> Option<Command> {
    let found = find_program(name);
    if found.is_none() {
        let told = format!("{name} is not installed (`.ci/run tools` installs it)");
        assert!(std::env::var_os("CI").is_none(), "{told}");
        let _ = writeln!(std::io::stderr(), "{told}: its test is SKIPPED");
    }
    found.map(Command::new)
}

/// Runs a program that has to be content, and gives what it said.
fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let told = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(status.success(), "{command:?}: {told}");
    told
}
