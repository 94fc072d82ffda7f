//! The commands. One file per verb that is more than a call.

mod ai_config;
mod apps;
mod audit;
mod bots;
mod channel_plugins;
mod channel_sinks;
mod channels;
mod completions;
mod config;
mod db;
mod debug;
mod demo;
mod doctor;
mod events;
mod help;
mod ilink;
mod listen;
mod login;
mod man;
mod openapi;
mod plugins;
mod profiles;
mod recordings;
mod replay;
mod secret;
mod send;
mod signature;
mod sim;
mod tail;
mod traces;
mod user_sessions;
mod users;
mod waterfall;

use std::io::Read;

use hub_core::{accounts::UserStatus, plugins::VersionState};
use serde_json::{Value, json};

use crate::{
    args::{
        AiConfigCommand, AppsCommand, AuditCommand, ChannelsCommand, Cli, Command, DbCommand, OpenapiCommand,
        PluginsCommand, TracesCommand, UsersCommand,
    },
    context::Context,
    exit::{Exit, Failure},
    fields::Fields,
    printer::{Color, Format, Printer, Verbosity},
};

/// Maximum size of stdin or of a file that is read as a whole, in bytes. The OpenAPI document has about 1 MiB.
const MAX_INPUT: u64 = 4 << 20;

pub async fn run(cli: Cli, printer: &Printer) -> Result<Exit, Failure> {
    if let Format::Json(Some(wanted)) = &printer.format {
        let known = fields(&cli).names();
        if wanted.len() == 1 && wanted[0] == "?" {
            let names = known.join("\n");
            return Printer::new(Format::Text, Verbosity::Quiet, Color::Never)
                .one(Value::Null, &names)
                .map(|()| Exit::Done);
        }
        if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(Failure::usage(format!("--json: there is no field {unknown}"))
                .with_hint(format!("fields of this command: {}", known.join(", "))));
        }
    }
    if cli.rejects_local() {
        return Err(Failure::usage("--local: this command does not use a data folder").with_hint(
            "send, traces, replay, tail, bots, channels, sim say, plugins, apps, users, ai-config, stats, audit, db and doctor do; leave --local out",
        ));
    }
    let cx = Context::new(printer.clone(), cli.is_local());
    let ended = dispatch(cli.command, &cx).await;
    cx.close().await;
    ended
}

