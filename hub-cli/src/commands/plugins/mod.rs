//! `plugins …`: for authors and for reviewers.

use serde_json::Value;

use super::read_file;
use crate::{
    args::{PluginStatusArg, PluginsCommand},
    exit::{Exit, Failure},
    fields::Fields,
    printer::Printer,
};

pub mod cases;
mod fix;
mod lint;
mod list;
mod new;
mod review;
mod rules;
pub mod run;
mod sarif;
mod show;

/// The names in a command's JSON document.
pub fn fields(command: &PluginsCommand) -> Fields {
    match command {
        PluginsCommand::New(_) => Fields::own(&new::FIELDS),
        PluginsCommand::Lint(_) => Fields::own(&lint::FIELDS),
        PluginsCommand::Test(_) => Fields::own(&cases::FIELDS),
        PluginsCommand::List(args) if args.status == PluginStatusArg::Pending => {
            Fields::of("listPendingPlugins")
        }
        PluginsCommand::Pending(_) => Fields::of("listPendingPlugins"),
        PluginsCommand::Show(_) => Fields::of("getPlugin").and(&["diff"]),
        PluginsCommand::Versions(_) => Fields::own(&show::VERSION_FIELDS),
        PluginsCommand::Delete(_) => Fields::own(&review::DELETE_FIELDS),
        PluginsCommand::Withdraw(_) => Fields::own(&review::WITHDRAW_FIELDS),
        PluginsCommand::Approve(_) | PluginsCommand::Reject(_) => Fields::own(&["items"]),
        PluginsCommand::Submit(_) => Fields::of("submitPlugin"),
        PluginsCommand::List(_) => Fields::of("listPlugins"),
    }
}

/// Runs a command; with `local` the files are used although a server is named.
pub async fn run(command: PluginsCommand, local: bool, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        PluginsCommand::New(args) => new::run(&args, printer)?,
        PluginsCommand::Lint(args) => return lint::run(&args, printer).await,
        PluginsCommand::Test(args) => return cases::run(&args, printer).await,
        PluginsCommand::Submit(args) => review::submit(args, local, printer).await?,
        PluginsCommand::List(args) => list::run(args, local, printer).await?,
        PluginsCommand::Pending(args) => list::pending(&args.list, local, printer).await?,
        PluginsCommand::Show(args) => show::run(args, local, printer).await?,
        PluginsCommand::Versions(args) => show::versions(args, local, printer).await?,
        PluginsCommand::Approve(args) => review::approve(args, local, printer).await?,
        PluginsCommand::Reject(args) => review::reject(args, local, printer).await?,
        PluginsCommand::Withdraw(args) => review::withdraw(args, local, printer).await?,
        PluginsCommand::Delete(args) => review::delete(args, local, printer).await?,
    }
    Ok(Exit::Done)
}

/// The texts of an array.
fn texts<'d>(document: &'d Value, field: &str) -> impl Iterator<Item = &'d str> {
    document[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}
