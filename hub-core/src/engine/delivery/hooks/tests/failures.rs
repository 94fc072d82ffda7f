//! Effects of a plugin's failure on the delivery, its trace and the plugin: crashes, and errors after the request.

use std::{os::unix::fs::PermissionsExt as _, path::PathBuf};

use super::*;
use crate::{
    plugins::{breaker::MAX_OVERRUNS, debug::DebugRun},
    sandbox::{HookOutcome, SandboxConfig, WorkerProgram},
};

/// A worker that compiles everything, and ends with a signal when it has to run something.
fn dying_worker(folder: &std::path::Path, signal: &str) -> PathBuf {
    let outcome = serde_json::to_string(&HookOutcome::default()).unwrap();
    let script = format!(
        r#"#!/bin/sh
PATH=/usr/bin:/bin
send() {{ printf "$(printf '\\%03o\\%03o\\000\\000' $((${{#1}} % 256)) $((${{#1}} / 256)))%s" "$1"; }}
while :; do
  send '{{"ready":{{"filtered":true}}}}'
  length=$(dd bs=1 count=4 2>/dev/null | od -An -tu4 | tr -d ' ')
  [ -n "$length" ] || exit 0
  job=$(dd bs=1 count="$length" 2>/dev/null)
  case $job in *'"inputs":[]'*) ;; *) kill -{signal} $$ ;; esac
  id=${{job#*\"id\":}}
  send '{{"done":{{"id":'"${{id%%,*}}"',"outcome":{outcome}}}}}'
done
"#
    );
    let path = folder.join("worker");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn debug_run(script: &str) -> DebugRun {
    DebugRun {
        script: script.to_owned(),
        message: crate::plugins::debug::sample_message("hello", "u", "", 0),
        request: None,
        url: crate::plugins::debug::SAMPLE_URL.to_owned(),
        response: None,
        state: None,
    }
}

#[tokio::test]
async fn a_script_that_crashes_the_engine_fails_and_is_paused_after_five_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let worker = WorkerProgram::Path(dying_worker(folder.path(), "SEGV"));
    let scene = Scene::of(TestHub::builder().sandbox(SandboxConfig::of(worker))).await;
    scene.on_error(OnPluginError::Drop).await;
    let code = "function onRequest(ctx) {}";
    let id = scene.install("crasher", "", code).await;
    let plugins = scene.hub.hub().plugins();
    // Debugging it gives a result like that of any other failure.
    let run = debug_run("// ==UserScript==\n// @name crasher\n// ==/UserScript==\n");
    let error = plugins.debug(&scene.ada, scene.channel, run).await.unwrap().error.unwrap();
    assert_eq!(error.kind, "crash");
    assert!(error.message.starts_with("the script crashed the JavaScript engine"), "{}", error.message);
    let query = TraceQuery { status: Some(TraceStatus::Error), ..TraceQuery::default() };
    for count in 1..=MAX_OVERRUNS as usize {
        scene.hub.say(&scene.bot, "hello");
        let traces = scene
            .hub
            .until("the message's end", async || {
                let traces = scene.hub.traces(&scene.ada, scene.bot.id, &query).await;
                (traces.len() == count).then_some(traces)
            })
            .await;
        assert!(traces[0].summary.ends_with("plugin crasher: crash"), "{}", traces[0].summary);
        assert_eq!(
            step(&traces[0], StepName::PluginOnRequest).detail.error.as_ref().unwrap().kind.as_deref(),
            Some("crash")
        );
    }
    let page = PageRequest::default();
    let installed = plugins.installed(&scene.ada, scene.bot.id, scene.channel, &page).await.unwrap().items;
    assert_eq!(installed[0].plugin_id, id);
    assert!(installed[0].paused.is_some(), "{installed:?}");
}

#[tokio::test]
async fn a_worker_that_is_killed_from_outside_is_not_the_scripts_error() {
    let folder = tempfile::tempdir().unwrap();
    let worker = WorkerProgram::Path(dying_worker(folder.path(), "KILL"));
    let scene = Scene::of(TestHub::builder().sandbox(SandboxConfig::of(worker))).await;
    let run = debug_run("function onRequest() {}");
    let refused = scene.hub.hub().plugins().debug(&scene.ada, scene.channel, run).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable);
}

