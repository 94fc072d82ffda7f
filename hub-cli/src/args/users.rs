use clap::{Args, Subcommand, ValueEnum};
use hub_core::{access::Role, accounts::UserStatus};

use super::{Confirm, HubArgs, LocalArgs, UserSessionsCommand};

/// Manage people
#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    /// Everybody who has an account, newest first
    #[command(alias = "ls")]
    List(UsersListArgs),
    /// One user
    Show(UsersShowArgs),
    /// Make an account for somebody
    Create(UsersCreateArgs),
    /// Change a user's role, status or name
    Edit(UsersEditArgs),
    /// Switch a user off: sessions end, keys open nothing, bots rest
    #[command(
        after_help = "Examples:\n  hub-cli users disable ada\n  hub-cli users disable usr_01KAJ6Z8QH0000000000000000\n
Exit codes: 0 done, 4 not signed in or no administrator, 5 no such user, 6 the last administrator, 7 nobody answers.\nSee also: hub-cli users list"
    )]
    Disable(UsersShowArgs),
    /// Switch a user on again
    #[command(
        after_help = "Examples:\n  hub-cli users enable ada\n  hub-cli users enable usr_01KAJ6Z8QH0000000000000000\n
Exit codes: 0 done, 4 not signed in or no administrator, 5 no such user, 6 the last administrator, 7 nobody answers.\nSee also: hub-cli users list"
    )]
    Enable(UsersShowArgs),
    /// Delete a user with everything of theirs
    #[command(alias = "rm")]
    Delete(UsersDeleteArgs),
    /// See and end a user's sessions
    #[command(subcommand, alias = "session")]
    Sessions(UserSessionsCommand),
    /// Make an invitation to register
    Invite(InviteArgs),
    /// Make a link with which a user sets a new password
    ResetLink(ResetLinkArgs),
    /// Make an administrator
    CreateAdmin(CreateAdminArgs),
}

/// Everybody who has an account, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users list --role admin\n  hub-cli users list --q ada --json=id,username,status\n
Exit codes: 0 listed, 4 not signed in or no administrator, 5 no such hub, 7 nobody answers.\nSee also: hub-cli users show"
)]
pub struct UsersListArgs {
    /// Only with this role
    #[arg(long)]
    pub role: Option<RoleArg>,
    /// Only in this status
    #[arg(long)]
    pub status: Option<UserStatusArg>,
    /// Only those whose username or name has this text
    #[arg(long, value_name = "TEXT")]
    pub q: Option<String>,
    #[command(flatten)]
    pub page: super::PageArgs,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// One user
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users show ada\n  hub-cli users show ada --json=id,bots,last_seen_at\n
Exit codes: 0 done, 4 not signed in or no administrator, 5 no such user, 6 the last administrator, 7 nobody answers.\nSee also: hub-cli users list"
)]
pub struct UsersShowArgs {
    /// Id or name of the user
    pub user: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Make an account for somebody
///
/// Prints a link with which they set their password: nobody sets it for them. On the files of a hub, whatever it says about
/// registering; on a server by an invitation that is used at once, so not where registration is closed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users create bob\n  hub-cli users create bob --role admin --server https://hub.example.com --json=id,reset_link\n
Exit codes: 0 made, 2 the name is not acceptable, 4 no administrator, 5 no such hub, 6 the name is taken, or registration is closed, 7 nobody answers.\nSee also: hub-cli users invite, hub-cli users reset-link"
)]
pub struct UsersCreateArgs {
    /// 2 to 32 of a-z, 0-9, _ and -
    pub username: String,
    /// What they may do
    #[arg(long, default_value = "member")]
    pub role: RoleArg,
    /// Name to show, 1 to 64 characters
    #[arg(long, value_name = "NAME")]
    pub display_name: Option<String>,
    /// Draw the link as a QR code too
    #[arg(long)]
    pub qr: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Change a user's role, status or name
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users edit ada --role admin\n  hub-cli users edit ada --status disabled --display-name \"Ada L.\"\n
Exit codes: 0 changed, 2 nothing to change or a bad value, 4 no administrator, 5 no such user, 6 the last administrator, 7 nobody answers.\nSee also: hub-cli users disable"
)]
pub struct UsersEditArgs {
    /// Id or name of the user
    pub user: String,
    /// Another role
    #[arg(long)]
    pub role: Option<RoleArg>,
    /// Another status
    #[arg(long)]
    pub status: Option<UserStatusArg>,
    /// Another name to show, 1 to 64 characters
    #[arg(long, value_name = "NAME")]
    pub display_name: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Delete a user with everything of theirs
///
/// Sessions and keys end, bots stop and are gone with their channels, messages and traces. There is no way back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hub-cli users delete ada --dry-run\n  hub-cli users delete ada --yes\n
Exit codes: 0 deleted, 2 without --yes, 4 no administrator, 5 no such user, 6 the last administrator, 7 nobody answers.\nSee also: hub-cli users disable")]
pub struct UsersDeleteArgs {
    /// Id or name of the user
    pub user: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Make an invitation to register
///
/// It lets one person register, once, on a hub whose registration is `invite`. This is its only sight.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users invite\n  hub-cli users invite --days 14 --server https://hub.example.com\n
Exit codes: 0 made, 2 a bad number of days, 4 no administrator, 6 registration is closed, 7 nobody answers.\nSee also: hub-cli users list"
)]
pub struct InviteArgs {
    /// After how many days it ends, 1 to 90
    #[arg(long, default_value_t = 7)]
    pub days: u32,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Make a link with which a user sets a new password
///
/// It works once, for an hour; a later one ends it. Whoever opens it chooses the password themselves: nobody sets it
/// for them. Their sessions end with that. This is its only sight. On the files of a hub, the link leads to
/// `HUB_PUBLIC_URL`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users reset-link ada\n  hub-cli users reset-link ada --qr --server https://hub.example.com\n
Exit codes: 0 made, 4 no administrator, or your own account, 5 no such user, 7 nobody answers.\nSee also: hub-cli users sessions revoke"
)]
pub struct ResetLinkArgs {
    /// Id or name of the user
    pub user: String,
    /// Draw the link as a QR code too
    #[arg(long)]
    pub qr: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Make an administrator
///
/// Who may write to the hub's files may do this, whatever the hub says about registering. The first
/// administrator gets the demo bot.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users create-admin ada --password-file ./password\n  pwgen 20 1 | hub-cli users create-admin ada --password-file -\n
Exit codes: 0 made, 2 the name or the password is not acceptable, 6 the name is taken or the file is unreadable.\nSee also: hub-cli help env"
)]
pub struct CreateAdminArgs {
    /// 2 to 32 of a-z, 0-9, _ and -
    pub username: String,
    /// File whose first line is the password; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub password_file: String,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Roles of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleArg {
    /// May administer the hub
    Admin,
    /// May use it
    Member,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Admin => Self::Admin,
            RoleArg::Member => Self::Member,
        }
    }
}

/// States of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UserStatusArg {
    /// May sign in
    Active,
    /// May not
    Disabled,
}

impl From<UserStatusArg> for UserStatus {
    fn from(status: UserStatusArg) -> Self {
        match status {
            UserStatusArg::Active => Self::Active,
            UserStatusArg::Disabled => Self::Disabled,
        }
    }
}
