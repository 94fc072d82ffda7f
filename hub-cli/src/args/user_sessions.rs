use clap::{Args, Subcommand};
use hub_core::id::SessionId;

use super::{Confirm, Ends, Fields, HubArgs, ListArgs};

/// List and end the sessions of a user
#[derive(Debug, Subcommand)]
pub enum UserSessionsCommand {
    #[command(alias = "ls")]
    List(UserSessionsListArgs),
    #[command(alias = "rm")]
    Revoke(UserSessionsRevokeArgs),
}

/// List the sessions of a user, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users sessions list ada\n  hub-cli users sessions list ada --json=id,ip,last_seen_at\n\nSee also: hub-cli users sessions revoke",
    add = Fields::of("listUserSessions")
)]
pub struct UserSessionsListArgs {
    /// Id or name of the user
    pub user: String,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Sign a user out
///
/// Ends all sessions, or one of them. It takes up to a second to reach every node. API keys stay valid: `users
/// disable` rejects those too.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users sessions revoke ada --yes\n  hub-cli users sessions revoke ada --session ses_01KAJ6Z8QH0000000000000000 --dry-run\n\nSee also: hub-cli users sessions list",
    add = Ends(&[(0, "ended")]),
    add = Fields::own(&["user", "ended"])
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
