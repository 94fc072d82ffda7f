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
mod create_admin;
mod db;
mod debug;
mod demo;
mod doctor;
mod export;
mod help;
mod listen;
mod login;
mod man;
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
mod version;
mod waterfall;

use std::io::Read;

use hub_core::accounts::UserStatus;

use crate::{
    args::{
        AiConfigCommand, AuditCommand, ChannelsCommand, Cli, Command, OpenapiCommand, ProfilesCommand,
        SignatureCommand, UserSessionsCommand, UsersCommand,
    },
    exit::{Exit, Failure},
    fields::Fields,
    printer::{Color, Format, Printer, Talk},
};

/// Maximum size of stdin or of a small file, in bytes.
const MAX_INPUT: u64 = 1 << 20;

/// Runs a command.
///
/// # Errors
/// The failure, with its exit code.
pub async fn run(cli: Cli, printer: &Printer) -> Result<Exit, Failure> {
    if let Format::Json(Some(wanted)) = &printer.format {
        let known = fields(&cli.command).names();
        if wanted.len() == 1 && wanted[0] == "?" {
            let names = known.join("\n");
            return Printer::new(Format::Text, Talk::Quiet, Color::Never)
                .one(serde_json::Value::Null, &names)
                .map(|()| Exit::Done);
        }
        if let Some(unknown) = wanted.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(Failure::usage(format!("--json: there is no field {unknown}"))
                .with_hint(format!("fields of this command: {}", known.join(", "))));
        }
    }
    if cli.is_local_in_vain() {
        return Err(Failure::usage("--local: this command does not use a data folder").with_hint(
            "send, traces, replay, tail, bots, channels, sim say, plugins, apps, users, ai-config, stats, audit, db and doctor do; leave --local out",
        ));
    }
    let local = cli.is_local();
    match cli.command {
        Command::Demo(_) => demo::run(printer).await?,
        Command::Login(args) => login::run(args, printer).await?,
        Command::Logout(args) => login::logout(args, printer).await?,
        Command::Whoami(args) => login::whoami(args, printer).await?,
        Command::Profiles(command) => profiles::run(command, printer).await?,
        Command::Send(args) => send::run(args, local, printer).await?,
        Command::Tail(args) => tail::run(args, local, printer).await?,
        Command::Listen(args) => listen::run(*args, local, printer).await?,
        Command::Bots(command) => bots::run(command, local, printer).await?,
        Command::Channels(ChannelsCommand::List(args)) => channels::list(args, local, printer).await?,
        Command::Channels(ChannelsCommand::Show(args)) => channels::show(args, local, printer).await?,
        Command::Channels(ChannelsCommand::Create(args)) => channels::create(args, local, printer).await?,
        Command::Channels(ChannelsCommand::Edit(args)) => channels::edit(args, local, printer).await?,
        Command::Channels(ChannelsCommand::Delete(args)) => channels::delete(args, local, printer).await?,
        Command::Channels(ChannelsCommand::RotateKey(args)) => {
            channels::rotate_key(args, local, printer).await?;
        }
        Command::Replay(args) => return replay::run(*args, local, printer).await,
        Command::Traces(command) => traces::run(command, local, printer).await?,
        Command::Signature(command) => return signature::run(command, printer),
        Command::Debug(command) => return debug::run(command, local, printer).await,
        Command::Channels(ChannelsCommand::SetWebhook(args)) => {
            return channel_sinks::set_webhook(*args, local, printer).await;
        }
        Command::Channels(ChannelsCommand::SetWebsocket(args)) => {
            channel_sinks::set_websocket(*args, local, printer).await?;
        }
        Command::Channels(ChannelsCommand::SetAi(args)) => {
            channel_sinks::set_ai(*args, local, printer).await?;
        }
        Command::Channels(ChannelsCommand::SetFilter(args)) => {
            channel_sinks::set_filter(*args, local, printer).await?;
        }
        Command::Channels(ChannelsCommand::Plugins(command)) => {
            channel_plugins::run(command, local, printer).await?;
        }
        Command::Plugins(command) => return plugins::run(command, local, printer).await,
        Command::Apps(command) => apps::run(command, local, printer).await?,
        Command::Sim(command) => sim::run(command, printer).await?,
        Command::Users(UsersCommand::CreateAdmin(args)) => create_admin::run(args, printer).await?,
        Command::Users(UsersCommand::List(args)) => users::list(args, local, printer).await?,
        Command::Users(UsersCommand::Show(args)) => users::show(args, local, printer).await?,
        Command::Users(UsersCommand::Create(args)) => users::create(args, local, printer).await?,
        Command::Users(UsersCommand::Edit(args)) => users::edit(args, local, printer).await?,
        Command::Users(UsersCommand::Disable(args)) => {
            users::switch(args, UserStatus::Disabled, local, printer).await?;
        }
        Command::Users(UsersCommand::Enable(args)) => {
            users::switch(args, UserStatus::Active, local, printer).await?;
        }
        Command::Users(UsersCommand::Delete(args)) => users::delete(args, local, printer).await?,
        Command::Users(UsersCommand::Sessions(command)) => {
            user_sessions::run(command, local, printer).await?;
        }
        Command::Users(UsersCommand::Invite(args)) => users::invite(args, local, printer).await?,
        Command::Users(UsersCommand::ResetLink(args)) => users::reset_link(args, local, printer).await?,
        Command::Stats(args) => audit::stats(args, local, printer).await?,
        Command::Audit(AuditCommand::List(args)) => audit::list(args, local, printer).await?,
        Command::AiConfig(AiConfigCommand::Show(args)) => ai_config::show(args, local, printer).await?,
        Command::AiConfig(AiConfigCommand::Set(args)) => ai_config::set(args, local, printer).await?,
        Command::AiConfig(AiConfigCommand::Test(args)) => ai_config::test(args, local, printer).await?,
        Command::Db(command) => return db::run(command, printer).await,
        Command::Doctor(args) => return doctor::run(args, printer).await,
        Command::Config(command) => return config::run(command, printer),
        Command::Openapi(OpenapiCommand::Export(args)) => export::run(&args, printer)?,
        Command::Completions(args) => completions::run(&args, printer)?,
        Command::Man(args) => man::run(&args, printer)?,
        Command::Version(_) => version::run(printer)?,
        Command::Help(args) => help::run(&args, printer)?,
    }
    Ok(Exit::Done)
}

