//! Finds the metadata block of a source and splits it into entries.

use crate::words::words;

use super::Note;

/// Longest line of a block, in bytes.
pub const MAX_LINE: usize = 1024;
/// Most lines of a block.
pub const MAX_LINES: usize = 200;

words! {
    /// In which words a plugin describes itself.
    #[derive(Default)]
    pub enum Dialect {
        /// `==UserScript==`, the words of the specification.
        #[default]
        UserScript = "UserScript",
        /// `==WebhookPlugin==`, the words of published plugins: `@timeout` is in seconds, `@grant` lists functions.
        WebhookPlugin = "WebhookPlugin",
    }
}

/// One `// @key value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<'s> {
    pub line: u32,
    /// Column of the `@`.
    pub column: u32,
    /// Column of the value; that of the `@` if there is no value.
    pub value_column: u32,
    pub key: &'s str,
    pub value: &'s str,
}

/// The first block of a source.
#[derive(Debug)]
pub(super) struct Block<'s> {
    pub dialect: Dialect,
    pub entries: Vec<Entry<'s>>,
}

/// Finds the block; `Ok(None)` if the source has none. Before it, a source may have `#!` in its first line, blank
/// lines, comments and directives such as `"use strict"`.
///
/// # Errors
/// One note for each invalid line of the block.
pub(super) fn find(source: &str) -> Result<Option<Block<'_>>, Vec<Note>> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let mut lines = (1..).zip(source.split('\n'));
    let mut in_comment = false;
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        if in_comment || line.starts_with("/*") {
            in_comment = !line.contains("*/");
            continue;
        }
        if (number == 1 && line.starts_with("#!")) || is_directive(line) {
            continue;
        }
        if let Some(dialect) = Dialect::ALL.into_iter().find(|dialect| is_edge(line, "==", dialect.as_str()))
        {
            return read(dialect, number, lines).map(Some);
        }
        if !line.is_empty() && !line.starts_with("//") {
            break;
        }
    }
    // A block after code is most likely a mistake, and would be ignored.
    match (1..)
        .zip(source.split('\n'))
        .find(|(_, line)| Dialect::ALL.iter().any(|d| is_edge(line.trim(), "==", d.as_str())))
    {
        Some((number, _)) => Err(vec![Note::new(number, "the metadata block must precede all code")]),
        None => Ok(None),
    }
}

fn read<'s>(
    dialect: Dialect,
    opened: u32,
    lines: impl Iterator<Item = (u32, &'s str)>,
) -> Result<Block<'s>, Vec<Note>> {
    let (mut entries, mut flaws) = (Vec::new(), Vec::new());
    for (number, raw) in lines {
        let line = raw.trim();
        if is_edge(line, "==/", dialect.as_str()) {
            return if flaws.is_empty() { Ok(Block { dialect, entries }) } else { Err(flaws) };
        }
        if number - opened > u32::try_from(MAX_LINES).unwrap_or(u32::MAX) {
            return Err(vec![Note::new(
                number,
                format!("the metadata block has more than {MAX_LINES} lines"),
            )]);
        }
        if line.len() > MAX_LINE {
            flaws.push(Note::new(number, format!("a metadata line must be at most {MAX_LINE} bytes long")));
            continue;
        }
        let Some(comment) = line.strip_prefix("//") else {
            if !line.is_empty() {
                flaws.push(Note::new(number, "every line of the metadata block must begin with //"));
                // What follows is code, and would be reported line by line.
                break;
            }
            continue;
        };
        if let Some(entry) = comment.trim_start().strip_prefix('@') {
            let (key, value) = entry.split_once(char::is_whitespace).unwrap_or((entry, ""));
            let column = column_of(raw, raw.find('@').unwrap_or(0));
            let value_column = match value.trim() {
                "" => column,
                value => column_of(raw, raw.trim_end().len() - value.len()),
            };
            entries.push(Entry { line: number, column, value_column, key, value: value.trim() });
        }
    }
    if flaws.is_empty() {
        let end = dialect.as_str();
        flaws.push(Note::new(opened, format!("the metadata block is not closed: // ==/{end}== is missing")));
    }
    Err(flaws)
}

/// The column of the character at a byte of a line.
fn column_of(line: &str, at: usize) -> u32 {
    u32::try_from(line[..at].chars().count() + 1).unwrap_or(u32::MAX)
}

/// Whether a line is a directive: a text as a statement, as a script begins with it.
fn is_directive(line: &str) -> bool {
    let text = |quote: char| line.strip_prefix(quote)?.split_once(quote);
    text('"').or_else(|| text('\'')).is_some_and(|(_, rest)| {
        let rest = rest.trim_start();
        let rest = rest.strip_prefix(';').unwrap_or(rest).trim_start();
        rest.is_empty() || rest.starts_with("//") || (rest.starts_with("/*") && rest.ends_with("*/"))
    })
}

/// Whether a line is `// ==Word== or `// ==/Word==`.
fn is_edge(line: &str, before: &str, word: &str) -> bool {
    let inner = line.strip_prefix("//").map(str::trim).and_then(|text| text.strip_prefix(before));
    inner.and_then(|text| text.strip_prefix(word)) == Some("==")
}
