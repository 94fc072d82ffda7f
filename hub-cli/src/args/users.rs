use clap::{Args, Subcommand};

use super::LocalArgs;

/// Manage people
#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    /// Make an administrator
    CreateAdmin(CreateAdminArgs),
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
