//! `traces to-test`: what happened once, as a case that is run from now on.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use hub_core::{
    id::TraceId,
    replay::case::{CaseFile, CasePlugin, TraceCase, test_case},
};
use serde_json::json;

use super::recording;
use crate::{
    args::TracesToTestArgs,
    client::Client,
    commands::{plugins::run as hooks, read_file, recordings},
    context::Context,
    exit::{Exit, Failure},
    printer::Printer,
};

pub async fn run(args: TracesToTestArgs, cx: &Context) -> Result<(), Failure> {
    let trace = recordings::trace_id(&args.trace)?;
    let client = cx.hub(&args.hub).await?;
    let case = match &args.script {
        Some(script) => of_script(script, &args.out, &client, trace, &cx.printer).await?,
        None => client.trace_case(trace, args.plugin.clone()).await?,
    };
    if let Some(warning) = &case.warning {
        cx.printer.note(&format!("! {warning}"));
    }
    let written = write(&args.out, &case.files)?;
    let folder = args.out.display();
    cx.printer.note(&format!(
        "run it: hub-cli plugins test {folder}; look through the files before you pass them on"
    ));
    let shown = json!({ "trace_id": case.trace_id, "plugin": case.plugin, "files": written });
    cx.printer.one(shown, &written.join("\n"))
}

/// A case of a source of the caller, made here: the hub does not have it.
async fn of_script(
    path: &Path,
    out: &Path,
    client: &Client,
    trace: TraceId,
    printer: &Printer,
) -> Result<TraceCase, Failure> {
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let name = name.ok_or_else(|| Failure::usage("--script: name a file"))?;
    let shown = path.display().to_string();
    let source = read_file(&shown)?;
    let manifest = hooks::metadata(&shown, &source)?;
    let recording = recording(client, trace).await?;
    let plugin = CasePlugin { name, file: relative(path, out)?, source, is_copied: false };
    let sandbox = hooks::sandbox();
    let case = test_case(&sandbox, "cli", &plugin, &manifest, &recording).await;
    hooks::close(&sandbox, printer);
    Ok(case?)
}

/// The path of a file as seen from a folder, which need not exist: cases name their source by it, so that they test the
/// file that its author changes.
fn relative(file: &Path, folder: &Path) -> Result<String, Failure> {
    let file = file.canonicalize().map_err(|error| Failure::file(file, error))?;
    std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    let folder = folder.canonicalize().map_err(|error| Failure::file(folder, error))?;
    let common = file.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(file.components().skip(common)).collect();
    path.to_str().map(str::to_owned).ok_or_else(|| Failure::file(file, "has a name that is not UTF-8"))
}

/// Writes new files; one that is there already with the same content stays.
fn write(folder: &Path, files: &[CaseFile]) -> Result<Vec<String>, Failure> {
    // The names come from a hub: none of them leads out of the folder.
    if let Some(file) =
        files.iter().find(|file| Path::new(&file.name).file_name() != Some(OsStr::new(&file.name)))
    {
        return Err(Failure::new(
            Exit::Failed,
            "INVALID_RESPONSE",
            format!("{:?} is not the name of a file", file.name),
        ));
    }
    std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    let paths: Vec<_> = files.iter().map(|file| (folder.join(&file.name), &file.content)).collect();
    for (path, text) in &paths {
        if path.exists() && std::fs::read(path).ok().as_deref() != Some(text.as_bytes()) {
            let what = format!("{} exists already, with other content", path.display());
            return Err(
                Failure::new(Exit::Conflict, "CONFLICT", what).with_hint("choose another folder with --out")
            );
        }
    }
    for (path, text) in &paths {
        std::fs::write(path, text).map_err(|error| Failure::file(path, error))?;
    }
    Ok(paths.iter().map(|(path, _)| path.display().to_string()).collect())
}
