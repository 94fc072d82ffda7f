//! What can be typed. One file per noun; every leaf shows examples that a test runs through the parser.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};

mod ai_config;
mod apps;
mod audit;
mod channel_plugins;
mod channel_sinks;
mod channels;
mod completions;
mod db;
mod debug;
mod demo;
mod help;
mod listen;
mod login;
mod man;
mod openapi;
mod plugins;
mod replay;
mod send;
mod signature;
mod sim;
mod tail;
mod traces;
mod user_sessions;
mod users;
mod version;

pub use ai_config::{AiConfigCommand, AiConfigSetArgs, AiConfigShowArgs, AiConfigTestArgs};
pub use apps::{
    AppFields, AppsAuthorizeArgs, AppsCommand, AppsCreateArgs, AppsDeleteArgs, AppsEditArgs, AppsInstallArgs,
    AppsListArgs, AppsLogArgs, AppsRotateTokenArgs, AppsShowArgs, AppsUninstallArgs,
};
pub use audit::{AuditCommand, AuditListArgs, StatsArgs};
pub use channel_plugins::{ChannelPluginsCommand, ChannelTarget};
pub use channel_sinks::{SetAiArgs, SetFilterArgs, SetWebSocketArgs, SetWebhookArgs, SettingsFile};
pub use channels::{
    ChannelArgs, ChannelsCommand, ChannelsCreateArgs, ChannelsDeleteArgs, ChannelsEditArgs, ChannelsListArgs,
    ChannelsRotateKeyArgs, Which,
};
pub use completions::CompletionsArgs;
pub use db::DbCommand;
pub use debug::{DebugChecks, DebugCommand, DebugInput, DebugReplArgs, DebugRequestArgs, DebugResponseArgs};
pub use demo::DemoArgs;
pub use help::{HelpArgs, TOPICS};
pub use listen::ListenArgs;
pub use login::{LoginArgs, LogoutArgs, ProfileArgs, ProfilesCommand, WhoamiArgs};
pub use man::ManArgs;
pub use openapi::{DocumentFormat, ExportArgs, OpenapiCommand, SpecVersion};
pub use plugins::{
    LintFormat, PluginStatusArg, PluginsApproveArgs, PluginsCommand, PluginsDeleteArgs, PluginsLintArgs,
    PluginsListArgs, PluginsNewArgs, PluginsRejectArgs, PluginsShowArgs, PluginsSubmitArgs, PluginsTestArgs,
    PluginsVersionsArgs, PluginsWithdrawArgs,
};
pub use replay::ReplayArgs;
pub use send::SendArgs;
pub use signature::{SecretArgs, SignArgs, SignatureCommand, VerifyArgs};
pub use sim::{SimAppArgs, SimCommand, SimSayArgs, SimTarget};
pub use tail::TailArgs;
pub use traces::{
    TraceFilterArgs, TracesCommand, TracesDiffArgs, TracesExportArgs, TracesListArgs, TracesShowArgs,
    TracesToTestArgs,
};
pub use user_sessions::{UserSessionsCommand, UserSessionsListArgs, UserSessionsRevokeArgs};
pub use users::{
    CreateAdminArgs, InviteArgs, ResetLinkArgs, UsersCommand, UsersDeleteArgs, UsersListArgs, UsersShowArgs,
    UsersUpdateArgs,
};
pub use version::VersionArgs;

use crate::{
    exit::{Exit, Failure},
    printer::{Color, Format, Printer},
};

/// The command line of Message Hub.
///
/// Data goes to stdout, everything else to stderr; no command ever asks. `hub-cli help exit-codes` and
/// `hub-cli help env` say what scripts need to know.
#[derive(Debug, Parser)]
#[command(name = "hub-cli", version, disable_help_subcommand = true, arg_required_else_help = true)]
#[command(after_help = "Examples:\n  hub-cli demo\n  hub-cli sim say \"order 42\" --as Ada")]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// How the output looks.
#[derive(Debug, Args)]
struct Global {
    /// Write one JSON document; with a list, only these fields; with ?, the names of the fields
    #[arg(long, global = true, value_name = "FIELDS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", help_heading = "Output")]
    json: Option<String>,
    /// Write data and errors, nothing else
    #[arg(long, short, global = true, help_heading = "Output")]
    quiet: bool,
    /// When to colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    color: Color,
    /// Work on the data folder or database itself; refused where a command does not
    #[arg(long, global = true, help_heading = "Hub")]
    local: bool,
}

/// Which hub: a data folder or a database.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Hub")]
pub struct LocalArgs {
    /// Folder of the hub's database and key [default: the same as the server's]
    #[arg(long, env = "HUB_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Database in place of the folder's: sqlite://PATH or postgres://…
    #[arg(long, env = "HUB_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database_url: Option<String>,
}