async fn dispatch(command: Command, cx: &Context) -> Result<Exit, Failure> {
    match command {
        Command::Demo => demo::run(&cx.printer).await?,
        Command::Login(args) => login::run(args, &cx.printer).await?,
        Command::Logout(args) => login::logout(args, &cx.printer).await?,
        Command::Whoami(args) => login::whoami(args, &cx.printer).await?,
        Command::Profiles(command) => profiles::run(command, &cx.printer).await?,
        Command::Send(args) => send::run(args, cx).await?,
        Command::Tail(args) => tail::run(args, cx).await?,
        Command::Events(args) => events::run(args, cx).await?,
        Command::Listen(args) => listen::run(*args, cx).await?,
        Command::Bots(command) => bots::run(command, cx).await?,
        Command::Channels(ChannelsCommand::List(args)) => channels::list(args, cx).await?,
        Command::Channels(ChannelsCommand::Show(args)) => channels::show(args, cx).await?,
        Command::Channels(ChannelsCommand::Create(args)) => channels::create(args, cx).await?,
        Command::Channels(ChannelsCommand::Edit(args)) => channels::edit(args, cx).await?,
        Command::Channels(ChannelsCommand::Delete(args)) => channels::delete(args, cx).await?,
        Command::Channels(ChannelsCommand::RotateKey(args)) => channels::rotate_key(args, cx).await?,
        Command::Channels(ChannelsCommand::Clients(args)) => channels::clients(args, cx).await?,
        Command::Channels(ChannelsCommand::TestAi(args)) => ai_config::test_channel(args, cx).await?,
        Command::Replay(args) => return replay::run(*args, cx).await,
        Command::Traces(command) => traces::run(command, cx).await?,
        Command::Signature(command) => return signature::run(command, &cx.printer),
        Command::Debug(command) => return debug::run(command, cx).await,
        Command::Channels(ChannelsCommand::SetWebhook(args)) => {
            return channel_sinks::set_webhook(*args, cx).await;
        }
        Command::Channels(ChannelsCommand::SetWebsocket(args)) => {
            channel_sinks::set_websocket(*args, cx).await?;
        }
        Command::Channels(ChannelsCommand::SetAi(args)) => channel_sinks::set_ai(*args, cx).await?,
        Command::Channels(ChannelsCommand::SetIlink(args)) => channel_sinks::set_ilink(*args, cx).await?,
        Command::Channels(ChannelsCommand::IlinkUrl(args)) => ilink::url(args, cx).await?,
        Command::Channels(ChannelsCommand::IlinkClients(args)) => ilink::clients(args, cx).await?,
        Command::Channels(ChannelsCommand::IlinkLogin(args)) => ilink::login(args, cx).await?,
        Command::Channels(ChannelsCommand::SetFilter(args)) => channel_sinks::set_filter(*args, cx).await?,
        Command::Channels(ChannelsCommand::TestFilter(args)) => channel_sinks::test_filter(*args, cx).await?,
        Command::Channels(ChannelsCommand::Plugins(command)) => channel_plugins::run(command, cx).await?,
        Command::Plugins(command) => return plugins::run(command, cx).await,
        Command::Apps(command) => apps::run(command, cx).await?,
        Command::Sim(command) => sim::run(command, &cx.printer).await?,
        Command::Users(UsersCommand::CreateAdmin(args)) => users::create_admin(args, &cx.printer).await?,
        Command::Users(UsersCommand::List(args)) => users::list(args, cx).await?,
        Command::Users(UsersCommand::Show(args)) => users::show(args, cx).await?,
        Command::Users(UsersCommand::Create(args)) => users::create(args, cx).await?,
        Command::Users(UsersCommand::Edit(args)) => users::edit(args, cx).await?,
        Command::Users(UsersCommand::Disable(args)) => users::switch(args, UserStatus::Disabled, cx).await?,
        Command::Users(UsersCommand::Enable(args)) => users::switch(args, UserStatus::Active, cx).await?,
        Command::Users(UsersCommand::Delete(args)) => users::delete(args, cx).await?,
        Command::Users(UsersCommand::Sessions(command)) => user_sessions::run(command, cx).await?,
        Command::Users(UsersCommand::Invite(args)) => users::invite(args, cx).await?,
        Command::Users(UsersCommand::ResetLink(args)) => users::reset_link(args, cx).await?,
        Command::Stats(args) => audit::stats(args, cx).await?,
        Command::Audit(AuditCommand::List(args)) => audit::list(args, cx).await?,
        Command::AiConfig(AiConfigCommand::Show(args)) => ai_config::show(args, cx).await?,
        Command::AiConfig(AiConfigCommand::Set(args)) => ai_config::set(args, cx).await?,
        Command::AiConfig(AiConfigCommand::Test(args)) => ai_config::test(args, cx).await?,
        Command::Db(command) => return db::run(command, &cx.printer).await,
        Command::Doctor(args) => return doctor::run(args, &cx.printer).await,
        Command::Config(command) => return config::run(command, &cx.printer),
        Command::Openapi(OpenapiCommand::Export(args)) => openapi::run(&args, &cx.printer)?,
        Command::Completions(args) => completions::run(&args, &cx.printer)?,
        Command::Man(args) => man::run(&args, &cx.printer)?,
        Command::Version => version(&cx.printer)?,
        Command::Help(args) => help::run(&args, &cx.printer)?,
    }
    Ok(Exit::Done)
}

fn version(printer: &Printer) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    printer.one(json!({ "version": version }), &format!("hub-cli {version}"))
}

/// The names in the JSON document of a command, or in the items of its list: those that it declares, unless a flag
/// chooses another document.
fn fields(cli: &Cli) -> Fields {
    match &cli.command {
        Command::Apps(AppsCommand::List(args)) if args.bot.is_some() => Fields::of("listInstalledApps"),
        Command::Db(DbCommand::Migrate { dry_run: true, .. }) => Fields::own(&["version", "name"]),
        Command::Plugins(PluginsCommand::List(args)) if args.status == VersionState::Pending => {
            Fields::of("listPendingPlugins")
        }
        Command::Traces(TracesCommand::Show(args)) if args.raw => Fields::own(&["raw"]),
        Command::Traces(TracesCommand::Show(args)) if args.curl => Fields::own(&["curl"]),
        Command::Traces(TracesCommand::Show(args)) if args.har => Fields::own(&["log"]),
        _ => cli.fields,
    }
}

/// A text given as an argument; `-` reads stdin.
fn text_or_stdin(text: String) -> Result<String, Failure> {
    if text == "-" { read_all(std::io::stdin(), "stdin") } else { Ok(text) }
}

/// The content of a file; `-` reads stdin.
fn read_file(path: &str) -> Result<String, Failure> {
    if path == "-" {
        return read_all(std::io::stdin(), "stdin");
    }
    let file = std::fs::File::open(path).map_err(|error| Failure::file(path, error))?;
    read_all(file, path)
}

fn read_all(source: impl Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = source.take(MAX_INPUT + 1).read_to_string(&mut text);
    let read = read.map_err(|error| Failure::file(name, error))?;
    if u64::try_from(read).is_ok_and(|read| read > MAX_INPUT) {
        return Err(Failure::file(name, "is over 4 MiB"));
    }
    Ok(text)
}
