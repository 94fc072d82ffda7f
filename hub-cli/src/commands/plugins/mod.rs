//! `plugins …`: for authors and for reviewers.

use serde_json::Value;

use super::read_file;
use crate::{
    args::PluginsCommand,
    context::Context,
    exit::{Exit, Failure},
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

/// Runs a command; with `local` the files are used although a server is named.
pub async fn run(command: PluginsCommand, cx: &Context) -> Result<Exit, Failure> {
    match command {
        PluginsCommand::New(args) => new::run(&args, &cx.printer)?,
        PluginsCommand::Lint(args) => return lint::run(&args, &cx.printer).await,
        PluginsCommand::Test(args) => return cases::run(&args, &cx.printer).await,
        PluginsCommand::Submit(args) => review::submit(args, cx).await?,
        PluginsCommand::List(args) => list::run(args, cx).await?,
        PluginsCommand::Pending(args) => list::pending(&args, cx).await?,
        PluginsCommand::Show(args) => show::run(args, cx).await?,
        PluginsCommand::Versions(args) => show::versions(args, cx).await?,
        PluginsCommand::Approve(args) => review::approve(args, cx).await?,
        PluginsCommand::Reject(args) => review::reject(args, cx).await?,
        PluginsCommand::Withdraw(args) => review::withdraw(args, cx).await?,
        PluginsCommand::Delete(args) => review::delete(args, cx).await?,
    }
    Ok(Exit::Done)
}

/// The texts of an array.
fn texts<'d>(document: &'d Value, field: &str) -> impl Iterator<Item = &'d str> {
    document[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}
