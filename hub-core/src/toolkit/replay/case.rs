//! A trace as a test case of a plugin, with personal data and secrets replaced.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Fakes, RecordedMessage, Recording};
use crate::{
    access::Actor,
    error::{Error, ErrorCode, Result},
    hub::Hub,
    id::{BotId, TraceId},
    model::trace::{Step, StepName, TraceStatus},
    plugins::{
        Manifest, PluginRef,
        debug::{DebugResponse, DebugRun, Debugged, SAMPLE_URL, debug},
        outcome::expectation,
    },
    sandbox::{Hook, Sandbox},
};

/// The plugin that a case tests.
#[derive(Debug, Clone)]
pub struct CasePlugin {
    /// Name, as in the steps of the trace.
    pub name: String,
    /// The file that the case names as its source.
    pub file: String,
    /// The source.
    pub source: String,
    /// Whether the source is one of the files of the case.
    pub is_copied: bool,
}

/// A test case of the plugin that ran in a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
#[api(example = {
    "files": [{"content": "{\n  \"expect\": {\n    \"replies\": [],\n    \"skipped\": false\n  },\n  \"message\": {\n    \"content\": \"order 42\"\n  },\n  \"script\": \"tagger.js\"\n}\n", "name": "tr_01KAG00000E008000000000003.case.json"}],
    "plugin": "tagger",
    "trace_id": "tr_01KAG00000E008000000000003",
})]
pub struct TraceCase {
    /// Id of the trace.
    pub trace_id: TraceId,
    /// Name of the plugin.
    pub plugin: String,
    /// Why the case may differ from the trace; absent if the plugin does the same as in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The files, to be stored in one folder.
    pub files: Vec<CaseFile>,
}

/// A file of a test case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, hub_macros::Api)]
pub struct CaseFile {
    /// Name, without a folder.
    pub name: String,
    /// Content.
    pub content: String,
}

/// Creates a test case of the plugin that ran in a trace, from the version that ran; `plugin` is its name, for a trace
/// with several. Nothing is sent or stored.
///
/// # Errors
/// `NOT_FOUND` for a trace that the actor may not see, without that plugin, or whose message or version was deleted;
/// `INVALID_PARAMS` when several plugins ran and none is named; `CONFLICT` while the trace is pending; `RATE_LIMITED`
/// or `UNAVAILABLE` when the sandbox cannot run the plugin now.
pub async fn trace_case(
    hub: &Hub,
    actor: &Actor,
    bot: BotId,
    id: TraceId,
    plugin: Option<&str>,
) -> Result<TraceCase> {
    let trace = hub.traces().get(actor, bot, id).await?;
    let plugin = version_that_ran(hub, actor, chosen(&trace.steps, plugin)?).await?;
    let message = match hub.bots().message(actor, bot, trace.message_id).await {
        Ok(message) => Some(RecordedMessage::from(message)),
        Err(error) if error.code() == ErrorCode::NotFound => None,
        Err(error) => return Err(error),
    };
    let recording = Recording::new(trace, message.as_ref());
    let ctx = hub.context();
    let source = plugin.source.clone();
    let manifest = ctx.computations.run(move || Manifest::parse(&source)).await??;
    test_case(&ctx.sandbox, &actor.principal(), &plugin, &manifest, &recording).await
}

