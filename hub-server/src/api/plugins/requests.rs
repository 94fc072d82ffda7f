//! Request bodies about plugins. Bounds here reject the absurd; the rules are hub-core's.

use hub_core::openapi::Api;

use crate::wire::{Checked, Text};

/// An approval.
#[derive(Debug, Api)]
#[api(input, example = {
    "content_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
})]
pub struct ApprovePlugin {
    /// SHA-256 of the reviewed source: `CONFLICT` if another version is waiting by now.
    pub content_hash: Option<Text<64, 64>>,
}

/// A rejection.
#[derive(Debug, Api)]
#[api(input, example = {
    "reason": "asks for more hosts than it needs"
})]
pub struct RejectPlugin {
    /// Reason for the author, at most 2,000 characters.
    pub reason: Checked<1, 2000>,
    /// SHA-256 of the reviewed source: `CONFLICT` if another version is waiting by now.
    pub content_hash: Option<Text<64, 64>>,
}
