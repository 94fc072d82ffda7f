//! Ways of signing in, as people use them: in a real browser, at a provider that we did not write, at a terminal.
//!
//! `.ci/run tools` and `.ci/run clients` install what is needed; a test whose counterpart is missing is skipped,
//! in CI it fails.

mod browser;
mod command_line;
mod load;
mod provider;
pub mod stage;
