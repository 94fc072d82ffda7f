use clap::{Args, Subcommand};

use super::{Fields, HubArgs, ListArgs};

/// Read the audit log
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    #[command(alias = "ls")]
    List(AuditListArgs),
}

/// List the audit log, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli audit list --action user.login_failed\n  hub-cli audit list --actor operator --json=at,action,target_name\n\nSee also: hub-cli users list",
    add = Fields::of("listAudit")
)]
pub struct AuditListArgs {
    /// Only actions of this user, by id, or `operator`
    #[arg(long, value_name = "ID")]
    pub actor: Option<String>,
    /// Only this action, for example user.login
    #[arg(long)]
    pub action: Option<String>,
    /// Only actions on this object, by id
    #[arg(long, value_name = "ID")]
    pub target: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Show statistics of the hub
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli stats\n  hub-cli stats --server https://hub.example.com --json=messages,deliveries\n  hub-cli stats --watch\n\nSee also: hub-cli audit list",
    add = Fields::of("getStats")
)]
pub struct StatsArgs {
    /// Print them again whenever they change, until interrupted
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}
