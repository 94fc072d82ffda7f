//! The output of `config check`, the same in `hub-server` and `hub-cli`.

use std::fmt::{self, Display};

use super::{Config, Origin, Problems, Warning};

/// Result of reading the settings, as the start reads them.
#[derive(Debug)]
pub struct Report {
    /// Name, value and origin of each setting to show.
    settings: Vec<(&'static str, String, Origin)>,
    /// Settings that were given.
    given: usize,
    /// The hub does not start with these.
    pub problems: Vec<String>,
    /// Settings that are accepted and probably mistakes.
    pub warnings: Vec<Warning>,
}

impl Report {
    /// A report of the settings that were given, or of `all` with their defaults.
    pub fn new(loaded: Result<Config, Problems>, all: bool) -> Self {
        let (mut settings, problems, warnings) = match loaded {
            Ok(config) => (config.effective, Vec::new(), config.warnings),
            Err(found) => (Vec::new(), found.problems, found.warnings),
        };
        let is_given = |(_, _, origin): &(_, _, Origin)| *origin != Origin::Default;
        let given = settings.iter().filter(|setting| is_given(setting)).count();
        settings.retain(|setting| all || is_given(setting));
        Self { settings, given, problems, warnings }
    }

    /// Whether all settings are valid.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// `ok, 3 settings`, or the number of problems.
    fn verdict(&self) -> String {
        let count = |number: usize, what: &str| {
            let plural = if number == 1 { "" } else { "s" };
            format!("{number} {what}{plural}")
        };
        let verdict = if self.is_ok() {
            format!("ok, {}", count(self.given, "setting"))
        } else {
            count(self.problems.len(), "problem")
        };
        match self.warnings.len() {
            0 => verdict,
            warnings => format!("{verdict}, {}", count(warnings, "warning")),
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = |width: &dyn Fn(&(&str, String, Origin)) -> usize| {
            self.settings.iter().map(width).max().unwrap_or_default()
        };
        let names = widest(&|(name, ..)| name.len());
        let values = widest(&|(_, value, _)| value.chars().count());
        for (name, value, origin) in &self.settings {
            writeln!(f, "{name:<names$}  {value:<values$}  # {origin}")?;
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "error: {problem}"))?;
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))?;
        f.write_str(&self.verdict())
    }
}