#[tokio::test]
async fn a_plugin_that_fails_after_the_request_makes_the_trace_an_error() {
    let scene = Scene::new().await;
    scene
        .install("late", "", "function onResponse(ctx) { ctx.reply('before'); throw new Error('after'); }")
        .await;
    let trace = scene.say("hello", TraceStatus::Error).await;
    assert_eq!(scene.texts(1).await, ["before"]);
    assert_eq!(step(&trace, StepName::PluginOnResponse).status, TraceStatus::Error);
    assert_eq!(trace.summary, "status 200; plugin late failed after the request: throw");
    assert_eq!((trace.attempts, scene.receiver.requests().len()), (1, 1), "the receiver has it");
}

#[tokio::test]
async fn a_reply_that_cannot_be_sent_makes_the_trace_an_error() {
    let scene = Scene::new().await;
    scene.install("garbled", "", "function onResponse(ctx) { ctx.reply({ base64: '?' }); }").await;
    let trace = scene.say("hello", TraceStatus::Error).await;
    assert_eq!(trace.summary, "status 200; a reply could not be sent: the file is not base64");
}

#[tokio::test]
async fn a_reply_may_be_as_long_as_a_message_of_the_api_and_is_split_for_the_network() {
    let scene = Scene::new().await;
    scene.install("long", "", "function onResponse(ctx) { ctx.reply('长'.repeat(3000)); }").await;
    let trace = scene.say("hello", TraceStatus::Ok).await;
    let parts = step(&trace, StepName::Reply).detail.parts.unwrap();
    assert!(parts > 1, "{parts}");
    let sent = scene
        .hub
        .advance_until("every part", std::time::Duration::from_secs(1), async || {
            let sent = scene.hub.sim().outbound(Some(&scene.bot.wx_id), 0);
            (sent.len() as u64 == parts).then_some(sent)
        })
        .await;
    assert_eq!(sent.iter().map(|sent| sent.text.matches('长').count()).sum::<usize>(), 3000);
}

