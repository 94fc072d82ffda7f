use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Confirm, LocalArgs};

/// Look after the database
#[derive(Debug, Subcommand)]
pub enum DbCommand {
    /// Show what the database holds, how large it is, and when it was last backed up
    #[command(
        after_help = "Examples:\n  hub-cli db status\n  hub-cli db status --json=schema,pending,last_backup_at\n
Exit codes: 0 shown, 5 no such hub, 7 the database cannot be reached.\nSee also: hub-cli db check, hub-cli doctor"
    )]
    Status {
        #[command(flatten)]
        local: LocalArgs,
    },
    /// Bring the schema up to date, making the database when there is none
    #[command(
        after_help = "Examples:\n  hub-cli db migrate\n  hub-cli db migrate --dry-run\n  hub-cli db migrate --database-url sqlite:///var/lib/hub/hub.db\n
A SQLite database that is migrated is copied beside itself before, as hub.db.schema-VERSION; the last two copies stay.
Exit codes: 0 up to date, 7 the database cannot be reached or is of a newer version.\nSee also: hub-cli help env"
    )]
    Migrate {
        /// Only say which migrations are missing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        local: LocalArgs,
    },
    /// Write the database, the files and the key into one file, beside a running server
    Backup(DbBackupArgs),
    /// Put a backup into its place, once all of it was checked
    Restore(DbRestoreArgs),
    /// Look whether the database, its secrets and the files it names are whole
    #[command(after_help = "Examples:\n  hub-cli db check\n  hub-cli db check --json=check,message\n
Exit codes: 0 whole, 5 no such hub, 7 the database cannot be read, 9 something is not as it should be.\nSee also: hub-cli doctor")]
    Check {
        #[command(flatten)]
        local: LocalArgs,
    },
    /// Give the room of what was deleted back to the machine
    #[command(
        after_help = "Examples:\n  hub-cli db vacuum\n  hub-cli db vacuum --json=bytes_before,bytes_after\n
It needs as much room again while it runs, and writes of a running server wait: do it when little happens.
Exit codes: 0 done, 5 no such hub, 7 the database is busy or cannot be reached.\nSee also: hub-cli db prune"
    )]
    Vacuum {
        #[command(flatten)]
        local: LocalArgs,
    },
    /// Forget traces, messages and logs of apps that are older than their retention would have it
    Prune(DbPruneArgs),
    /// The key that seals secrets in the database
    #[command(subcommand)]
    Encrypt(DbEncryptCommand),
}

/// Write the database, the files and the key into one file, beside a running server
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli db backup\n  hub-cli db backup --to /mnt/backup/hub.tar.sealed --passphrase-file /etc/hub/backup.pass\n  hub-cli db backup --to s3://backups/hub/ --passphrase-file /etc/hub/backup.pass\n
The file is a tar archive with checksums. Whoever has it has every bot's login: seal it with --passphrase-file, or leave
the key out with --no-key and keep that elsewhere. s3:// goes to the service of the settings media_s3_…, in parts: below the
prefix, under a name of its own unless one is behind the last slash. With the setting backup_to a server makes backups by
itself each night. PostgreSQL is backed up with pg_dump.
Exit codes: 0 written, 5 no such hub or bucket, 6 there is such a file, or the database is PostgreSQL, 7 it cannot be read or written.\nSee also: hub-cli db restore"
)]
pub struct DbBackupArgs {
    /// The file, or a folder for it, or s3://BUCKET/PREFIX/ [default: backups in the data folder]
    #[arg(long, value_name = "FILE")]
    pub to: Option<String>,
    /// Seal it with the passphrase in the first line of this file; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<String>,
    /// Leave the key out; a restore then needs it from elsewhere
    #[arg(long)]
    pub no_key: bool,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Put a backup into its place, once all of it was checked
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli db restore hub.tar --verify-only\n  hub-cli db restore hub.tar.sealed --passphrase-file /etc/hub/backup.pass --yes\n  hub-cli db restore s3://backups/hub/hub-20260131T120000Z.tar --verify-only\n
Checksums, the database's own checks, its schema and whether its key opens it are looked at before anything is replaced.
What was there stays beside it, under names that end in .replaced, until the next restore.
Where there is no hub yet nothing has to be confirmed.
Exit codes: 0 restored or verified, 2 the file is no whole backup, or there is a hub and it is not confirmed, 5 no such file,
6 the hub's key is another one, 7 a server runs on it.\nSee also: hub-cli db backup, hub-cli db check"
)]
pub struct DbRestoreArgs {
    /// The backup: a file, or s3://BUCKET/PREFIX/NAME
    pub file: String,
    /// Only check it; nothing is changed
    #[arg(long, conflicts_with_all = ["yes", "dry_run"])]
    pub verify_only: bool,
    /// The passphrase is the first line of this file; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<String>,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Forget traces, messages and logs of apps that are older than their retention would have it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli db prune --older-than 30d --dry-run\n  hub-cli db prune --older-than 2026-01-31T00:00:00Z --yes\n
It goes in small pieces, beside a running server. What is still to be delivered or sent stays. The room is used again; `db
vacuum` gives it back.
Exit codes: 0 done, 2 without --yes, 5 no such hub, 7 the database cannot be reached.\nSee also: hub-cli db vacuum"
)]
pub struct DbPruneArgs {
    /// So long ago (12h, 30d), or before this moment (RFC 3339)
    #[arg(long, value_name = "AGE")]
    pub older_than: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// The key that seals secrets in the database
#[derive(Debug, Subcommand)]
pub enum DbEncryptCommand {
    /// Seal every secret with a new key; no server may run
    RotateKey(DbRotateKeyArgs),
}

/// Seal every secret with a new key; no server may run
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli db encrypt rotate-key\n  hub-cli db encrypt rotate-key --new-key-file new.key\n
It may be interrupted: the hub works with both keys until it is run again. The old key is kept as secret.key.old; older
backups that were made without their key need it. Links to files and known devices of people end with the old key.
Exit codes: 0 done, 2 --new-key-file is missing or not wanted, 3 some secrets opened with no key, 5 no such hub, 7 a server
runs on it.\nSee also: hub-cli db check, hub-cli db backup"
)]
pub struct DbRotateKeyArgs {
    /// File with the new key, where the key is a setting: 64 hex digits or base64, readable by you alone
    #[arg(long, value_name = "FILE")]
    pub new_key_file: Option<PathBuf>,
    #[command(flatten)]
    pub local: LocalArgs,
}
