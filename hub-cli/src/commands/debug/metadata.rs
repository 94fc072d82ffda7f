//! The metadata of a source in a file; what is wrong with it has its place there.

use hub_core::plugins::{Manifest, manifest};

use crate::{exit::Failure, screen};

/// Reads the metadata.
pub fn read(path: &str, source: &str) -> Result<Manifest, Failure> {
    manifest::check_size(source)?;
    Manifest::inspect(source).map_err(|flaws| {
        let lines = flaws
            .into_iter()
            .map(|flaw| format!("{path}:{}:{}: {}", flaw.line, flaw.column, screen::clean(&flaw.message)));
        Failure::usage(lines.collect::<Vec<_>>().join("\n"))
    })
}