/// Which hub, where a command can also ask a server.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Hub")]
pub struct HubArgs {
    /// Server to ask, with the key of a profile that is signed in there, or with the one in HUB_TOKEN
    /// [default: that of the profile in use, unless a folder or a database is named]
    #[arg(long, env = "HUB_SERVER", value_name = "URL")]
    pub server: Option<url::Url>,
    #[command(flatten)]
    pub profile: ProfileArgs,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Which page of a list.
#[derive(Debug, Clone, Args)]
pub struct PageArgs {
    /// At most so many, 1 to 200
    #[arg(long, default_value_t = 50)]
    pub limit: u32,
    /// Go on from here, as an earlier page said
    #[arg(long)]
    pub cursor: Option<String>,
}

/// Everything the command line can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one message through a hub in this process and show what happened
    Demo(DemoArgs),
    /// Sign in to a hub
    Login(LoginArgs),
    /// Forget how to sign in to a hub
    Logout(LogoutArgs),
    /// Show who is signed in
    Whoami(WhoamiArgs),
    /// The hubs you are signed in to
    #[command(subcommand, alias = "profile")]
    Profiles(ProfilesCommand),
    /// Send a message as a bot
    Send(SendArgs),
    /// Follow what happens to the messages of a bot
    Tail(TailArgs),
    /// Forward a channel's messages to a local URL
    Listen(ListenArgs),
    /// Send recorded deliveries again
    Replay(Box<ReplayArgs>),
    /// Look at what happened to messages
    #[command(subcommand, visible_alias = "trace")]
    Traces(TracesCommand),
    /// Sign a body as the hub does, or find out why a signature does not fit
    #[command(subcommand)]
    Signature(SignatureCommand),
    /// Manage where the messages of a bot go
    #[command(subcommand, alias = "channel")]
    Channels(ChannelsCommand),
    /// Try a plugin in the sandbox
    #[command(subcommand)]
    Debug(DebugCommand),
    /// Write, check and review plugins
    #[command(subcommand, alias = "plugin")]
    Plugins(PluginsCommand),
    /// Make apps, put them onto bots, see what they are told and ask
    #[command(subcommand, alias = "app")]
    Apps(AppsCommand),
    /// Use the simulated chat network
    #[command(subcommand)]
    Sim(SimCommand),
    /// Manage people
    #[command(subcommand, alias = "user")]
    Users(UsersCommand),
    /// Count what the hub has and does
    Stats(StatsArgs),
    /// Read what administrators and holders of credentials did
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Set the AI endpoint that answers for channels
    #[command(subcommand)]
    AiConfig(AiConfigCommand),
    /// Look after the database
    #[command(subcommand)]
    Db(DbCommand),
    /// The description of the HTTP API
    #[command(subcommand)]
    Openapi(OpenapiCommand),
    /// Print a script with which a shell completes commands and options
    Completions(CompletionsArgs),
    /// Write the manual pages, one per command
    Man(ManArgs),
    /// Show which version this is
    Version(VersionArgs),
    /// Explain a command or a topic: exit-codes, env
    Help(HelpArgs),
}

/// A command line that is not run: help, a version, or a mistake.
#[derive(Debug)]
pub struct Refused {
    error: clap::Error,
    json: bool,
}

impl Cli {
    /// Reads the arguments.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<(Self, Printer), Refused> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let json = arguments.iter().any(|argument| {
            argument.to_str().is_some_and(|text| text == "--json" || text.starts_with("--json="))
        });
        let matches = Self::command().try_get_matches_from(arguments);
        let cli = matches.and_then(|matches| Self::from_arg_matches(&matches));
        let cli = cli.map_err(|error| Refused { error, json })?;
        let format = cli.global.json.as_deref().map_or(Format::Text, |fields| {
            let fields = fields.split(',').map(str::trim).filter(|field| !field.is_empty());
            let fields: Vec<String> = fields.map(str::to_owned).collect();
            Format::Json((!fields.is_empty()).then_some(fields))
        });
        let printer = Printer::new(format, cli.global.quiet, cli.global.color);
        Ok((cli, printer))
    }

    /// Whether the store itself is asked for by a command that works on none.
    pub fn is_local_in_vain(&self) -> bool {
        let on_a_store = matches!(
            self.command,
            Command::Send(_)
                | Command::Traces(_)
                | Command::Replay(_)
                | Command::Tail(_)
                | Command::Channels(_)
                | Command::Debug(_)
                | Command::Plugins(_)
                | Command::Apps(_)
                | Command::Sim(SimCommand::Say(_))
                | Command::Users(_)
                | Command::Stats(_)
                | Command::Audit(_)
                | Command::AiConfig(_)
                | Command::Db(_)
        );
        self.global.local && !on_a_store
    }

    /// Whether the files are to be worked on though a server is named.
    pub fn is_local(&self) -> bool {
        self.global.local
    }

    /// Whether this command sees to signals itself.
    pub fn sees_to_signals(&self) -> bool {
        matches!(
            self.command,
            Command::Replay(_) | Command::Sim(SimCommand::Serve { .. } | SimCommand::App(_))
        )
    }
}

impl Refused {
    /// Help and versions go to stdout; a mistake goes to stderr, as JSON where JSON was asked for.
    pub fn report(self) -> ExitCode {
        if !self.error.use_stderr() {
            // A closed pipe is the reader's choice.
            let _ = self.error.print();
            return Exit::Done.into();
        }
        if self.json {
            let text = self.error.to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let failure = Failure::usage(first).with_hint("add --help for the arguments");
            return Printer::new(Format::Json(None), false, Color::Never).fail(&failure);
        }
        let bare = self.error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        let _ = self.error.print();
        if bare {
            Exit::Usage.into()
        } else {
            ExitCode::from(u8::try_from(self.error.exit_code()).unwrap_or(2))
        }
    }
}

#[cfg(test)]
mod tests;
