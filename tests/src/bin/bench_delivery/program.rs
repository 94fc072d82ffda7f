//! Selection of the server to measure.

use std::path::{Path, PathBuf};

use crate::Result;

/// Returns the program that the command line names, or else builds the release of this workspace.
pub fn find(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(program) = named {
        return Ok(program.canonicalize()?);
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = ["build", "--release", "--locked", "-p", "hub-server", "--bin", "hub-server"];
    if !std::process::Command::new(cargo).args(build).current_dir(workspace).status()?.success() {
        return Err("the release build of hub-server failed".into());
    }
    let this = std::env::current_exe()?;
    let beside = this.parent().ok_or("this program lies in no folder")?.join("hub-server");
    if beside.is_file() { Ok(beside) } else { Err("run this benchmark with --release".into()) }
}
