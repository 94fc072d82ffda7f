//! Steps towards the solution of an error that each frontend names in its own words: a command, a variable, a call.

use crate::words::words;

/// A step towards the solution of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// Bind the account of the bot again.
    BindBot,
    /// Restore a backup.
    RestoreBackup,
    /// Migrate the database.
    MigrateDatabase,
    /// Replace the key of the hub, or complete an interrupted replacement.
    RotateKey,
    /// Create a key and name it.
    NewKey,
    /// Confirm an operation that replaces something.
    Confirm,
    /// Create an administrator on the machine of the hub.
    CreateAdministrator,
    /// Change a setting; to this value, if it has none yet.
    Set(Setting, Option<String>),
}

words! {
    /// A setting of the hub, by its key in the configuration file.
    pub enum Setting {
        /// Retention of traces.
        TraceRetention = "trace_retention",
        /// Private addresses to which the hub connects.
        EgressAllow = "egress_allow",
        /// Whether plugins need a filter of system calls.
        SandboxFilter = "sandbox_filter",
        /// The key that encrypts secrets.
        SecretKey = "secret_key",
        /// The passphrase that encrypts backups.
        BackupPassphrase = "backup_passphrase",
        /// The directory of the database and the key.
        DataDir = "data_dir",
        /// The URL at which users reach the hub.
        PublicUrl = "public_url",
    }
}
