//! Metadata of a plugin: the comment block at the top of its source.
//!
//! Only the first block counts. A wrong value is an error with its line; an unknown key is a warning.

use std::time::Duration;

use super::rule::MatchRules;
use crate::{
    error::{Error, FieldError, Result},
    sandbox,
};

mod block;
mod keys;
#[cfg(test)]
mod tests;

pub use block::{Dialect, MAX_LINE, MAX_LINES};

/// Longest source of a plugin, in bytes.
pub const MAX_SOURCE: usize = 256 * 1024;
/// Time of one hook when the block says nothing, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u32 = 5_000;
/// Longest time of one hook, in milliseconds.
pub const MAX_TIMEOUT_MS: u32 = 10_000;

/// A message about a line of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line, from 1.
    pub line: u32,
    /// The column in that line, in characters from 1.
    pub column: u32,
    /// Half a sentence.
    pub message: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Functions that the block grants. Without `@grant`, and with the specification's `none`, both are granted. Only a
/// `==WebhookPlugin==` block can restrict them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grants {
    /// Whether `reply` may be called.
    pub reply: bool,
    /// Whether `skip` may be called.
    pub skip: bool,
}

impl Default for Grants {
    fn default() -> Self {
        Self { reply: true, skip: true }
    }
}

/// The metadata of a plugin. The default is that of a source without a block.
#[derive(Debug, Clone, Default)]
pub struct Manifest {
    /// Dialect of the block; `None` without a block.
    pub dialect: Option<Dialect>,
    /// `@name`.
    pub name: Option<String>,
    /// `@description`.
    pub description: Option<String>,
    /// `@version`.
    pub version: Option<String>,
    /// `@author`.
    pub author: Option<String>,
    /// `@match`: which messages the plugin is run for.
    pub matches: MatchRules,
    /// `@connect`: hosts the plugin may reach, as ASCII and in lower case, with the port where one is named; sub-domains
    /// of a host name are included.
    pub connects: Vec<String>,
    /// `@grant`.
    pub grants: Grants,
    /// `@timeout`: time of one hook.
    pub timeout: Timeout,
    /// Warnings, such as unknown keys.
    pub warnings: Vec<Note>,
}

/// Time of one hook run, 1 ms to 10 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout(u32);

impl Default for Timeout {
    fn default() -> Self {
        Self(DEFAULT_TIMEOUT_MS)
    }
}

impl Timeout {
    /// In milliseconds.
    pub const fn as_millis(self) -> u32 {
        self.0
    }

    /// As a span of time.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }
}

impl Note {
    pub(super) fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, column: 1, message: message.into() }
    }
}

impl Manifest {
    /// The part of the block for the sandbox.
    pub fn sandbox_dialect(&self) -> sandbox::Dialect {
        match self.dialect {
            Some(Dialect::WebhookPlugin) => sandbox::Dialect::WebhookPlugin,
            Some(Dialect::UserScript) | None => sandbox::Dialect::UserScript,
        }
    }

    /// Reads the metadata of a source. One without a block gets the defaults; a caller that requires a block checks
    /// [`Manifest::dialect`]. Takes milliseconds when there is an expression to compile.
    ///
    /// # Errors
    /// `INVALID_PARAMS` on the field `script`, once for each wrong line: `line 4: @timeout must be …`.
    pub fn parse(source: &str) -> Result<Self> {
        check_size(source)?;
        Self::inspect(source)
            .map_err(|flaws| Error::invalid_fields(flaws.into_iter().map(Note::into_field).collect()))
    }

    /// As [`Manifest::parse`], for callers that show the lines, such as a linter. Does not check the size.
    ///
    /// # Errors
    /// Every wrong line, in order.
    pub fn inspect(source: &str) -> Result<Self, Vec<Note>> {
        match block::find(source)? {
            Some(block) => keys::read(&block),
            None => Ok(Self::default()),
        }
    }
}

/// Checks the size of a source, and that every store can hold it.
///
/// # Errors
/// `INVALID_PARAMS` on the field `script`.
pub fn check_size(source: &str) -> Result<()> {
    match source.len() {
        0 => Err(Error::invalid("script", "must not be empty")),
        1..=MAX_SOURCE if source.contains('\0') => Err(Error::invalid("script", "must not contain NUL")),
        1..=MAX_SOURCE => Ok(()),
        size => Err(Error::invalid("script", format!("must be at most {MAX_SOURCE} bytes, and has {size}"))),
    }
}

impl Note {
    fn into_field(self) -> FieldError {
        FieldError { field: "script".into(), reason: format!("line {}: {}", self.line, self.message).into() }
    }
}
