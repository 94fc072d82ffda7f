use clap::{Args, Subcommand};
use hub_core::id::SessionId;

use super::{Confirm, HubArgs, PageArgs};

/// See and end a user's sessions
#[derive(Debug, Subcommand)]
pub enum UserSessionsCommand {
    /// Where a user is signed in, newest first
    #[command(alias = "ls")]
    List(UserSessionsListArgs),
    /// Sign a user out
    #[command(alias = "rm")]
    Revoke(UserSessionsRevokeArgs),
}

/// Where a user is signed in, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users sessions list ada\n  hub-cli users sessions list ada --json=id,ip,last_seen_at\n
Exit codes: 0 listed, 4 not signed in or no administrator, 5 no such user, 7 nobody answers.\nSee also: hub-cli users sessions revoke"
)]
pub struct UserSessionsListArgs {
    /// Id or name of the user
    pub user: String,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Sign a user out
///
/// Of everything, or of one session. It takes a second to reach every node. API keys live on: `users disable` ends
/// those too.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users sessions revoke ada --yes\n  hub-cli users sessions revoke ada --session ses_01KAJ6Z8QH0000000000000000 --dry-run\n
Exit codes: 0 ended, 2 not confirmed, 4 not signed in or no administrator, 5 no such user or session, 7 nobody answers.\nSee also: hub-cli users sessions list"
)]
pub struct UserSessionsRevokeArgs {
    /// Id or name of the user
    pub user: String,
    /// Only this session
    #[arg(long, value_name = "ID")]
    pub session: Option<SessionId>,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}
