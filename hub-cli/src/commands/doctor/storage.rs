//! The database, the key and their folder.

use std::{path::Path, time::Duration};

use hub_core::{
    backup::{BackupTarget, LAST_BACKUP, newest_nightly},
    data_dir,
    hub::wrong_key,
    private_files,
    random::Random,
    secret::Sealer,
    store::{Schema, StoreConfig, Upkeep},
    time::{Clock, Timestamp},
};

use super::{Outcome, ProtectedPath, Subject};
use crate::{commands::db::bytes, exit::hint};

/// Free space below which the check fails, and below which it warns.
const MIN_FREE_BYTES: u64 = 256 << 20;
const LOW_FREE_BYTES: u64 = 2 << 30;
/// Age of a backup for a warning.
const MAX_BACKUP_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Age of a nightly backup for a warning.
const MAX_NIGHTLY_AGE: Duration = Duration::from_secs(26 * 3600);

pub async fn check(subject: &Subject<'_>) -> Vec<Outcome> {
    let mut outcomes = vec![folder(subject), free_space(&subject.config.data_dir), mount(subject)];
    outcomes.extend(database(subject).await);
    outcomes
}

async fn database(subject: &Subject<'_>) -> Vec<Outcome> {
    let config = subject.config;
    let name = match &config.store {
        StoreConfig::Sqlite(path) => path.display().to_string(),
        StoreConfig::Postgres(_) if subject.args.offline => {
            return vec![Outcome::skipped("store.open", "checking PostgreSQL needs a connection")];
        }
        StoreConfig::Postgres(_) => "PostgreSQL".to_owned(),
    };
    let mut database = match Upkeep::open(&config.store).await {
        Ok(database) => database,
        Err(error) => {
            let message = format!("{name} cannot be opened: {}", error.message());
            let advice =
                hint(&error).unwrap_or_else(|| "hub-server creates a database at its first start".to_owned());
            return vec![Outcome::failed("store.open", message).advise(advice)];
        }
    };
    let mut outcomes = vec![Outcome::ok("store.open", format!("{name} answers"))];
    let schema = match database.schema().await {
        Ok(schema) => schema,
        Err(error) => {
            outcomes.push(Outcome::failed("store.migrations", error.message()));
            return outcomes;
        }
    };
    outcomes.push(migrations(&schema));
    outcomes.extend(commit_log(subject, &mut database).await);
    if subject.wants("store.integrity") {
        outcomes.push(integrity(&mut database).await);
    }
    if schema.version > 0 {
        outcomes.push(backup_age(subject, &mut database).await);
    }
    if schema.version == schema.newest {
        outcomes.push(key(subject, &mut database).await);
        match database.bots().await {
            Ok(bots) => outcomes.extend(bots.iter().map(|(_, name, status)| bot(name, status))),
            Err(error) => outcomes.push(Outcome::failed("network.bots", error.message())),
        }
    }
    outcomes
}

fn migrations(schema: &Schema) -> Outcome {
    let Schema { version, newest, pending } = schema;
    if schema.is_newer() {
        Outcome::failed(
            "store.migrations",
            format!("the schema is {version}, newer than {newest} of this program"),
        )
        .advise("this database is of a newer version of the hub: use that version")
    } else if pending.is_empty() {
        Outcome::ok("store.migrations", format!("the schema is {version}, the newest"))
    } else {
        Outcome::warning("store.migrations", format!("the schema is {version}, but {newest} is needed"))
            .advise("hub-cli db migrate, or the next start of hub-server")
    }
}

/// Messages that a killed hub has left in the commit log; PostgreSQL has none.
async fn commit_log(subject: &Subject<'_>, database: &mut Upkeep) -> Option<Outcome> {
    let id = "store.commit-log";
    if matches!(subject.config.store, StoreConfig::Postgres(_)) {
        return None;
    }
    Some(match database.expect_readable_log().await {
        Ok(()) => Outcome::ok(id, "every entry of the commit log can be read"),
        Err(error) => Outcome::failed(id, error.message()).advise(hint(&error).unwrap_or_default()),
    })
}

async fn integrity(database: &mut Upkeep) -> Outcome {
    let mut found = match database.integrity().await {
        Ok(found) => found,
        Err(error) => return Outcome::failed("store.integrity", error.message()),
    };
    found.extend(database.broken_references().await.unwrap_or_default());
    match found.first() {
        None => Outcome::ok("store.integrity", "all pages and references are intact"),
        Some(first) => {
            Outcome::failed("store.integrity", format!("{} problems, the first: {first}", found.len()))
                .advise("stop the hub, copy its folder, then hub-cli db restore BACKUP --yes")
        }
    }
}

