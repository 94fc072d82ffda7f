//! The fuzz targets on their corpus: every input as it is, and changed a little in a fixed way. Looking for new
//! inputs takes longer and a tool; see `fuzz/README.md`.

use std::{fs, path::Path};

use hub_core::random::Random;

#[path = "fuzz/src/lib.rs"]
mod targets;

pub use targets::shapes;

/// Changed copies of each input.
const CHANGES: usize = 60;
/// Byte sequences to insert into inputs: delimiters, brackets, escapes, and numbers that overflow.
const PIECES: [&[u8]; 18] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\0",
    b"\r\n",
    b"null",
    b"-1",
    b"1e999",
    b"\\ud800",
    b"\\u0000",
    b"\xff",
    "\u{202e}".as_bytes(),
    b"99999999999999999999",
];

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect()
}

#[test]
fn every_corpus_is_replayed() {
    for (name, run) in targets::TARGETS {
        let inputs = corpus(name);
        assert!(!inputs.is_empty(), "{name} has no corpus");
        run(b"");
        for (path, input) in inputs {
            replay(&path, run, &input);
        }
    }
}

#[test]
fn every_corpus_is_replayed_with_changes() {
    for (name, run) in targets::TARGETS {
        let random = Random::seeded(name.bytes().map(u64::from).sum());
        let inputs = corpus(name);
        for (path, input) in &inputs {
            for change in 0..CHANGES {
                let other = &inputs[below(&random, inputs.len())].1;
                replay(&format!("{path}, change {change}"), run, &changed(input, other, &random));
            }
        }
    }
}

/// Names the input whose replay panics.
fn replay(name: &str, run: targets::Target, input: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| run(input)) {
        drop(panic); // What it says was printed when it happened.
        panic!("{name}: {:?}", String::from_utf8_lossy(input));
    }
}

/// One to three cuts, insertions, flips and crossings.
fn changed(input: &[u8], other: &[u8], random: &Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=below(random, 3) {
        let from = below(random, bytes.len() + 1);
        let to = (from + below(random, 6)).min(bytes.len());
        match below(random, 4) {
            0 => drop(bytes.splice(from..to, PIECES[below(random, PIECES.len())].iter().copied())),
            1 => drop(bytes.drain(from..to)),
            2 if from < bytes.len() => bytes[from] ^= 1 << below(random, 8),
            _ => {
                let begin = below(random, other.len() + 1);
                let end = (begin + below(random, 40)).min(other.len());
                bytes.splice(from..to, other[begin..end].iter().copied());
            }
        }
    }
    bytes
}

fn below(random: &Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap()
}
