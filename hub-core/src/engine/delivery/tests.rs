//! The whole delivery pipeline in one process: simulated network, hub, receiver.

use std::{sync::Arc, time::Duration};

use crate::{
    access::Actor,
    apps::{AppPatch, Apps, NewApp, NewInstallation},
    bots::MessageFilter,
    id::ChannelId,
    model::{
        sinks::{AuthMethod, AuthUpdate, Change, WebhookUpdate},
        trace::{
            StepKind,
            StepName::{Filter, Received, Reply, Request, Response},
            Trace, TraceStatus,
        },
    },
    page::PageRequest,
    testing::{Receiver, TestBot, TestHub},
    traces::{OfChannel, Remedy, ReplayTo, TraceQuery, WebhookField, WebhookSetting},
};

const SECOND: Duration = Duration::from_secs(1);

struct World {
    hub: TestHub,
    receiver: Arc<Receiver>,
    ada: Actor,
    bot: TestBot,
    channel: ChannelId,
}

impl World {
    async fn new(webhook: WebhookUpdate) -> Self {
        let receiver = Receiver::new();
        let hub = TestHub::builder().receiver("receiver.test", &receiver).start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        let channel = hub.webhook_channel(&ada, bot.id, "orders", webhook).await;
        Self { hub, receiver, ada, bot, channel }
    }

    /// Moves the clock until so many traces have the status `ok`; returns them, newest first.
    async fn delivered(&self, count: usize) -> Vec<Trace> {
        let query = TraceQuery {
            channel_id: Some(self.channel),
            status: Some(TraceStatus::Ok),
            ..TraceQuery::default()
        };
        self.hub
            .advance_until(&format!("{count} deliveries"), SECOND, async || {
                let traces = self.hub.traces(&self.ada, self.bot.id, &query).await;
                (traces.len() == count).then_some(traces)
            })
            .await
    }
}

fn hook(auth: AuthMethod) -> WebhookUpdate {
    WebhookUpdate {
        url: "http://receiver.test/hook".to_owned(),
        auth: AuthUpdate {
            method: auth,
            secret: Change::Set("a-secret-of-some-length".into()),
            ..AuthUpdate::default()
        },
        auto_reply: true,
        ..WebhookUpdate::default()
    }
}

