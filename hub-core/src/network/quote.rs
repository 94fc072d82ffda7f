//! Quotes: what a message refers to.

use serde::{Deserialize, Serialize};

/// A reference to an earlier message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quote {
    /// The network's id of the quoted message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_id: Option<String>,
    /// The quoted text: from the message itself, else looked up, else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Which part of the quoted text is meant; applied once the text is known.
    #[serde(skip)]
    pub selection: Option<Selection>,
}

/// A part of a text, as the iLink network describes it (`protocols/ilink.md` §8.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// How the part begins.
    pub start: String,
    /// How the part ends.
    pub end: String,
    /// Which occurrence of `start`, from 0.
    pub start_index: usize,
    /// Which occurrence of `end`, from 0: counted from the beginning of the text or from behind `start`.
    pub end_index: usize,
    /// Hex MD5 of the part.
    pub md5: Option<String>,
}
