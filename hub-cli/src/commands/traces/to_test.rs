//! `traces to-test`: what happened once, as a case that is run from now on.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use hub_core::{
    plugins::debug::{DebugResponse, DebugRun, Debugged},
    replay::{Fakes, Recording},
    sandbox::{Hook, Sandbox},
    traces::{Step, StepName},
};
use serde_json::{Value, json};

use super::recording;
use crate::{
    args::TracesToTestArgs,
    client::Client,
    commands::{
        plugins::run::{self},
        read_file, recordings,
    },
    context::Context,
    exit::{Exit, Failure},
};

pub async fn run(args: TracesToTestArgs, cx: &Context) -> Result<(), Failure> {
    let trace = recordings::trace_id(&args.trace)?;
    let client = cx.hub(&args.hub).await?;
    let recording = recording(&client, trace).await?;
    let plugin = Plugin::of(&args, &client, &recording).await?;
    let real = &recording;
    let recording = Fakes::new().recording(real)?;
    let message = recording.message.clone().ok_or_else(|| {
        Failure::not_found("the message of this trace is no longer stored")
            .with_hint("messages outlive their traces unless they are deleted")
    })?;
    let sandbox = run::sandbox();
    let cases = cases(&sandbox, &plugin, &recording, message).await?;
    sandbox.close();
    if let Some(note) = departure(real, &plugin, &cases.request) {
        cx.printer.note(&note);
    }
    let name = recording.trace.trace_id.to_string();
    let mut files = vec![(format!("{name}.jsonl"), recordings::line(&recording) + "\n")];
    if plugin.is_copied {
        files.insert(0, (plugin.file.clone(), plugin.source.clone()));
    }
    for (kind, case) in cases.documents {
        let text = serde_json::to_string_pretty(&case).unwrap_or_default() + "\n";
        files.push((format!("{name}{kind}.case.json"), text));
    }
    let written = write(&args.out, &files)?;
    let folder = args.out.display();
    cx.printer.note(&format!(
        "run it: hub-cli plugins test {folder}; look through the files before you pass them on"
    ));
    cx.printer.one(json!({ "trace_id": name, "plugin": plugin.name, "files": written }), &written.join("\n"))
}

struct Plugin {
    name: String,
    /// The source as the cases name it: next to them, or where its author keeps it.
    file: String,
    source: String,
    /// Whether the source is written next to the cases: that of a hub has no file yet.
    is_copied: bool,
}

impl Plugin {
    /// The source that is named, or the version that ran.
    async fn of(args: &TracesToTestArgs, client: &Client, recording: &Recording) -> Result<Self, Failure> {
        if let Some(path) = &args.script {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
            let name = name.ok_or_else(|| Failure::usage("--script: name a file"))?;
            let source = read_file(&path.display().to_string())?;
            return Ok(Self { name, source, file: relative(path, &args.out)?, is_copied: false });
        }
        let step = chosen(recording, args.plugin.as_deref())?;
        let [plugin, name, version] =
            ["plugin_id", "plugin", "version"].map(|field| step.detail[field].as_str().unwrap_or_default());
        let document = client.plugin(plugin).await?;
        let versions = document["versions"].as_array().into_iter().flatten();
        let id = versions.filter(|known| known["version"] == version).find_map(|known| known["id"].as_str());
        let id = id.ok_or_else(|| {
            Failure::not_found(format!("version {version} of {name} is not kept any more"))
                .with_hint("name a source of yours with --script")
        })?;
        let source = client.plugin(id).await?["script"].as_str().unwrap_or_default().to_owned();
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
        Ok(Self {
            name: name.to_owned(),
            file: format!("{}.js", name.chars().map(plain).collect::<String>()),
            source,
            is_copied: true,
        })
    }
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

/// The step of the plugin that ran.
fn chosen<'r>(recording: &'r Recording, wanted: Option<&str>) -> Result<&'r Step, Failure> {
    let mut ran: BTreeMap<&str, &Step> = BTreeMap::new();
    for step in &recording.trace.steps {
        if step.name == StepName::PluginOnRequest
            && let Some(name) = step.detail["plugin"].as_str()
        {
            ran.entry(name).or_insert(step);
        }
    }
    let names = ran.keys().copied().collect::<Vec<_>>().join(", ");
    match (wanted, ran.len()) {
        (Some(wanted), _) => ran.get(wanted).copied().ok_or_else(|| {
            Failure::not_found(format!("no plugin {wanted} is in this trace")).with_hint(
                if names.is_empty() {
                    "name a source with --script".to_owned()
                } else {
                    format!("there are: {names}")
                },
            )
        }),
        (None, 1) => Ok(ran.into_values().next().unwrap_or(&recording.trace.steps[0])),
        (None, 0) => Err(Failure::not_found("no plugin is in this trace")
            .with_hint("name a source of yours with --script")),
        (None, _) => Err(Failure::usage("several plugins are in this trace")
            .with_hint(format!("name one with --plugin: {names}"))),
    }
}

