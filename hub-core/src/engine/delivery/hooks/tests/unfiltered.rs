//! Plugins where the system calls of their process cannot be filtered.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::*;
use crate::sandbox::{CallFilter, Confinement, SandboxConfig, WorkerProgram};

/// Removed, it makes the workers of [`worker`] report that their system calls are not filtered.
const FILTERED: &str = "filtered";

/// A worker that compiles one source, or makes one run that changes nothing, and ends.
fn worker(folder: &Path) -> PathBuf {
    let outcome = r#"{"present":true,"hooks":null,"request":null,"replies":[],"skipped":false,"state":null,"logs":[],"error":null,"unknown_names":[],"duration":{"secs":0,"nanos":0},"memory_bytes":0}"#;
    let script = format!(
        r#"#!/bin/sh
PATH=/usr/bin:/bin
send() {{ printf "$(printf '\\%03o\\%03o\\000\\000' $((${{#1}} % 256)) $((${{#1}} / 256)))%s" "$1"; }}
filtered=false
[ -e '{folder}/{FILTERED}' ] && filtered=true
send '{{"ready":{{"filtered":'$filtered'}}}}'
length=$(dd bs=1 count=4 2>/dev/null | od -An -tu4 | tr -d ' ')
[ -n "$length" ] || exit 0
job=$(dd bs=1 count="$length" 2>/dev/null)
id=${{job#*\"id\":}}
send '{{"done":{{"id":'"${{id%%,*}}"',"outcome":{outcome}}}}}'
"#,
        folder = folder.display(),
    );
    let path = folder.join("worker");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A hub with a plugin in its channel, installed while system calls were filtered.
async fn scene(folder: &Path, filter: CallFilter) -> Scene {
    let filtered = folder.join(FILTERED);
    std::fs::write(&filtered, "").unwrap();
    let sandbox = SandboxConfig { filter, ..SandboxConfig::of(WorkerProgram::Path(worker(folder))) };
    let scene = Scene::of(TestHub::builder().sandbox(sandbox)).await;
    scene.install("tagger", "", "function onRequest(ctx) {}").await;
    std::fs::remove_file(filtered).unwrap();
    scene
}

fn confinement(scene: &Scene) -> Confinement {
    scene.hub.hub().context().sandbox.confinement()
}

#[tokio::test]
async fn a_plugin_that_may_not_run_without_the_filter_fails_as_the_channel_says() {
    for (rule, end) in [
        (OnPluginError::Retry, TraceStatus::Pending),
        (OnPluginError::Drop, TraceStatus::Error),
        // The request is sent, and whether the plugin has a hook for the response is not known.
        (OnPluginError::Send, TraceStatus::Error),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let scene = Box::pin(scene(folder.path(), CallFilter::Required)).await;
        scene.on_error(rule).await;
        scene.hub.say(&scene.bot, "hello");
        let trace = scene
            .hub
            .until("an attempt", async || {
                let all = scene.hub.traces(&scene.ada, scene.bot.id, &TraceQuery::default()).await;
                let tried = all.first().filter(|trace| trace.attempts == 1)?;
                let plugins = scene.hub.hub().traces();
                Some(plugins.get(&scene.ada, scene.bot.id, tried.trace_id).await.unwrap())
            })
            .await;
        assert_eq!(trace.status, end, "{rule:?}: {}", trace.summary);
        let error = step(&trace, StepName::PluginOnRequest).detail.error.clone().unwrap();
        assert_eq!(error.kind.as_deref(), Some("sandbox_unfiltered"));
        assert!(error.message.contains("sandbox_filter = \"optional\""), "{}", error.message);
        let sent = usize::from(rule == OnPluginError::Send);
        assert_eq!(scene.receiver.requests().len(), sent, "{rule:?}");
        assert_eq!(confinement(&scene), Confinement::Refused);
    }
}

#[tokio::test]
async fn a_plugin_runs_without_the_filter_where_that_is_optional() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Box::pin(scene(folder.path(), CallFilter::Optional)).await;
    let trace = scene.say("hello", TraceStatus::Ok).await;
    let ran = step(&trace, StepName::PluginOnRequest);
    assert_eq!((ran.status, ran.detail.hook), (TraceStatus::Ok, Some(true)));
    assert_eq!(scene.receiver.requests().len(), 1);
    assert_eq!(confinement(&scene), Confinement::Unfiltered);
}

#[tokio::test]
async fn a_source_is_not_compiled_without_the_filter() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Box::pin(scene(folder.path(), CallFilter::Required)).await;
    let script = "// ==UserScript==\n// @name other\n// ==/UserScript==\nfunction onRequest() {}\n";
    let new = Submission { script: script.to_owned(), ..Submission::default() };
    let error = scene.hub.hub().plugins().submit(&scene.ada, new, None).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable);
    assert!(error.message().contains("sandbox_filter"), "{error}");
}