/// Creates a test case of a source from a recording; `tenant` is who runs it, for the sandbox's fairness.
///
/// # Errors
/// `NOT_FOUND` when the recording has no message; `CONFLICT` while its trace is pending; the errors of
/// [`debug`].
pub async fn test_case(
    sandbox: &Sandbox,
    tenant: &str,
    plugin: &CasePlugin,
    manifest: &Manifest,
    real: &Recording,
) -> Result<TraceCase> {
    if real.trace.status == TraceStatus::Pending {
        return Err(Error::conflict("the trace is pending").with_hint("repeat the call when it has ended"));
    }
    let recording = Fakes::new().recording(real)?;
    let message = recording.message.clone().ok_or_else(|| {
        Error::not_found("message of the trace")
            .with_hint("messages are retained longer than their traces unless they are deleted")
    })?;
    let run = |trial| debug(sandbox, tenant, trial, manifest);
    let sent = recording.request();
    let url = sent.as_ref().map_or(SAMPLE_URL, |request| request.url.as_str());
    let trial = DebugRun {
        script: plugin.source.clone(),
        message: message.clone(),
        request: None,
        url: url.to_owned(),
        response: None,
        state: None,
    };
    let request = run(trial.clone()).await?;
    let case = |debugged: &Debugged| json!({ "script": plugin.file, "message": message, "url": url, "expect": expected(debugged) });
    let name = recording.trace.trace_id;
    let line = serde_json::to_string(&recording).map_err(Error::internal)? + "\n";
    let mut files = vec![
        CaseFile { name: format!("{name}.jsonl"), content: line },
        case_file(format!("{name}.case.json"), &case(&request))?,
    ];
    if plugin.is_copied {
        files.insert(0, CaseFile { name: plugin.file.clone(), content: plugin.source.clone() });
    }
    if let Some(answer) = recording.response()
        && request.request.is_some()
    {
        let headers = BTreeMap::from([("content-type".to_owned(), content_type(&answer.body).to_owned())]);
        let response =
            DebugResponse { status: answer.status, headers: headers.clone(), body: answer.body.clone() };
        let debugged =
            run(DebugRun { response: Some(response), state: request.state.clone(), ..trial }).await?;
        if debugged.present {
            let mut case = case(&debugged);
            case["response"] = json!({ "status": answer.status, "headers": headers, "body": answer.body });
            if let Some(state) = &request.state {
                case["state"] = json!(state);
            }
            files.push(case_file(format!("{name}.response.case.json"), &case)?);
        }
    }
    let warning = departure(real, plugin, &request);
    Ok(TraceCase { trace_id: name, plugin: plugin.name.clone(), warning, files })
}

fn case_file(name: String, case: &Value) -> Result<CaseFile> {
    let content = serde_json::to_string_pretty(case).map_err(Error::internal)? + "\n";
    Ok(CaseFile { name, content })
}

/// The plugins whose request hook ran, by name, each with its first step.
pub fn plugins_that_ran(steps: &[Step]) -> BTreeMap<&str, &Step> {
    let mut ran = BTreeMap::new();
    for step in steps.iter().filter(|step| step.name == StepName::PluginOnRequest) {
        if let Some(name) = step.detail.plugin.as_deref() {
            ran.entry(name).or_insert(step);
        }
    }
    ran
}

/// The step of the plugin that is named, or of the only one.
fn chosen<'t>(steps: &'t [Step], wanted: Option<&str>) -> Result<&'t Step> {
    let ran = plugins_that_ran(steps);
    let names = ran.keys().copied().collect::<Vec<_>>().join(", ");
    match (wanted, ran.len()) {
        (_, 0) => Err(Error::not_found("plugin in this trace")),
        (Some(wanted), _) => ran.get(wanted).copied().ok_or_else(|| {
            Error::not_found("plugin of this name in this trace").with_hint(format!("use one of: {names}"))
        }),
        (None, 1) => ran.into_values().next().ok_or_else(|| Error::not_found("plugin in this trace")),
        (None, _) => Err(Error::invalid("plugin", format!("is required, because several ran: {names}"))),
    }
}

/// The source of the version that a step names.
async fn version_that_ran(hub: &Hub, actor: &Actor, step: &Step) -> Result<CasePlugin> {
    let id = step.detail.plugin_id.ok_or_else(|| Error::not_found("plugin"))?;
    let known = hub.plugins().get(actor, id).await?;
    let version =
        known.versions.iter().find(|version| Some(&version.version) == step.detail.version.as_ref());
    let version = version.ok_or_else(|| Error::not_found("version of the plugin that ran"))?;
    let source = hub.plugins().get(actor, PluginRef::Version(version.id)).await?.script;
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    let name = step.detail.plugin.clone().unwrap_or_default();
    let file = format!("{}.js", name.chars().map(plain).collect::<String>());
    Ok(CasePlugin { name, file, source, is_copied: true })
}

