use std::net::SocketAddr;

use clap::{Args, Subcommand};
use url::Url;

use super::LocalArgs;

/// Use the simulated chat network
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Write to a bot as a person of the simulated network
    Say(SimSayArgs),
    /// Run a simulated network of its own
    #[command(after_help = "Examples:\n  hub-cli sim serve\n  hub-cli sim serve --listen 127.0.0.1:9901\n
Exit codes: 0 stopped by a signal, 2 the address is taken.\nSee also: HUB_SIM_URL in `hub-cli help env`")]
    Serve {
        /// Address of the protocol and of its control API; it has no password
        #[arg(long, env = "HUB_SIM_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:9801")]
        listen: SocketAddr,
    },
    /// Run a hub in this process to develop an app against
    App(SimAppArgs),
    /// Make a running simulator forget everything
    #[command(
        after_help = "Examples:\n  hub-cli sim reset\n  hub-cli sim reset --sim http://127.0.0.1:9901\n
The simulator of hub-server keeps the hub's bots: they are logged in again at once, with new accounts.
The bots of a hub that uses a simulator in another process need a new login.
Exit codes: 0 done, 7 no simulator answers.\nSee also: hub-cli sim serve"
    )]
    Reset {
        #[command(flatten)]
        target: SimTarget,
    },
}

/// Run a hub in this process to develop an app against
///
/// A whole hub on the simulated network, with one bot and one app on it, in a folder that is removed at the end. The
/// bot API, its WebSockets and the hub's own API are the server's; POST `/mock/event` writes to the bot, GET
/// `/mock/messages` shows what the app sent, GET and PUT `/mock/config` what it is, POST `/mock/reset` starts over.
/// The app may listen anywhere on this machine.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli sim app --webhook-url http://localhost:8080/webhook --command weather\n  hub-cli sim app --listen 127.0.0.1:9901 --app-slug my-app --json\n
Exit codes: 0 stopped by a signal, 2 the address is taken, or the app is not acceptable.\nSee also: hub-cli sim serve, hub-cli apps create"
)]
pub struct SimAppArgs {
    /// Address of everything; the calls under /mock have no password
    #[arg(long, env = "HUB_SIM_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:9801")]
    pub listen: SocketAddr,
    /// Where the app's events go; without one it uses the WebSocket, or says it by PUT /mock/config
    #[arg(long, value_name = "URL")]
    pub webhook_url: Option<Url>,
    /// Short name of the app, by which people call it [default: test-app]
    #[arg(long, value_name = "SLUG")]
    pub app_slug: Option<String>,
    /// A command of the app; may be repeated
    #[arg(long, value_name = "NAME")]
    pub command: Vec<String>,
}

/// Which simulator.
#[derive(Debug, Clone, Args)]
pub struct SimTarget {
    /// Address of a running simulator
    #[arg(long, env = "HUB_SIM_URL", value_name = "URL", default_value = "http://127.0.0.1:9801")]
    pub sim: Url,
}

/// Write to a bot as a person of the simulated network
///
/// The simulator of a running hub-server takes the message, and the hub receives it like any other.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli sim say \"order 42\" --as Ada\n  hub-cli sim say hello --as bob@im.wechat --bot demo\n
Exit codes: 0 taken, 2 several bots and none named, 5 no such bot, 7 no simulator answers.\nSee also: hub-cli traces list --bot demo"
)]
pub struct SimSayArgs {
    /// What to write; - reads stdin
    pub text: String,
    /// Who writes: a name (Ada is ada@im.wechat) or an id; the bot's owner when left out
    #[arg(long = "as", value_name = "PERSON")]
    pub person: Option<String>,
    /// To whom: id on the network, or id or name in the hub [default: the only one, or `demo`]
    #[arg(long, value_name = "BOT")]
    pub bot: Option<String>,
    #[command(flatten)]
    pub target: SimTarget,
    #[command(flatten)]
    pub local: LocalArgs,
}
