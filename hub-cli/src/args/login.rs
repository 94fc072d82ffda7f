use clap::{Args, Subcommand};
use url::Url;

use super::{Confirm, Ends, Fields, values::http_url};

/// The default server.
pub const DEFAULT_SERVER: &str = "http://localhost:9800";

/// Sign in to a hub
///
/// Prints a link and a code of 8 characters: open the link on a device that is signed in, and enter the code there. On a
/// desktop the link is opened in the browser. For a hub on another machine, a terminal with enough rows shows the link
/// as a QR code too. The hub then issues an API key, which is stored in a file that only you can read. With --json the
/// link and the code are printed on stderr, as `qr_text` and `user_code` of a document.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli login\n  hub-cli login --server https://hub.example --profile work\n  hub-cli login --code\n  pass show hub | hub-cli login --with-token\n\nSee also: hub-cli whoami, hub-cli logout",
    add = Ends(&[(0, "signed in"), (4, "rejected"), (7, "the hub is unreachable"), (8, "timed out without a confirmation")]),
    add = Fields::own(&["profile", "server", "username"])
)]
pub struct LoginArgs {
    /// Address of the hub
    #[arg(long, env = "HUB_SERVER", value_name = "URL", default_value = DEFAULT_SERVER, value_parser = http_url)]
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

/// Sign out of a hub
///
/// The API key that `login` created is revoked on the hub and deleted from this machine. A key given with
/// `--with-token` is only deleted from this machine.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli logout\n  hub-cli logout --profile work\n\nSee also: hub-cli login",
    add = Ends(&[(0, "signed out, even if the hub is unreachable"), (4, "not signed in")]),
    add = Fields::own(&["profile", "server", "username", "key_ended"])
)]
pub struct LogoutArgs {
    #[command(flatten)]
    pub profile: ProfileArgs,
}

/// Show who is signed in
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli whoami\n  hub-cli whoami --profile work --json=username,server\n\nSee also: hub-cli profiles list",
    add = Ends(&[(4, "not signed in or the key is revoked"), (7, "the hub is unreachable")]),
    add = Fields::own(&["profile", "server", "id", "username", "display_name", "role"])
)]
pub struct WhoamiArgs {
    #[command(flatten)]
    pub profile: ProfileArgs,
}

/// One of the hubs that the user is signed in to.
#[derive(Debug, Clone, Args)]
pub struct ProfileArgs {
    /// Name of the profile [default: the active one]
    #[arg(long, env = "HUB_PROFILE", value_name = "NAME", help_heading = "Hub")]
    pub profile: Option<String>,
}

/// Manage the hubs you are signed in to
#[derive(Debug, Subcommand)]
pub enum ProfilesCommand {
    /// List them
    #[command(alias = "ls")]
    #[command(
        after_help = "Examples:\n  hub-cli profiles list\n  hub-cli profiles list --json=name,server\n\nSee also: hub-cli login --profile NAME",
        add = Fields::own(&["name", "server", "username", "current"])
    )]
    List,
    /// Switch to another profile
    #[command(
        after_help = "Examples:\n  hub-cli profiles use work\n  hub-cli profiles use default\n\nSee also: hub-cli profiles list",
        add = Ends(&[(5, "there is no such profile")]),
        add = Fields::own(&["name"])
    )]
    Use {
        /// Its name
        name: String,
    },
    /// Remove a profile
    #[command(alias = "rm")]
    #[command(
        after_help = "Examples:\n  hub-cli profiles delete work --yes\n  hub-cli profiles delete default --dry-run\n\nSee also: hub-cli logout",
        add = Ends(&[(2, "not confirmed"), (5, "there is no such profile")]),
        add = Fields::own(&["name", "deleted"])
    )]
    Delete {
        /// Its name
        name: String,
        #[command(flatten)]
        confirm: Confirm,
    },
}