async fn backup_age(subject: &Subject<'_>, database: &mut Upkeep) -> Outcome {
    let id = "store.backup-age";
    if matches!(subject.config.store, StoreConfig::Postgres(_)) {
        return Outcome::skipped(id, "PostgreSQL is backed up with its own tools");
    }
    if let Some(nightly) = subject.config.nightly() {
        let is_far = !matches!(nightly.target, BackupTarget::Folder(_));
        return match (subject.args.offline && is_far, &nightly.target) {
            (true, _) => Outcome::skipped(id, "checking a bucket needs a connection"),
            (false, target) => nightly_age(id, target).await,
        };
    }
    let noted = database.noted(LAST_BACKUP).await.ok().flatten();
    let advice =
        "HUB_BACKUP_TO=/another/disk creates one each night; or hub-cli db backup --to /another/disk/hub.tar";
    match noted.and_then(|text| text.parse().ok()).map(Timestamp::from_millis) {
        None => match database.created_at().await.ok().flatten() {
            Some(at) if at + MAX_BACKUP_AGE > Clock::system().now() => {
                Outcome::ok(id, format!("no backup yet; the database was created at {at}"))
            }
            _ => Outcome::warning(id, "this database was never backed up").advise(advice),
        },
        Some(at) if at + MAX_BACKUP_AGE < Clock::system().now() => {
            Outcome::warning(id, format!("the last backup is of {at}")).advise(advice)
        }
        Some(at) => Outcome::ok(id, format!("the last backup is of {at}")),
    }
}

/// The nightly backups that exist now.
async fn nightly_age(id: &str, target: &BackupTarget) -> Outcome {
    let advice = "search the log of hub-server for \"the nightly backup failed\"";
    match newest_nightly(target).await {
        Err(error) => Outcome::failed(id, error.message()).advise("check HUB_BACKUP_TO"),
        Ok(None) => Outcome::warning(id, format!("there is no nightly backup in {target}"))
            .advise("hub-server creates the first one at its start"),
        Ok(Some(at)) if at + MAX_NIGHTLY_AGE < Clock::system().now() => {
            Outcome::warning(id, format!("the last nightly backup in {target} is of {at}")).advise(advice)
        }
        Ok(Some(at)) => Outcome::ok(id, format!("the last nightly backup in {target} is of {at}")),
    }
}

/// Whether every key of the database is available, and no rotation is incomplete.
async fn key(subject: &Subject<'_>, database: &mut Upkeep) -> Outcome {
    let random = Random::system();
    let here = subject.config.home().sealer(&random);
    let (sealer, unreadable) = match here {
        Ok(sealer) => (sealer, None),
        // Not the fingerprint of any key.
        Err(error) => (Sealer::new(&random.bytes(), random), Some(error.message().to_owned())),
    };
    let here = unreadable.clone().unwrap_or_else(|| format!("the available key is {}", sealer.key_id()));
    match database.sealed().missing_key(&sealer).await {
        Ok(Some(missing)) => {
            let refused = wrong_key(format!("the database is encrypted with the key {missing}, but {here}"));
            Outcome::failed("keys.rotation", refused.message()).advise(hint(&refused).unwrap_or_default())
        }
        Ok(_) if matches!(subject.config.next_key(), Ok(Some(_))) => Outcome::warning(
            "keys.rotation",
            "a rotation of keys was interrupted; the hub works with both keys",
        )
        .advise("stop the hub, then hub-cli db encrypt rotate-key"),
        Ok(_) if unreadable.is_some() => Outcome::failed("keys.rotation", here),
        Ok(_) => Outcome::ok("keys.rotation", format!("the key is {}", sealer.key_id())),
        Err(error) => Outcome::failed("keys.rotation", error.message()),
    }
}

fn bot(name: &str, status: &str) -> Outcome {
    let id = format!("network.{}", name.replace(char::is_whitespace, "-"));
    match status {
        "online" => Outcome::ok(id, "the bot is online"),
        "expired" | "error" => {
            Outcome::failed(id, format!("the bot is {status}")).advise("bind it again: hub-cli bots bind")
        }
        _ => Outcome::warning(id, format!("the bot is {status}")),
    }
}

/// Only the owner may read the data folder.
fn folder(subject: &Subject<'_>) -> Outcome {
    let folder = &subject.config.data_dir;
    let file = |path: std::path::PathBuf| ProtectedPath { path, is_folder: false };
    let key_file = data_dir::key_file(folder);
    let mut paths = vec![
        ProtectedPath { path: folder.clone(), is_folder: true },
        file(data_dir::next_key_file(&key_file)),
        file(key_file),
    ];
    if let StoreConfig::Sqlite(path) = &subject.config.store {
        paths.push(file(path.clone()));
    }
    let mut fixed = false;
    if !folder.exists() {
        if !subject.args.fix {
            return Outcome::warning("keys.permissions", format!("{} does not exist yet", folder.display()))
                .advise("hub-server creates it, or hub-cli doctor --fix");
        }
        if let Err(error) = private_files::create_folder(folder) {
            return Outcome::failed("keys.permissions", format!("{}: {error}", folder.display()));
        }
        fixed = true;
    }
    for protected in &paths {
        let path = protected.path.display();
        match protected.is_exposed() {
            Ok(Some(true)) if subject.args.fix => match protected.close() {
                Ok(()) => fixed = true,
                Err(error) => return Outcome::failed("keys.permissions", format!("{path}: {error}")),
            },
            Ok(Some(true)) => {
                return Outcome::failed("keys.permissions", format!("other users can read {path}"))
                    .advise(format!("chmod {:o} {path}, or hub-cli doctor --fix", protected.mode()));
            }
            Ok(_) => {}
            Err(error) => return Outcome::failed("keys.permissions", format!("{path}: {error}")),
        }
    }
    Outcome {
        fixed,
        ..Outcome::ok("keys.permissions", format!("only the owner can read {}", folder.display()))
    }
}