/// The names in a command's JSON document, or in the items of its list.
fn fields(command: &Command) -> Fields {
    match command {
        Command::Demo(_) => Fields::own(&demo::FIELDS),
        Command::Login(_) => Fields::own(&login::FIELDS),
        Command::Logout(_) => Fields::own(&login::LOGOUT_FIELDS),
        Command::Whoami(_) => Fields::own(&login::WHOAMI_FIELDS),
        Command::Profiles(ProfilesCommand::List) => Fields::own(&profiles::FIELDS),
        Command::Profiles(ProfilesCommand::Use { .. }) => Fields::own(&profiles::FIELDS[..1]),
        Command::Profiles(ProfilesCommand::Delete { .. }) => Fields::own(&profiles::DELETE_FIELDS),
        Command::Send(_) => Fields::own(&send::FIELDS),
        Command::Tail(_) => traces::list_fields(),
        Command::Listen(_) => Fields::own(&listen::FIELDS),
        Command::Bots(command) => bots::fields(command),
        Command::Channels(command) => channels::fields(command),
        Command::Replay(_) => Fields::own(&replay::FIELDS),
        Command::Traces(command) => traces::fields(command),
        Command::Signature(SignatureCommand::Sign(_)) => Fields::own(&signature::SIGN_FIELDS),
        Command::Signature(SignatureCommand::Verify(_)) => Fields::own(&signature::VERIFY_FIELDS),
        Command::Debug(_) => Fields::own(&debug::FIELDS),
        Command::Plugins(command) => plugins::fields(command),
        Command::Apps(command) => apps::fields(command),
        Command::Sim(command) => Fields::own(sim::fields(command)),
        Command::Users(UsersCommand::CreateAdmin(_)) => Fields::own(&create_admin::FIELDS),
        Command::Users(UsersCommand::Delete(_)) => Fields::own(&users::DELETE_FIELDS),
        Command::Users(UsersCommand::Invite(_)) => Fields::of("createInvite"),
        Command::Users(UsersCommand::ResetLink(_)) => Fields::of("createResetLink"),
        Command::Users(UsersCommand::Sessions(UserSessionsCommand::List(_))) => {
            Fields::of("listUserSessions")
        }
        Command::Users(UsersCommand::Sessions(UserSessionsCommand::Revoke(_))) => {
            Fields::own(&user_sessions::REVOKE_FIELDS)
        }
        Command::Users(UsersCommand::Create(_)) => Fields::of("getUser").and(&users::LINK_FIELDS),
        Command::Users(UsersCommand::List(_)) => Fields::of("listUsers"),
        Command::Users(UsersCommand::Show(_)) => Fields::of("getUser"),
        Command::Users(UsersCommand::Edit(_) | UsersCommand::Disable(_) | UsersCommand::Enable(_)) => {
            Fields::of("updateUser")
        }
        Command::Stats(_) => Fields::of("getStats"),
        Command::Audit(_) => Fields::of("listAudit"),
        Command::AiConfig(AiConfigCommand::Show(_) | AiConfigCommand::Set(_)) => Fields::of("getAiConfig"),
        Command::AiConfig(AiConfigCommand::Test(_)) => Fields::of("testAiConfig"),
        Command::Db(command) => Fields::own(db::fields(command)),
        Command::Doctor(_) => Fields::own(&doctor::FIELDS),
        Command::Config(command) => Fields::own(config::fields(command)),
        Command::Openapi(OpenapiCommand::Export(_)) => Fields::own(&export::FIELDS),
        Command::Completions(_) => Fields::own(&completions::FIELDS),
        Command::Man(_) => Fields::own(&man::FIELDS),
        Command::Version(_) => Fields::own(&version::FIELDS),
        Command::Help(_) => Fields::own(&help::FIELDS),
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
        return Err(Failure::file(name, "is over 1 MiB"));
    }
    Ok(text)
}
