//! The table.

use std::{fmt::Write as _, io::Write as _, time::Duration};

use hub_core::random::Random;

use crate::{
    Result,
    cases::Compared,
    statistics::{median, probability},
};

/// Prints everything.
pub fn print(all: &[Compared]) -> Result<()> {
    let random = Random::system();
    let mut text =
        String::from("| this | compared with | samples | medians | apart | p |\n|---|---|---|---|---|---|\n");
    for Compared { what, other, times, others, aim } in all {
        let (this, that) = (median(times), median(others));
        let apart = (this.as_secs_f64() / that.as_secs_f64() - 1.0) * 100.0;
        let p = probability(times, others, &random);
        writeln!(
            text,
            "| {what} | {other} | {} each | {} / {} | {apart:+.1} % (aim ±{aim} %) | {p:.4} (aim > 0.01) |",
            times.len(),
            millis(this),
            millis(that),
        )?;
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn millis(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}
