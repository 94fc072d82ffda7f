//! Request bodies about plugins. Bounds here reject the absurd; the rules are hub-core's.

use hub_core::{
    id::PluginId,
    plugins::{InstallationPatch, NewInstallation, Submission, manifest::MAX_SOURCE},
};
use poem_openapi::{Object, types::Example};

use crate::wire::{Checked, Text};

/// A source and its description. Name, description and version default to the metadata block and must not contradict
/// it.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct SubmitPlugin {
    /// Name, 1 to 64 characters; it belongs to its first author.
    pub name: Option<Checked<1, 64>>,
    /// Description, at most 500 characters.
    pub description: Option<Checked<0, 500>>,
    /// Version, 1 to 64 characters.
    pub version: Option<Checked<1, 64>>,
    /// The source, at most 256 KiB, beginning with its metadata block.
    pub script: Checked<0, MAX_SOURCE>,
}

impl Example for SubmitPlugin {
    fn example() -> Self {
        let script = "// ==UserScript==\n// @name tagger\n// @version 1.2.0\n// @match text\n\
                      // ==/UserScript==\nfunction onRequest(ctx) { ctx.req.headers['X-Kind'] = 'order'; }\n";
        Self { name: None, description: None, version: None, script: Text(script.to_owned()) }
    }
}

impl From<SubmitPlugin> for Submission {
    fn from(body: SubmitPlugin) -> Self {
        Self {
            name: body.name.map(String::from),
            description: body.description.map(String::from),
            version: body.version.map(String::from),
            script: body.script.into(),
        }
    }
}

/// A plugin to install.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct InstallPlugin {
    /// Id of the plugin.
    pub plugin_id: PluginId,
    /// Name or id of the version; the newest one that the caller may run if absent.
    pub version: Option<Checked<1, 64>>,
    /// Position in the order, from 0; at the end if absent.
    pub position: Option<u32>,
}

impl Example for InstallPlugin {
    fn example() -> Self {
        Self {
            plugin_id: hub_core::id::Id::from_u128(0x019a_a000_0000_7000_8000_0000_0000_0005),
            version: Some(Text("1.2.0".to_owned())),
            position: None,
        }
    }
}

impl From<InstallPlugin> for NewInstallation {
    fn from(body: InstallPlugin) -> Self {
        let InstallPlugin { plugin_id, version, position } = body;
        Self { plugin_id, version: version.map(String::from), position }
    }
}

/// A change of an installed plugin; absent fields keep their values.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct ChangeInstallation {
    /// Name or id of another version.
    pub version: Option<Checked<1, 64>>,
    /// New position in the order, from 0.
    pub position: Option<u32>,
    /// Whether it is enabled.
    pub enabled: Option<bool>,
}

impl Example for ChangeInstallation {
    fn example() -> Self {
        Self { version: None, position: Some(0), enabled: Some(true) }
    }
}

impl From<ChangeInstallation> for InstallationPatch {
    fn from(body: ChangeInstallation) -> Self {
        let ChangeInstallation { version, position, enabled } = body;
        Self { version: version.map(String::from), position, enabled }
    }
}

/// An approval.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct ApprovePlugin {
    /// SHA-256 of the reviewed source: `CONFLICT` if another version is waiting by now.
    pub content_hash: Option<Text<64, 64>>,
}

impl Example for ApprovePlugin {
    fn example() -> Self {
        let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        Self { content_hash: Some(Text(hash.to_owned())) }
    }
}

/// A rejection.
#[derive(Debug, Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none, example)]
pub struct RejectPlugin {
    /// Reason for the author, at most 2,000 characters.
    pub reason: Checked<1, 2000>,
    /// SHA-256 of the reviewed source: `CONFLICT` if another version is waiting by now.
    pub content_hash: Option<Text<64, 64>>,
}

impl Example for RejectPlugin {
    fn example() -> Self {
        Self { reason: Text("asks for more hosts than it needs".to_owned()), content_hash: None }
    }
}
