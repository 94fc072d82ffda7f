//! `db backup` and `db restore`.

use std::path::{Path, PathBuf};

use hub_core::{
    backup::{self, Location, Manifest, NewBackup},
    media::S3Config,
    random::Random,
    secret::Secret,
    time::Clock,
};
use hub_server::config::{Config, mask_url};
use serde_json::{Value, json};
use url::Url;

use super::bytes;
use crate::{
    args::{DbBackupArgs, DbRestoreArgs},
    commands::secret::first_line,
    exit::Failure,
    local,
    printer::Printer,
};

pub async fn create(args: DbBackupArgs, printer: &Printer) -> Result<(), Failure> {
    let passphrase = passphrase(args.passphrase_file.as_deref())?;
    let config = local::settings(&args.local)?;
    let home = config.home();
    let (clock, random) = (Clock::system(), Random::system());
    let name = backup::default_name(clock.now(), passphrase.is_some());
    let to = match args.to {
        Some(text) => match location("--to", &text, &config)? {
            Location::File(path) if path.is_dir() => path.join(name).into(),
            Location::Object(bucket, none) if none.is_empty() => Location::Object(bucket, name),
            named => named,
        },
        None => home.data_dir.join("backups").join(name).into(),
    };
    let is_sealed = passphrase.is_some();
    let new = NewBackup { to, passphrase, with_key: !args.no_key };
    let created = backup::create(&home, new, &clock, &random).await?;
    let manifest = &created.manifest;
    printer.note(&format!(
        "{}: the database, {} files, {}",
        bytes(created.size),
        manifest.files(),
        if created.has_key { "the key" } else { "without the key: keep it elsewhere, a restore needs it" },
    ));
    if created.has_key && !is_sealed {
        printer.note("this file contains every bot's login; --passphrase-file encrypts it");
    }
    if manifest.media_elsewhere {
        printer.note(
            "files are stored in a bucket and are not part of the backup: back up the bucket separately",
        );
    }
    if manifest.missing_files > 0 {
        printer.note(&format!(
            "warning: {} files of the database are missing; see hub-cli db check",
            manifest.missing_files
        ));
    }
    let file = created.location.to_string();
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
    let config = local::settings(&args.local)?;
    let (home, random) = (config.home(), Random::system());
    let from = location("the backup", &args.file, &config)?;
    if matches!(&from, Location::Object(_, name) if name.is_empty()) {
        return Err(Failure::usage(format!(
            "{}: the name of the backup is missing after the last slash",
            args.file
        )));
    }
    let file = from.to_string();
    let folder = home.data_dir.display().to_string();
    let replaces = backup::would_replace(&home)?;
    if args.verify_only || args.confirm.is_dry_run() {
        let manifest = backup::verify(&from, &home, passphrase, &random).await?;
        let would = match (args.verify_only, replaces) {
            (true, _) => String::new(),
            (false, true) => format!("; it would replace the hub in {folder}"),
            (false, false) => format!("; it would be the first hub in {folder}"),
        };
        printer.note(&format!("{}{would}; nothing was changed", summary(&manifest)));
        return printer.one(document(&file, &manifest, false, &[]), &file);
    }
    if replaces {
        let what = format!("this replaces the hub in {folder}, which is kept until the next restore");
        args.confirm.is_confirmed(&what, printer).await?;
    }
    let restored = backup::restore(&from, &home, passphrase, replaces, &random).await?;
    printer.note(&format!("{}, restored to {folder}", summary(&restored.manifest)));
    for path in &restored.replaced {
        printer.note(&format!("previous file kept: {}", path.display()));
    }
    printer.one(document(&file, &restored.manifest, true, &restored.replaced), &folder)
}

/// A file, or an object: the last part of `s3://bucket/prefix/name` is its name, which is empty after a trailing
/// slash.
fn location(what: &str, text: &str, config: &Config) -> Result<Location, Failure> {
    if !text.contains("://") {
        return Ok(Path::new(text).to_owned().into());
    }
    let address = Url::parse(text).ok().filter(|address| address.scheme() == "s3");
    let bucket = address.ok_or_else(|| "must be a file, or like s3://bucket/prefix/".to_owned());
    let bucket = bucket
        .and_then(|address| config.s3.bucket(&address))
        .map_err(|reason| Failure::usage(format!("{what}: {} {reason}", mask_url(text))))?;
    let path = text.strip_prefix("s3://").and_then(|rest| rest.split_once('/')).map_or("", |(_, path)| path);
    let (prefix, name) = path.rsplit_once('/').unwrap_or(("", path));
    let bucket = S3Config { prefix: prefix.to_owned(), ..bucket };
    Ok(Location::Object(Box::new(bucket), name.to_owned()))
}

fn summary(manifest: &Manifest) -> String {
    let messages = manifest.counts.get("messages").copied().unwrap_or(0);
    format!(
        "intact: the hub of {}, schema {}, {messages} messages, {} files",
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
