//! `db backup` and `db restore`.

use std::path::PathBuf;

use hub_core::{
    backup::{self, Manifest, NewBackup},
    random::Random,
    secret::Secret,
    time::Clock,
};
use serde_json::{Value, json};

use super::bytes;
use crate::{
    args::{DbBackupArgs, DbRestoreArgs},
    commands::secret::first_line,
    exit::Failure,
    local,
    printer::Printer,
};

pub const FIELDS: [&str; 8] =
    ["file", "bytes", "created_at", "schema", "key_id", "has_key", "files", "missing_files"];
pub const RESTORE_FIELDS: [&str; 8] =
    ["file", "restored", "created_at", "version", "schema", "key_id", "files", "replaced"];

pub async fn create(args: DbBackupArgs, printer: &Printer) -> Result<(), Failure> {
    let passphrase = passphrase(args.passphrase_file.as_deref())?;
    let home = local::settings(&args.local)?.home();
    let (clock, random) = (Clock::system(), Random::system());
    let name = backup::default_name(clock.now(), passphrase.is_some());
    let to = match args.to {
        Some(path) if path.is_dir() => path.join(name),
        Some(path) => path,
        None => home.data_dir.join("backups").join(name),
    };
    let is_sealed = passphrase.is_some();
    let new = NewBackup { to, passphrase, with_key: !args.no_key };
    let created = backup::create(&home, new, &clock, &random).await?;
    let manifest = &created.manifest;
    printer.note(&format!(
        "{}: the database, {} files, {}",
        bytes(created.size),
        manifest.files(),
        if created.has_key { "the key" } else { "not the key: keep it elsewhere, a restore needs it" },
    ));
    if created.has_key && !is_sealed {
        printer.note("whoever has this file has every bot's login; --passphrase-file seals it");
    }
    if manifest.media_elsewhere {
        printer.note("files lie in a bucket and are not in it: the bucket has its own way to keep them");
    }
    if manifest.missing_files > 0 {
        printer.note(&format!(
            "warning: {} files that the database names were not there; see hub-cli db check",
            manifest.missing_files
        ));
    }
    let file = created.file.display().to_string();
    let document = json!({
        "file": file,
        "bytes": created.size,
        "created_at": manifest.created_at,
        "schema": manifest.schema,
        "key_id": manifest.key_id,
        "has_key": created.has_key,
        "files": manifest.files(),
        "missing_files": manifest.missing_files,
    });
    printer.one(document, &file)
}

pub async fn restore(args: DbRestoreArgs, printer: &Printer) -> Result<(), Failure> {
    let passphrase = passphrase(args.passphrase_file.as_deref())?;
    let home = local::settings(&args.local)?.home();
    let random = Random::system();
    let file = args.file.display().to_string();
    let folder = home.data_dir.display().to_string();
    let replaces = backup::would_replace(&home)?;
    if args.verify_only || args.confirm.is_rehearsal() {
        let manifest = backup::verify(&args.file, &home, passphrase, &random).await?;
        let would = match (args.verify_only, replaces) {
            (true, _) => String::new(),
            (false, true) => format!("; it would take the place of the hub in {folder}"),
            (false, false) => format!("; it would be the first hub in {folder}"),
        };
        printer.note(&format!("{}{would}; nothing was changed", summary(&manifest)));
        return printer.one(document(&file, &manifest, false, &[]), &file);
    }
    if replaces {
        let what =
            format!("this takes the place of the hub in {folder}, which is kept until the next restore");
        args.confirm.is_meant(&what, printer).await?;
    }
    let restored = backup::restore(&args.file, &home, passphrase, replaces, &random).await?;
    printer.note(&format!("{}, is in {folder}", summary(&restored.manifest)));
    for path in &restored.replaced {
        printer.note(&format!("kept from before: {}", path.display()));
    }
    printer.one(document(&file, &restored.manifest, true, &restored.replaced), &folder)
}

fn summary(manifest: &Manifest) -> String {
    let messages = manifest.counts.get("messages").copied().unwrap_or(0);
    format!(
        "whole: the hub of {}, schema {}, {messages} messages, {} files",
        manifest.created_at,
        manifest.schema,
        manifest.files()
    )
}

fn document(file: &str, manifest: &Manifest, restored: bool, replaced: &[PathBuf]) -> Value {
    json!({
        "file": file,
        "restored": restored,
        "created_at": manifest.created_at,
        "version": manifest.version,
        "schema": manifest.schema,
        "key_id": manifest.key_id,
        "files": manifest.files(),
        "replaced": replaced.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
    })
}

fn passphrase(file: Option<&str>) -> Result<Option<Secret>, Failure> {
    let Some(file) = file else { return Ok(None) };
    let passphrase = first_line(file)?;
    if passphrase.expose().is_empty() {
        return Err(Failure::file(file, "has no passphrase in its first line"));
    }
    Ok(Some(passphrase))
}
