//! Plugins around a delivery, through a whole hub.

use std::{sync::Arc, time::Duration};

use serde_json::json;

use crate::{
    access::Actor,
    channels::{ChannelPatch, OnPluginError},
    error::ErrorCode,
    id::{ChannelId, PluginId},
    model::{
        sinks::{AuthMethod, AuthUpdate, Change, WebhookUpdate},
        trace::{Step, StepName, Trace, TraceStatus},
    },
    page::PageRequest,
    plugins::{InstallationPatch, NewInstallation, PluginRef, Submission},
    secret::Secret,
    testing::{Receiver, TestBot, TestHub, TestHubBuilder},
    traces::TraceQuery,
};

mod failures;
mod unfiltered;

const KEY: &str = "a-key-of-sixteen-bytes";

struct Scene {
    hub: TestHub,
    receiver: Arc<Receiver>,
    other: Arc<Receiver>,
    ada: Actor,
    bot: TestBot,
    channel: ChannelId,
}

impl Scene {
    /// A hub whose channel posts to `hook.test` with a bearer token; `api.other.test` listens too.
    async fn new() -> Self {
        Self::of(TestHub::builder()).await
    }

    async fn of(builder: TestHubBuilder) -> Self {
        let (receiver, other) = (Receiver::new(), Receiver::new());
        let builder = builder.receiver("hook.test", &receiver).receiver("api.other.test", &other);
        let hub = builder.start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        let secret = Change::Set(Secret::new(KEY));
        let auth = AuthUpdate { method: AuthMethod::Bearer, header_name: None, secret };
        let url = "http://hook.test/orders".to_owned();
        let webhook = WebhookUpdate { url, auth, auto_reply: true, ..WebhookUpdate::default() };
        let channel = hub.webhook_channel(&ada, bot.id, "orders", webhook).await;
        Self { hub, receiver, other, ada, bot, channel }
    }

    async fn install(&self, name: &str, keys: &str, code: &str) -> PluginId {
        let script = format!("// ==UserScript==\n// @name {name}\n{keys}// ==/UserScript==\n{code}\n");
        self.install_script(script).await
    }

    async fn install_script(&self, script: String) -> PluginId {
        let plugins = self.hub.hub().plugins();
        let new = Submission { script, ..Submission::default() };
        let id = plugins.submit(&self.ada, new, None).await.unwrap().id;
        let new = NewInstallation { plugin_id: id, version: None, position: None };
        plugins.install(&self.ada, self.bot.id, self.channel, new).await.unwrap();
        id
    }

    async fn on_error(&self, rule: OnPluginError) {
        let patch = ChannelPatch { on_plugin_error: Some(rule), ..ChannelPatch::default() };
        self.hub.hub().channels().update(&self.ada, self.bot.id, self.channel, patch).await.unwrap();
    }

    /// Says something and waits for its end.
    async fn say(&self, text: &str, end: TraceStatus) -> Trace {
        self.hub.say(&self.bot, text);
        self.hub.trace(&self.ada, self.bot.id, self.channel, end).await
    }

    async fn texts(&self, count: usize) -> Vec<String> {
        self.hub.sent(&self.bot, count).await.into_iter().map(|sent| sent.text).collect()
    }
}

fn steps(trace: &Trace, name: StepName) -> Vec<&Step> {
    trace.steps.iter().filter(|step| step.name == name).collect()
}

fn step(trace: &Trace, name: StepName) -> &Step {
    steps(trace, name).first().unwrap_or_else(|| panic!("no {name:?} in {:#?}", trace.steps))
}

#[tokio::test]
async fn a_reply_that_cannot_be_sent_to_a_group_is_an_error_in_the_trace() {
    let scene = Scene::new().await;
    let reply = "function onRequest(ctx) { ctx.reply('hello all'); ctx.skip(); }";
    scene.install("replies", "", reply).await;
    let message = json!({ "wx_id": scene.bot.wx_id, "text": "hello", "group_id": "group_1" });
    scene.hub.sim().inject(message).unwrap();
    let trace = scene.hub.trace(&scene.ada, scene.bot.id, scene.channel, TraceStatus::Error).await;
    assert!(trace.summary.contains("does not accept messages to groups"), "{}", trace.summary);
    assert_eq!(step(&trace, StepName::Reply).status, TraceStatus::Error);
    assert!(scene.hub.sim().outbound(Some(&scene.bot.wx_id), 0).is_empty());
}

