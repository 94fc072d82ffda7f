//! Plugins and versions as callers see them.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::permission::Permissions;
use crate::{
    error::{Error, Result},
    id::{ChannelId, PluginId, PluginVersionId},
    store::{
        channel_plugins::InstalledRow,
        plugins::{PendingRow, PluginRow, VersionRow},
    },
    time::Timestamp,
};

/// Review state of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionState {
    /// It waits for its review; its author may run it.
    Pending,
    /// Every user may install it.
    Approved,
    /// A reviewer refused it.
    Rejected,
    /// A newer version came before the review.
    Superseded,
    /// It was taken back, by its author or by an administrator.
    Withdrawn,
}

impl VersionState {
    const ALL: [Self; 5] = [Self::Pending, Self::Approved, Self::Rejected, Self::Superseded, Self::Withdrawn];

    /// The word on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Superseded => "superseded",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Whether a version in this state runs where it is installed.
    pub const fn runs(self) -> bool {
        matches!(self, Self::Pending | Self::Approved | Self::Superseded)
    }

    pub(crate) fn parse(word: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == word)
            .ok_or_else(|| Error::internal(format!("a plugin version is {word}")))
    }
}

/// A version, without its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    pub matches: Vec<String>,
    /// Hosts it may reach.
    pub connects: Vec<String>,
    /// Time of one hook, in milliseconds.
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

/// A plugin with everything there is to read about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginDetail {
    /// The plugin.
    pub plugin: Plugin,
    /// Source of its newest version that the caller may see, or of the version that was asked for.
    pub script: String,
    /// What that version may do, in words.
    pub permissions: Permissions,
    /// Its versions that the caller may see, newest first.
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

/// A plugin in a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

impl TryFrom<VersionRow> for Version {
    type Error = Error;

    fn try_from(row: VersionRow) -> Result<Self> {
        Ok(Self {
            id: stored(&row.id)?,
            state: VersionState::parse(&row.state)?,
            matches: decode(&row.matches)?,
            connects: decode(&row.connects)?,
            timeout_ms: u32::try_from(row.timeout_ms).map_err(Error::internal)?,
            version: row.version,
            description: row.description,
            content_hash: row.content_hash,
            reason: row.reason,
            reviewed_at: row.reviewed_at.map(Timestamp::from_millis),
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

impl TryFrom<PluginRow> for Plugin {
    type Error = Error;

    fn try_from(row: PluginRow) -> Result<Self> {
        let approved = row.approved_id.as_deref().map(stored).transpose()?;
        Ok(Self {
            id: stored(&row.plugin_id)?,
            name: row.name,
            author: row.author.unwrap_or_default(),
            latest: row.version.try_into()?,
            approved: approved.zip(row.approved_version),
            installs: u64::try_from(row.installs).unwrap_or(0),
            created_at: Timestamp::from_millis(row.plugin_created_at),
        })
    }
}

impl PendingVersion {
    pub(super) fn new(row: PendingRow, permissions: Permissions, diff: String) -> Result<Self> {
        Ok(Self {
            plugin_id: stored(&row.plugin_id)?,
            name: row.name,
            author: row.author.unwrap_or_default(),
            version: row.version.try_into()?,
            script: row.script,
            permissions,
            replaces: row.approved_version,
            diff,
        })
    }
}

impl TryFrom<InstalledRow> for InstalledPlugin {
    type Error = Error;

    fn try_from(row: InstalledRow) -> Result<Self> {
        Ok(Self {
            plugin_id: stored(&row.plugin_id)?,
            name: row.name,
            version_id: stored(&row.version_id)?,
            version: row.version,
            position: u32::try_from(row.position).map_err(Error::internal)?,
            enabled: row.enabled,
            state: VersionState::parse(&row.state)?,
            reason: row.reason,
            paused: row.paused,
            content_hash: row.content_hash,
            installed_at: Timestamp::from_millis(row.installed_at),
        })
    }
}

/// Groups the rows of several channels.
pub(crate) fn by_channel(
    rows: Vec<InstalledRow>,
) -> Result<std::collections::HashMap<ChannelId, Vec<InstalledPlugin>>> {
    let mut channels: std::collections::HashMap<ChannelId, Vec<InstalledPlugin>> =
        std::collections::HashMap::new();
    for row in rows {
        channels.entry(stored(&row.channel_id)?).or_default().push(row.try_into()?);
    }
    Ok(channels)
}

/// An id that the hub wrote itself: one that does not parse is a damaged row.
pub(crate) fn stored<K: crate::id::Kind>(text: &str) -> Result<crate::id::Id<K>> {
    text.parse().map_err(Error::internal)
}

fn decode<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(Error::internal)
}
