//! `doctor`: checks the setup of a hub. Each check has a stable name, describes the problem in one paragraph and the
//! fix in a line or two. It shows names, paths, hosts and fingerprints, never a value that may be a secret.

mod permissions;
mod plugins;
mod server;
mod settings;
mod storage;

use hub_server::config::Config;
use permissions::ProtectedPath;
use serde_json::{Value, json};

use crate::{
    args::DoctorArgs,
    exit::{Exit, Failure},
    local,
    printer::{Format, List, Printer, Tone},
    screen,
};

/// Every check, in the order of the report; names that end in a dot are prefixes of several checks.
const CHECKS: [&str; 25] = [
    "store.open",
    "store.commit-log",
    "store.integrity",
    "store.migrations",
    "store.disk-space",
    "store.backup-age",
    "keys.permissions",
    "data-dir.is-mount",
    "bind.exposed",
    "public-url.matches-origin",
    "public-url.https",
    "webauthn.rp-id",
    "oauth.callback.",
    "clock.skew",
    "network.",
    "sinks.reachable",
    "plugins.compile",
    "sandbox.limits",
    "proxy.forwarded-headers",
    "registration.open",
    "env.unknown",
    "store.shared",
    "store.backup-sealed",
    "version.skew",
    "keys.rotation",
];

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    Warning,
    Failed,
    Skipped,
}

impl Status {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// The sign, and its ASCII replacement.
    const fn sign(self, unicode: bool) -> &'static str {
        match (self, unicode) {
            (Self::Ok, true) => "✓",
            (Self::Ok, false) => "ok",
            (Self::Warning, _) => "!",
            (Self::Failed, true) => "✗",
            (Self::Failed, false) => "x",
            (Self::Skipped, _) => "-",
        }
    }

    const fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::Warning => Tone::Doubtful,
            Self::Failed => Tone::Bad,
            Self::Skipped => Tone::Faint,
        }
    }
}

/// One line of the report.
#[derive(Debug)]
struct Outcome {
    id: String,
    status: Status,
    message: String,
    /// The fix: a command or a line of the configuration.
    advice: Option<String>,
    /// Whether it was just fixed.
    fixed: bool,
}

impl Outcome {
    fn new(id: impl Into<String>, status: Status, message: impl Into<String>) -> Self {
        Self { id: id.into(), status, message: message.into(), advice: None, fixed: false }
    }

    fn ok(id: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(id, Status::Ok, message)
    }

    fn warning(id: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(id, Status::Warning, message)
    }

    fn failed(id: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(id, Status::Failed, message)
    }

    fn skipped(id: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(id, Status::Skipped, message)
    }

    fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }
}

/// The input of the checks.
struct Subject<'p> {
    config: &'p Config,
    args: &'p DoctorArgs,
}

impl Subject<'_> {
    /// Whether a check was selected.
    fn wants(&self, id: &str) -> bool {
        self.args.only.is_empty() || self.args.only.iter().any(|only| covers(only, id))
    }
}

/// Whether a given name selects a check: by its full name, or by the part before a dot.
fn covers(only: &str, id: &str) -> bool {
    only == id || id.strip_prefix(only.trim_end_matches('.')).is_some_and(|rest| rest.starts_with('.'))
}

pub async fn run(args: DoctorArgs, printer: &Printer) -> Result<Exit, Failure> {
    // A check of one object, such as oauth.callback.github, is selected by its prefix.
    let known =
        |only: &str| CHECKS.iter().any(|id| covers(only, id) || (id.ends_with('.') && only.starts_with(id)));
    if let Some(unknown) = args.only.iter().find(|only| !known(only)) {
        return Err(Failure::usage(format!("--only: there is no check {unknown}"))
            .with_hint(format!("checks: {}", CHECKS.join(" "))));
    }
    let config = local::settings(&args.local)?;
    let subject = Subject { config: &config, args: &args };
    let mut outcomes = storage::check(&subject).await;
    outcomes.extend(settings::check(&subject));
    outcomes.extend(server::check(&subject).await);
    outcomes.extend(plugins::check(&subject).await);
    outcomes.retain(|outcome| subject.wants(&outcome.id));
    outcomes.sort_by_key(|outcome| {
        CHECKS.iter().position(|id| outcome.id == *id || (id.ends_with('.') && outcome.id.starts_with(id)))
    });
    let failed = outcomes.iter().any(|outcome| outcome.status == Status::Failed);
    show(&outcomes, printer)?;
    Ok(if failed { Exit::CheckFailed } else { Exit::Done })
}

fn show(outcomes: &[Outcome], printer: &Printer) -> Result<(), Failure> {
    if matches!(printer.format, Format::Json(_)) {
        let item = |outcome: &Outcome| {
            json!({
                "id": outcome.id,
                "status": outcome.status.word(),
                "message": outcome.message,
                "advice": outcome.advice,
                "fixed": outcome.fixed,
            })
        };
        let items: Vec<Value> = outcomes.iter().map(item).collect();
        return printer.list(List { items, ..List::default() });
    }
    let unicode = speaks_unicode();
    let mut lines = Vec::new();
    for outcome in outcomes {
        let sign = printer.paint(&format!("{:<2}", outcome.status.sign(unicode)), outcome.status.tone());
        lines.push(format!("{sign} {:<26} {}", outcome.id, screen::clean(&outcome.message)));
        if outcome.fixed {
            lines.push(format!("   {:<26} fixed now", ""));
        }
        for advice in outcome.advice.iter().flat_map(|advice| advice.lines()) {
            lines.push(format!("   {:<26} {}", "", screen::clean(advice)));
        }
    }
    let count = |status| outcomes.iter().filter(|outcome| outcome.status == status).count();
    printer.one(Value::Null, &lines.join("\n"))?;
    printer.note(&format!(
        "{} ok, {} warnings, {} failed, {} skipped",
        count(Status::Ok),
        count(Status::Warning),
        count(Status::Failed),
        count(Status::Skipped)
    ));
    Ok(())
}

/// Whether the terminal supports more than ASCII.
fn speaks_unicode() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_selected_by_name_or_prefix() {
        assert!(covers("store", "store.open") && covers("store.open", "store.open"));
        assert!(covers("oauth.callback", "oauth.callback.github"));
        assert!(!covers("sto", "store.open") && !covers("store.open", "store"));
    }
}
