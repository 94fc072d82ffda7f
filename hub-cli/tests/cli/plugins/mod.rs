//! `plugins …` and `debug …`.

use std::path::Path;

mod debug;
mod lint;
mod new;
mod review;

const TAGGER: &str = include_str!("../../../../examples/plugins/tagger.js");

/// A file next to the hub's.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}