#[tokio::test]
async fn a_message_is_delivered_to_the_webhook_and_its_response_is_sent_to_the_chat() {
    let world = World::new(hook(AuthMethod::Hmac)).await;
    world.receiver.answer(200, r#"{"reply":"42 is on its way"}"#);
    world.hub.say(&world.bot, "order 42");
    let sent = world.hub.sent(&world.bot, 1).await;
    assert_eq!(sent[0].text, "42 is on its way");
    let bodies = world.receiver.bodies();
    assert_eq!(bodies[0]["content"], "order 42");
    assert_eq!(bodies[0]["type"], "message");
    assert!(world.receiver.requests()[0].headers().contains_key("x-signature"));
    let trace = world
        .hub
        .until("the reply in the trace", async || {
            let trace = world.hub.trace(&world.ada, world.bot.id, world.channel, TraceStatus::Ok).await;
            (trace.steps.last()?.kind == StepKind::Outbox).then_some(trace)
        })
        .await;
    let names: Vec<_> = trace.steps.iter().map(|step| step.name).collect();
    assert_eq!(names, [Received, Filter, Request, Response, Reply, Reply], "{trace:#?}");
    assert_eq!(trace.steps[5].status, TraceStatus::Ok);
    let text = serde_json::to_string(&trace.steps).unwrap();
    assert!(!text.contains("AARz"), "no context token in {text}");
}

#[tokio::test]
async fn a_delivery_to_a_failing_receiver_is_repeated_under_the_same_id() {
    let mut webhook = hook(AuthMethod::Bearer);
    webhook.retry.schedule_s = vec![1, 1];
    let world = World::new(webhook).await;
    world.receiver.answer(500, "no");
    world.hub.say(&world.bot, "first");
    world.hub.say(&world.bot, "second");
    let traces = world.delivered(2).await;
    assert_eq!((traces[1].attempts, traces[0].attempts), (2, 1));
    let seen = world.receiver.requests();
    let ids: Vec<_> = seen.iter().map(|request| request.headers()["webhook-id"].clone()).collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(ids[0], ids[1], "the second message waits for the first");
    assert_ne!(ids[1], ids[2]);
    assert_eq!(seen[1].headers()["x-hub-attempt"], "2");
}

#[tokio::test]
async fn a_trace_shows_bodies_that_are_not_stored_with_it() {
    let world = World::new(hook(AuthMethod::Bearer)).await;
    let (plain, secret) = ("a \"quoted\" word, and 你好\n", "it is a-secret-of-some-length");
    world.hub.say(&world.bot, plain);
    world.hub.say(&world.bot, secret);
    let traces = world.delivered(2).await;
    let traces = [&traces[1], &traces[0]];
    let context = world.hub.hub().context();
    let shown = async |trace: &Trace| {
        let trace = world.hub.hub().traces().get(&world.ada, world.bot.id, trace.trace_id).await.unwrap();
        assert_eq!(trace.steps[2].detail.payload_crc, None);
        trace.steps[2].detail.body.clone()
    };
    let stored = async |trace: &Trace| {
        let mut read = context.store.read().await.unwrap();
        let steps = read.traces().steps_of(&[trace.trace_id]).await.unwrap().remove(&trace.trace_id).unwrap();
        (steps[2].detail.body.clone(), steps[2].detail.payload_crc)
    };
    for (trace, body) in traces.iter().zip(world.receiver.bodies()) {
        let mut body = body.clone();
        assert!(!body["contextToken"].as_str().unwrap().is_empty());
        body["contextToken"] = "***".into();
        body["content"] = body["content"].as_str().unwrap().replace("a-secret-of-some-length", "***").into();
        let shown: serde_json::Value = serde_json::from_str(&shown(trace).await.unwrap()).unwrap();
        assert_eq!(shown, body);
    }
    assert!(matches!(stored(traces[0]).await, (None, Some(_))));
    let (body, crc) = stored(traces[1]).await;
    assert!(body.unwrap().contains("it is ***") && crc.is_none(), "what another secret masks is stored");

    let change = "UPDATE messages SET content = 'x'".to_owned();
    context
        .store
        .write(move |tx| Box::pin(async move { tx.channels().execute(change).await }))
        .await
        .unwrap();
    assert_eq!(shown(traces[0]).await, None, "another body than the one that was sent is not shown");
}

#[tokio::test]
async fn a_replay_is_delivered_and_a_send_of_the_owner_is_sent() {
    let world = World::new(hook(AuthMethod::None)).await;
    world.hub.say(&world.bot, "hello");
    let trace = world.delivered(1).await.remove(0);
    let traces = world.hub.hub().traces();
    let replay =
        traces.replay(&world.ada, world.bot.id, trace.trace_id, ReplayTo::Webhook, None).await.unwrap();
    world
        .hub
        .until("the replay", async || {
            let trace = traces.get(&world.ada, world.bot.id, replay).await.unwrap();
            (trace.status == TraceStatus::Ok).then_some(())
        })
        .await;
    assert_eq!(world.receiver.texts(), ["hello", "hello"]);
    world.hub.send(&world.ada, &world.bot, "from the owner").await.unwrap();
    assert_eq!(world.hub.sent(&world.bot, 1).await[0].text, "from the owner");
}

#[tokio::test]
async fn messages_accepted_before_a_stop_are_delivered_after_the_next_start() {
    let mut webhook = hook(AuthMethod::None);
    webhook.retry.schedule_s = vec![1; 10];
    let mut world = World::new(webhook).await;
    world.receiver.answer(500, "no");
    world.hub.say(&world.bot, "kept");
    world.hub.until("an attempt", async || (!world.receiver.bodies().is_empty()).then_some(())).await;
    world.hub.restart().await;
    world.delivered(1).await;
    assert_eq!(world.receiver.texts(), ["kept", "kept"]);
}

#[tokio::test]
async fn a_remark_of_another_process_shows_after_ten_seconds() {
    let world = World::new(hook(AuthMethod::None)).await;
    let (bot, person) = (world.bot.id, world.bot.person.clone());
    world.hub.say(&world.bot, "first");
    world.delivered(1).await;
    world.hub.say(&world.bot, "second");
    world.delivered(2).await;
    // Past the service, as this process knows nothing of it.
    let set =
        world.hub.hub().context().store.write(move |tx| {
            Box::pin(async move { tx.contacts().set_remark(None, bot, &person, "Ada").await })
        });
    assert!(set.await.unwrap());
    world.hub.say(&world.bot, "third");
    world.delivered(3).await;
    world.hub.clock().advance(10 * SECOND);
    world.hub.say(&world.bot, "fourth");
    world.delivered(4).await;
    let names: Vec<_> =
        world.receiver.bodies().iter().map(|body| body["sender"]["user_name"].clone()).collect();
    assert_eq!(names, ["", "", "", "Ada"]);
}

#[tokio::test]
async fn a_sender_without_a_name_on_the_network_is_called_by_the_contacts_remark_everywhere() {
    let world = World::new(hook(AuthMethod::None)).await;
    let (hub, ada, bot) = (world.hub.hub(), &world.ada, &world.bot);
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    let rest =
        AppPatch { events: words(&["message"]), scopes: words(&["message:read"]), ..AppPatch::default() };
    let new = NewApp { name: "Clerk".to_owned(), slug: None, rest };
    let app = hub.apps().create(ada, new, None).await.unwrap().app.id;
    let new = NewInstallation { app_id: app, scopes: None, handle: None, config: None };
    hub.apps().install(ada, bot.id, new, None).await.unwrap();
    let code = "// ==UserScript==\n// @name named\n// ==/UserScript==\n\
        function onRequest(ctx) { ctx.req.body.seen = ctx.msg.sender.user_name; }\n";
    let new = crate::plugins::Submission { script: code.to_owned(), ..Default::default() };
    let plugin_id = hub.plugins().submit(ada, new, None).await.unwrap().id;
    let new = crate::plugins::NewInstallation { plugin_id, version: None, position: None };
    hub.plugins().install(ada, bot.id, world.channel, new).await.unwrap();

    world.hub.say(bot, "first");
    world.delivered(1).await;
    hub.bots().set_remark(ada, bot.id, &bot.person, "Ada of the shop").await.unwrap();
    world.hub.say(bot, "second");
    world.delivered(2).await;
    // Another remark is another name: the first one was not taken for the network's.
    hub.bots().set_remark(ada, bot.id, &bot.person, "Ada").await.unwrap();
    world.hub.say(bot, "third");
    world.delivered(3).await;

    let names = ["", "Ada of the shop", "Ada"];
    for (body, name) in world.receiver.bodies().iter().zip(names) {
        assert_eq!((&body["sender"]["user_name"], &body["seen"]), (&name.into(), &name.into()), "{body}");
    }
    let filter =
        MessageFilter { direction: Some(crate::bots::Direction::Inbound), ..MessageFilter::default() };
    let listed = hub.bots().messages(ada, bot.id, &filter, &PageRequest::default()).await.unwrap().items;
    let listed: Vec<&str> = listed.iter().rev().map(|message| message.user_name.as_str()).collect();
    assert_eq!(listed, names);
    let page = PageRequest::parse(&Apps::event_list(bot.id, app), None, None).unwrap();
    let events = hub.apps().events(ada, bot.id, app, &page).await.unwrap().items;
    let events = events.iter().rev().filter(|event| event.kind.starts_with("message"));
    let sent: Vec<String> = events
        .map(|event| serde_json::from_str::<serde_json::Value>(&event.event).unwrap())
        .map(|event| event["data"]["sender"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(sent, names);
    let contact = hub.bots().contacts(ada, bot.id, &PageRequest::default()).await.unwrap().items.remove(0);
    assert_eq!((contact.user_name.as_str(), contact.remark.as_str()), ("", "Ada"));
}

/// The steps of replies, as status and reason.
fn reply_steps(trace: &Trace) -> Vec<(TraceStatus, &str)> {
    let replies = trace.steps.iter().filter(|step| step.name == Reply);
    replies.map(|step| (step.status, step.detail.reason.as_deref().unwrap_or_default())).collect()
}

#[tokio::test]
async fn a_reply_that_is_not_sent_is_a_step_with_the_reason() {
    let world = World::new(hook(AuthMethod::None)).await;
    let bodies = [
        (r#"{"reply":7}"#, "`reply` is a number"),
        (r#"{"reply":" "}"#, "`reply` is empty"),
        (r#"{"data":{"reply":"x"}}"#, "not at the top level"),
        ("<br />Notice {\"reply\":\"x\"}", "there is text before the JSON"),
        ("thank you", "the response is not JSON"),
        ("", ""),
        (r#"{"ok":true}"#, ""),
        (r#"{"reply":null}"#, ""),
    ];
    for (count, (body, reason)) in (1..).zip(bodies) {
        world.receiver.answer(200, body);
        world.hub.say(&world.bot, "hello");
        let trace = world.delivered(count).await.remove(0);
        match reply_steps(&trace)[..] {
            [] => assert_eq!(reason, "", "{body}"),
            [(TraceStatus::Skipped, found)] => {
                assert!(!reason.is_empty() && found.contains(reason), "{body}: {found}");
            }
            ref steps => panic!("{body}: {steps:?}"),
        }
    }
    assert!(world.hub.sim().outbound(Some(&world.bot.wx_id), 0).is_empty());
}

#[tokio::test]
async fn a_reply_without_auto_reply_is_explained_with_the_setting_that_sends_it() {
    let world = World::new(WebhookUpdate { auto_reply: false, ..hook(AuthMethod::None) }).await;
    world.receiver.answer(200, r#"{"reply":"you are heard"}"#);
    world.hub.say(&world.bot, "hello");
    let trace = world.delivered(1).await.remove(0);
    let reason = "auto_reply of the webhook is off";
    assert_eq!(reply_steps(&trace), [(TraceStatus::Skipped, reason)]);
    let traces = world.hub.hub().traces();
    let found = traces.explain(&world.ada, world.bot.id, trace.message_id, None).await.unwrap();
    assert!(found.sentence().ends_with(&format!("No reply was sent: {reason}.")), "{}", found.sentence());
    let check = found.checks.last().unwrap();
    assert_eq!((check.name.as_str(), check.ok, &*check.finding.to_string()), ("reply", false, reason));
    let place = OfChannel { bot_id: world.bot.id, channel_id: world.channel };
    let enable = Remedy::SetWebhook(WebhookSetting { place, field: WebhookField::AutoReply });
    assert_eq!(found.remedies, [enable]);

    // A test of the webhook has the same step; with auto_reply on, it says that tests send nothing.
    let context = world.hub.hub().context();
    world.receiver.answer(200, r#"{"reply":"you are heard"}"#);
    let tested = super::ping::ping(context, &world.ada, world.bot.id, world.channel).await.unwrap();
    assert_eq!(reply_steps(&tested), [(TraceStatus::Skipped, reason)]);
    let on = WebhookUpdate { auto_reply: true, ..hook(AuthMethod::None) };
    world.hub.hub().channels().set_webhook(&world.ada, world.bot.id, world.channel, on).await.unwrap();
    world.receiver.answer(200, r#"{"reply":"you are heard"}"#);
    let tested = super::ping::ping(context, &world.ada, world.bot.id, world.channel).await.unwrap();
    assert_eq!(reply_steps(&tested).len(), 1);
    assert!(reply_steps(&tested)[0].1.starts_with("this is a test"), "{tested:?}");
}

#[tokio::test]
async fn a_reply_of_a_failed_attempt_is_not_explained_after_a_success() {
    let mut webhook = hook(AuthMethod::None);
    webhook.retry.schedule_s = vec![1];
    let world = World::new(webhook).await;
    world.receiver.answer(500, r#"{"reply":"no"}"#);
    world.hub.say(&world.bot, "hello");
    let trace = world.delivered(1).await.remove(0);
    let steps = reply_steps(&trace);
    assert_eq!(
        steps,
        [(TraceStatus::Skipped, "the status is 500, and only the `reply` of a 2xx response is sent")]
    );
    let traces = world.hub.hub().traces();
    let found = traces.explain(&world.ada, world.bot.id, trace.message_id, None).await.unwrap();
    assert!(!found.sentence().contains("No reply"), "{}", found.sentence());
}

#[tokio::test]
async fn a_reply_longer_than_a_message_is_not_sent() {
    let world = World::new(hook(AuthMethod::None)).await;
    world.receiver.answer(200, &serde_json::json!({ "reply": "字".repeat(30_000) }).to_string());
    world.hub.say(&world.bot, "hello");
    let trace = world.delivered(1).await.remove(0);
    let reason = "the reply has 90000 bytes, and at most 65536 are sent";
    assert_eq!(reply_steps(&trace), [(TraceStatus::Skipped, reason)]);
}
