use std::{net::SocketAddr, time::Duration};

use clap::{Args, Subcommand};
use url::Url;

use super::{Ends, Fields, LocalArgs, values::http_url};

/// Use the simulated chat network
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    Say(SimSayArgs),
    Script(SimScriptArgs),
    /// List the bots of the simulated network
    #[command(
        after_help = "Examples:\n  hub-cli sim accounts\n  hub-cli sim accounts --json=wx_id,expired\n\nSee also: hub-cli sim say --bot",
        add = Fields::own(&["wx_id", "owner_user_id", "started", "expired", "pollers", "pending"])
    )]
    Accounts {
        #[command(flatten)]
        target: SimTarget,
    },
    /// List the contacts of a bot of the simulated network
    #[command(
        after_help = "Examples:\n  hub-cli sim contacts\n  hub-cli sim contacts --bot demo --json=user_id,sends_left\n\nSee also: hub-cli sim say --as, hub-cli bots contacts",
        add = Fields::own(&["wx_id", "user_id", "owner", "last_message_at", "sends_left"])
    )]
    Contacts(SimBot),
    Scan(SimScanArgs),
    Outage(SimOutageArgs),
    /// Expire a bot's login
    #[command(
        after_help = "Examples:\n  hub-cli sim expire-session\n  hub-cli sim expire-session --bot demo\n\nSee also: hub-cli bots status --watch, hub-cli bots bind",
        add = Fields::own(&["wx_id"])
    )]
    ExpireSession(SimBot),
    #[command(subcommand)]
    Receiver(ReceiverCommand),
    /// Run a separate simulated network
    #[command(
        after_help = "Examples:\n  hub-cli sim serve\n  hub-cli sim serve --listen 127.0.0.1:9901\n\nSee also: HUB_SIM_URL in `hub-cli help env`",
        add = Ends(&[(0, "stopped by a signal"), (2, "the address is in use")]),
        add = Fields::own(&[])
    )]
    Serve {
        /// Address of the protocol and of its control API, which needs no authentication
        #[arg(long, env = "HUB_SIM_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:9801")]
        listen: SocketAddr,
    },
    App(SimAppArgs),
    /// Reset a running simulator
    #[command(
        after_help = "Examples:\n  hub-cli sim reset\n  hub-cli sim reset --sim http://127.0.0.1:9901\n
In the simulator of hub-server the hub's bots are kept, and logged in again immediately with new accounts.
The bots of a hub that uses a simulator in another process need a new login.\nSee also: hub-cli sim serve",
        add = Fields::own(&["sim"])
    )]
    Reset {
        #[command(flatten)]
        target: SimTarget,
    },
}

/// Run a hub in this process for the development of an app
///
/// A complete hub on the simulated network, with one bot and one installed app, in a folder that is removed at the
/// end. It serves the same APIs and WebSockets as hub-server. POST `/mock/event` sends a message to the bot, GET
/// `/mock/messages` lists what the app sent, GET and PUT `/mock/config` read and change the app's settings, POST
/// `/mock/reset` starts over. The app may listen on any address of this machine.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli sim app --webhook-url http://localhost:8080/webhook --command weather\n  hub-cli sim app --listen 127.0.0.1:9901 --app-slug my-app --json\n  hub-cli sim app --app-token test-runner-token --bot-id mock-bot --app-slug runner\n\nSee also: hub-cli sim serve, hub-cli apps create",
    add = Ends(&[(0, "stopped by a signal"), (2, "the address is in use, or the app is invalid")]),
    add = Fields::own(&["hub_url", "bot_id", "hub_bot_id", "app_id", "inst_id", "installation_id", "app_token", "app_slug", "handle", "webhook_secret", "webhook_url", "webhook_verified", "redirect_uris", "setup_url", "events", "scopes", "tools"])
)]
pub struct SimAppArgs {
    /// Address of all APIs; the calls under /mock need no authentication [default: 127.0.0.1:9801, or a free port if
    /// that is taken]
    #[arg(long, env = "HUB_SIM_LISTEN", value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// URL for the app's events; without one it uses the WebSocket, or sets a URL by PUT /mock/config
    #[arg(long, value_name = "URL", value_parser = http_url)]
    pub webhook_url: Option<Url>,
    /// Short name and handle of the app [default: test-app]
    #[arg(long, value_name = "SLUG")]
    pub app_slug: Option<String>,
    /// Token that the app uses, for suites that bring their own [default: a new one]
    #[arg(long, value_name = "TOKEN", value_parser = plain_word)]
    pub app_token: Option<String>,
    /// Bot id that /mock/config reports, and name of the bot; the hub's own id is in `hub_bot_id`
    #[arg(long, value_name = "ID", value_parser = plain_word)]
    pub bot_id: Option<String>,
    /// A command of the app; may be repeated
    #[arg(long, value_name = "NAME")]
    pub command: Vec<String>,
}

/// A value that needs no quoting in a shell, a header or a query.
fn plain_word(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text.len() {
        1..=64 if text.chars().all(is_plain) => Ok(text.to_owned()),
        _ => Err("use 1 to 64 of a-z, A-Z, 0-9, -, _ and .".to_owned()),
    }
}

/// The simulator.
#[derive(Debug, Clone, Args)]
pub struct SimTarget {
    /// Address of a running simulator
    #[arg(long, env = "HUB_SIM_URL", value_name = "URL", default_value = "http://127.0.0.1:9801", value_parser = http_url)]
    pub sim: Url,
}

