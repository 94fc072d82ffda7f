//! Plugins and versions with what they may do.

use super::permission::Permissions;
use crate::{
    id::PluginId,
    model::plugin::{Plugin, Version},
    store::plugins::PendingRow,
};

/// A plugin with its source, permissions and versions.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
pub struct PluginDetail {
    /// The plugin.
    #[api(flatten)]
    pub plugin: Plugin,
    /// Source of the version, or of the requested one.
    pub script: String,
    /// Permissions of that source.
    pub permissions: Permissions,
    /// Versions that the caller may see, newest first.
    pub versions: Vec<Version>,
}

/// A version that waits for review.
#[derive(Debug, Clone, PartialEq, Eq, hub_macros::Api)]
pub struct PendingVersion {
    /// Id of the plugin.
    #[api(name = "id")]
    pub plugin_id: PluginId,
    /// Name of the plugin.
    pub name: String,
    /// Username of the author; empty if deleted.
    pub author: String,
    /// The version.
    #[api(
        skip,
        and(version: String = |pending: &Self| pending.version.version.clone(), "Name of the version."),
        and(
            version_id: crate::id::PluginVersionId = |pending: &Self| pending.version.id,
            "Id of the version; approving or rejecting this id cannot affect another version."
        ),
        and(
            description: String = |pending: &Self| pending.version.description.clone(),
            "Description of the version."
        ),
        and(
            content_hash: String = |pending: &Self| pending.version.content_hash.clone(),
            "SHA-256 of the source, to be sent back with the decision."
        ),
        and(status: super::VersionState = |pending: &Self| pending.version.state, "Always `pending`."),
        and(
            created_at: crate::time::Timestamp = |pending: &Self| pending.version.created_at,
            "When it was submitted."
        ),
    )]
    pub version: Version,
    /// The source.
    pub script: String,
    /// Permissions.
    pub permissions: Permissions,
    /// Name of the approved version that it would replace.
    pub replaces: Option<String>,
    /// Unified diff against that version's source; the whole source for a first version.
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
