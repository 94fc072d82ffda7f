//! Lists as tables at a terminal. Ids, times and words of usual length are never broken: columns that do not fit are
//! printed below their row.

use comfy_table::{Attribute, ColumnConstraint, ContentArrangement, Row, Table, Width, presets};

use crate::screen;

/// Columns between two cells.
const COLUMN_GAP: usize = 2;
/// Longest word that is never broken.
const MAX_WORD: usize = 48;
/// Indentation of columns below their row.
const INDENT: &str = "    ";

/// A cell of a table.
#[derive(Debug)]
pub struct Cell {
    text: String,
    is_whole: bool,
}

impl Cell {
    /// A text, which may be broken between words.
    pub fn of(text: String) -> Self {
        Self { text, is_whole: false }
    }

    /// A text that is never broken.
    pub fn whole(text: String) -> Self {
        Self { text, is_whole: true }
    }

    /// The minimum width without a forbidden break.
    fn need(&self) -> usize {
        if self.is_whole { screen::width(&self.text) } else { longest_word(&self.text) }
    }
}

/// The minimum and the preferred width of a column.
struct Needs {
    least: usize,
    most: usize,
}

/// Draws a table of a given width. Columns whose names end with `ID` are never broken.
pub fn draw(names: &[&str], mut rows: Vec<Vec<Cell>>, columns: usize, bold: bool) -> String {
    for (at, _) in names.iter().enumerate().filter(|(_, name)| name.ends_with("ID")) {
        rows.iter_mut().filter_map(|row| row.get_mut(at)).for_each(|cell| cell.is_whole = true);
    }
    let needs: Vec<Needs> = (0..names.len()).map(|at| needs(names[at], &rows, at)).collect();
    let least =
        needs.iter().map(|needs| needs.least).sum::<usize>() + COLUMN_GAP * names.len().saturating_sub(1);
    if least <= columns || names.len() < 2 {
        return side_by_side(names, &rows, &needs, columns, bold).trim_fmt();
    }
    stacked(names, &rows, bold)
}

fn needs(name: &str, rows: &[Vec<Cell>], at: usize) -> Needs {
    let cells = || rows.iter().filter_map(|row| row.get(at));
    let name = screen::width(name);
    Needs {
        least: cells().map(Cell::need).max().unwrap_or(0).max(name),
        most: cells().map(|cell| screen::width(&cell.text)).max().unwrap_or(0).max(name),
    }
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(screen::width).max().unwrap_or(0).min(MAX_WORD)
}

/// All cells of a row side by side; sentences are broken between words.
fn side_by_side(names: &[&str], rows: &[Vec<Cell>], needs: &[Needs], columns: usize, bold: bool) -> Table {
    let mut table = table(names, rows, bold);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
    for (at, needs) in needs.iter().enumerate() {
        let constraint = if needs.most == needs.least {
            ColumnConstraint::ContentWidth
        } else {
            ColumnConstraint::LowerBoundary(Width::Fixed(u16::try_from(needs.least).unwrap_or(u16::MAX)))
        };
        if let Some(column) = table.column_mut(at) {
            column.set_constraint(constraint);
        }
    }
    table
}

/// The last cell of each row below the others, which are not broken at all.
fn stacked(names: &[&str], rows: &[Vec<Cell>], bold: bool) -> String {
    let (last, names) = names.split_last().unwrap_or((&"", &[]));
    let drawn = table(names, rows, bold).trim_fmt();
    let mut lines = drawn.lines();
    let mut text = vec![lines.next().unwrap_or_default().to_owned(), format!("{INDENT}{last}")];
    for (line, row) in lines.zip(rows) {
        text.push(line.to_owned());
        let cell = row.get(names.len()).filter(|cell| !cell.text.is_empty());
        text.extend(cell.map(|cell| format!("{INDENT}{}", cell.text)));
    }
    text.join("\n")
}

fn table(names: &[&str], rows: &[Vec<Cell>], bold: bool) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let header = |name: &&str| {
        let cell = comfy_table::Cell::new(name);
        if bold { cell.add_attribute(Attribute::Bold) } else { cell }
    };
    table.set_header(names.iter().map(header));
    for row in rows {
        table.add_row(Row::from(row.iter().take(names.len()).map(|cell| cell.text.clone())));
    }
    let gap = u16::try_from(COLUMN_GAP).unwrap_or(u16::MAX);
    for at in 0..names.len() {
        if let Some(column) = table.column_mut(at) {
            column.set_padding((0, if at + 1 == names.len() { 0 } else { gap }));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["MESSAGE ID", "AT", "STATUS", "TEXT"];

    fn rows(text: &str) -> Vec<Vec<Cell>> {
        vec![vec![
            Cell::of("msg_01KAJ6Z8QH0000000000000000".to_owned()),
            Cell::whole("2026-01-31T12:00:00Z".to_owned()),
            Cell::of("received".to_owned()),
            Cell::of(text.to_owned()),
        ]]
    }

    #[test]
    fn columns_that_fit_are_broken_between_words() {
        assert_eq!(
            draw(&NAMES, rows("where is my order"), 80, false),
            "MESSAGE ID                      AT                    STATUS    TEXT\n\
             msg_01KAJ6Z8QH0000000000000000  2026-01-31T12:00:00Z  received  where is my\n\
             \u{20}                                                               order"
        );
    }

    #[test]
    fn columns_that_do_not_fit_are_printed_below_their_row() {
        let drawn = "MESSAGE ID                      AT                    STATUS\n    TEXT\n\
             msg_01KAJ6Z8QH0000000000000000  2026-01-31T12:00:00Z  received\n    where is my bookshelf";
        assert_eq!(draw(&NAMES, rows("where is my bookshelf"), 72, false), drawn);
        assert_eq!(draw(&NAMES, rows("where is my bookshelf"), 40, false), drawn, "however narrow it is");
    }

    #[test]
    fn a_relative_time_is_never_broken() {
        let row = || vec![Cell::whole("5m ago".to_owned()), Cell::of("one two three four".to_owned())];
        let drawn = draw(&["AT", "TEXT"], vec![row()], 20, false);
        assert!(drawn.contains("5m ago  one two"), "{drawn}");
        assert!(drawn.lines().all(|line| screen::width(line) <= 20), "{drawn}");
    }

    #[test]
    fn long_words_are_broken_and_ids_are_not() {
        let long = "x".repeat(100);
        let drawn = draw(&["TEXT"], vec![vec![Cell::of(long.clone())]], 60, false);
        assert!(drawn.lines().all(|line| line.len() <= 60), "{drawn}");
        let drawn = draw(&["USER ID"], vec![vec![Cell::of(long.clone())]], 60, false);
        assert!(drawn.contains(&long), "{drawn}");
    }
}
