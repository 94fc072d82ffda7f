//! The keys of a block and the rules of their values.

use super::{
    Grants, MAX_TIMEOUT_MS, Manifest, Note, Timeout,
    block::{Block, Dialect, Entry},
};
use crate::{
    error::Problems,
    plugins::{connect, rule::MatchRules},
    text,
};

/// Longest name, in characters.
pub const MAX_NAME: usize = 64;
/// Longest version, in characters.
pub const MAX_VERSION: usize = 64;
/// Longest description, in characters.
const MAX_DESCRIPTION: usize = 500;
/// Longest author, in characters.
const MAX_AUTHOR: usize = 100;
/// Most hosts of `@connect`.
const MAX_CONNECTS: usize = 20;
/// Keys that people write for people.
const INFORMATIVE: [&str; 6] = ["namespace", "icon", "license", "homepage", "changelog", "config"];
/// Keys that may stand in several lines.
const REPEATABLE: [&str; 3] = ["match", "connect", "config"];
const MEANT: [&str; 8] = ["name", "description", "version", "author", "match", "connect", "grant", "timeout"];

pub(super) fn read(block: &Block<'_>) -> Result<Manifest, Vec<Note>> {
    let mut reader = Reader { dialect: block.dialect, flaws: Vec::new(), warnings: Vec::new() };
    let mut manifest = Manifest { dialect: Some(block.dialect), ..Manifest::default() };
    let mut seen: Vec<(&str, u32)> = Vec::new();
    let mut matches = Vec::new();
    for entry in &block.entries {
        let known = MEANT.contains(&entry.key) || INFORMATIVE.contains(&entry.key);
        if !known {
            let meant = meant(entry.key).map_or(String::new(), |key| format!("; did you mean @{key}?"));
            reader.warn(entry.line, format!("unknown key @{}{meant}", shown(entry.key)));
            continue;
        }
        let before = seen.iter().find(|(key, _)| *key == entry.key);
        if let Some((key, line)) = before.filter(|(key, _)| !REPEATABLE.contains(key)) {
            reader.flaw(entry.line, format!("@{key} is in line {line} already"));
            continue;
        }
        seen.push((entry.key, entry.line));
        match entry.key {
            "name" => manifest.name = reader.line(entry, 1, MAX_NAME),
            "description" => manifest.description = reader.line(entry, 0, MAX_DESCRIPTION),
            "version" => manifest.version = reader.line(entry, 1, MAX_VERSION),
            "author" => manifest.author = reader.line(entry, 0, MAX_AUTHOR),
            "match" => matches.push((entry.line, entry.value)),
            "connect" => reader.connects(entry, &mut manifest.connects),
            "grant" => manifest.grants = reader.grants(entry),
            "timeout" => manifest.timeout = reader.timeout(entry),
            _ => {}
        }
    }
    manifest.matches =
        MatchRules::read(&matches, |line, reason| reader.flaw(line, format!("@match {reason}")));
    reader.flaws.sort_by_key(|flaw| flaw.line);
    let entry_of = |note: &Note| block.entries.iter().find(|entry| entry.line == note.line);
    for flaw in &mut reader.flaws {
        flaw.column = entry_of(flaw).map_or(1, |entry| entry.value_column);
    }
    for warning in &mut reader.warnings {
        warning.column = entry_of(warning).map_or(1, |entry| entry.column);
    }
    manifest.warnings = reader.warnings;
    if reader.flaws.is_empty() { Ok(manifest) } else { Err(reader.flaws) }
}

struct Reader {
    dialect: Dialect,
    flaws: Vec<Note>,
    warnings: Vec<Note>,
}

impl Reader {
    fn flaw(&mut self, line: u32, mut message: String) {
        // What another parser says may quote anything.
        message.retain(|c| !c.is_control());
        self.flaws.push(Note::new(line, message));
    }

    fn warn(&mut self, line: u32, message: String) {
        self.warnings.push(Note::new(line, message));
    }

    fn line(&mut self, entry: &Entry<'_>, min: usize, max: usize) -> Option<String> {
        let mut problems = Problems::default();
        text::check_name(&mut problems, "value", entry.value, min..=max);
        if let Err(error) = problems.finish() {
            let reason = error.details().first().map_or("is wrong", |detail| detail.reason.as_ref());
            self.flaw(entry.line, format!("@{} {reason}", entry.key));
            return None;
        }
        Some(entry.value.to_owned())
    }

    fn timeout(&mut self, entry: &Entry<'_>) -> Timeout {
        let written = entry.value;
        let digits = (1..=9).contains(&written.len()) && written.bytes().all(|byte| byte.is_ascii_digit());
        let number = written.parse::<u32>().ok().filter(|number| digits && *number > 0);
        match (self.dialect, number) {
            (Dialect::UserScript, Some(ms @ 1..=MAX_TIMEOUT_MS)) => Timeout(ms),
            (Dialect::UserScript, _) => {
                let rule = format!("@timeout must be 1 to {MAX_TIMEOUT_MS} milliseconds, without a unit");
                self.flaw(entry.line, rule);
                Timeout::default()
            }
            // Published plugins ask for 30 seconds, where the reference gives 5 whatever they say.
            (Dialect::WebhookPlugin, Some(seconds)) if seconds > MAX_TIMEOUT_MS / 1000 => {
                self.warn(entry.line, format!("@timeout {seconds} is more than a hook gets: 10 seconds"));
                Timeout(MAX_TIMEOUT_MS)
            }
            (Dialect::WebhookPlugin, Some(seconds)) => Timeout(seconds * 1000),
            (Dialect::WebhookPlugin, None) => {
                self.flaw(entry.line, "@timeout must be whole seconds, without a unit".to_owned());
                Timeout::default()
            }
        }
    }

    fn grants(&mut self, entry: &Entry<'_>) -> Grants {
        let listed: Vec<&str> = entry.value.split(',').map(str::trim).collect();
        match (self.dialect, &*listed) {
            (Dialect::UserScript, ["none"]) => Grants::default(),
            (Dialect::UserScript, _) => {
                self.flaw(entry.line, "@grant must be none: nothing else can be granted".to_owned());
                Grants::default()
            }
            (Dialect::WebhookPlugin, ["none"]) => Grants { reply: false, skip: false },
            (Dialect::WebhookPlugin, listed)
                if listed.iter().all(|word| ["reply", "skip"].contains(word)) =>
            {
                Grants { reply: listed.contains(&"reply"), skip: listed.contains(&"skip") }
            }
            (Dialect::WebhookPlugin, _) => {
                self.flaw(entry.line, "@grant must be none, or list reply and skip".to_owned());
                Grants::default()
            }
        }
    }

    fn connects(&mut self, entry: &Entry<'_>, hosts: &mut Vec<String>) {
        for written in entry.value.split(',').map(str::trim) {
            match connect::entry(written) {
                Ok(host) if hosts.contains(&host) => {}
                Ok(_) if hosts.len() >= MAX_CONNECTS => {
                    self.flaw(entry.line, format!("@connect must list at most {MAX_CONNECTS} hosts"));
                    return;
                }
                Ok(host) => hosts.push(host),
                Err(reason) => self.flaw(entry.line, format!("@connect {}: {reason}", shown(written))),
            }
        }
    }
}

/// The key that a misspelled one resembles.
fn meant(written: &str) -> Option<&'static str> {
    let written = written.to_lowercase();
    let similarity = |key: &&&str| strsim::normalized_damerau_levenshtein(&written, key);
    let nearest = MEANT.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
    (similarity(&nearest) >= 0.6).then_some(*nearest)
}

/// A piece of the source in a message.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}
