//! The secret of a signature: from a file, from the environment, or, with a warning, from the arguments.

use hub_core::secret::Secret;

use super::read_file;
use crate::{args::SecretArgs, exit::Failure, printer::Printer};

/// The variable of the secret.
pub const VARIABLE: &str = "HUB_WEBHOOK_SECRET";

/// Reads the secret of the flags or the environment; `None` without one.
///
/// # Errors
/// A failure if its file cannot be read, or is empty.
pub fn given(args: &SecretArgs, printer: &Printer) -> Result<Option<Secret>, Failure> {
    if let Some(path) = &args.secret_file {
        let secret = first_line(path)?;
        if secret.expose().is_empty() {
            return Err(Failure::file(path, "has no secret in its first line"));
        }
        return Ok(Some(secret));
    }
    if let Some(secret) = &args.secret {
        printer.note("warning: --secret is visible to everyone on this machine; use --secret-file or HUB_WEBHOOK_SECRET");
        return Ok(Some(Secret::new(secret.as_str())));
    }
    Ok(std::env::var(VARIABLE).ok().filter(|secret| !secret.is_empty()).map(Secret::new))
}

/// The same, but required.
pub fn required(args: &SecretArgs, printer: &Printer) -> Result<Secret, Failure> {
    given(args, printer)?.ok_or_else(|| {
        Failure::usage("there is no secret")
            .with_hint("name its file with --secret-file, or set HUB_WEBHOOK_SECRET")
    })
}

/// The first line of a file.
pub fn first_line(path: &str) -> Result<Secret, Failure> {
    let content = Secret::new(read_file(path)?);
    Ok(Secret::new(content.expose().lines().next().unwrap_or_default()))
}
