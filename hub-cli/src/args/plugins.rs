use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Confirm, HubArgs, PageArgs};

/// Write, check and review plugins
#[derive(Debug, Subcommand)]
pub enum PluginsCommand {
    /// Start a plugin: a template, its types for an editor, a test case
    New(PluginsNewArgs),
    /// Check sources: metadata, syntax, hooks, and what a plugin does not have
    ///
    /// The top level runs in the sandbox; no hook is called.
    Lint(PluginsLintArgs),
    /// Run the cases of a folder in the sandbox
    Test(PluginsTestArgs),
    /// Submit a plugin, or another version of one
    #[command(alias = "update")]
    Submit(PluginsSubmitArgs),
    /// The marketplace, or what waits for a review
    #[command(alias = "ls")]
    List(PluginsListArgs),
    /// What waits for a review
    Pending(PluginsPendingArgs),
    /// One plugin: what it may do, its versions, its source
    Show(PluginsShowArgs),
    /// The versions of a plugin
    Versions(PluginsVersionsArgs),
    /// Approve versions that wait for a review
    Approve(PluginsApproveArgs),
    /// Reject versions that wait for a review, or withdraw approved ones
    Reject(PluginsRejectArgs),
    /// Take a version back: it runs nowhere any more
    Withdraw(PluginsWithdrawArgs),
    /// Delete a plugin, or withdraw one of its versions
    #[command(alias = "rm")]
    Delete(PluginsDeleteArgs),
}

/// Start a plugin: a template, its types for an editor, a test case
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins new tagger\n  hub-cli plugins new tagger --dir ./plugins\n
Exit codes: 0 made, 6 there is something in the way.\nSee also: hub-cli debug request, hub-cli plugins test"
)]
pub struct PluginsNewArgs {
    /// Name of the plugin, also of its folder
    pub name: String,
    /// Where the folder is made
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
}

/// Check sources without running them
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins lint tagger.js\n  hub-cli plugins lint tagger.js bridge.js --json\n  hub-cli plugins lint tagger.js --fix\n  hub-cli plugins lint tagger.js --format sarif\n
Exit codes: 0 no problems or warnings only, 6 errors.\nSee also: hub-cli plugins test"
)]
pub struct PluginsLintArgs {
    /// Sources; - reads stdin
    #[arg(required = true)]
    pub files: Vec<String>,
    /// Write what can be mended without asking: a missing metadata block, a missing name
    #[arg(long)]
    pub fix: bool,
    /// How findings are written
    #[arg(long, default_value = "human")]
    pub format: LintFormat,
}

/// How findings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// For people, or tab-separated when nobody looks
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
{\"X-Kind\": \"order\"}}, \"replies\": []}}. With a \"response\": {\"status\": 200, \"body\": \"\"} it is for onResponse.\n
Exit codes: 0 all as expected, 6 a case cannot be read, 9 one is not as expected.\nSee also: hub-cli debug request"
)]
pub struct PluginsTestArgs {
    /// Folder with *.case.json
    pub dir: PathBuf,
}

/// Submit a plugin, or another version of one
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins submit tagger.js --author ada\n  HUB_TOKEN=… hub-cli plugins submit tagger.js --server https://hub.example.com --json=id,version_id\n
Exit codes: 0 submitted, 2 something is wrong with the source, 4 not signed in, 5 no such user, 6 the name is somebody else's, 7 nobody answers.\nSee also: hub-cli plugins lint"
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

/// The marketplace, or what waits for a review
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins list\n  hub-cli plugins list --status pending --json=id,name,content_hash\n  hub-cli plugins list --mine --server https://hub.example.com\n
Exit codes: 0 listed, 4 not signed in, 5 no such hub or user, 7 nobody answers.\nSee also: hub-cli plugins show"
)]
pub struct PluginsListArgs {
    /// Which: what may be installed, or what waits
    #[arg(long, default_value = "approved")]
    pub status: PluginStatusArg,
    /// All plugins of this user instead; on a server the signed-in user
    #[arg(long, conflicts_with = "status")]
    pub author: Option<String>,
    /// All plugins of whom the key belongs to instead, on a server
    #[arg(long, conflicts_with_all = ["status", "author"])]
    pub mine: bool,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// What waits for a review
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins pending\n  hub-cli plugins pending --server https://hub.example.com --json=id,diff\n
Exit codes: 0 listed, 4 no administrator, 5 no such hub, 7 nobody answers.\nSee also: hub-cli plugins show, hub-cli plugins approve"
)]
pub struct PluginsPendingArgs {
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// States of a version that can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PluginStatusArg {
    /// May be installed by everybody
    Approved,
    /// Waits for a review
    Pending,
}

