use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hub_core::plugins::VersionState;

use super::{Confirm, Ends, Fields, HubArgs, ListArgs, closed};

/// Create, check and review plugins
#[derive(Debug, Subcommand)]
pub enum PluginsCommand {
    New(PluginsNewArgs),
    Lint(PluginsLintArgs),
    Test(PluginsTestArgs),
    #[command(alias = "update")]
    Submit(PluginsSubmitArgs),
    #[command(alias = "ls")]
    List(PluginsListArgs),
    /// List the versions that wait for a review
    #[command(
        after_help = "Examples:\n  hub-cli plugins pending\n  hub-cli plugins pending --server https://hub.example.com --json=id,diff\n\nSee also: hub-cli plugins show, hub-cli plugins approve",
        add = Ends(&[(4, "not an administrator")]),
        add = Fields::of("listPendingPlugins")
    )]
    Pending(ListArgs),
    Show(PluginsShowArgs),
    Versions(PluginsVersionsArgs),
    Approve(PluginsApproveArgs),
    Reject(PluginsRejectArgs),
    Withdraw(PluginsWithdrawArgs),
    #[command(alias = "rm")]
    Delete(PluginsDeleteArgs),
}

/// Create a plugin: a template, types for editors, a test case
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins new tagger\n  hub-cli plugins new tagger --dir ./plugins\n\nSee also: hub-cli debug request, hub-cli plugins test",
    add = Ends(&[(0, "created"), (6, "the folder exists already")]),
    add = Fields::own(&["folder", "files"])
)]
pub struct PluginsNewArgs {
    /// Name of the plugin and its folder
    pub name: String,
    /// Parent folder
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
}

/// Check sources: metadata, syntax, hooks, and use of unavailable APIs
///
/// The top level runs in the sandbox; no hook is called.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins lint tagger.js\n  hub-cli plugins lint tagger.js bridge.js --json\n  hub-cli plugins lint tagger.js --fix\n  hub-cli plugins lint tagger.js --format sarif\n\nSee also: hub-cli plugins test",
    add = Ends(&[(0, "no problems or warnings only"), (6, "errors")]),
    add = Fields::own(&["file", "line", "column", "severity", "rule", "message"])
)]
pub struct PluginsLintArgs {
    /// Sources; - reads stdin
    #[arg(required = true)]
    pub files: Vec<String>,
    /// Fix what needs no decision: a missing metadata block, a missing name
    #[arg(long)]
    pub fix: bool,
    /// Format of the findings
    #[arg(long, default_value = "human")]
    pub format: LintFormat,
}

/// Format of the findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// Text, tab-separated when not at a terminal
    Human,
    /// The same as --json
    Json,
    /// SARIF 2.1.0, for code hosts
    Sarif,
}

/// Run the cases of a folder in the sandbox
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins test tagger\n  hub-cli plugins test tagger --json=items\n
A case is a file NAME.case.json: {\"script\": \"tagger.js\", \"message\": {\"content\": \"order 42\"}, \"expect\": {\"request\": {\"headers\":
{\"X-Kind\": \"order\"}}, \"replies\": []}}. With a \"response\": {\"status\": 200, \"body\": \"\"} it is for onResponse.\n\nSee also: hub-cli debug request",
    add = Ends(&[(0, "all as expected"), (6, "a case cannot be read"), (9, "a case failed")]),
    add = Fields::own(&["case", "result", "differences", "duration_ms"])
)]
pub struct PluginsTestArgs {
    /// Folder with *.case.json
    pub dir: PathBuf,
}