/// The cases of a plugin.
struct Cases {
    /// What the request hook did.
    request: Debugged,
    /// Suffixes of their file names, after the trace.
    documents: Vec<(&'static str, Value)>,
}

async fn cases(
    sandbox: &Sandbox,
    plugin: &Plugin,
    recording: &Recording,
    message: Value,
) -> Result<Cases, Failure> {
    let first = recording.request();
    let url = first.as_ref().map_or(hub_core::plugins::debug::SAMPLE_URL, |request| request.url.as_str());
    let trial = DebugRun {
        script: plugin.source.clone(),
        message: message.clone(),
        request: None,
        url: url.to_owned(),
        response: None,
        state: None,
    };
    let request = run::make(sandbox, &plugin.file, trial.clone()).await?;
    let case = |debugged: &Debugged| json!({ "script": plugin.file, "message": message, "url": url, "expect": expectation(debugged) });
    let mut documents = vec![("", case(&request))];
    if let Some(answer) = recording.response()
        && request.request.is_some()
    {
        let headers = BTreeMap::from([("content-type".to_owned(), content_type(&answer.body).to_owned())]);
        let response =
            DebugResponse { status: answer.status, headers: headers.clone(), body: answer.body.clone() };
        let trial = DebugRun { response: Some(response), state: request.state.clone(), ..trial };
        let debugged = run::make(sandbox, &plugin.file, trial).await?;
        if debugged.present {
            let mut case = case(&debugged);
            case["response"] = json!({ "status": answer.status, "headers": headers, "body": answer.body });
            if let Some(state) = &request.state {
                case["state"] = json!(state);
            }
            documents.push((".response", case));
        }
    }
    Ok(Cases { request, documents })
}

/// As the recorded answers are distinguished: the trace keeps their bodies as texts.
fn content_type(body: &str) -> &'static str {
    if serde_json::from_str::<Value>(body).is_ok() { "application/json" } else { "text/plain" }
}

/// What the next run has to do as well. Headers that the plugin left alone are of the hub's version, not of the plugin.
fn expectation(debugged: &Debugged) -> Value {
    let mut expected = run::expectation(&run::document(debugged));
    if debugged.hook == Hook::OnResponse {
        // It only reads the request.
        expected.as_object_mut().map(|fields| fields.remove("request"));
        return expected;
    }
    if let Some(headers) = expected["request"]["headers"].as_object_mut() {
        headers.retain(|name, value| {
            debugged.before.headers.get(name).is_none_or(|before| value.as_str() != Some(before.as_str()))
        });
    }
    expected
}

/// A note when the plugin does something else than in the trace: because of its state, a fetch or another version.
fn departure(recording: &Recording, plugin: &Plugin, debugged: &Debugged) -> Option<String> {
    let is_it = |step: &&Step| {
        step.name == StepName::PluginOnRequest && step.detail["plugin"] == plugin.name.as_str()
    };
    let detail = &recording.trace.steps.iter().rfind(is_it)?.detail;
    let then = (
        detail["skipped"] == true,
        detail["replies"].as_u64().unwrap_or(0),
        detail["error"]["kind"].as_str().map(str::to_owned),
    );
    let now = (
        debugged.skipped,
        debugged.replies.len() as u64,
        debugged.error.as_ref().map(|error| error.kind.clone()),
    );
    (then != now).then(|| {
        "! the plugin does something else here than it did then: another plugin before it, a fetch, or what was replaced may be why"
            .to_owned()
    })
}

/// Writes new files; one that is there already with the same content stays.
fn write(folder: &Path, files: &[(String, String)]) -> Result<Vec<String>, Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    let paths: Vec<_> = files.iter().map(|(name, text)| (folder.join(name), text)).collect();
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
