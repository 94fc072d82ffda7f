use clap::{Args, Subcommand};

use super::{HubArgs, PageArgs};

/// Read what administrators and holders of credentials did
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// The audit log, newest first
    #[command(alias = "ls")]
    List(AuditListArgs),
}

/// The audit log, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli audit list --action user.login_failed\n  hub-cli audit list --actor operator --json=at,action,target_name\n
Exit codes: 0 listed, 4 not signed in or no administrator, 5 no such hub, 7 nobody answers.\nSee also: hub-cli users list"
)]
pub struct AuditListArgs {
    /// Only what this user did, by id, or `operator`
    #[arg(long, value_name = "ID")]
    pub actor: Option<String>,
    /// Only this, for example user.login
    #[arg(long)]
    pub action: Option<String>,
    /// Only what was done to this, by id
    #[arg(long, value_name = "ID")]
    pub target: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Count what the hub has and does
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli stats\n  hub-cli stats --server https://hub.example.com --json=messages,deliveries\n  hub-cli stats --watch\n
Exit codes: 0 shown, 4 not signed in or no administrator, 5 no such hub, 7 nobody answers, 130 interrupted (--watch).\nSee also: hub-cli audit list"
)]
pub struct StatsArgs {
    /// Show them again whenever they change, until interrupted
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}
