//! The parts of a document that tests look at.

/// A block of commands that is marked for a session:
///
/// ```text
/// <!-- session: NAME[, in the background][, shows "TEXT"][, until "TEXT"] -->
/// ```
#[derive(Debug)]
pub struct Block {
    /// Which session types it.
    pub session: String,
    pub how: How,
    /// The commands.
    pub script: String,
}

/// What a session does with a block.
#[derive(Debug, PartialEq, Eq)]
pub enum How {
    /// Types it and waits for its end.
    Types,
    /// Starts it in a terminal of its own, where it stays: a server.
    Background,
    /// Types it, and then this text has to appear.
    Shows(String),
    /// Types it until its output has this text: what it looks at is still happening.
    Until(String),
}

/// The blocks of a document that belong to a session.
pub fn blocks(document: &str, session: &str) -> Vec<Block> {
    let mut lines = document.lines();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        let Some(mark) = line.strip_prefix("<!-- session: ").and_then(|rest| rest.strip_suffix(" -->"))
        else {
            continue;
        };
        assert_eq!(lines.next(), Some("```sh"), "commands follow {line:?}");
        let script: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let (name, how) = mark.split_once(", ").unwrap_or((mark, ""));
        let quoted =
            |word: &str| how.strip_prefix(word)?.strip_prefix(" \"")?.strip_suffix('"').map(str::to_owned);
        let how = match (how, quoted("shows"), quoted("until")) {
            ("", ..) => How::Types,
            ("in the background", ..) => How::Background,
            (_, Some(text), _) => How::Shows(text),
            (_, _, Some(text)) => How::Until(text),
            _ => panic!("what does {line:?} mean?"),
        };
        blocks.push(Block { session: name.to_owned(), how, script: script.join("\n") });
    }
    blocks.retain(|block| block.session == session);
    blocks
}

/// The rows of the tables under a heading, or of the whole document: cells without their surrounding blanks.
pub fn rows(document: &str, heading: &str) -> Vec<Vec<String>> {
    let section = document.split_once(heading).map_or(document, |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let cells = |line: &str| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    section.lines().filter(|line| line.starts_with("| `")).map(cells).collect()
}
