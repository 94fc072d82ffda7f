use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::LocalArgs;

/// Write, check and review plugins
#[derive(Debug, Subcommand)]
pub enum PluginsCommand {
    /// Start a plugin: a template, its types for an editor, a test case
    New(PluginsNewArgs),
    /// Check sources without running them
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
    /// Approve versions that wait for a review
    Approve(PluginsApproveArgs),
    /// Reject versions that wait for a review, or withdraw approved ones
    Reject(PluginsRejectArgs),
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
    after_help = "Examples:\n  hub-cli plugins lint tagger.js\n  hub-cli plugins lint tagger.js bridge.js --json\n
Exit codes: 0 nothing wrong, 6 something is.\nSee also: hub-cli plugins test"
)]
pub struct PluginsLintArgs {
    /// Sources
    #[arg(required = true)]
    pub files: Vec<String>,
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
    after_help = "Examples:\n  hub-cli plugins submit tagger.js --author ada\n  hub-cli plugins submit - --author ada --json=id,version_id\n
Exit codes: 0 submitted, 2 something is wrong with the source, 5 no such user, 6 the name is somebody else's.\nSee also: hub-cli plugins lint"
)]
pub struct PluginsSubmitArgs {
    /// Source; - reads stdin
    pub file: String,
    /// User name of the author
    #[arg(long)]
    pub author: String,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// The marketplace, or what waits for a review
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins list\n  hub-cli plugins list --status pending --json=id,name,content_hash\n
Exit codes: 0 listed, 5 no such hub or user.\nSee also: hub-cli plugins show"
)]
pub struct PluginsListArgs {
    /// Which: what may be installed, or what waits
    #[arg(long, default_value = "approved")]
    pub status: PluginStatusArg,
    /// All plugins of this user instead
    #[arg(long, conflicts_with = "status")]
    pub author: Option<String>,
    /// At most so many, 1 to 200
    #[arg(long, default_value_t = 50)]
    pub limit: u32,
    /// Go on from here, as an earlier page said
    #[arg(long)]
    pub cursor: Option<String>,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// What waits for a review
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hub-cli plugins pending\n  hub-cli plugins pending --json=id,diff\n
Exit codes: 0 listed, 5 no such hub.\nSee also: hub-cli plugins show, hub-cli plugins approve")]
pub struct PluginsPendingArgs {
    /// At most so many, 1 to 20
    #[arg(long, default_value_t = 20)]
    pub limit: u32,
    /// Go on from here, as an earlier page said
    #[arg(long)]
    pub cursor: Option<String>,
    #[command(flatten)]
    pub local: LocalArgs,
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
Exit codes: 0 shown, 2 no such range, 5 no such plugin or version.\nSee also: hub-cli plugins approve"
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
    pub local: LocalArgs,
}

/// Approve versions that wait for a review
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins approve tagger\n  hub-cli plugins approve plv_01KAJ6Z8QH0000000000000000 --content-hash 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n
Exit codes: 0 approved, 5 no such plugin, 6 nothing waits, or another source does.\nSee also: hub-cli plugins pending"
)]
pub struct PluginsApproveArgs {
    /// Names or ids of plugins, or ids of versions
    #[arg(required = true)]
    pub plugins: Vec<String>,
    /// Only if the source has this hash: the one that was looked at
    #[arg(long, value_name = "SHA256")]
    pub content_hash: Option<String>,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Reject versions that wait for a review, or withdraw approved ones
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins reject tagger --reason \"asks for too many hosts\"\n  hub-cli plugins reject plv_01KAJ6Z8QH0000000000000000 --reason \"sends messages elsewhere\"\n
An approved version, named by its id, is withdrawn: it runs nowhere any more.\n
Exit codes: 0 rejected, 5 no such plugin, 6 nothing waits, or another source does.\nSee also: hub-cli plugins pending"
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
    pub local: LocalArgs,
}

/// Delete a plugin, or withdraw one of its versions
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli plugins delete tagger --yes\n  hub-cli plugins delete plv_01KAJ6Z8QH0000000000000000 --yes\n
A deleted plugin leaves every channel; a version that is withdrawn stays there and runs no more.\n
Exit codes: 0 deleted, 2 --yes is missing, 5 no such plugin.\nSee also: hub-cli plugins reject"
)]
pub struct PluginsDeleteArgs {
    /// Name or id of a plugin, or id of a version
    pub plugin: String,
    /// Really
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub local: LocalArgs,
}