#[tokio::test]
async fn a_header_is_found_in_any_case_by_every_plugin_of_a_chain() {
    let scene = Scene::new().await;
    scene
        .install(
            "first",
            "",
            "function onRequest(ctx) {
               ctx.req.headers['x-kind'] = 'order';
               ctx.req.headers['CONTENT-TYPE'] = 'text/plain';
             }",
        )
        .await;
    scene
        .install(
            "second",
            "",
            "function onRequest(ctx) {
               const h = ctx.req.headers;
               ctx.req.headers['X-Seen'] = [h['x-kind'], h['X-KIND'], 'x-KIND' in h, h['content-type']].join();
               h['X-kind'] += '!';
               ctx.state.names = Object.keys(h).join();
             }
             function onResponse(ctx) {
               ctx.reply([ctx.state.names, ctx.req.headers['x-kind'], ctx.res.headers['CONTENT-type']].join(' '));
             }",
        )
        .await;
    scene.say("order 42", TraceStatus::Ok).await;
    let request = scene.receiver.requests().remove(0);
    let header = |name: &str| {
        let values = request.headers().get_all(name).iter();
        values.map(|value| value.to_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(header("x-seen"), ["order,order,true,text/plain"]);
    assert_eq!((header("x-kind"), header("content-type")), (vec!["order!"], vec!["text/plain"]));
    assert_eq!(
        scene.texts(1).await,
        ["Content-Type,User-Agent,X-Kind,X-Seen order! application/json"],
        "each name has one spelling"
    );
}

#[tokio::test]
async fn a_plugin_that_times_out_repeatedly_is_stopped_until_it_is_enabled_again() {
    let scene = Scene::new().await;
    scene.on_error(OnPluginError::Drop).await;
    let code = "function onRequest(ctx) { if (ctx.msg.content !== 'well') for (;;); }";
    let id = scene.install("hangs", "// @timeout 50\n", code).await;
    let mut events = scene.hub.hub().events();
    let timeouts = || {
        let counts = scene.hub.hub().context().node.counters.plugin_runs.counts();
        counts.into_iter().find(|(name, _)| *name == "timeout").unwrap().1
    };
    for n in 1..=crate::plugins::breaker::MAX_OVERRUNS {
        scene.hub.say(&scene.bot, &format!("message {n}"));
        scene
            .hub
            .until("a run that takes too long", async || (timeouts() >= u64::from(n)).then_some(()))
            .await;
    }
    scene
        .hub
        .until("the news", async || {
            let paused = crate::events::Event::PluginPaused {
                bot_id: scene.bot.id,
                channel_id: scene.channel,
                plugin_id: id,
            };
            std::iter::from_fn(|| events.try_recv().ok()).any(|event| event == paused).then_some(())
        })
        .await;
    let plugins = scene.hub.hub().plugins();
    let page = crate::page::PageRequest::default();
    let installed = async || {
        plugins.installed(&scene.ada, scene.bot.id, scene.channel, &page).await.unwrap().items.remove(0)
    };
    let found = installed().await;
    assert!(found.enabled && found.paused.unwrap().contains("did not end"));
    // The plugin does not run, and no message is sent without its changes.
    scene.hub.say(&scene.bot, "well");
    scene
        .hub
        .until("a message that is given up", async || {
            let query = crate::traces::TraceQuery::default();
            let traces = scene.hub.traces(&scene.ada, scene.bot.id, &query).await;
            traces.iter().any(|trace| trace.summary.contains("plugin hangs: paused")).then_some(())
        })
        .await;
    assert_eq!(timeouts(), u64::from(crate::plugins::breaker::MAX_OVERRUNS));
    assert!(scene.receiver.requests().is_empty());
    let on = InstallationPatch { enabled: Some(true), ..InstallationPatch::default() };
    plugins.change_installation(&scene.ada, scene.bot.id, scene.channel, id, on).await.unwrap();
    assert_eq!(installed().await.paused, None);
    scene.hub.say(&scene.bot, "well");
    scene
        .hub
        .until("a message that is sent", async || (scene.receiver.texts() == ["well"]).then_some(()))
        .await;
}

#[tokio::test]
async fn a_withdrawn_or_disabled_plugin_does_not_run() {
    let scene = Scene::new().await;
    let id = scene.install("marker", "", "function onRequest(ctx) { ctx.req.body.marked = true; }").await;
    scene.say("first", TraceStatus::Ok).await;
    let plugins = scene.hub.hub().plugins();
    let version = plugins.get(&scene.ada, id).await.unwrap().plugin.latest.id;
    plugins.approve(&Actor::Operator, PluginRef::Plugin(id), None).await.unwrap();
    plugins.reject(&Actor::Operator, PluginRef::Version(version), "found out", None).await.unwrap();
    scene.hub.say(&scene.bot, "second");
    let bodies = scene
        .hub
        .until("the second message", async || {
            let bodies = scene.receiver.bodies();
            (bodies.len() == 2).then_some(bodies)
        })
        .await;
    assert_eq!((&bodies[0]["marked"], bodies[1].get("marked")), (&json!(true), None));
    let trace = scene
        .hub
        .until("its trace", async || {
            let traces =
                scene.hub.traces(&scene.ada, scene.bot.id, &crate::traces::TraceQuery::default()).await;
            let newest =
                scene.hub.hub().traces().get(&scene.ada, scene.bot.id, traces[0].trace_id).await.unwrap();
            (newest.status == TraceStatus::Ok && traces.len() == 2).then_some(newest)
        })
        .await;
    let reason = step(&trace, StepName::PluginOnRequest).detail.reason.as_deref().unwrap();
    assert!(reason.contains("withdrawn: found out"), "{reason}");
    let off = InstallationPatch { enabled: Some(false), ..InstallationPatch::default() };
    plugins.change_installation(&scene.ada, scene.bot.id, scene.channel, id, off).await.unwrap();
}
