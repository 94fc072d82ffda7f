//! `plugins …`: the author's side and the marketplace's, each in files of their own.

use serde_json::Value;

use super::read_file;
use crate::{
    args::{PluginStatusArg, PluginsCommand},
    exit::{Exit, Failure},
    printer::{Printer, Tone},
};

pub mod cases;
mod fix;
mod lint;
mod list;
mod new;
mod review;
mod rules;
mod sarif;
mod show;

/// The names in a plugin's document, and these behind them.
macro_rules! plugin_fields {
    ($($more:literal),*) => {
        &[
            "id", "name", "description", "version", "version_id", "content_hash", "author", "status", "reason",
            "latest_version", "approved_version", "approved_version_id", "pending_version", "matches",
            "connects", "timeout_ms", "installs", "created_at", $($more),*
        ]
    };
}

const FIELDS: &[&str] = plugin_fields!();
const SHOW_FIELDS: &[&str] = plugin_fields!("permissions", "versions", "script", "diff");

/// The names in a command's JSON document.
pub fn fields(command: &PluginsCommand) -> &'static [&'static str] {
    match command {
        PluginsCommand::New(_) => &new::FIELDS,
        PluginsCommand::Lint(_) => &lint::FIELDS,
        PluginsCommand::Test(_) => &cases::FIELDS,
        PluginsCommand::List(args) if args.status == PluginStatusArg::Pending => &list::PENDING_FIELDS,
        PluginsCommand::Pending(_) => &list::PENDING_FIELDS,
        PluginsCommand::Show(_) => SHOW_FIELDS,
        PluginsCommand::Versions(_) => &show::VERSION_FIELDS,
        PluginsCommand::Delete(_) => &review::DELETE_FIELDS,
        PluginsCommand::Withdraw(_) => &review::WITHDRAW_FIELDS,
        PluginsCommand::Approve(_) | PluginsCommand::Reject(_) => &["items"],
        PluginsCommand::Submit(_) | PluginsCommand::List(_) => FIELDS,
    }
}

/// Runs a command; `local` is whether the files are to be worked on though a server is named.
pub async fn run(command: PluginsCommand, local: bool, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        PluginsCommand::New(args) => new::run(&args, printer)?,
        PluginsCommand::Lint(args) => return lint::run(&args, printer).await,
        PluginsCommand::Test(args) => return cases::run(&args, printer).await,
        PluginsCommand::Submit(args) => review::submit(args, local, printer).await?,
        PluginsCommand::List(args) => list::run(args, local, printer).await?,
        PluginsCommand::Pending(args) => list::pending(&args.hub, &args.page, local, printer).await?,
        PluginsCommand::Show(args) => show::run(args, local, printer).await?,
        PluginsCommand::Versions(args) => show::versions(args, local, printer).await?,
        PluginsCommand::Approve(args) => review::approve(args, local, printer).await?,
        PluginsCommand::Reject(args) => review::reject(args, local, printer).await?,
        PluginsCommand::Withdraw(args) => review::withdraw(args, local, printer).await?,
        PluginsCommand::Delete(args) => review::delete(args, local, printer).await?,
    }
    Ok(Exit::Done)
}

/// A line of a difference.
pub fn painted(line: &str, printer: &Printer) -> String {
    let text = unreordered(line);
    match line.as_bytes().first() {
        Some(b'+') => printer.paint(&text, Tone::Good),
        Some(b'-') => printer.paint(&text, Tone::Bad),
        Some(b'@') => printer.paint(&text, Tone::Faint),
        _ => text,
    }
}

/// A line of source that cannot change the terminal, with its indentation.
fn unreordered(line: &str) -> String {
    crate::screen::clean(&line.replace('\t', "    "))
}

/// The texts of an array.
fn texts<'d>(document: &'d Value, field: &str) -> impl Iterator<Item = &'d str> {
    document[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}