/// Send a message to a bot as a user of the simulated network
///
/// The simulator of a running hub-server takes the message, and the hub receives it like any other. Prints the
/// replies that the sender receives, and the traces of the message in the hub on this machine.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli sim say \"order 42\" --as Ada\n  hub-cli sim say hello --as bob@im.wechat --bot demo\n\nSee also: hub-cli traces list --bot demo",
    add = Ends(&[(0, "received")]),
    add = Fields::own(&["wx_id", "from_user_id", "message_ids", "replies", "trace_ids"])
)]
pub struct SimSayArgs {
    /// Text to send; - reads stdin
    pub text: String,
    /// Sender: a name (Ada is ada@im.wechat) or an id [default: the bot's owner]
    #[arg(long = "as", value_name = "PERSON")]
    pub person: Option<String>,
    /// How long to wait for a reply; 0s returns at once
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = super::duration)]
    pub wait: Duration,
    #[command(flatten)]
    pub bot: SimBot,
}

/// A bot of a simulator.
#[derive(Debug, Clone, Args)]
pub struct SimBot {
    /// The bot: id on the network, or id or name in the hub [default: the only one, or `demo`]
    #[arg(long, value_name = "BOT")]
    pub bot: Option<String>,
    #[command(flatten)]
    pub target: SimTarget,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Run a script of messages and faults
///
/// TOML with `[[step]]` tables. Each has one of `say` (with `as`), `wait`, `outage` (both like "2s"), `expire =
/// true` and `receiver` (answer, fail, hang, cut; with `times`). The file is validated before the first step runs.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli sim script morning.toml\n  hub-cli sim script - --bot demo --json\n
A file:\n
    [[step]]\n    say = \"order 42\"\n    as = \"Ada\"\n
    [[step]]\n    receiver = \"fail\"\n    times = 2\n
    [[step]]\n    outage = \"5s\"\n\nSee also: hub-cli sim say, hub-cli tail",
    add = Ends(&[(0, "completed"), (6, "the file is invalid"), (130, "interrupted")]),
    add = Fields::own(&["step", "did", "detail"])
)]
pub struct SimScriptArgs {
    /// The file; - reads stdin
    pub file: String,
    #[command(flatten)]
    pub bot: SimBot,
}

/// Scan a code as a phone would, and confirm it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli sim scan \"http://sim.local/q/0123\"\n  hub-cli sim scan \"http://sim.local/q/0123\" --as Ada --json=wx_id\n\nSee also: hub-cli bots bind --network sim",
    add = Ends(&[(5, "no such code"), (6, "the code expired")]),
    add = Fields::own(&["status", "wx_id", "owner_user_id"])
)]
pub struct SimScanArgs {
    /// The link in the code, as printed by `bots bind`
    pub link: String,
    /// Account to bind: a name (Ada is ada@im.wechat) or an id [default: a new one]
    #[arg(long = "as", value_name = "PERSON")]
    pub person: Option<String>,
    /// Only scan, without confirming
    #[arg(long, conflicts_with = "person")]
    pub no_confirm: bool,
    #[command(flatten)]
    pub target: SimTarget,
}

/// Make the network unreachable for a while
///
/// The network is reachable again afterwards, also when this is interrupted.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli sim outage 30s\n  hub-cli sim outage 2m --bot demo\n\nSee also: hub-cli bots status --watch",
    add = Ends(&[(0, "completed"), (2, "invalid value"), (130, "interrupted")]),
    add = Fields::own(&["seconds", "wx_id"])
)]
pub struct SimOutageArgs {
    /// How long: 30s, 2m
    #[arg(value_name = "TIME", value_parser = super::duration)]
    pub time: Duration,
    /// Only for this bot: id on the network, or id or name in the hub
    #[arg(long, value_name = "BOT")]
    pub bot: Option<String>,
    #[command(flatten)]
    pub target: SimTarget,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Inspect and control the receiver of the demo's webhook
#[derive(Debug, Subcommand)]
pub enum ReceiverCommand {
    /// List the received requests, oldest first
    #[command(
        after_help = "Examples:\n  hub-cli sim receiver show\n  hub-cli sim receiver show --json=content,verified\n\nSee also: hub-cli sim receiver fail",
        add = Fields::own(&["at", "webhook_id", "attempt", "content", "verified", "reason", "behaviour", "reply"])
    )]
    Show {
        #[command(flatten)]
        target: SimTarget,
    },
    /// Check the signature and answer: the initial behaviour
    #[command(
        after_help = "Examples:\n  hub-cli sim receiver answer\n  hub-cli sim receiver answer --json\n\nSee also: hub-cli sim receiver show",
        add = Fields::own(&["mode", "times"])
    )]
    Answer(ReceiverArgs),
    /// Answer 500
    #[command(
        after_help = "Examples:\n  hub-cli sim receiver fail\n  hub-cli sim receiver fail --times 2\n\nSee also: hub-cli sim receiver answer",
        add = Fields::own(&["mode", "times"])
    )]
    Fail(ReceiverArgs),
    /// Do not answer, until the hub gives up
    #[command(
        after_help = "Examples:\n  hub-cli sim receiver slow\n  hub-cli sim receiver slow --times 1\n\nSee also: hub-cli sim receiver answer",
        add = Fields::own(&["mode", "times"])
    )]
    Slow(ReceiverArgs),
    /// Close the connection
    #[command(
        after_help = "Examples:\n  hub-cli sim receiver cut\n  hub-cli sim receiver cut --times 1\n\nSee also: hub-cli sim receiver answer",
        add = Fields::own(&["mode", "times"])
    )]
    Cut(ReceiverArgs),
}

/// How long the receiver keeps a behaviour.
#[derive(Debug, Args)]
pub struct ReceiverArgs {
    /// Only for this number of requests
    #[arg(long, value_name = "N")]
    pub times: Option<u32>,
    #[command(flatten)]
    pub target: SimTarget,
}
