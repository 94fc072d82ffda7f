//! The output of `listen`: a line per message, or a panel.

use std::{collections::VecDeque, time::Duration};

use hub_core::time::Stopwatch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::{
    exit::Failure,
    printer::{Printer, Tone},
    screen,
};

/// Number of messages in the panel.
const SHOWN_DELIVERIES: usize = 10;
/// Maximum redraws per second, and the delay of a redraw.
const REDRAWS_PER_SECOND: u8 = 20;
const TICK_INTERVAL: Duration = Duration::from_millis(200);

/// A message that was posted.
#[derive(Debug)]
pub struct Delivery {
    pub seq: Value,
    pub id: Value,
    pub text: String,
    /// HTTP status; 0 without a response.
    pub status: u16,
    pub took: Duration,
    /// The first line of the response, or the error.
    pub answer: String,
    pub reply: Option<String>,
    /// Reason that the response is not used as a reply.
    pub unsent: Option<String>,
}

impl Delivery {
    const fn is_well(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    fn status_text(&self, printer: &Printer) -> String {
        let tone = if self.is_well() { Tone::Good } else { Tone::Bad };
        let text = if self.status == 0 { "no response".to_owned() } else { self.status.to_string() };
        printer.paint(&text, tone)
    }

    fn document(&self) -> Value {
        let mut document =
            json!({ "seq": self.seq, "id": self.id, "status": self.status, "reply": self.reply });
        if let Some(why) = &self.unsent {
            document["reply_skipped"] = json!(why);
        }
        document
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    ok: u64,
    failed: u64,
    replied: u64,
}

impl Counts {
    fn add(&mut self, delivery: &Delivery) {
        *(if delivery.is_well() { &mut self.ok } else { &mut self.failed }) += 1;
        self.replied += u64::from(delivery.reply.is_some());
    }

    fn text(self) -> String {
        let Self { ok, failed, replied } = self;
        format!("delivered {} · ok {ok} · failed {failed} · replied {replied}", ok + failed)
    }
}

/// Prints the events.
pub struct View<'p> {
    printer: &'p Printer,
    panel: Option<Panel>,
    counts: Counts,
    watch: Stopwatch,
}

impl<'p> View<'p> {
    /// Lines, unless a panel is requested and there is a terminal for it.
    pub fn new(wants_panel: bool, printer: &'p Printer) -> Self {
        let draws = wants_panel && printer.draws();
        if wants_panel && !draws {
            printer.note("--ui needs a terminal; printing lines instead");
        }
        let panel = draws.then(Panel::new);
        Self { printer, panel, counts: Counts::default(), watch: Stopwatch::start() }
    }

    /// Whether there is a panel.
    pub const fn is_panel(&self) -> bool {
        self.panel.is_some()
    }

    /// Ready for messages: always the same line, which scripts wait for.
    pub fn ready(&mut self, line: &str) {
        self.above(|_| Printer::ready(line));
        self.state(Tone::Good, line.to_owned());
    }

    /// The connection is lost until the next `ready`.
    pub fn lost(&mut self, line: &str) {
        self.note(line);
        self.state(Tone::Bad, line.to_owned());
    }

    pub fn note(&self, line: &str) {
        self.above(|printer| printer.note(line));
    }

    pub fn delivered(&mut self, delivery: Delivery) -> Result<(), Failure> {
        self.counts.add(&delivery);
        // With a panel at the same terminal the line would appear twice.
        if self.panel.is_none() || !self.printer.is_terminal() {
            let text = screen::fit(&delivery.text, 40);
            let answer = screen::fit(&delivery.answer, 60);
            let line = format!("{}  {}  {text}  {answer}", delivery.seq, delivery.status_text(self.printer));
            self.above(|printer| printer.one(delivery.document(), &line))?;
        }
        if let Some(why) = &delivery.unsent {
            self.note(&format!("no reply to message {}: {}", delivery.seq, screen::clean(why)));
        }
        if let Some(panel) = &mut self.panel {
            panel.last.push_back(delivery);
            if panel.last.len() > SHOWN_DELIVERIES {
                panel.last.pop_front();
            }
            panel.draw(self.counts, self.printer);
        }
        Ok(())
    }

