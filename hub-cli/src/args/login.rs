use clap::{Args, Subcommand};
use url::Url;

use super::Confirm;

/// Where a server is when nobody says it.
pub const DEFAULT_SERVER: &str = "http://localhost:9800";

/// Sign in to a hub
///
/// Prints a link and a code of 8 characters: open the link on a device that is signed in, and enter the code there. On a
/// desktop the link is opened in the browser. For a hub on another machine, a terminal with enough rows shows the link
/// as a QR code too. The hub then issues an API key, which is stored in a file that only you can read. With --json the
/// link and the code are printed on stderr, as `qr_text` and `user_code` of a document.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli login\n  hub-cli login --server https://hub.example --profile work\n  hub-cli login --code\n  pass show hub | hub-cli login --with-token\n
Exit codes: 0 signed in, 4 refused, 7 no hub answers, 8 nobody confirmed in time.\nSee also: hub-cli whoami, hub-cli logout"
)]
pub struct LoginArgs {
    /// Address of the hub
    #[arg(long, env = "HUB_SERVER", value_name = "URL", default_value = DEFAULT_SERVER)]
    pub server: Url,
    /// Read an API key from stdin instead
    #[arg(long, conflicts_with_all = ["qr", "code"])]
    pub with_token: bool,
    /// Draw the QR code in any case
    #[arg(long, conflicts_with = "code")]
    pub qr: bool,
    /// Draw no QR code
    #[arg(long)]
    pub code: bool,
    /// Do not open the link in the browser
    #[arg(long)]
    pub no_open: bool,
    #[command(flatten)]
    pub profile: ProfileArgs,
}

/// Forget how to sign in to a hub
///
/// The API key that signing in made is ended on the hub, and deleted from this machine. A key that you brought along
/// (`--with-token`) is only deleted here.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hub-cli logout\n  hub-cli logout --profile work\n
Exit codes: 0 forgotten, also where the hub does not answer, 4 nobody was signed in.\nSee also: hub-cli login")]
pub struct LogoutArgs {
    #[command(flatten)]
    pub profile: ProfileArgs,
}

/// Show who is signed in
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli whoami\n  hub-cli whoami --profile work --json=username,server\n
Exit codes: 0 shown, 4 nobody is signed in or the key has ended, 7 no hub answers.\nSee also: hub-cli profiles list"
)]
pub struct WhoamiArgs {
    #[command(flatten)]
    pub profile: ProfileArgs,
}

/// Which hub of those the person is signed in to.
#[derive(Debug, Clone, Args)]
pub struct ProfileArgs {
    /// Name of the profile [default: the one in use]
    #[arg(long, env = "HUB_PROFILE", value_name = "NAME", help_heading = "Hub")]
    pub profile: Option<String>,
}

/// The hubs you are signed in to
#[derive(Debug, Subcommand)]
pub enum ProfilesCommand {
    /// List them
    #[command(alias = "ls")]
    #[command(after_help = "Examples:\n  hub-cli profiles list\n  hub-cli profiles list --json=name,server\n
Exit codes: 0 listed.\nSee also: hub-cli login --profile NAME")]
    List,
    /// Use another one from now on
    #[command(after_help = "Examples:\n  hub-cli profiles use work\n  hub-cli profiles use default\n
Exit codes: 0 done, 5 there is no such profile.\nSee also: hub-cli profiles list")]
    Use {
        /// Its name
        name: String,
    },
    /// Forget one
    #[command(alias = "rm")]
    #[command(
        after_help = "Examples:\n  hub-cli profiles delete work --yes\n  hub-cli profiles delete default --dry-run\n
Exit codes: 0 done, 2 not confirmed, 5 there is no such profile.\nSee also: hub-cli logout"
    )]
    Delete {
        /// Its name
        name: String,
        #[command(flatten)]
        confirm: Confirm,
    },
}
