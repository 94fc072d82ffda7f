//! The output of a bind: a code and a line below it, updated in place at a terminal, or a document per state.
//!
//! It is not drawn with `indicatif`, which cuts output higher than the terminal: half a code cannot be scanned.

use std::time::Duration;

use serde_json::{Value, json};

use super::code;
use crate::{
    exit::Failure,
    printer::{Printer, Tone},
    screen,
};

/// The states of a bind that succeeds.
const STATES: [&str; 4] = ["waiting", "scanned", "confirmed", "online"];
const BAR_COLUMNS: usize = 20;

/// The output of a bind.
#[derive(Debug)]
pub struct View<'p> {
    printer: &'p Printer,
    inverted: bool,
    /// Lines of the drawing that is at the terminal, with the link.
    drawn: usize,
    below: usize,
    codes: u32,
}

/// The times of a bind.
#[derive(Debug, Clone, Copy)]
pub struct Age {
    /// Time since the code is shown.
    pub of_code: Duration,
    /// The time left for the bind.
    pub left: Duration,
    /// The total time of a bind.
    pub whole: Duration,
}

impl<'p> View<'p> {
    pub fn new(printer: &'p Printer, inverted: bool) -> Self {
        Self { printer, inverted, drawn: 0, below: 0, codes: 0 }
    }

    /// Whether stdout is a terminal: then the code is drawn, and data is printed at the end.
    pub fn is_drawn(&self) -> bool {
        self.printer.draws()
    }

    /// Shows a code, replacing the previous one.
    pub fn show_code(&mut self, link: &str) -> Result<(), Failure> {
        self.codes += 1;
        let link = screen::clean(link);
        if !self.is_drawn() {
            self.printer.note(&format!("show this as a QR code: {link}"));
            return Ok(());
        }
        let art = code::draw(&link, self.inverted)?;
        let columns = self.printer.columns();
        let fits = art.lines().next().is_none_or(|line| screen::width(line) <= columns);
        let mut text = if fits { art } else { "this terminal is too narrow for the code".to_owned() };
        text = format!("{text}\n{link}");
        Printer::redraw(self.drawn + self.below, &text);
        self.drawn = text.lines().map(|line| screen::width(line).div_ceil(columns).max(1)).sum();
        self.below = 0;
        Ok(())
    }

    /// Shows the state; as a document without a terminal.
    pub fn show_state(&mut self, status: &str, age: Age, document: Value) -> Result<(), Failure> {
        if !self.is_drawn() {
            return self.printer.as_json().one(document, "");
        }
        self.show_time(status, age);
        Ok(())
    }

    pub fn show_time(&mut self, status: &str, age: Age) {
        if self.is_drawn() {
            let text = format!("{}\n{}", bar(age, self.codes), states(status, self.printer));
            Printer::redraw(self.below, &text);
            self.below = text.lines().count();
        }
    }

    pub fn show_end(&self, status: &str, bot: Value) -> Result<(), Failure> {
        if self.is_drawn() {
            return super::line(bot, self.printer);
        }
        self.printer.as_json().one(json!({ "status": status, "bot": bot }), "")
    }
}

/// `[█████░░░░░░░░░░░░░░░]  code 1, 0:42 old  7:18 left`
fn bar(age: Age, codes: u32) -> String {
    let whole = age.whole.as_secs().max(1);
    let full = usize::try_from(age.left.as_secs() * 20 / whole).unwrap_or(0).min(BAR_COLUMNS);
    let clock = |time: Duration| format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60);
    let (full, empty) = ("█".repeat(full), "░".repeat(BAR_COLUMNS - full));
    format!("[{full}{empty}]  code {codes}, {} old  {} left", clock(age.of_code), clock(age.left))
}

/// `✓ waiting → ● scanned → confirmed → online`
fn states(status: &str, printer: &Printer) -> String {
    let Some(at) = STATES.iter().position(|step| *step == status) else {
        return printer.paint(&screen::clean(status), Tone::Doubtful);
    };
    let step = |(index, step): (usize, &&str)| match index.cmp(&at) {
        std::cmp::Ordering::Less => printer.paint(&format!("✓ {step}"), Tone::Good),
        std::cmp::Ordering::Equal => printer.paint(&format!("● {step}"), Tone::Strong),
        std::cmp::Ordering::Greater => printer.paint(step, Tone::Faint),
    };
    STATES.iter().enumerate().map(step).collect::<Vec<_>>().join(" → ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printer::{Color, Format, Verbosity};

    #[test]
    fn the_lines_below_the_code_show_the_progress() {
        let age = |left| Age {
            of_code: Duration::from_secs(42),
            left: Duration::from_secs(left),
            whole: Duration::from_secs(480),
        };
        let half = format!("[{}{}]  code 2, 0:42 old  4:00 left", "█".repeat(10), "░".repeat(10));
        assert_eq!(bar(age(240), 2), half);
        assert!(bar(age(0), 1).starts_with(&format!("[{}]", "░".repeat(20))));
        assert!(bar(age(9_999), 1).starts_with(&format!("[{}]", "█".repeat(20))));
        let printer = Printer::new(Format::Text, Verbosity::Normal, Color::Never);
        assert_eq!(states("scanned", &printer), "✓ waiting → ● scanned → confirmed → online");
        assert_eq!(states("online", &printer), "✓ waiting → ✓ scanned → ✓ confirmed → ● online");
        assert_eq!(states("need\u{1b}_code", &printer), "need_code");
    }
}
