//! `--watch`: runs again whenever a source is saved.

use std::{path::Path, time::Duration};

use hub_core::time::Clock;
use notify::{RecursiveMode, Watcher};
use tokio::sync::mpsc;

use super::Tried;
use crate::{
    exit::{Exit, Failure},
    printer::{Printer, Tone},
};

/// Editors write in several steps: wait for the next one.
const SETTLE_DELAY: Duration = Duration::from_millis(20);

/// Runs now and after every change, until interrupted. At a terminal each output replaces the previous one; while the
/// source has errors, its last good output stays.
pub async fn run(
    path: &str,
    once: impl AsyncFn() -> Result<Tried, Failure>,
    printer: &Printer,
) -> Result<(), Failure> {
    let file = Path::new(path);
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().ok_or_else(|| Failure::usage("--watch: name a file"))?.to_owned();
    // Capacity 1: events until the next read count as one change.
    let (sender, mut changed) = mpsc::channel::<()>(1);
    let watch = move |event: notify::Result<notify::Event>| {
        let is_ours = |event: &notify::Event| {
            !event.kind.is_access() && event.paths.iter().any(|path| path.file_name() == Some(&name))
        };
        if event.is_ok_and(|event| is_ours(&event)) {
            let _ = sender.try_send(());
        }
    };
    let failed = |error: notify::Error| Failure::file(path, error);
    let mut watcher = notify::recommended_watcher(watch).map_err(failed)?;
    // The folder is watched, because editors replace the file.
    watcher.watch(folder, RecursiveMode::NonRecursive).map_err(failed)?;
    let (clock, mut shown, mut good) = (Clock::system(), 0, None::<String>);
    loop {
        let (text, is_good) = match once().await {
            Ok(tried) => (tried.text, tried.exit == Exit::Done),
            Err(failure) => (failure.to_text(), false),
        };
        let shown_text = match &good {
            Some(good) if !is_good => {
                let before = printer.paint("before:", Tone::Faint);
                // The new output comes last: a small terminal shows the end.
                format!("{before}\n{good}\n\n{text}")
            }
            _ => text.clone(),
        };
        printer.replace(shown, &shown_text)?;
        shown = shown_text.lines().count();
        if is_good {
            good = Some(text);
        }
        if changed.recv().await.is_none() {
            return Ok(());
        }
        clock.sleep(SETTLE_DELAY).await;
        let _ = changed.try_recv();
    }
}