    /// Removes the panel; returns the summary.
    pub fn end(&mut self) -> String {
        if let Some(panel) = self.panel.take() {
            panel.bar.finish_and_clear();
        }
        format!("{} · {} s", self.counts.text(), self.watch.elapsed().as_secs())
    }

    fn state(&mut self, tone: Tone, text: String) {
        if let Some(panel) = &mut self.panel {
            panel.state = (tone, text);
            panel.draw(self.counts, self.printer);
        }
    }

    /// Prints above the panel.
    fn above<T>(&self, write: impl FnOnce(&Printer) -> T) -> T {
        match &self.panel {
            Some(panel) => panel.bar.suspend(|| write(self.printer)),
            None => write(self.printer),
        }
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        if let Some(panel) = self.panel.take() {
            panel.bar.finish_and_clear();
        }
    }
}

struct Panel {
    bar: ProgressBar,
    state: (Tone, String),
    last: VecDeque<Delivery>,
}

impl Panel {
    fn new() -> Self {
        let bar = ProgressBar::no_length();
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND));
        bar.set_style(
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.enable_steady_tick(TICK_INTERVAL);
        Self { bar, state: (Tone::Doubtful, "connecting".to_owned()), last: VecDeque::new() }
    }

    fn draw(&self, counts: Counts, printer: &Printer) {
        self.bar.set_message(self.render(counts, printer));
    }

    fn render(&self, counts: Counts, printer: &Printer) -> String {
        let columns = printer.columns();
        let (tone, state) = &self.state;
        let mut lines =
            vec![printer.paint(&screen::fit(state, columns), *tone), screen::fit(&counts.text(), columns)];
        lines.extend(self.last.iter().map(|delivery| {
            let status = if delivery.status == 0 { "---".to_owned() } else { delivery.status.to_string() };
            let tone = if delivery.is_well() { Tone::Good } else { Tone::Bad };
            let head = format!("{:>6}  ", delivery.seq.to_string());
            let text = screen::pad(&screen::fit(&delivery.text, 40), 40);
            let rest = format!("  {:>6} ms  {text}  {}", delivery.took.as_millis(), delivery.answer);
            // Escape sequences have no width.
            let rest = screen::fit(&rest, columns.saturating_sub(head.len() + status.len()));
            format!("{head}{}{rest}", printer.paint(&status, tone))
        }));
        lines.push(printer.paint("q or Ctrl-C ends it", Tone::Faint));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printer::{Color, Format, Verbosity};

    #[test]
    fn the_panel_has_the_state_the_counts_and_the_last_messages_in_its_columns() {
        let printer = Printer::new(Format::Text, Verbosity::Normal, Color::Never);
        let mut panel = Panel::new();
        panel.state = (Tone::Good, "ready channel=demo forward=http://localhost:3000/".to_owned());
        let mut counts = Counts::default();
        for (seq, status) in [(8, 204), (9, 500), (10, 0)] {
            let delivery = Delivery {
                seq: json!(seq),
                id: json!("msg"),
                text: "一二三四五六七八九十".repeat(3),
                status,
                took: Duration::from_millis(1_234),
                answer: "a long answer ".repeat(20),
                reply: (status == 204).then(|| "yes".to_owned()),
                unsent: None,
            };
            counts.add(&delivery);
            panel.last.push_back(delivery);
        }
        let shown = panel.render(counts, &printer);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 6, "{shown}");
        assert_eq!(lines[0], "ready channel=demo forward=http://localhost:3000/");
        assert_eq!(lines[1], "delivered 3 · ok 1 · failed 2 · replied 1");
        assert!(lines[2].starts_with("     8  204    1234 ms  一二三"), "{shown}");
        assert!(lines[4].starts_with("    10  ---    1234 ms  "), "{shown}");
        assert!(lines.iter().all(|line| screen::width(line) <= printer.columns()), "{shown}");
        panel.bar.finish_and_clear();
    }
}
