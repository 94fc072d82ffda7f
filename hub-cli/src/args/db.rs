use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Confirm, Ends, Fields, LocalArgs};

/// Maintain the database
#[derive(Debug, Subcommand)]
pub enum DbCommand {
    /// Show the contents and the size of the database, and its last backup
    #[command(
        after_help = "Examples:\n  hub-cli db status\n  hub-cli db status --json=schema,pending,last_backup_at\n\nSee also: hub-cli db check, hub-cli doctor",
        add = Ends(&[(5, "no such hub"), (7, "the database cannot be reached")]),
        add = Fields::own(&["database", "schema", "newest", "pending", "bytes", "rows", "key_id", "running", "last_backup_at", "unreadable_entries"])
    )]
    Status {
        #[command(flatten)]
        local: LocalArgs,
    },
    /// Migrate the schema; creates the database if there is none
    #[command(
        after_help = "Examples:\n  hub-cli db migrate\n  hub-cli db migrate --dry-run\n  hub-cli db migrate --database-url sqlite:///var/lib/hub/hub.db\n
Before a migration, a SQLite database is copied to hub.db.schema-VERSION next to it; the last two copies are kept.\nSee also: hub-cli help env",
        add = Ends(&[(0, "up to date"), (7, "the database cannot be reached, is in use or is of a newer version")]),
        add = Fields::own(&["database"])
    )]
    Migrate {
        /// Only list the missing migrations
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        local: LocalArgs,
    },
    Backup(DbBackupArgs),
    Restore(DbRestoreArgs),
    /// Check the integrity of the database, its secrets and its files
    #[command(
        after_help = "Examples:\n  hub-cli db check\n  hub-cli db check --json=check,message\n\nSee also: hub-cli doctor",
        add = Ends(&[(0, "intact"), (5, "no such hub"), (7, "the database cannot be read"), (9, "problems were found")]),
        add = Fields::own(&["check", "message"])
    )]
    Check {
        #[command(flatten)]
        local: LocalArgs,
    },
    /// Reclaim the space of deleted data
    #[command(
        after_help = "Examples:\n  hub-cli db vacuum\n  hub-cli db vacuum --json=bytes_before,bytes_after\n
It temporarily needs as much disk space again, and writes of a running server wait: run it at a quiet time.\nSee also: hub-cli db prune",
        add = Ends(&[(5, "no such hub"), (7, "the database is busy or cannot be reached")]),
        add = Fields::own(&["bytes_before", "bytes_after"])
    )]
    Vacuum {
        #[command(flatten)]
        local: LocalArgs,
    },
    Prune(DbPruneArgs),
    #[command(subcommand)]
    Encrypt(DbEncryptCommand),
}

/// Back up the database, the files and the key into one file; the server may be running
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli db backup\n  hub-cli db backup --to /mnt/backup/hub.tar.sealed --passphrase-file /etc/hub/backup.pass\n  hub-cli db backup --to s3://backups/hub/ --passphrase-file /etc/hub/backup.pass\n
The file is a tar archive with checksums. It contains the login of every bot: encrypt it with --passphrase-file, or exclude
the key with --no-key and keep that elsewhere. s3:// uploads to the service of the settings media_s3_…, with a generated
name unless the URL ends in one. With the setting backup_to a server makes a backup each night. PostgreSQL is backed up with
pg_dump.\nSee also: hub-cli db restore",
    add = Ends(&[(0, "written"), (5, "no such hub or bucket"), (6, "the file exists, or the database is PostgreSQL"), (7, "it cannot be read or written")]),
    add = Fields::own(&["file", "bytes", "created_at", "schema", "key_id", "has_key", "files", "missing_files"])
)]
pub struct DbBackupArgs {
    /// The file, or a folder for it, or s3://BUCKET/PREFIX/ [default: backups in the data folder]
    #[arg(long, value_name = "FILE")]
    pub to: Option<String>,
    /// Encrypt it with the passphrase in the first line of this file; - reads stdin
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<String>,
    /// Exclude the key; a restore then needs it from elsewhere
    #[arg(long)]
    pub no_key: bool,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Restore a backup after checking all of it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli db restore hub.tar --verify-only\n  hub-cli db restore hub.tar.sealed --passphrase-file /etc/hub/backup.pass --yes\n  hub-cli db restore s3://backups/hub/hub-20260131T120000Z.tar --verify-only\n
Checksums, the database's integrity and schema, and the key are checked before anything is replaced.
The previous files are kept next to the new ones, under names that end in .replaced, until the next restore.
Without an existing hub no confirmation is needed.\nSee also: hub-cli db backup, hub-cli db check",
    add = Ends(&[(0, "restored or verified"), (2, "invalid backup, or replacing a hub is not confirmed"), (5, "no such file"), (6, "the hub uses another key"), (7, "a server is running on it")]),
    add = Fields::own(&["file", "restored", "created_at", "version", "schema", "key_id", "files", "replaced"])
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

/// Delete traces, messages and logs of apps, regardless of their retention
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli db prune --older-than 30d --dry-run\n  hub-cli db prune --older-than 2026-01-31T00:00:00Z --yes\n
Works in small batches; the server may be running. Pending deliveries and sends are kept. The space is reused; `db vacuum`
returns it to the file system.\nSee also: hub-cli db vacuum",
    add = Ends(&[(2, "not confirmed"), (5, "no such hub"), (7, "the database cannot be reached")]),
    add = Fields::own(&["before", "pruned", "traces", "messages", "app_calls", "app_events"])
)]
pub struct DbPruneArgs {
    /// Older than this (12h, 30d), or before this time (RFC 3339)
    #[arg(long, value_name = "AGE")]
    pub older_than: String,
    #[command(flatten)]
    pub confirm: Confirm,
    #[command(flatten)]
    pub local: LocalArgs,
}

/// Manage the key that encrypts secrets in the database
#[derive(Debug, Subcommand)]
pub enum DbEncryptCommand {
    RotateKey(DbRotateKeyArgs),
}

/// Encrypt every secret with a new key; the server must be stopped
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hub-cli db encrypt rotate-key\n  hub-cli db encrypt rotate-key --new-key-file new.key\n
It may be interrupted: the hub works with both keys until it is run again. The old key is kept as secret.key.old; backups
made without their key before need it. Links to files and known devices of users become invalid.\nSee also: hub-cli db check, hub-cli db backup",
    add = Ends(&[(2, "--new-key-file is missing or not allowed"), (3, "some secrets could not be decrypted"), (5, "no such hub"), (7, "a server runs on it")]),
    add = Fields::own(&["old_key_id", "key_id", "sealed", "unreadable"])
)]
pub struct DbRotateKeyArgs {
    /// File with the new key, if the key is a setting: 64 hex digits or base64, readable only by you
    #[arg(long, value_name = "FILE")]
    pub new_key_file: Option<PathBuf>,
    #[command(flatten)]
    pub local: LocalArgs,
}
