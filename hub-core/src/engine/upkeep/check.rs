//! Checks of the database, the secrets in it, and the files that it names.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use crate::{
    backup::{Home, media_path},
    error::{Advice, Error, ErrorCode, Result},
    private_files,
    random::Random,
    secret::Sealer,
    store::{SEALED_COLUMNS, Upkeep, fault::is_fatal},
};

/// Rows of one read.
const PAGE: u32 = 500;
/// Maximum number of names in one finding.
const NAMED: usize = 5;

/// A problem that a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name of the check: `integrity`, `commit-log`, `references`, `secrets`, `files` or `loose-files`.
    pub check: &'static str,
    /// Description, with the affected rows or files.
    pub message: String,
}

/// Result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Problems; empty if there are none.
    pub findings: Vec<Finding>,
    /// Secrets that opened.
    pub secrets: u64,
    /// Files that are there.
    pub files: u64,
}

impl Checked {
    fn find(&mut self, check: &'static str, message: String) {
        self.findings.push(Finding { check, message });
    }
}

/// Checks everything, next to a running hub or without one, and changes nothing. Files in a bucket are not checked.
///
/// # Errors
/// `NOT_FOUND` without a database; `UNAVAILABLE` when it or the key cannot be read.
pub async fn check(home: &Home, random: &Random) -> Result<Checked> {
    let mut database = Upkeep::open(&home.store).await?;
    let mut checked = Checked::default();
    for line in database.integrity().await? {
        checked.find("integrity", line);
    }
    match check_content(home, random, &mut database, &mut checked).await {
        // Part of the corruption that is reported already.
        Err(error) if is_fatal(&error) && !checked.findings.is_empty() => {}
        done => done?,
    }
    database.close().await?;
    Ok(checked)
}

async fn check_content(
    home: &Home,
    random: &Random,
    database: &mut Upkeep,
    checked: &mut Checked,
) -> Result<()> {
    for error in database.unreadable_entries().await? {
        let hint = error.hint().unwrap_or_default();
        checked.find("commit-log", format!("{}; {hint}", error.message()));
    }
    for line in database.broken_references().await? {
        checked.find("references", line);
    }
    let schema = database.schema().await?;
    if schema.is_newer() || !schema.pending.is_empty() {
        return Err(Error::new(
            ErrorCode::Unavailable,
            format!(
                "the database has schema version {}, this program needs {}",
                schema.version, schema.newest
            ),
        )
        .with_hint("check it with the hub that wrote it, or migrate it")
        .with_advice([Advice::MigrateDatabase]));
    }
    secrets(database, &home.sealer(random)?, checked).await?;
    if let Some(folder) = home.media_folder() {
        missing_files(database, folder, checked).await?;
        loose_files(database, folder, checked).await?;
    }
    Ok(())
}

async fn secrets(database: &mut Upkeep, sealer: &Sealer, checked: &mut Checked) -> Result<()> {
    for column in SEALED_COLUMNS {
        let (mut after, mut broken, mut keys) = (None, 0_u64, HashSet::new());
        loop {
            let rows = database.sealed().page(column, after.as_ref(), PAGE).await?;
            for row in &rows {
                if sealer.open(&column.place(row), &row.value).is_ok() {
                    checked.secrets += 1;
                } else {
                    broken += 1;
                    keys.extend(row.value.key_id().filter(|_| keys.len() < NAMED).map(str::to_owned));
                }
            }
            if rows.len() < PAGE as usize {
                break;
            }
            after = rows.into_iter().next_back();
        }
        if broken > 0 {
            let mut keys: Vec<String> = keys.into_iter().collect();
            keys.sort_unstable();
            checked.find(
                "secrets",
                format!(
                    "{broken} secrets in {}.{} do not open with the key {}; they were sealed with {}",
                    column.table,
                    column.column,
                    sealer.key_id(),
                    keys.join(", ")
                ),
            );
        }
    }
    Ok(())
}

async fn missing_files(database: &mut Upkeep, folder: &Path, checked: &mut Checked) -> Result<()> {
    let (mut after, mut missing, mut named) = (String::new(), 0_u64, Vec::new());
    loop {
        let ids = database.ready_files(&after, PAGE).await?;
        for id in &ids {
            if media_path(folder, id).is_file() {
                checked.files += 1;
            } else {
                missing += 1;
                named.extend(Some(id.clone()).filter(|_| named.len() < NAMED));
            }
        }
        if ids.len() < PAGE as usize {
            break;
        }
        after = ids.into_iter().next_back().unwrap_or_default();
    }
    if missing > 0 {
        let message =
            format!("{missing} files of messages are not in {}: {}", folder.display(), some(&named, missing));
        checked.find("files", message);
    }
    Ok(())
}

async fn loose_files(database: &mut Upkeep, folder: &Path, checked: &mut Checked) -> Result<()> {
    let (mut loose, mut named, mut page) = (0_u64, Vec::new(), Vec::new());
    for part in entries(folder)? {
        for path in entries(&part)? {
            page.extend(path.file_name().and_then(|name| name.to_str()).map(str::to_owned));
            if page.len() == PAGE as usize {
                look_up(database, &mut page, &mut loose, &mut named).await?;
            }
        }
    }
    look_up(database, &mut page, &mut loose, &mut named).await?;
    if loose > 0 {
        let message =
            format!("{loose} files in {} belong to no message: {}", folder.display(), some(&named, loose));
        checked.find("loose-files", message);
    }
    Ok(())
}

async fn look_up(
    database: &mut Upkeep,
    page: &mut Vec<String>,
    loose: &mut u64,
    named: &mut Vec<String>,
) -> Result<()> {
    // The name of a file that is being written ends with `#` and a number.
    page.retain(|name| !name.contains('#'));
    let known: HashSet<String> = database.known_files(page).await?.into_iter().collect();
    for name in page.drain(..).filter(|name| !known.contains(name)) {
        *loose += 1;
        named.extend(Some(name).filter(|_| named.len() < NAMED));
    }
    Ok(())
}

/// Lists a folder; empty if the path does not exist or is not a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |error: std::io::Error| {
        let other = || Error::new(ErrorCode::Unavailable, format!("{}: {error}", folder.display()));
        private_files::refusal(folder, &error).unwrap_or_else(other)
    };
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(unreadable)
        }
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(unreadable(error)),
    }
}

fn some(named: &[String], of: u64) -> String {
    let more = of.saturating_sub(named.len() as u64);
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}