/// As the recorded responses are distinguished: the trace keeps their bodies as texts.
fn content_type(body: &str) -> &'static str {
    if serde_json::from_str::<Value>(body).is_ok() { "application/json" } else { "text/plain" }
}

/// Returns the expectation for the next run. Headers that the plugin did not change are left out: they depend on the
/// hub's version, not on the plugin.
fn expected(debugged: &Debugged) -> Value {
    let mut expected = expectation(&debugged.document());
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

/// A warning when the plugin does something else than in the trace: because of its state, a fetch or another version.
fn departure(recording: &Recording, plugin: &CasePlugin, debugged: &Debugged) -> Option<String> {
    let is_it = |step: &&Step| {
        step.name == StepName::PluginOnRequest && step.detail.plugin.as_ref() == Some(&plugin.name)
    };
    let detail = &recording.trace.steps.iter().rfind(is_it)?.detail;
    let then = (
        detail.skipped == Some(true),
        detail.replies.unwrap_or(0),
        detail.error.as_ref().and_then(|error| error.kind.clone()),
    );
    let now = (
        debugged.skipped,
        debugged.replies.len() as u64,
        debugged.error.as_ref().map(|error| error.kind.clone()),
    );
    (then != now).then(|| {
        "the plugin does something else here than in the trace: another plugin before it, a fetch, its state or a replaced value may be the reason"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        replay::recording::tests::{FIRST, recording},
        sandbox::{SandboxConfig, WorkerProgram},
        time::Clock,
    };

    fn ran(names: &[&str]) -> Vec<Step> {
        let mut steps = recording(FIRST, "order 42").trace.steps;
        let template = steps[0].clone();
        steps.extend(names.iter().map(|name| Step {
            name: StepName::PluginOnRequest,
            detail: crate::model::trace::StepDetail {
                plugin: Some((*name).to_owned()),
                ..Default::default()
            },
            ..template.clone()
        }));
        steps
    }

    #[tokio::test]
    async fn a_pending_trace_has_no_case() {
        let mut pending = recording(FIRST, "order 42");
        pending.trace.status = TraceStatus::Pending;
        let sandbox = Sandbox::new(SandboxConfig::of(WorkerProgram::InProcessTrustedOnly), Clock::system());
        let plugin = CasePlugin {
            name: "tagger".to_owned(),
            file: "tagger.js".to_owned(),
            source: "function onRequest() {}".to_owned(),
            is_copied: true,
        };
        let case = async |recording: &Recording| {
            test_case(&sandbox, "t", &plugin, &Manifest::default(), recording).await
        };
        assert_eq!(case(&pending).await.unwrap_err().code(), ErrorCode::Conflict);
        pending.trace.status = TraceStatus::Ok;
        let files = case(&pending).await.unwrap().files;
        let ends: Vec<&str> =
            files.iter().filter_map(|file| file.name.split_once('.')).map(|(_, end)| end).collect();
        assert_eq!(ends, ["js", "jsonl", "case.json"]);
    }

    #[test]
    fn a_plugin_is_named_where_several_ran() {
        let code =
            |names: &[&str], wanted| chosen(&ran(names), wanted).map(|_| ()).map_err(|error| error.code());
        assert_eq!(code(&[], None), Err(ErrorCode::NotFound));
        assert_eq!(code(&[], Some("a")), Err(ErrorCode::NotFound));
        assert_eq!(code(&["a", "a"], None), Ok(()));
        assert_eq!(code(&["a", "b"], None), Err(ErrorCode::InvalidParams));
        assert_eq!(code(&["a", "b"], Some("c")), Err(ErrorCode::NotFound));
        let steps = ran(&["a", "b"]);
        assert_eq!(chosen(&steps, Some("b")).unwrap().detail.plugin.as_deref(), Some("b"));
    }
}
