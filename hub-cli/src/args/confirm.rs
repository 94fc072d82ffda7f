use clap::Args;

use crate::{ask, exit::Failure, printer::Printer};

/// Confirmation of a destructive command.
#[derive(Debug, Clone, Copy, Args)]
pub struct Confirm {
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Only show what would be done
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

impl Confirm {
    /// Whether to do a reversible change; in a dry run it is only announced. At a terminal the user is asked for a yes.
    ///
    /// # Errors
    /// Exit 2 without a flag when no prompt is possible, or when the answer is no; 130 when it is interrupted. `what`
    /// describes the loss.
    pub async fn is_confirmed(self, what: &str, printer: &Printer) -> Result<bool, Failure> {
        match self.flags_answer(what, printer)? {
            Some(meant) => Ok(meant),
            None => ask::yes(what).await.map(|()| true),
        }
    }

    /// As above for changes that cannot be undone: at a terminal the `name` has to be typed.
    pub async fn is_confirmed_by_name(
        self,
        what: &str,
        name: &str,
        printer: &Printer,
    ) -> Result<bool, Failure> {
        match self.flags_answer(what, printer)? {
            Some(meant) => Ok(meant),
            None => ask::name(what, name).await.map(|()| true),
        }
    }

    /// Whether the change is only shown.
    pub const fn is_dry_run(self) -> bool {
        self.dry_run
    }

    /// The answer of the flags; `None` without one.
    fn flags_answer(self, what: &str, printer: &Printer) -> Result<Option<bool>, Failure> {
        if self.dry_run {
            printer.note(&format!("{what} (dry run: nothing was changed)"));
            return Ok(Some(false));
        }
        if self.yes {
            return Ok(Some(true));
        }
        if printer.may_ask() {
            return Ok(None);
        }
        Err(Failure::usage(what).with_hint("add --yes to do it, or --dry-run to see what would happen"))
    }
}
