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
        /// Waits for review; its author may run it.
        Pending = "pending",
        /// Approved: everyone may install it.
        Approved = "approved",
        /// Rejected by a reviewer.
        Rejected = "rejected",
        /// Replaced by a newer version before its review.
        Superseded = "superseded",
        /// Withdrawn; it does not run.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::FromRow, hub_macros::Api)]
#[row(table = "plugin_versions")]
#[api(example = {
    "content_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "created_at": "2025-11-21T09:30:00.000Z",
    "description": "Marks orders",
    "id": "plv_01KAG00000E008000000000006",
    "status": "pending",
    "version": "1.2.0",
})]
pub struct Version {
    /// Id of the version.
    pub id: PluginVersionId,
    /// Name of the version.
    pub version: String,
    /// Description of the version.
    pub description: String,
    /// SHA-256 of the source, in hex: of what is reviewed and of what runs.
    pub content_hash: String,
    /// Review state.
    #[api(name = "status")]
    pub state: VersionState,
    /// Why it was rejected or withdrawn.
    pub reason: Option<String>,
    /// When it was reviewed.
    pub reviewed_at: Option<Timestamp>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// Which messages it is run for, at least one rule.
    #[row(json)]
    #[api(skip)]
    pub matches: Vec<String>,
    /// Hosts it may reach.
    #[row(json)]
    #[api(skip)]
    pub connects: Vec<String>,
    /// Time of one hook, in milliseconds.
    #[row(number)]
    #[api(skip)]
    pub timeout_ms: u32,
}

/// A plugin with the newest version that the caller may see: its author sees the newest version, other users the
/// newest approved one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[api(example = {
    "author": "ada",
    "connects": [
        "api.example.com"
    ],
    "content_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "created_at": "2025-11-21T09:30:00.000Z",
    "description": "Marks orders",
    "id": "plg_01KAG00000E008000000000005",
    "installs": 0,
    "latest_version": "1.2.0",
    "matches": [
        "text"
    ],
    "name": "tagger",
    "pending_version": {
        "content_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "created_at": "2025-11-21T09:30:00.000Z",
        "description": "Marks orders",
        "id": "plv_01KAG00000E008000000000006",
        "status": "pending",
        "version": "1.2.0"
    },
    "status": "pending",
    "timeout_ms": 5000,
    "version": "1.2.0",
    "version_id": "plv_01KAG00000E008000000000006"
})]
pub struct Plugin {
    /// Id of the plugin.
    pub id: PluginId,
    /// Name; it belongs to the first author.
    pub name: String,
    /// Username of the author; empty if deleted.
    pub author: String,
    /// The newest version that the caller may see.
    #[api(
        skip,
        and(description: String = |plugin: &Self| plugin.latest.description.clone(), "Description of the version."),
        and(version: String = |plugin: &Self| plugin.latest.version.clone(), "Name of the version."),
        and(version_id: PluginVersionId = |plugin: &Self| plugin.latest.id, "Id of the version."),
        and(
            content_hash: String = |plugin: &Self| plugin.latest.content_hash.clone(),
            "SHA-256 of the version's source, in hex."
        ),
        and(status: VersionState = |plugin: &Self| plugin.latest.state, "Review state of the version."),
        and(
            reason: Option<String> = |plugin: &Self| plugin.latest.reason.clone(),
            "Why the version was rejected or withdrawn."
        ),
        and(latest_version: String = |plugin: &Self| plugin.latest.version.clone(), "The same as `version`."),
        and(
            pending_version: Option<Version> = |plugin: &Self| {
                Some(plugin.latest.clone()).filter(|latest| latest.state == VersionState::Pending)
            },
            "The version that waits for a review."
        ),
        and(
            matches: Vec<String> = |plugin: &Self| plugin.latest.matches.clone(),
            "Messages for which the version runs: `*`, types, `expr: …`."
        ),
        and(
            connects: Vec<String> = |plugin: &Self| plugin.latest.connects.clone(),
            "Hosts that it may connect to: names with their subdomains; addresses and single labels exactly."
        ),
        and(timeout_ms: u32 = |plugin: &Self| plugin.latest.timeout_ms, "Time limit of a hook, in milliseconds."),
    )]
    pub latest: Version,
    /// The newest approved version: its id and its name.
    #[api(
        skip,
        and(
            approved_version: Option<String> = |plugin: &Self| Some(plugin.approved.as_ref()?.1.clone()),
            "Name of the newest approved version."
        ),
        and(
            approved_version_id: Option<PluginVersionId> = |plugin: &Self| Some(plugin.approved.as_ref()?.0),
            "Id of the newest approved version."
        ),
    )]
    pub approved: Option<(PluginVersionId, String)>,
    /// Number of channels with the plugin.
    pub installs: u64,
    /// When it was first submitted.
    pub created_at: Timestamp,
}

/// A plugin installed into a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::FromRow, hub_macros::Api)]
#[row(table = "channel_plugins")]
#[api(example = {
    "content_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "enabled": true,
    "installed_at": "2025-11-21T09:30:00.000Z",
    "name": "tagger",
    "plugin_id": "plg_01KAG00000E008000000000005",
    "position": 0,
    "status": "approved",
    "version": "1.2.0",
    "version_id": "plv_01KAG00000E008000000000006",
})]
pub struct InstalledPlugin {
    /// Id of the plugin.
    pub plugin_id: PluginId,
    /// Name of the plugin.
    pub name: String,
    /// The version that runs.
    pub version: String,
    /// Id of the version.
    pub version_id: PluginVersionId,
    /// Position in the order, from 0.
    #[row(number)]
    pub position: u32,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Review state of the version; rejected and withdrawn versions do not run.
    #[api(name = "status")]
    pub state: VersionState,
    /// Why it was rejected or withdrawn.
    pub reason: Option<String>,
    /// Why the hub stopped it here: its runs did not end. Enabling it, or another version, lets it run again.
    #[api(cause)]
    pub paused: Option<String>,
    /// SHA-256 of the source that runs, in hex.
    pub content_hash: String,
    /// When it was installed.
    pub installed_at: Timestamp,
}
