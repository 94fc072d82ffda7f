use clap::Args;

use crate::{ask, exit::Failure, printer::Printer};

/// Whether something that is lost by it is meant.
#[derive(Debug, Clone, Copy, Args)]
pub struct Confirm {
    /// Do it: nothing asks
    #[arg(long)]
    yes: bool,
    /// Only show what would happen
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

impl Confirm {
    /// Whether to do what can be made good again; otherwise it is only to be shown. At a terminal a yes is asked for.
    ///
    /// # Errors
    /// Exit 2 when neither was said and nobody can be asked, or the answer is no; 130 when it is interrupted. `what`
    /// says what is lost.
    pub async fn is_meant(self, what: &str, printer: &Printer) -> Result<bool, Failure> {
        match self.said(what, printer)? {
            Some(meant) => Ok(meant),
            None => ask::yes(what).await.map(|()| true),
        }
    }

    /// The same for what cannot be undone: at a terminal its `name` has to be typed.
    ///
    /// # Errors
    /// As [`is_meant`](Self::is_meant).
    pub async fn is_meant_for_good(self, what: &str, name: &str, printer: &Printer) -> Result<bool, Failure> {
        match self.said(what, printer)? {
            Some(meant) => Ok(meant),
            None => ask::name(what, name).await.map(|()| true),
        }
    }

    /// Whether it is only to be shown.
    pub const fn is_rehearsal(self) -> bool {
        self.dry_run
    }

    /// What the flags say; `None` when somebody has to be asked.
    fn said(self, what: &str, printer: &Printer) -> Result<Option<bool>, Failure> {
        if self.yes || self.dry_run {
            return Ok(Some(self.yes));
        }
        if printer.may_ask() {
            return Ok(None);
        }
        Err(Failure::usage(what).with_hint("add --yes to do it, or --dry-run to see what would happen"))
    }
}