fn free_space(folder: &Path) -> Outcome {
    // For a missing folder, the free space of its parent.
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    match data_dir::free_bytes(there) {
        Ok(free) if free < MIN_FREE_BYTES => {
            Outcome::failed("store.disk-space", format!("{} are free", bytes(free)))
                .advise("hub-cli db prune --older-than 7d --yes, then hub-cli db vacuum")
        }
        Ok(free) if free < LOW_FREE_BYTES => {
            Outcome::warning("store.disk-space", format!("{} are free", bytes(free)))
        }
        Ok(free) => Outcome::ok("store.disk-space", format!("{} are free", bytes(free))),
        Err(error) => Outcome::skipped("store.disk-space", format!("the free space is unknown: {error}")),
    }
}

/// In a container everything except volumes is lost with it. That is a warning, since it may be intended in tests.
fn mount(subject: &Subject<'_>) -> Outcome {
    let contained = ["/.dockerenv", "/run/.containerenv"].iter().any(|mark| Path::new(mark).exists());
    if !contained {
        return Outcome::skipped(IS_MOUNT, "this is not a container");
    }
    let folder =
        std::path::absolute(&subject.config.data_dir).unwrap_or_else(|_| subject.config.data_dir.clone());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    of_mounts(&folder, &std::env::temp_dir(), &mounts)
}

const IS_MOUNT: &str = "data-dir.is-mount";

fn of_mounts(folder: &Path, temporary: &Path, mounts: &str) -> Outcome {
    let shown = folder.display();
    let advice = format!("docker run --volume hub-data:{shown}");
    if folder.starts_with(temporary) {
        return Outcome::skipped(IS_MOUNT, format!("{shown} is a temporary folder"));
    }
    match mount_of(folder, mounts) {
        Some("tmpfs" | "ramfs") => {
            Outcome::warning(IS_MOUNT, format!("{shown} is in memory, and is lost with the container"))
                .advise(advice)
        }
        Some(_) => Outcome::ok(IS_MOUNT, format!("{shown} is on a volume")),
        None => Outcome::warning(IS_MOUNT, format!("{shown} is lost with the container")).advise(advice),
    }
}

/// The file system of the mount that a folder is in, unless that is the root (`proc(5)`: the fifth field of a line is
/// where it is mounted, and its type follows a single dash).
fn mount_of<'m>(folder: &Path, mounts: &'m str) -> Option<&'m str> {
    let read = |line: &'m str| {
        let (mount, what) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?.replace("\\040", " ");
        Some((point, what.split(' ').next()?))
    };
    let within = |(point, _): &(String, &str)| point != "/" && folder.starts_with(point);
    // The deepest mount; of several at one place the last one is effective.
    mounts.lines().filter_map(read).filter(within).max_by_key(|(point, _)| point.len()).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::{super::Status, *};

    #[test]
    fn doctor_warns_of_a_data_folder_inside_a_container() {
        let mounts = "22 1 0:20 / / rw - overlay overlay rw\n23 22 8:1 /v /var/lib/hub rw - ext4 /dev/sda1 rw\n\
                      24 22 8:1 /w /with\\040space rw - ext4 /dev/sda1 rw\n\
                      25 22 0:5 / /dev/shm rw shared:2 - tmpfs tmpfs rw\n\
                      26 23 0:5 / /var/lib/hub/memory rw - tmpfs tmpfs rw";
        for (folder, status) in [
            ("/var/lib/hub", Status::Ok),
            ("/var/lib/hub/deeper", Status::Ok),
            ("/with space/hub", Status::Ok),
            ("/var/lib", Status::Warning),
            ("/var/lib/hubble", Status::Warning),
            ("/", Status::Warning),
            ("/dev/shm/hub", Status::Warning),
            ("/var/lib/hub/memory/hub", Status::Warning),
            ("/tmp/hub", Status::Skipped),
        ] {
            let outcome = of_mounts(Path::new(folder), Path::new("/tmp"), mounts);
            assert_eq!(outcome.status, status, "{folder}: {outcome:?}");
        }
    }
}
