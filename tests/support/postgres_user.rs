//! Account that runs the database server, which refuses to run as root.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// An account without rights, and the program that becomes it.
#[derive(Debug, Clone)]
pub struct Unprivileged {
    pub uid: u32,
    pub gid: u32,
    setpriv: PathBuf,
}

impl Unprivileged {
    /// The account to use, when this process is root; `None` when it is not.
    ///
    /// # Errors
    /// Fails if this machine has no such account or no `setpriv`.
    pub fn find() -> Result<Option<Self>, String> {
        if !is_root() {
            return Ok(None);
        }
        let accounts = std::fs::read_to_string("/etc/passwd").map_err(|error| error.to_string())?;
        let (uid, gid) = ["postgres", "nobody"]
            .iter()
            .find_map(|name| account(&accounts, name))
            .ok_or("the database server must not run as root, and there is no account to run it as")?;
        let setpriv = find_program("setpriv")
            .ok_or("the database server must not run as root, and `setpriv` is not installed")?;
        Ok(Some(Self { uid, gid, setpriv }))
    }

    /// The words before a command that make it run as this account.
    pub fn prefix(&self) -> Vec<String> {
        vec![
            self.setpriv.display().to_string(),
            format!("--reuid={}", self.uid),
            format!("--regid={}", self.gid),
            "--clear-groups".to_owned(),
        ]
    }
}

/// A command, run as the account when there is one.
pub fn command(who: Option<&Unprivileged>, program: &Path) -> Command {
    let Some(who) = who else { return Command::new(program) };
    let prefix = who.prefix();
    let mut command = Command::new(&prefix[0]);
    command.args(&prefix[1..]).arg(program);
    command
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    // The second number is the effective one.
    ids.is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"))
}

fn account(accounts: &str, name: &str) -> Option<(u32, u32)> {
    let fields: Vec<&str> =
        accounts.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

/// A program in `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}
