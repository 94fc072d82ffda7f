//! `db`: maintenance of a database.

mod backup;
mod maintenance;
mod status;

use crate::{
    args::{DbCommand, DbEncryptCommand},
    exit::{Exit, Failure},
    printer::Printer,
};

pub async fn run(command: DbCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        DbCommand::Status { local } => status::show(&local, printer).await?,
        DbCommand::Migrate { dry_run: true, local } => status::pending(&local, printer).await?,
        DbCommand::Migrate { dry_run: false, local } => status::migrate(&local, printer).await?,
        DbCommand::Backup(args) => backup::create(args, printer).await?,
        DbCommand::Restore(args) => backup::restore(args, printer).await?,
        DbCommand::Check { local } => return maintenance::check(&local, printer).await,
        DbCommand::Vacuum { local } => maintenance::vacuum(&local, printer).await?,
        DbCommand::Prune(args) => maintenance::prune(args, printer).await?,
        DbCommand::Encrypt(DbEncryptCommand::RotateKey(args)) => {
            return maintenance::rotate_key(args, printer).await;
        }
    }
    Ok(Exit::Done)
}

/// Bytes in readable units.
pub fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| count >= *unit) {
        // One decimal is enough.
        Some((unit, name)) => format!("{}.{} {name}", count / unit, count % unit * 10 / unit),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts_use_binary_units() {
        for (count, text) in
            [(0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 30, "3.0 GiB")]
        {
            assert_eq!(bytes(count), text);
        }
    }
}
