//! `traces export`: recordings, one per line.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use hub_core::private_files;
use serde_json::json;

use crate::{
    args::TracesExportArgs,
    commands::recordings::{self, Recordings, line},
    context::Context,
    exit::{Exit, Failure},
    printer::Printer,
};

pub async fn run(args: TracesExportArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let bot = client.bot(&args.bot).await?;
    let query = recordings::query(&client, bot, &args.filter).await?;
    let recordings = Recordings::new(&client, bot, query, None, true);
    let written = match &args.out {
        None => to_stdout(recordings, &cx.printer).await?,
        Some(path) => {
            let file = create(path)?;
            let written = to_file(recordings, file, path).await;
            if written.is_err() {
                // Removes an incomplete file.
                let _ = std::fs::remove_file(path);
            }
            written?
        }
    };
    match (&args.out, written) {
        (Some(path), written) => {
            cx.printer.note(&format!("{written} traces in {}", path.display()));
            cx.printer.one(
                json!({ "file": path.display().to_string(), "traces": written }),
                &path.display().to_string(),
            )
        }
        (None, 0) => {
            cx.printer.note("no such traces");
            Ok(())
        }
        (None, _) => Ok(()),
    }
}

async fn to_stdout(mut recordings: Recordings<'_>, printer: &Printer) -> Result<u64, Failure> {
    let mut written = 0;
    while let Some(recording) = recordings.next().await? {
        printer.one(json!(recording), &line(&recording))?;
        written += 1;
    }
    Ok(written)
}

async fn to_file(mut recordings: Recordings<'_>, file: File, path: &Path) -> Result<u64, Failure> {
    let mut file = BufWriter::new(file);
    let failed = |error| Failure::file(path, error);
    let mut written = 0;
    while let Some(recording) = recordings.next().await? {
        writeln!(file, "{}", line(&recording)).map_err(failed)?;
        written += 1;
    }
    file.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
    Ok(written)
}

fn create(path: &Path) -> Result<File, Failure> {
    let shown = path.display().to_string();
    let made = private_files::create_new(path, b"").and_then(|()| private_files::open(path));
    made.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::new(Exit::Conflict, "CONFLICT", format!("{shown} exists already"))
        }
        _ => Failure::file(&shown, error),
    })
}
