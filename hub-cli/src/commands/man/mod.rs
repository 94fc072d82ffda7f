//! `man`: the manual pages.

use std::{fs, path::Path};

use clap::{Arg, Command};
use serde_json::json;

use crate::{
    args::{Cli, ManArgs},
    exit::Failure,
    printer::Printer,
};

mod markdown;

pub fn run(args: &ManArgs, printer: &Printer) -> Result<(), Failure> {
    let Some(out) = &args.out else {
        let page = markdown::page();
        return printer.one(json!({ "folder": null, "pages": 1 }), &page);
    };
    let folder = out.display().to_string();
    let pages = write(out).map_err(|error| Failure::file(&folder, error))?;
    printer.note(&format!("{pages} pages in {folder}; man -l {folder}/hub-cli.1 shows the first"));
    if matches!(printer.format, crate::printer::Format::Json(_)) {
        return printer.one(json!({ "folder": folder, "pages": pages }), "");
    }
    Ok(())
}

/// Writes the pages, and returns their number.
fn write(folder: &Path) -> std::io::Result<usize> {
    fs::create_dir_all(folder)?;
    let mut command = Cli::tree();
    command.build();
    write_page(&command, folder)
}

fn write_page(command: &Command, folder: &Path) -> std::io::Result<usize> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    let page = with_synopsis(&String::from_utf8_lossy(&page), command);
    // The name of `hub-cli apps create` in files.
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(folder.join(format!("{name}.1")), page)?;
    let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    below.map(|sub| write_page(sub, folder)).sum::<std::io::Result<usize>>().map(|pages| pages + 1)
}

/// The page with a synopsis that has the arguments of the command in their order, with their values. Global options
/// are only in the section below it.
fn with_synopsis(page: &str, command: &Command) -> String {
    const HEAD: &str = ".SH SYNOPSIS\n";
    let Some((before, after)) = page.split_once(HEAD) else { return page.to_owned() };
    let rest = after.find(".SH ").map_or("", |next| &after[next..]);
    let shown = |argument: &&Arg| !argument.is_hide_set() && !argument.is_global_set();
    let arguments = command.get_arguments().filter(shown).filter(|argument| argument.get_id() != "help");
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        arguments.partition(|argument| argument.is_positional());
    let options = options
        .into_iter()
        .map(|option| if option.is_required_set() { option.to_string() } else { format!("[{option}]") });
    let positional = positional.into_iter().map(ToString::to_string);
    let below = command.has_subcommands().then(|| "<COMMAND>".to_owned());
    let words: Vec<String> = options.chain(positional).chain(below).collect();
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let escape = |text: &str| text.replace('\\', "\\\\").replace('-', "\\-");
    format!("{before}{HEAD}\\fB{}\\fR {}\n{rest}", escape(name), escape(&words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_examples() {
        let folder = tempfile::tempdir().unwrap();
        let pages = write(&folder.path().join("new")).unwrap();
        assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), pages);
        let page = fs::read_to_string(folder.path().join("new/hub-cli-apps-create.1")).unwrap();
        assert!(page.contains(r"hub\-cli apps create"), "{page}");
        let page = fs::read_to_string(folder.path().join("new/hub-cli-listen.1")).unwrap();
        let synopsis = r"\fBhub\-cli listen\fR \-\-forward\-to <URL> [\-\-bot <BOT>] [\-\-key <KEY>] [\-\-header <NAME: VALUE>]";
        assert!(page.contains(&format!(".SH SYNOPSIS\n{synopsis}")), "{page}");
        let taken = folder.path().join("file");
        fs::write(&taken, "").unwrap();
        assert!(write(&taken).is_err());
    }
}