#[tokio::test]
async fn plugins_change_the_request_in_their_order_and_it_is_signed_last() {
    let scene = Scene::new().await;
    scene
        .install(
            "first",
            "// @match text\n",
            "function onRequest(ctx) {
               if (ctx.req.headers.Authorization) throw new Error('the secret is here');
               console.log('seen', ctx.msg.content);
               ctx.req.body.order = 42; ctx.req.headers['X-Kind'] = 'order'; ctx.req.url += '?from=first';
               ctx.state.order = 42;
             }
             function onResponse(ctx) { ctx.reply('order ' + ctx.state.order + ' ' + ctx.res.status + ' ' + ctx.res.body); }",
        )
        .await;
    scene
        .install("second", "", "function onRequest(ctx) { ctx.req.body.twice = ctx.req.body.order * 2; }")
        .await;
    scene
        .install(
            "images",
            "// @match image\n",
            "function onRequest(ctx) { throw new Error('not for texts'); }",
        )
        .await;
    let trace = scene.say("order 42", TraceStatus::Ok).await;
    let requests = scene.receiver.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].uri().query(), Some("from=first"));
    assert_eq!(requests[0].headers()["x-kind"], "order");
    assert_eq!(requests[0].headers()["authorization"], format!("Bearer {KEY}"));
    let body = &scene.receiver.bodies()[0];
    assert_eq!(
        (&body["content"], &body["order"], &body["twice"]),
        (&json!("order 42"), &json!(42), &json!(84))
    );
    assert_eq!(scene.texts(1).await, ["order 42 200 {}"]);
    let before = steps(&trace, StepName::PluginOnRequest);
    let names: Vec<_> = before.iter().filter_map(|step| step.detail.plugin.as_deref()).collect();
    assert_eq!(names, ["first", "second", "images"]);
    let first = &before[0].detail;
    assert_eq!(first.logs.as_ref().unwrap()[0].text, "seen order 42");
    assert!(first.memory_bytes.is_none() && first.duration_us.is_some(), "read after errors only: {first:?}");
    let changes = first.changes.as_ref().unwrap();
    assert!(changes.body.as_ref().unwrap().contains("+  \"order\": 42"), "{changes:?}");
    assert_eq!(changes.headers.as_ref().unwrap(), &["+ x-kind: order"]);
    assert_eq!(before[2].status, TraceStatus::Skipped);
    assert_eq!(steps(&trace, StepName::PluginOnResponse).len(), 1, "only the first one has the hook");
    let kept = format!("{:?}", trace.steps);
    assert!(!kept.contains(KEY), "{kept}");
    let runs: Vec<_> = scene.hub.hub().context().node.counters.plugin_runs.counts().collect();
    assert_eq!(runs, [("ok", 3), ("error", 0), ("timeout", 0)], "what has no hook does not run");
}

#[tokio::test]
async fn skipping_replies_and_sends_nothing() {
    let scene = Scene::new().await;
    scene.install("night", "", "function onRequest(ctx) { ctx.reply('we sleep'); ctx.skip(); }").await;
    scene.install("never", "", "function onRequest(ctx) { ctx.reply('never'); }").await;
    let trace = scene.say("hello", TraceStatus::Skipped).await;
    assert_eq!(scene.texts(1).await, ["we sleep"]);
    assert!(scene.receiver.requests().is_empty());
    assert_eq!(steps(&trace, StepName::PluginOnRequest).len(), 1);
    assert_eq!(step(&trace, StepName::PluginOnRequest).detail.skipped, Some(true));
}

