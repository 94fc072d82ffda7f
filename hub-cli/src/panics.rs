//! Panics: a short message, and a report in a file.

use std::{
    backtrace::Backtrace,
    fs::OpenOptions,
    io::{self, Write},
    panic::PanicHookInfo,
    path::{Path, PathBuf},
};

/// Installs the panic hook: it prints three lines, and with `HUB_BACKTRACE=1` the backtrace.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        let report = report(info, &Backtrace::force_capture());
        let place = write(&std::env::temp_dir(), &report);
        let shown = std::env::var_os("HUB_BACKTRACE").is_some_and(|value| value == "1");
        // Errors are ignored: stderr is closed.
        let _ = io::stderr().write_all(text(place.as_deref().ok(), &report, shown).as_bytes());
    }));
}

fn report(info: &PanicHookInfo<'_>, backtrace: &Backtrace) -> String {
    format!("hub-cli {}\n{info}\n\n{backtrace}\n", env!("CARGO_PKG_VERSION"))
}

/// A file that only this user can read: the report may contain a secret.
fn write(folder: &Path, report: &str) -> io::Result<PathBuf> {
    let path = folder.join(format!("hub-cli-fault-{}.txt", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&path)?.write_all(report.as_bytes())?;
    Ok(path)
}

fn text(report_at: Option<&Path>, report: &str, shown: bool) -> String {
    let place = report_at.map(|path| format!("report: {}\n", path.display())).unwrap_or_default();
    let hint = "hint: HUB_BACKTRACE=1 prints the backtrace; please report it, without secrets\n";
    let more = if shown { report } else { hint };
    format!("error[INTERNAL_ERROR]: hub-cli crashed\n{place}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_report_is_private_and_its_path_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "a backtrace").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a backtrace");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        // Someone may have put a link there: nothing is written through it.
        assert!(write(folder.path(), "again").is_err());
        let short = text(Some(&path), "a backtrace", false);
        assert!(short.contains(&path.display().to_string()) && !short.contains("a backtrace"), "{short}");
        assert!(text(None, "a backtrace", true).contains("a backtrace"));
    }
}
