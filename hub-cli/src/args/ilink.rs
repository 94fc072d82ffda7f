use clap::Args;

use super::{Ends, Fields, HubArgs, SettingsFile, Which};

/// Configure the iLink sink of a channel
///
/// Settings that are not named keep their values.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels set-ilink orders --bot demo --on\n  hub-cli channels set-ilink orders --bot demo --max-clients 1 --idle-days 7\n\nSee also: hub-cli channels ilink-login, hub-cli channels ilink-clients",
    add = Ends(&[(0, "set"), (2, "invalid value"), (6, "the file is unreadable")]),
    add = Fields::of("setIlinkSink")
)]
pub struct SetIlinkArgs {
    #[command(flatten)]
    pub which: Which,
    /// Programs that may be logged in at the same time, 1 to 20
    #[arg(long, value_name = "N")]
    pub max_clients: Option<u32>,
    /// Days after its last request when a program is logged out, 1 to 365
    #[arg(long, value_name = "N")]
    pub idle_days: Option<u32>,
    #[command(flatten)]
    pub settings: SettingsFile,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// List the iLink clients of a channel, or log one out
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels ilink-clients orders --bot demo\n  hub-cli channels ilink-clients orders --bot demo --log-out ilc_01KAJ6Z8QH0000000000000000\n\nSee also: hub-cli channels set-ilink, hub-cli channels ilink-login",
    add = Fields::own(&["clients", "id", "logged_out"])
)]
pub struct IlinkClientsArgs {
    #[command(flatten)]
    pub which: Which,
    /// Id of the client that is logged out; its token ends
    #[arg(long, value_name = "CLIENT")]
    pub log_out: Option<String>,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Print the URLs that a program needs to log in to a channel
///
/// The base URL comes first, that of the CDN second.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels ilink-url orders --bot demo\n  hub-cli channels ilink-url orders --bot demo --json=base_url\n\nSee also: hub-cli channels set-ilink, hub-cli channels ilink-login",
    add = Fields::own(&["base_url", "cdn_base_url"])
)]
pub struct IlinkUrlArgs {
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub hub: HubArgs,
}

/// Confirm the login of a program that speaks the iLink protocol
///
/// The program uses the public URL of the hub as its base URL, and shows a QR code. It then receives the messages of the
/// channel, and sends through its bot.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli channels ilink-login orders --bot demo --link 'https://hub.example/ilink/login?login=9f86d081884c7d659a2feaa0c55ad015'\n  hub-cli channels ilink-login orders --bot demo --link 9f86d081884c7d659a2feaa0c55ad015\n\nSee also: hub-cli channels set-ilink, hub-cli channels ilink-clients",
    add = Ends(&[(0, "confirmed")]),
    add = Fields::of("confirmIlinkLogin")
)]
pub struct IlinkLoginArgs {
    #[command(flatten)]
    pub which: Which,
    /// Link in the QR code, or the id of the login
    #[arg(long, value_name = "LINK")]
    pub link: String,
    #[command(flatten)]
    pub hub: HubArgs,
}