#[tokio::test]
async fn a_reply_goes_out_while_the_receiver_still_thinks() {
    let scene = Scene::new().await;
    scene
        .install("greeter", "", "function onRequest(ctx) { ctx.reply('one moment'); reply('please'); }")
        .await;
    scene.receiver.answer(200, r#"{"reply":"automatic"}"#);
    scene.receiver.hold();
    scene.hub.say(&scene.bot, "hello");
    assert_eq!(scene.texts(1).await, ["one moment"]);
    scene.receiver.release();
    let trace = scene.hub.trace(&scene.ada, scene.bot.id, scene.channel, TraceStatus::Ok).await;
    // The network wants time between two messages to one person.
    let texts = scene
        .hub
        .advance_until("the second reply", Duration::from_secs(1), async || {
            let sent = scene.hub.sim().outbound(Some(&scene.bot.wx_id), 0);
            (sent.len() >= 2).then(|| sent.into_iter().map(|sent| sent.text).collect::<Vec<_>>())
        })
        .await;
    assert_eq!(texts, ["one moment", "please"]);
    // A plugin that replied goes before the automatic reply, and each reply is in the trace.
    assert!(steps(&trace, StepName::Reply).len() >= 2, "{:#?}", trace.steps);
}

#[tokio::test]
async fn a_plugin_that_fails_is_the_channels_decision() {
    let scene = Scene::new().await;
    let code = "function onRequest(ctx) {\n  ctx.req.body.half = true;\n  ctx.nothing.here = 1;\n}";
    scene.install("broken", "", code).await;
    // Nothing is sent unmodified; the delivery waits for its next attempt.
    let trace = scene.say("first", TraceStatus::Pending).await;
    assert!(scene.receiver.requests().is_empty());
    let trace = scene
        .hub
        .until("an attempt", async || {
            let trace = scene.hub.hub().traces().get(&scene.ada, scene.bot.id, trace.trace_id).await.unwrap();
            (trace.attempts > 0).then_some(trace)
        })
        .await;
    let failed = step(&trace, StepName::PluginOnRequest);
    assert_eq!(failed.status, TraceStatus::Error);
    let error = failed.detail.error.as_ref().unwrap();
    assert_eq!((error.kind.as_deref(), error.line), (Some("throw"), Some(6)), "{error:?}");
    assert!(error.column.is_some() && error.message.contains("TypeError"), "{error:?}");
    assert!(trace.summary.contains("plugin broken: throw"), "{}", trace.summary);
    scene.on_error(OnPluginError::Send).await;
    scene.hub.say(&scene.bot, "second");
    // It waits behind the first one, which is tried again after five seconds.
    scene
        .hub
        .advance_until("the second message", Duration::from_secs(1), async || {
            scene.receiver.bodies().iter().find(|body| body["content"] == "second").cloned()
        })
        .await;
    assert!(
        scene.receiver.bodies().iter().all(|body| body.get("half").is_none()),
        "what failed changes nothing"
    );
    scene.on_error(OnPluginError::Drop).await;
    let count = scene.receiver.requests().len();
    let dropped = scene.say("third", TraceStatus::Error).await;
    assert!(dropped.summary.contains("plugin broken"), "{}", dropped.summary);
    assert!(scene.receiver.bodies().iter().all(|body| body["content"] != "third"), "{count}");
}

#[tokio::test]
async fn a_request_goes_where_the_plugin_may_send_it_and_without_the_key() {
    let scene = Scene::new().await;
    scene
        .install(
            "mover",
            "// @connect other.test\n",
            "function onRequest(ctx) { ctx.req.url = 'http://api.other.test/x'; }",
        )
        .await;
    scene.say("hello", TraceStatus::Ok).await;
    assert!(scene.receiver.requests().is_empty());
    let moved = scene.other.requests();
    assert_eq!((moved.len(), moved[0].uri().path()), (1, "/x"));
    assert!(!moved[0].headers().contains_key("authorization"));
    assert!(!moved[0].headers().contains_key("webhook-signature"));
}

#[tokio::test]
async fn a_request_to_anywhere_else_fails() {
    let scene = Scene::new().await;
    scene.on_error(OnPluginError::Drop).await;
    scene
        .install(
            "thief",
            "",
            "function onRequest(ctx) { ctx.req.url = 'http://api.other.test/' + ctx.msg.content; }",
        )
        .await;
    let trace = scene.say("hello", TraceStatus::Error).await;
    assert_eq!(
        step(&trace, StepName::PluginOnRequest).detail.error.as_ref().unwrap().kind.as_deref(),
        Some("blocked_url")
    );
    assert!(scene.receiver.requests().is_empty() && scene.other.requests().is_empty());
}

#[tokio::test]
async fn a_plugin_fetches_from_its_hosts_only() {
    let scene = Scene::new().await;
    scene.other.answer(200, r#"{"status":"shipped"}"#);
    scene
        .install(
            "looker",
            "// @connect other.test\n",
            "async function onRequest(ctx) {
               const answer = await ctx.fetch('http://api.other.test/orders/42', { method: 'POST', body: { n: 1 } });
               ctx.req.body.status = (await answer.json()).status;
               try { await fetch('http://hook.test/'); } catch (error) { ctx.req.body.refused = error.message; }
             }",
        )
        .await;
    let trace = scene.say("order 42", TraceStatus::Ok).await;
    let body = &scene.receiver.bodies()[0];
    assert_eq!(body["status"], "shipped");
    assert!(body["refused"].as_str().unwrap().contains("not in @connect"), "{body}");
    assert_eq!(&scene.other.requests()[0].body()[..], br#"{"n":1}"#);
    let fetches = step(&trace, StepName::PluginOnRequest).detail.fetches.as_ref().unwrap();
    assert_eq!((fetches[0].status, fetches[1].error.is_some()), (Some(200), true), "{fetches:?}");
}

#[tokio::test]
async fn a_hook_that_is_not_there_is_looked_for_once() {
    let scene = Scene::new().await;
    // Every run loads the source, which says so.
    let loaded = "// @connect other.test\n";
    let script = |hook: &str| format!("await fetch('http://api.other.test/').catch(() => {{}});\n{hook}");
    scene.install("asks", loaded, &script("function onRequest(ctx) { ctx.req.body.asked = true; }")).await;
    scene.install("hears", loaded, &script("function onResponse(ctx) { ctx.state.heard = true; }")).await;
    for count in 1..=3 {
        scene.hub.say(&scene.bot, &format!("message {count}"));
        let (query, traces) = (TraceQuery::default(), scene.hub.hub().traces());
        let page = PageRequest::parse(&query.list_name(scene.bot.id), None, None).unwrap();
        scene
            .hub
            .until("the message's end", async || {
                let traces = traces.list(&scene.ada, scene.bot.id, &query, &page).await.unwrap().items;
                let ended = traces.iter().filter(|trace| trace.status == TraceStatus::Ok).count();
                (ended == count).then_some(())
            })
            .await;
    }
    assert!(scene.receiver.bodies().iter().all(|body| body["asked"] == true));
    assert_eq!(scene.other.requests().len(), 3 + 3 + 1, "only what has to tell of itself runs in vain");
}

#[tokio::test]
async fn replies_may_be_files_and_a_second_attempt_adds_none() {
    let scene = Scene::new().await;
    scene.receiver.answer(500, "{}");
    scene
        .install(
            "media",
            "",
            "function onRequest(ctx) {
               ctx.reply({ base64: 'aGk=', filename: 'a.txt' }); ctx.reply('data:image/png;base64,iVBORw0KGgo=');
               ctx.reply({ base64: '?' }); ctx.reply({ forward: true });
             }
             function onResponse(ctx) { if (ctx.res.status === 200) ctx.reply({ forward: true }); }",
        )
        .await;
    scene.receiver.answer(200, "{\"plain\":\"words\"}");
    scene.hub.say(&scene.bot, "hello");
    let sent = scene
        .hub
        .advance_until("two files and a text", Duration::from_secs(1), async || {
            let sent = scene.hub.sim().outbound(Some(&scene.bot.wx_id), 0);
            (sent.len() >= 3).then_some(sent)
        })
        .await;
    let kinds: Vec<_> =
        sent.iter().map(|sent| sent.media.as_ref().map_or("text", |media| media.kind)).collect();
    assert_eq!(kinds, ["file", "image", "text"]);
    assert_eq!(sent[0].media.as_ref().unwrap().file_name.as_deref(), Some("a.txt"));
    assert_eq!((sent[0].opened, sent[1].opened), (Some(true), Some(true)), "{sent:?}");
    assert_eq!(sent[2].text, "{\"plain\":\"words\"}");
    assert_eq!(scene.receiver.requests().len(), 2);
    let trace = scene.hub.trace(&scene.ada, scene.bot.id, scene.channel, TraceStatus::Error).await;
    let failed: Vec<_> = steps(&trace, StepName::Reply)
        .into_iter()
        .filter(|step| step.status == TraceStatus::Error)
        .map(|step| step.detail.error.as_ref().unwrap().message.clone())
        .collect();
    let errors = ["the file is not base64", "there is no response to forward before the request"];
    assert_eq!(failed, [errors, errors].concat(), "once for each attempt");
    let owner = scene.ada.user().unwrap().user_id;
    let kept = scene.hub.hub().context().for_work().store.bytes_of(owner).await.unwrap();
    assert_eq!(kept, 2 + 8, "each file once");
}

#[tokio::test]
async fn a_published_plugin_behaves_as_its_author_expects() {
    let scene = Scene::new().await;
    let script = include_str!("../../../../../../examples/plugins/office-hours.js");
    scene.install_script(script.to_owned()).await;
    // The clock of a test hub shows the afternoon.
    let trace = scene.say("is the shop open & where?", TraceStatus::Ok).await;
    let request = &scene.receiver.requests()[0];
    assert_eq!(request.headers()["content-type"], "application/x-www-form-urlencoded", "{:#?}", trace.steps);
    let body = String::from_utf8_lossy(request.body()).into_owned();
    assert!(body.starts_with("text=is%20the%20shop%20open%20%26%20where%3F&from="), "{body}");
    scene.receiver.answer(404, "");
    scene.hub.say(&scene.bot, "again");
    assert_eq!(scene.texts(1).await, ["Something went wrong on our side."]);
}

#[tokio::test]
async fn a_source_with_a_syntax_error_is_not_submitted() {
    let scene = Scene::new().await;
    let script =
        "// ==UserScript==\n// @name bad\n// ==/UserScript==\nfunction onRequest() { return ]; }".to_owned();
    let new = Submission { script, ..Submission::default() };
    let error = scene.hub.hub().plugins().submit(&scene.ada, new, None).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidParams);
    assert!(error.message().starts_with("script line 4"), "{error}");
}
