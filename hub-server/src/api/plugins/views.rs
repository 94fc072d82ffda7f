//! Response bodies about plugins.

use hub_core::{
    id::{PluginId, PluginVersionId},
    openapi::Api,
    plugins::{self, PendingVersion, Permissions, Plugin, PluginDetail, PluginRef, Version, VersionState},
    time::Timestamp,
};
use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef},
    types::{ParseError, ParseFromParameter, ParseResult, Type},
};

use crate::wire::{scalar, view};

/// A plugin with the newest version that the caller may see: its author sees the newest version, other users the
/// newest approved one.
#[derive(Debug, Api)]
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
pub struct PluginView {
    /// Id of the plugin.
    pub id: PluginId,
    /// Name; it belongs to the first author.
    pub name: String,
    /// Description of the version.
    pub description: String,
    /// Name of the version.
    pub version: String,
    /// Id of the version.
    pub version_id: PluginVersionId,
    /// SHA-256 of the version's source, in hex.
    pub content_hash: String,
    /// Username of the author; empty if deleted.
    pub author: String,
    /// Review state of the version.
    pub status: VersionState,
    /// Why the version was rejected or withdrawn.
    pub reason: Option<String>,
    /// The same as `version`.
    pub latest_version: String,
    /// Name of the newest approved version.
    pub approved_version: Option<String>,
    /// Id of the newest approved version.
    pub approved_version_id: Option<PluginVersionId>,
    /// The version that waits for a review.
    pub pending_version: Option<Version>,
    /// Messages for which the version runs: `*`, types, `expr: …`.
    pub matches: Vec<String>,
    /// Hosts that it may connect to: names with their subdomains; addresses and single labels exactly.
    pub connects: Vec<String>,
    /// Time limit of a hook, in milliseconds.
    pub timeout_ms: u32,
    /// Number of channels with the plugin.
    pub installs: u64,
    /// When it was first submitted.
    pub created_at: Timestamp,
}

view! {
    /// A plugin with its source, permissions and versions.
    #[derive(Debug, Api)]
    pub struct PluginDetailView from detail: PluginDetail {
        /// The plugin.
        #[api(flatten)]
        pub plugin: PluginView = detail.plugin.into(),
        /// Source of the version, or of the requested one.
        pub script: String,
        /// Permissions of that source.
        pub permissions: Permissions,
        /// Versions that the caller may see, newest first.
        pub versions: Vec<Version>,
    }
}

view! {
    /// A version that waits for review.
    #[derive(Debug, Api)]
    pub struct PendingVersionView from pending: PendingVersion {
        /// Id of the plugin.
        pub id: PluginId = pending.plugin_id,
        /// Name of the plugin.
        pub name: String,
        /// Username of the author; empty if deleted.
        pub author: String,
        /// Name of the version.
        pub version: String = pending.version.version,
        /// Id of the version; approving or rejecting this id cannot affect another version.
        pub version_id: PluginVersionId = pending.version.id,
        /// Description of the version.
        pub description: String = pending.version.description,
        /// SHA-256 of the source, to be sent back with the decision.
        pub content_hash: String = pending.version.content_hash,
        /// Always `pending`.
        pub status: VersionState = pending.version.state,
        /// The source.
        pub script: String,
        /// Permissions.
        pub permissions: Permissions,
        /// Name of the approved version that it would replace.
        pub replaces: Option<String>,
        /// Unified diff against that version's source; the whole source for a first version.
        pub diff: String,
        /// When it was submitted.
        pub created_at: Timestamp = pending.version.created_at,
    }
}

impl From<Plugin> for PluginView {
    fn from(plugin: Plugin) -> Self {
        let latest = plugin.latest;
        let pending = (latest.state == plugins::VersionState::Pending).then(|| latest.clone());
        let (approved_version_id, approved_version) = plugin.approved.unzip();
        Self {
            id: plugin.id,
            name: plugin.name,
            description: latest.description,
            version_id: latest.id,
            content_hash: latest.content_hash,
            author: plugin.author,
            status: latest.state,
            reason: latest.reason,
            latest_version: latest.version.clone(),
            version: latest.version,
            approved_version,
            approved_version_id,
            pending_version: pending,
            matches: latest.matches,
            connects: latest.connects,
            timeout_ms: latest.timeout_ms,
            installs: plugin.installs,
            created_at: plugin.created_at,
        }
    }
}

/// Id of a plugin, which means its current version, or of one of its versions. In a path, any other id is
/// `NOT_FOUND`.
#[derive(Debug, Clone, Copy)]
pub struct Target(pub PluginRef);

impl Type for Target {
    scalar!();

    fn name() -> std::borrow::Cow<'static, str> {
        "plugin or plugin version id".into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            pattern: Some("^pl[gv]_[0-7][0-9A-HJKMNP-TV-Z]{25}$".to_owned()),
            ..MetaSchema::new("string")
        }))
    }
}

impl ParseFromParameter for Target {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        text.parse().map(Self).map_err(|error: hub_core::Error| ParseError::custom(error.message()))
    }
}