/// Submit a plugin, or a new version of one
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins submit tagger.js --author ada\n  HUB_TOKEN=… hub-cli plugins submit tagger.js --server https://hub.example.com --json=id,version_id\n\nSee also: hub-cli plugins lint",
    add = Ends(&[(0, "submitted"), (2, "the source has errors"), (6, "the name is another user's")]),
    add = Fields::of("submitPlugin")
)]
pub struct PluginsSubmitArgs {
    /// Source; - reads stdin
    pub file: String,
    /// User name of the author; on a server the signed-in user
    #[arg(long)]
    pub author: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// List the marketplace, or versions that wait for a review
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins list\n  hub-cli plugins list --status pending --json=id,name,content_hash\n  hub-cli plugins list --mine --server https://hub.example.com\n\nSee also: hub-cli plugins show",
    add = Fields::of("listPlugins")
)]
pub struct PluginsListArgs {
    /// State of the versions: approved, or waiting for a review
    #[arg(long, default_value = "approved", value_parser = closed([VersionState::Approved, VersionState::Pending], VersionState::as_str))]
    pub status: VersionState,
    /// All plugins of this user instead; on a server only your own name
    #[arg(long, conflicts_with = "status")]
    pub author: Option<String>,
    /// All plugins of the signed-in user instead, on a server
    #[arg(long, conflicts_with_all = ["status", "author"])]
    pub mine: bool,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Show a plugin: its permissions, versions and source
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins show tagger\n  hub-cli plugins show tagger --diff 1.1.0..1.2.0\n\nSee also: hub-cli plugins approve",
    add = Ends(&[(2, "invalid range"), (5, "no such plugin, version or hub")]),
    add = Fields::of("getPlugin").and(&["diff"])
)]
pub struct PluginsShowArgs {
    /// Name or id
    pub plugin: String,
    /// What changed between two versions, by name or id
    #[arg(long, value_name = "OLD..NEW")]
    pub diff: Option<String>,
    /// With the source
    #[arg(long)]
    pub source: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// List the versions of a plugin
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins versions tagger\n  hub-cli plugins versions tagger --json=id,version,status\n\nSee also: hub-cli plugins show, hub-cli plugins withdraw",
    add = Fields::of_list("getPlugin", "versions")
)]
pub struct PluginsVersionsArgs {
    /// Name or id
    pub plugin: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Withdraw a version: it stops running everywhere
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins withdraw tagger 1.2.0 --yes\n  hub-cli plugins withdraw tagger 1.2.0 --dry-run\n  hub-cli plugins withdraw tagger 1.2.0 --reason \"sends messages elsewhere\" --yes\n
Without a reason it acts for the author, and is rejected while others have the version installed; with a reason it acts for a
reviewer.\n\nSee also: hub-cli plugins versions",
    add = Ends(&[(0, "withdrawn"), (4, "not allowed"), (6, "it has ended already, or is installed by others")]),
    add = Fields::own(&["id", "version_id", "version", "status"])
)]
pub struct PluginsWithdrawArgs {
    /// Name or id of the plugin
    pub plugin: String,
    /// Name or id of the version
    pub version: String,
    /// Reason, shown to its author and to users who run it
    #[arg(long)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Approve versions that wait for a review
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins approve tagger\n  hub-cli plugins approve plv_01KAJ6Z8QH0000000000000000 --content-hash 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n\nSee also: hub-cli plugins pending",
    add = Ends(&[(0, "approved"), (4, "not an administrator"), (6, "no version waits, or its source is a different one")]),
    add = Fields::own(&["items"])
)]
pub struct PluginsApproveArgs {
    /// Names or ids of plugins, or ids of versions
    #[arg(required = true)]
    pub plugins: Vec<String>,
    /// Only if the source has this hash, that of the reviewed source
    #[arg(long, value_name = "SHA256")]
    pub content_hash: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Reject versions that wait for a review, or withdraw approved ones
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins reject tagger --reason \"asks for too many hosts\"\n  hub-cli plugins reject plv_01KAJ6Z8QH0000000000000000 --reason \"sends messages elsewhere\"\n
An approved version, named by its id, is withdrawn: it stops running everywhere.\n\nSee also: hub-cli plugins pending",
    add = Ends(&[(0, "rejected"), (4, "not an administrator"), (6, "no version waits, or its source is a different one")]),
    add = Fields::own(&["items"])
)]
pub struct PluginsRejectArgs {
    /// Names or ids of plugins, or ids of versions
    #[arg(required = true)]
    pub plugins: Vec<String>,
    /// Reason, shown to the author
    #[arg(long)]
    pub reason: String,
    /// Only if the source has this hash, that of the reviewed source
    #[arg(long, value_name = "SHA256")]
    pub content_hash: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Delete a plugin, or withdraw one of its versions
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins delete tagger --yes\n  hub-cli plugins delete plv_01KAJ6Z8QH0000000000000000 --yes\n
A deleted plugin is removed from every channel; a withdrawn version stays installed but does not run.\n\nSee also: hub-cli plugins reject",
    add = Ends(&[(4, "not allowed"), (6, "it is installed by others")]),
    add = Fields::own(&["id", "name", "deleted"])
)]
pub struct PluginsDeleteArgs {
    /// Name or id of a plugin, or id of a version
    pub plugin: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}
