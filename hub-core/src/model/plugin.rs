//! Plugins and versions as callers see them.

use serde::{Deserialize, Serialize};

use crate::{
    id::{PluginId, PluginVersionId},
    time::Timestamp,
    words::words,
};

words! {
    /// Review state of a version.
    pub enum VersionState {
        /// It waits for its review; its author may run it.
        Pending = "pending",
        /// Every user may install it.
        Approved = "approved",
        /// A reviewer refused it.
        Rejected = "rejected",
        /// A newer version came before the review.
        Superseded = "superseded",
        /// It was taken back, by its author or by an administrator.
        Withdrawn = "withdrawn",
    }
}

impl VersionState {
    /// Whether a version in this state runs where it is installed.
    pub const fn runs(self) -> bool {
        matches!(self, Self::Pending | Self::Approved | Self::Superseded)
    }
}

/// A version, without its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::FromRow)]
#[row(table = "plugin_versions")]
pub struct Version {
    /// Id.
    pub id: PluginVersionId,
    /// Its name, `1.2.0`.
    pub version: String,
    /// What it does.
    pub description: String,
    /// SHA-256 of the source, in hex: what is reviewed and what runs has this hash.
    pub content_hash: String,
    /// Which messages it is run for, at least one rule.
    #[row(json)]
    pub matches: Vec<String>,
    /// Hosts it may reach.
    #[row(json)]
    pub connects: Vec<String>,
    /// Time of one hook, in milliseconds.
    #[row(number)]
    pub timeout_ms: u32,
    /// Status.
    pub state: VersionState,
    /// Why it was rejected or withdrawn.
    pub reason: Option<String>,
    /// When it was reviewed.
    pub reviewed_at: Option<Timestamp>,
    /// When it was submitted.
    pub created_at: Timestamp,
}

/// A plugin with the newest version that the caller may see: its author sees the newest, other users the newest
/// approved one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plugin {
    /// Id.
    pub id: PluginId,
    /// Name; it belongs to the first author.
    pub name: String,
    /// The author's user name; empty when they are gone.
    pub author: String,
    /// The newest version that the caller may see.
    pub latest: Version,
    /// The newest approved version: its id and its name.
    pub approved: Option<(PluginVersionId, String)>,
    /// Channels it is installed in.
    pub installs: u64,
    /// When it was first submitted.
    pub created_at: Timestamp,
}

/// A plugin in a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::FromRow)]
#[row(table = "channel_plugins")]
pub struct InstalledPlugin {
    /// The plugin.
    pub plugin_id: PluginId,
    /// Its name.
    pub name: String,
    /// The version that runs.
    pub version_id: PluginVersionId,
    /// Its name.
    pub version: String,
    /// Place in the order, from 0.
    #[row(number)]
    pub position: u32,
    /// Whether it is switched on.
    pub enabled: bool,
    /// Review state of the version; rejected and withdrawn versions do not run.
    pub state: VersionState,
    /// Why it was rejected or withdrawn.
    pub reason: Option<String>,
    /// Why the hub itself stopped it here; switching it on, or another version, lets it run again.
    pub paused: Option<String>,
    /// SHA-256 of the source.
    pub content_hash: String,
    /// When it was installed.
    pub installed_at: Timestamp,
}
