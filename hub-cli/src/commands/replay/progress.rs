//! The progress of a replay: a bar at a terminal, otherwise occasional lines. Both on stderr.

use std::time::Duration;

use hub_core::{replay::Totals, time::Stopwatch};
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::printer::Printer;

const REDRAWS_PER_SECOND: u8 = 20;
/// Time between two lines if the total is not known.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

pub struct Progress {
    total: Option<u64>,
    bar: Option<ProgressBar>,
    /// Reported quarters; `None` without lines.
    quarters: Option<u64>,
    last: Stopwatch,
}

impl Progress {
    /// Nothing is shown for a single request, for scripts, or without progress.
    pub fn new(total: Option<u64>, printer: &Printer) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_wanted = printer.shows_progress() && total != Some(1);
        let draws = is_wanted && printer.draws() && !set("CI");
        let progress = Self {
            total,
            bar: draws.then(|| bar(total)),
            quarters: (is_wanted && !draws).then_some(0),
            last: Stopwatch::start(),
        };
        if progress.quarters.is_some() && total.is_some_and(|total| total > 0) {
            printer.note(&line(total, &Totals::default()));
        }
        progress
    }

    /// Counts one result.
    pub fn update(&mut self, totals: &Totals, printer: &Printer) {
        if let Some(bar) = &self.bar {
            // The message first: setting the position redraws.
            bar.set_message(counts(totals));
            bar.set_position(totals.done());
            return;
        }
        let Some(reported) = self.quarters else { return };
        match self.total.filter(|total| *total > 0) {
            Some(total) => {
                let quarter = totals.done() * 4 / total;
                if quarter > reported {
                    self.quarters = Some(quarter);
                    printer.note(&line(self.total, totals));
                }
            }
            None if self.last.elapsed() >= LINE_INTERVAL => {
                self.last = Stopwatch::start();
                printer.note(&line(None, totals));
            }
            None => {}
        }
    }

    /// Whether each success is printed in a line of its own: only without a bar.
    pub fn prints_successes(&self, printer: &Printer) -> bool {
        self.bar.is_none() || !printer.is_terminal()
    }

    /// Prints above the bar.
    pub fn above<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: Option<u64>) -> ProgressBar {
    let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND));
    let template = match total {
        Some(_) => "replay {human_pos}/{human_len} {msg} · {rate} · eta {eta}",
        None => "replay {human_pos} {msg} · {rate}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.with_key("rate", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        // Without a valid template there is no bar.
        let _ = write!(text, "{:.0}/s", state.per_sec());
    }));
    bar.set_message(counts(&Totals::default()));
    bar
}

/// `replay 1,204/5,000 ok 1,180 fail 24`.
pub fn line(total: Option<u64>, totals: &Totals) -> String {
    let of = total.map(|total| format!("/{}", HumanCount(total))).unwrap_or_default();
    format!("replay {}{of} {}", HumanCount(totals.done()), counts(totals))
}

fn counts(totals: &Totals) -> String {
    let mut text = format!("ok {} fail {}", HumanCount(totals.ok), HumanCount(totals.failed));
    for (name, count) in [("skipped", totals.skipped), ("differing", totals.differing)] {
        if count > 0 {
            text = format!("{text} {name} {}", HumanCount(count));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_zeros_are_left_out() {
        let totals = Totals { ok: 1_180, failed: 24, skipped: 0, differing: 0 };
        assert_eq!(line(Some(5_000), &totals), "replay 1,204/5,000 ok 1,180 fail 24");
        let totals = Totals { ok: 1, failed: 0, skipped: 2, differing: 1 };
        assert_eq!(line(None, &totals), "replay 3 ok 1 fail 0 skipped 2 differing 1");
    }
}
