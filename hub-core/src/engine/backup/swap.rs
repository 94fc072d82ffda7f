//! The last step of a restore: renames under a journal. If it is interrupted, the next process that opens the folder
//! completes it: all files that the journal names were complete before it was written.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{remove, sync_folder_of, unusable, with_suffix};
use crate::{error::Result, private_files, store::claim_file};

/// Name of the journal, in the data folder.
const JOURNAL: &str = "restore.journal";

/// Renames to do, in this order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) moves: Vec<Move>,
}

/// One file or folder to replace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Move {
    pub(super) target: PathBuf,
    /// Path of the new one; `None` if the target is only removed.
    pub(super) staged: Option<PathBuf>,
}

impl Move {
    fn replaced(&self) -> PathBuf {
        // SQLite looks for a log under the name of its database.
        let name = self.target.as_os_str().to_string_lossy();
        match ["-wal", "-shm"].iter().find_map(|log| Some((name.strip_suffix(log)?, log))) {
            Some((database, log)) => format!("{database}.replaced{log}").into(),
            None => with_suffix(&self.target, ".replaced"),
        }
    }

    /// Moves the old one aside and the new one to its target. Idempotent: a repeat continues an interrupted run.
    fn run(&self) -> io::Result<()> {
        let waits = self.staged.as_ref().is_none_or(|staged| staged.exists());
        let there = self.target.symlink_metadata().is_ok();
        if waits && there {
            std::fs::rename(&self.target, self.replaced())?;
        }
        match &self.staged {
            Some(staged) if waits => std::fs::rename(staged, &self.target)?,
            _ => {}
        }
        sync_folder_of(&self.target)
    }
}

/// Writes the journal and carries it out; returns the paths of the replaced files.
pub(super) fn run(data_dir: &Path, journal: &Journal) -> Result<Vec<PathBuf>> {
    let path = begin(data_dir, journal)?;
    carry_out(&path, journal)?;
    Ok(journal.moves.iter().map(Move::replaced).filter(|path| path.exists()).collect())
}

/// Writes the journal. After this, the new hub is the valid one.
fn begin(data_dir: &Path, journal: &Journal) -> Result<PathBuf> {
    let path = data_dir.join(JOURNAL);
    let partial = with_suffix(&path, ".partial");
    let write = || {
        // Files kept by an earlier restore are removed: its folders would block renames, and the kept files must be
        // of one hub.
        journal.moves.iter().try_for_each(|step| remove(&step.replaced()))?;
        remove(&partial)?;
        private_files::create_new(&partial, &serde_json::to_vec(journal)?)?;
        for step in &journal.moves {
            if let Some(staged) = &step.staged {
                sync_folder_of(staged)?;
            }
        }
        std::fs::rename(&partial, &path)?;
        sync_folder_of(&path)
    };
    write().map_err(|error: io::Error| unusable(&path, error))?;
    Ok(path)
}

fn carry_out(path: &Path, journal: &Journal) -> Result<()> {
    for step in &journal.moves {
        step.run().map_err(|error| unusable(&step.target, error))?;
    }
    let ended = remove(path).and_then(|()| sync_folder_of(path));
    ended.map_err(|error| unusable(path, error))
}

/// Completes a restore that was interrupted in its last step. Everything that opens the hub of a directory calls this
/// first; usually there is nothing to do.
///
/// # Errors
/// `UNAVAILABLE` when the restore still runs, or something cannot be renamed.
pub fn settle(data_dir: &Path) -> Result<()> {
    let path = data_dir.join(JOURNAL);
    let Some(journal) = read(&path)? else { return Ok(()) };
    let database = journal.moves.iter().find(|step| {
        let name = step.target.as_os_str().to_string_lossy();
        step.staged.is_some() && !name.ends_with("-wal") && !name.ends_with("-shm")
    });
    let _claim = database.map(|step| claim_file(&step.target)).transpose()?;
    finish(data_dir)
}

/// As [`settle`], for who has the claim on the database.
pub(super) fn finish(data_dir: &Path) -> Result<()> {
    let path = data_dir.join(JOURNAL);
    let Some(journal) = read(&path)? else { return Ok(()) };
    tracing::info!(path = %path.display(), "a restore that was interrupted is carried to its end");
    carry_out(&path, &journal)
}

fn read(path: &Path) -> Result<Option<Journal>> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, error)),
    };
    // Renamed into its place when it was whole: one that cannot be read was not written by a restore.
    serde_json::from_slice(&text).map(Some).map_err(|error| unusable(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(folder: &Path) -> Journal {
        let old = |name: &str| std::fs::write(folder.join(name), "old").unwrap();
        ["hub.db", "hub.db-wal", "secret.key", "secret.key.new"].into_iter().for_each(old);
        std::fs::create_dir(folder.join("media")).unwrap();
        old("media/one");
        for name in ["hub.db.restoring", "secret.key.restoring"] {
            std::fs::write(folder.join(name), "new").unwrap();
        }
        std::fs::create_dir(folder.join("media.restoring")).unwrap();
        std::fs::write(folder.join("media.restoring/two"), "new").unwrap();
        let step = |target: &str, new: bool| Move {
            target: folder.join(target),
            staged: new.then(|| folder.join(format!("{target}.restoring"))),
        };
        let moves = vec![
            step("hub.db-wal", false),
            step("hub.db-shm", false),
            step("hub.db", true),
            step("secret.key", true),
            step("secret.key.new", false),
            step("media", true),
        ];
        Journal { moves }
    }

    fn assert_new(folder: &Path, ended: usize) {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert_eq!(read("hub.db"), "new", "ended after {ended}");
        assert_eq!(read("secret.key"), "new", "ended after {ended}");
        assert_eq!(read("media/two"), "new", "ended after {ended}");
        for gone in ["hub.db-wal", "secret.key.new", "media/one", "hub.db.restoring", JOURNAL] {
            assert!(!folder.join(gone).exists(), "{gone} is there, ended after {ended}");
        }
        for kept in ["hub.db.replaced", "hub.db.replaced-wal", "secret.key.replaced", "media.replaced/one"] {
            assert_eq!(read(kept), "old", "{kept}, ended after {ended}");
        }
    }

    #[test]
    fn ended_after_any_step_it_is_carried_to_its_end() {
        for ended in 0..=6 {
            // Also between the two renames of the step.
            for halfway in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let journal = stage(folder.path());
                begin(folder.path(), &journal).unwrap();
                journal.moves.iter().take(ended).for_each(|step| step.run().unwrap());
                if let Some(next) = journal.moves.get(ended).filter(|step| halfway && step.target.exists()) {
                    std::fs::rename(&next.target, next.replaced()).unwrap();
                }
                settle(folder.path()).unwrap();
                assert_new(folder.path(), ended);
                settle(folder.path()).unwrap();
                assert_new(folder.path(), ended);
            }
        }
    }

    #[test]
    fn without_its_journal_nothing_is_moved() {
        let folder = tempfile::tempdir().unwrap();
        stage(folder.path());
        std::fs::write(folder.path().join("restore.journal.partial"), "{\"mov").unwrap();
        settle(folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("hub.db")).unwrap(), "old");
        assert_eq!(std::fs::read_to_string(folder.path().join("media/one")).unwrap(), "old");
    }

    #[test]
    fn a_restore_that_runs_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = stage(folder.path());
        begin(folder.path(), &journal).unwrap();
        let _claim = claim_file(&folder.path().join("hub.db")).unwrap();
        assert!(settle(folder.path()).unwrap_err().message().contains("another process"));
        assert_eq!(std::fs::read_to_string(folder.path().join("hub.db")).unwrap(), "old");
    }
}
