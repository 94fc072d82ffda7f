//! Plugins and versions with what they may do.

use super::permission::Permissions;
use crate::{
    id::PluginId,
    model::plugin::{Plugin, Version},
    store::plugins::PendingRow,
};

/// A plugin with its source, permissions and versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginDetail {
    /// The plugin.
    pub plugin: Plugin,
    /// Source of the version, or of the requested one.
    pub script: String,
    /// Permissions of that source.
    pub permissions: Permissions,
    /// Versions that the caller may see, newest first.
    pub versions: Vec<Version>,
}

/// A version that waits for its review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingVersion {
    /// The plugin.
    pub plugin_id: PluginId,
    /// Its name.
    pub name: String,
    /// The author's user name; empty when they are gone.
    pub author: String,
    /// The version.
    pub version: Version,
    /// Its source.
    pub script: String,
    /// What it may do, in words.
    pub permissions: Permissions,
    /// Name of the approved version that it would replace.
    pub replaces: Option<String>,
    /// What changes against the approved source, as a unified diff; the whole source for a first version.
    pub diff: String,
}

impl PendingVersion {
    pub(super) fn new(row: PendingRow, permissions: Permissions, diff: String) -> Self {
        Self {
            plugin_id: row.plugin_id,
            name: row.name,
            author: row.author,
            version: row.version,
            script: row.script,
            permissions,
            replaces: row.approved_version,
            diff,
        }
    }
}