/// One plugin: what it may do, its versions, its source
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins show tagger\n  hub-cli plugins show tagger --diff 1.1.0..1.2.0\n
Exit codes: 0 shown, 2 no such range, 4 not signed in, 5 no such plugin or version, 7 nobody answers.\nSee also: hub-cli plugins approve"
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

/// The versions of a plugin
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins versions tagger\n  hub-cli plugins versions tagger --json=id,version,status\n
Exit codes: 0 listed, 4 not signed in, 5 no such plugin, 7 nobody answers.\nSee also: hub-cli plugins show, hub-cli plugins withdraw"
)]
pub struct PluginsVersionsArgs {
    /// Name or id
    pub plugin: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Take a version back: it runs nowhere any more
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins withdraw tagger 1.2.0 --yes\n  hub-cli plugins withdraw tagger 1.2.0 --dry-run\n  hub-cli plugins withdraw tagger 1.2.0 --reason \"sends messages elsewhere\" --yes\n
Without a reason it is its author's act, and refused while others have the version installed; with one it is a reviewer's.\n
Exit codes: 0 withdrawn, 2 not confirmed, 4 not allowed, 5 no such plugin or version, 6 it is over already, or others have it, 7 nobody answers.\nSee also: hub-cli plugins versions"
)]
pub struct PluginsWithdrawArgs {
    /// Name or id of the plugin
    pub plugin: String,
    /// Name or id of the version
    pub version: String,
    /// Why, for its author and whoever runs it
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
    after_help = "Examples:\n  hub-cli plugins approve tagger\n  hub-cli plugins approve plv_01KAJ6Z8QH0000000000000000 --content-hash 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n
Exit codes: 0 approved, 4 no administrator, 5 no such plugin, 6 nothing waits, or another source does, 7 nobody answers.\nSee also: hub-cli plugins pending"
)]
pub struct PluginsApproveArgs {
    /// Names or ids of plugins, or ids of versions
    #[arg(required = true)]
    pub plugins: Vec<String>,
    /// Only if the source has this hash: the one that was looked at
    #[arg(long, value_name = "SHA256")]
    pub content_hash: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Reject versions that wait for a review, or withdraw approved ones
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins reject tagger --reason \"asks for too many hosts\"\n  hub-cli plugins reject plv_01KAJ6Z8QH0000000000000000 --reason \"sends messages elsewhere\"\n
An approved version, named by its id, is withdrawn: it runs nowhere any more.\n
Exit codes: 0 rejected, 4 no administrator, 5 no such plugin, 6 nothing waits, or another source does, 7 nobody answers.\nSee also: hub-cli plugins pending"
)]
pub struct PluginsRejectArgs {
    /// Names or ids of plugins, or ids of versions
    #[arg(required = true)]
    pub plugins: Vec<String>,
    /// What the author is told
    #[arg(long)]
    pub reason: String,
    /// Only if the source has this hash: the one that was looked at
    #[arg(long, value_name = "SHA256")]
    pub content_hash: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Delete a plugin, or withdraw one of its versions
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins delete tagger --yes\n  hub-cli plugins delete plv_01KAJ6Z8QH0000000000000000 --yes\n
A deleted plugin leaves every channel; a version that is withdrawn stays there and runs no more.\n
Exit codes: 0 deleted, 2 not confirmed, 4 not allowed, 5 no such plugin, 6 others have it installed, 7 nobody answers.\nSee also: hub-cli plugins reject"
)]
pub struct PluginsDeleteArgs {
    /// Name or id of a plugin, or id of a version
    pub plugin: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}
