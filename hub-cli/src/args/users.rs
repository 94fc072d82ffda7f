use clap::{Args, Subcommand};
use hub_core::{access::Role, accounts::UserStatus};

use super::{Confirm, Ends, Fields, HubArgs, ListArgs, LocalArgs, UserSessionsCommand, closed};

/// Manage users
#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    #[command(alias = "ls")]
    List(UsersListArgs),
    Show(UsersShowArgs),
    Create(UsersCreateArgs),
    Edit(UsersEditArgs),
    /// Disable a user: sessions end, keys are rejected, bots stop
    #[command(
        after_help = "Examples:\n  hub-cli users disable ada\n  hub-cli users disable usr_01KAJ6Z8QH0000000000000000\n\nSee also: hub-cli users list",
        add = Ends(&[(6, "the last administrator")]),
        add = Fields::of("updateUser")
    )]
    Disable(UsersShowArgs),
    /// Enable a user again
    #[command(
        after_help = "Examples:\n  hub-cli users enable ada\n  hub-cli users enable usr_01KAJ6Z8QH0000000000000000\n\nSee also: hub-cli users list",
        add = Fields::of("updateUser")
    )]
    Enable(UsersShowArgs),
    #[command(alias = "rm")]
    Delete(UsersDeleteArgs),
    #[command(subcommand, alias = "session")]
    Sessions(UserSessionsCommand),
    Invite(InviteArgs),
    ResetLink(ResetLinkArgs),
    CreateAdmin(CreateAdminArgs),
}

/// List the users, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users list --role admin\n  hub-cli users list --q ada --json=id,username,status\n\nSee also: hub-cli users show",
    add = Fields::of("listUsers")
)]
pub struct UsersListArgs {
    /// Only with this role
    #[arg(long, value_parser = closed([Role::Admin, Role::Member], Role::as_str))]
    pub role: Option<Role>,
    /// Only in this status
    #[arg(long, value_parser = closed([UserStatus::Active, UserStatus::Disabled], UserStatus::as_str))]
    pub status: Option<UserStatus>,
    /// Only those whose username or name has this text
    #[arg(long, value_name = "TEXT")]
    pub q: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Show a user
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users show ada\n  hub-cli users show ada --json=id,bots,last_seen_at\n\nSee also: hub-cli users list",
    add = Fields::of("getUser")
)]
pub struct UsersShowArgs {
    /// Id or name of the user
    pub user: String,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Create an account for another person
///
/// Prints a link with which they set their password. With --local it works whatever the registration mode of the hub
/// is; on a server it uses an invitation, so registration must not be closed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users create bob\n  hub-cli users create bob --role admin --server https://hub.example.com --json=id,reset_link\n\nSee also: hub-cli users invite, hub-cli users reset-link",
    add = Ends(&[(2, "invalid name"), (6, "the name is taken, or registration is closed")]),
    add = Fields::of("getUser").and(&["reset_link", "expires_at"])
)]
pub struct UsersCreateArgs {
    /// 2 to 32 of a-z, 0-9, _ and -
    pub username: String,
    /// Role
    #[arg(long, default_value = "member", value_parser = closed([Role::Admin, Role::Member], Role::as_str))]
    pub role: Role,
    /// Display name, 1 to 64 characters
    #[arg(long, value_name = "NAME")]
    pub display_name: Option<String>,
    /// Also draw the link as a QR code
    #[arg(long)]
    pub qr: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Change a user's role, status or name
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users edit ada --role admin\n  hub-cli users edit ada --status disabled --display-name \"Ada L.\"\n\nSee also: hub-cli users disable",
    add = Ends(&[(2, "nothing to change, or invalid value"), (6, "the last administrator")]),
    add = Fields::of("updateUser")
)]
pub struct UsersEditArgs {
    /// Id or name of the user
    pub user: String,
    /// New role
    #[arg(long, value_parser = closed([Role::Admin, Role::Member], Role::as_str))]
    pub role: Option<Role>,
    /// New status
    #[arg(long, value_parser = closed([UserStatus::Active, UserStatus::Disabled], UserStatus::as_str))]
    pub status: Option<UserStatus>,
    /// New display name, 1 to 64 characters
    #[arg(long, value_name = "NAME")]
    pub display_name: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Delete a user with all their data
///
/// Sessions and keys are revoked, and bots are deleted with their channels, messages and traces. This cannot be
/// undone.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users delete ada --dry-run\n  hub-cli users delete ada --yes\n\nSee also: hub-cli users disable",
    add = Ends(&[(6, "the last administrator")]),
    add = Fields::own(&["id", "username", "deleted"])
)]
pub struct UsersDeleteArgs {
    /// Id or name of the user
    pub user: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Create an invitation to register
///
/// It can be used once, on a hub whose registration mode is `invite`. It is shown only here, once.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users invite\n  hub-cli users invite --days 14 --server https://hub.example.com\n\nSee also: hub-cli users list",
    add = Ends(&[(0, "created"), (2, "invalid number of days"), (6, "registration is closed")]),
    add = Fields::of("createInvite")
)]
pub struct InviteArgs {
    /// Validity in days, 1 to 90
    #[arg(long, default_value_t = 7)]
    pub days: u32,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Create a password reset link for a user
///
/// The link can be used once, within an hour; a newer link replaces it. Setting the password ends the user's
/// sessions. The link is shown only here, once. With --local, the link leads to `HUB_PUBLIC_URL`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users reset-link ada\n  hub-cli users reset-link ada --qr --server https://hub.example.com\n\nSee also: hub-cli users sessions revoke",
    add = Ends(&[(0, "created"), (4, "not an administrator, or your own account")]),
    add = Fields::of("createResetLink")
)]
pub struct ResetLinkArgs {
    /// Id or name of the user
    pub user: String,
    /// Also draw the link as a QR code
    #[arg(long)]
    pub qr: bool,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Create an administrator
///
/// This needs write access to the hub's files, and works whatever the registration mode is. The first administrator
/// gets the demo bot.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli users create-admin ada --password-file ./password\n  pwgen 20 1 | hub-cli users create-admin ada --password-file -\n\nSee also: hub-cli help env",
    add = Ends(&[(0, "created"), (2, "invalid name or password"), (6, "the name is taken or the file is unreadable")]),
    add = Fields::own(&["id", "username", "display_name", "role", "created_at"])
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
