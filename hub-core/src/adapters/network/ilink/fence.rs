//! Code fences: lines of three or more backticks or tildes around code.

/// A code fence that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    count: usize,
    line: String,
}

impl Fence {
    /// The longest line, in bytes, that is written to open or close code at a cut.
    pub(super) const LONGEST_LINE: usize = 40;

    /// The fence that is open behind `line`, when `open` was open before it.
    pub(super) fn after_line(open: Option<Self>, line: &str) -> Option<Self> {
        match open {
            Some(fence) if fence.is_closed_by(line) => None,
            Some(fence) => Some(fence),
            None => Self::opened_by(line),
        }
    }

    /// The fence that is open behind `text`, which begins at the start of a line.
    pub(super) fn after_text(open: Option<Self>, text: &str) -> Option<Self> {
        text.split_inclusive('\n').fold(open, Self::after_line)
    }

    fn opened_by(line: &str) -> Option<Self> {
        let (mark, count, info) = parse(line)?;
        if mark == '`' && info.contains('`') {
            return None;
        }
        let line = line.trim();
        let count = count.min(Self::LONGEST_LINE);
        let line = if line.len() <= Self::LONGEST_LINE { line } else { &line[..count] };
        Some(Self { mark, count, line: line.to_owned() })
    }

    /// Whether `line` ends the code.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        parse(line).is_some_and(|(mark, count, info)| {
            mark == self.mark && count >= self.count && info.trim().is_empty()
        })
    }

    /// The line that opens the code again in the next part.
    pub(super) fn opening(&self) -> &str {
        &self.line
    }

    /// The line that closes the code at the end of a part.
    pub(super) fn closing(&self) -> String {
        self.mark.to_string().repeat(self.count)
    }
}

/// Mark, number of marks, and the rest of the line.
fn parse(line: &str) -> Option<(char, usize, &str)> {
    let trimmed = line.trim_start_matches(' ');
    let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = trimmed.trim_start_matches(mark);
    let count = trimmed.len() - info.len();
    (line.len() - trimmed.len() <= 3 && count >= 3).then_some((mark, count, info))
}
