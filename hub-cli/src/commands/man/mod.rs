//! `man`: the manual pages.

use std::{fs, path::Path};

use clap::CommandFactory;
use serde_json::json;

use crate::{
    args::{Cli, ManArgs},
    exit::Failure,
    printer::Printer,
};

mod markdown;

pub const FIELDS: [&str; 2] = ["folder", "pages"];

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

/// Writes the pages, and says how many there are.
fn write(folder: &Path) -> std::io::Result<usize> {
    fs::create_dir_all(folder)?;
    let mut command = Cli::command();
    command.build();
    write_page(&command, folder)
}

fn write_page(command: &clap::Command, folder: &Path) -> std::io::Result<usize> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    // As built, `hub-cli apps create` has that for its name on the screen, and this one for files.
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(folder.join(format!("{name}.1")), page)?;
    let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    below.map(|sub| write_page(sub, folder)).sum::<std::io::Result<usize>>().map(|pages| pages + 1)
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
        let taken = folder.path().join("file");
        fs::write(&taken, "").unwrap();
        assert!(write(&taken).is_err());
    }
}
