//! The browser of the desktop.

use std::{
    io::{self, IsTerminal},
    process::{Command, Stdio},
};

/// Opens an address, when the browser would appear in front of the user: at a terminal with a display, not over SSH and
/// not in CI. A failure is not reported: the address is on the screen.
pub fn open(address: &str) {
    if !is_in_front() {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    let quiet = command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It is not awaited: it may become the browser.
    let _ = quiet.spawn();
}

fn is_in_front() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_remote = ["CI", "SSH_CONNECTION", "SSH_TTY"].into_iter().any(set);
    let has_display = cfg!(target_os = "macos") || set("DISPLAY") || set("WAYLAND_DISPLAY");
    io::stdin().is_terminal() && io::stderr().is_terminal() && has_display && !is_remote
}
