use clap::Args;

use crate::exit;

/// Explain a command or a topic: exit-codes, env
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hub-cli help exit-codes\n  hub-cli help sim say")]
pub struct HelpArgs {
    /// A topic, or the words of a command
    pub topic: Vec<String>,
}

/// Topics and their texts.
pub const TOPICS: [(&str, &str); 2] = [("exit-codes", exit::TABLE), ("env", ENV)];

const ENV: &str = "\
HUB_DATA_DIR          folder of the hub's database and key; the server reads it too
HUB_DATABASE_URL      database in place of the folder's: sqlite://PATH or postgres://…
HUB_SECRET_KEY        key that seals secrets, as 64 hex digits or base64
HUB_SECRET_KEY_FILE   file with that key [default: secret.key in the folder]
HUB_DATABASE_URL_FILE file with that URL, which may hold a password
HUB_CONFIG            configuration file of the server [default: hub.toml here or in /etc/hub]
HUB_SERVER            address of a hub server to ask, in place of a data folder
HUB_TOKEN             API key for that server [default: that of the profile that is signed in there]
HUB_PROFILE           profile to use, as `profiles list` shows them [default: the one in use]
HUB_PUBLIC_URL        where people reach the hub, for links made on its files; as for the server
HUB_WEBHOOK_SECRET    secret of signatures, for listen, signature and replay
HUB_EGRESS_ALLOW      private targets that the hub may call, as for the server
HUB_SIM_URL           address of a running simulator [default: http://127.0.0.1:9801]
HUB_SIM_LISTEN        address of `sim serve` and `sim app` [default: 127.0.0.1:9801]
NO_COLOR              no colour, when set to anything
CLICOLOR_FORCE        colour also without a terminal, when set to anything
COLUMNS               width of the output, 40 to 500

Flags win over variables, variables over hub.toml. Commands that work on the hub's files read its settings where the
server does (hub-cli config list --origin); in a hub.toml that HUB_CONFIG does not name they accept no secret.
";
