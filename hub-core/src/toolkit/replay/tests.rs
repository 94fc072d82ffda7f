//! Recordings sent again, to receivers inside the process and through a hub.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{Stream, StreamExt, stream};
use serde_json::json;

use super::{recording::tests::recording, *};
use crate::{
    bots::NewSend,
    channels::NewChannel,
    egress::{Egress, EgressConfig},
    id::TraceId,
    local_http::LocalService,
    model::{
        sinks::{AuthMethod, AuthUpdate, Change, WebhookUpdate},
        trace::{StepName, TraceStatus},
    },
    redact::MAX_BODY,
    sandbox::{Sandbox, SandboxConfig, WorkerProgram},
    secret::Secret,
    signing::Received,
    testing::{Receiver, TestHub},
    time::{Clock, ManualClock, Timestamp},
    traces::{ReplayTo, TraceQuery},
};

const URL: &str = "http://receiver.test/again";
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn id(number: usize) -> TraceId {
    format!("tr_01KAJ6Z8QH{number:016}").parse().unwrap()
}

fn recordings(count: usize) -> Vec<Recording> {
    (0..count).map(|number| recording(&id(number).to_string(), &format!("order {number}"))).collect()
}

fn stream_of(recordings: Vec<Recording>) -> impl Stream<Item = Result<Recording, Infallible>> {
    stream::iter(recordings.into_iter().map(Ok))
}

fn egress(receiver: &Arc<Receiver>) -> Egress {
    let in_process =
        HashMap::from([("receiver.test".to_owned(), Arc::clone(receiver) as Arc<dyn LocalService>)]);
    Egress::new(EgressConfig { in_process, ..EgressConfig::default() }).unwrap()
}

fn to_url(receiver: &Arc<Receiver>, mode: Mode) -> ToUrl {
    let egress = egress(receiver);
    let target = egress.check_url(URL).unwrap();
    ToUrl::new(egress, Some(target), mode, ManualClock::new(NOW).into())
}

/// Runs to the end and keeps the reports.
async fn run(
    replay: &Replay,
    recordings: Vec<Recording>,
    carrier: &dyn Carrier,
) -> (Summary<Infallible>, Vec<Report>) {
    let mut reports = Vec::new();
    let report_done = |report: &Report, _: &Totals| reports.push(report.clone());
    let summary =
        replay.run(stream_of(recordings), carrier, &Clock::system(), &Stop::default(), report_done).await;
    (summary, reports)
}

#[tokio::test]
async fn as_recorded_the_same_request_comes_without_its_secrets() {
    let receiver = Receiver::new();
    let carrier = to_url(&receiver, Mode::AsRecorded);
    let (summary, reports) = run(&Replay::default(), recordings(2), &carrier).await;
    assert_eq!(summary.totals, Totals { ok: 2, ..Totals::default() });
    assert_eq!((summary.end, summary.resume_from), (End::Complete, Some(id(1))));
    assert_eq!((reports[0].status, reports[0].outcome), (Some(200), Outcome::Ok));
    assert_eq!(receiver.texts(), ["order 0", "order 1"]);
    let request = &receiver.requests()[0];
    assert_eq!(
        (request.uri().path(), &request.headers()["webhook-id"]),
        ("/again", &"dlv_1".parse().unwrap())
    );
    for absent in ["x-signature", "webhook-signature", "x-hub-attempt"] {
        assert!(!request.headers().contains_key(absent), "{absent}");
    }
    assert_eq!(request.body(), &recordings(1)[0].request().unwrap().body);
}

#[tokio::test]
async fn a_resigned_replay_passes_the_check_of_the_receiver() {
    let receiver = Receiver::new();
    let secret = Secret::from("another-secret");
    let carrier = to_url(&receiver, Mode::Resign(secret.clone()));
    run(&Replay::default(), recordings(1), &carrier).await;
    let request = &receiver.requests()[0];
    let headers: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    let received = Received {
        headers: &headers,
        body: request.body(),
        secret: &secret,
        now: NOW,
        tolerance: Duration::ZERO,
    };
    assert!(received.check().iter().all(|finding| finding.problem.is_none()), "{:?}", received.check());
    assert_eq!(request.headers()["webhook-id"], "dlv_1", "the receiver may know it already");
}

#[tokio::test]
async fn an_unsendable_recording_is_reported_and_not_sent() {
    let receiver = Receiver::new();
    let mut all = recordings(3);
    all[0].trace.steps[2].detail.body = Some("x".repeat(MAX_BODY + 30));
    all[1].trace.steps.clear();
    let carrier = to_url(&receiver, Mode::AsRecorded);
    let (summary, reports) = run(&Replay::default(), all.clone(), &carrier).await;
    assert_eq!(summary.totals, Totals { ok: 1, failed: 1, skipped: 1, differing: 0 });
    assert!(
        reports[0].reason.contains("64 KiB") && reports[1].reason.contains("nothing was sent"),
        "{reports:?}"
    );
    let own = ToUrl::new(egress(&receiver), None, Mode::AsRecorded, Clock::system());
    let (summary, reports) = run(&Replay::default(), all.split_off(2), &own).await;
    assert_eq!((summary.totals.failed, reports[0].status), (1, None));
    assert!(reports[0].reason.contains("holds a secret"), "{reports:?}");
    assert_eq!(receiver.texts(), ["order 2"]);
}

#[tokio::test]
async fn a_dry_run_only_looks() {
    let receiver = Receiver::new();
    let carrier = to_url(&receiver, Mode::AsRecorded);
    let dry = Replay { dry_run: true, compare: true, ..Replay::default() };
    let (summary, reports) = run(&dry, recordings(1), &carrier).await;
    assert_eq!((summary.totals.ok, summary.totals.differing), (1, 0));
    assert!(reports[0].reason.starts_with("POST http://receiver.test/again, "), "{reports:?}");
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn answers_are_compared_with_the_recorded_ones() {
    let receiver = Receiver::new();
    receiver.answer(200, "{\"reply\": \"a\"}");
    receiver.answer(200, "{\"reply\":\"b\"}");
    receiver.answer(500, "{\"reply\":\"a\"}");
    let compare = Replay { compare: true, ..Replay::default() };
    let (summary, reports) = run(&compare, recordings(3), &to_url(&receiver, Mode::AsRecorded)).await;
    assert_eq!(summary.totals, Totals { ok: 2, failed: 1, skipped: 0, differing: 2 });
    let differences: Vec<_> = reports.into_iter().map(|report| report.differences.unwrap()).collect();
    assert!(!differences[0].any(), "spaces are no difference");
    assert!(differences[1].body.as_ref().unwrap().contains("+  \"reply\": \"b\""));
    assert_eq!(differences[2].status, Some((Some(200), Some(500))));
}

#[tokio::test]
async fn the_first_failure_may_be_the_end_and_is_sent_again_by_who_goes_on() {
    let receiver = Receiver::new();
    receiver.answer(200, "{}");
    receiver.answer(500, "{}");
    let careful = Replay { stop_on_fail: true, ..Replay::default() };
    let (summary, _) = run(&careful, recordings(5), &to_url(&receiver, Mode::AsRecorded)).await;
    assert_eq!((summary.end, summary.resume_from), (End::Failed, Some(id(0))));
    assert_eq!(summary.totals, Totals { ok: 1, failed: 1, ..Totals::default() });
    assert_eq!(receiver.texts(), ["order 0", "order 1"]);
}

#[tokio::test]
async fn a_stop_waits_for_what_is_under_way_and_a_second_one_for_nothing() {
    let receiver = Receiver::new();
    receiver.hold();
    let carrier = to_url(&receiver, Mode::AsRecorded);
    let replay = Replay { concurrency: 2, ..Replay::default() };
    let (clock, stop) = (Clock::system(), Stop::default());
    let stopping = async {
        crate::testing::until("two requests", async || (receiver.requests().len() == 2).then_some(())).await;
        stop.soon.cancel();
        receiver.release();
    };
    let (summary, ()) =
        tokio::join!(replay.run(stream_of(recordings(9)), &carrier, &clock, &stop, |_, _| {}), stopping);
    assert_eq!((summary.end, summary.totals.ok, summary.resume_from), (End::Stopped, 2, Some(id(1))));

    receiver.hold();
    let stop = Stop::default();
    let stopping = async {
        crate::testing::until("two more", async || (receiver.requests().len() == 4).then_some(())).await;
        stop.now.cancel();
    };
    let (summary, ()) =
        tokio::join!(replay.run(stream_of(recordings(9)), &carrier, &clock, &stop, |_, _| {}), stopping);
    assert_eq!((summary.end, summary.totals, summary.resume_from), (End::Stopped, Totals::default(), None));
    receiver.release();
}

#[tokio::test]
async fn thousands_go_through_without_being_collected() {
    let receiver = Receiver::new();
    let carrier = to_url(&receiver, Mode::AsRecorded);
    let replay = Replay { concurrency: 8, ..Replay::default() };
    let read = AtomicUsize::new(0);
    let template = recording(&id(0).to_string(), "order");
    let source = stream::iter(0..3_000).map(|number| {
        read.fetch_add(1, Ordering::Relaxed);
        let mut one = template.clone();
        one.trace.trace_id = id(number);
        Ok::<_, Infallible>(one)
    });
    let mut most_ahead = 0;
    let report_done = |_: &Report, totals: &Totals| {
        let done = usize::try_from(totals.done()).unwrap();
        most_ahead = most_ahead.max(read.load(Ordering::Relaxed) - done);
    };
    let summary = replay.run(source, &carrier, &Clock::system(), &Stop::default(), report_done).await;
    assert_eq!(summary.totals, Totals { ok: 3_000, ..Totals::default() });
    assert_eq!((summary.resume_from, receiver.requests().len()), (Some(id(2_999)), 3_000));
    assert!(most_ahead <= 9, "{most_ahead} were read and not over");
}

#[tokio::test]
async fn a_source_that_breaks_ends_the_run_with_what_was_done() {
    let receiver = Receiver::new();
    let carrier = to_url(&receiver, Mode::AsRecorded);
    let items = vec![Ok(recordings(1).remove(0)), Err("line 2"), Ok(recordings(2).remove(1))];
    let summary = Replay::default()
        .run(stream::iter(items), &carrier, &Clock::system(), &Stop::default(), |_, _| {})
        .await;
    assert_eq!(
        (summary.end, summary.totals.ok, summary.resume_from),
        (End::Source("line 2"), 1, Some(id(0)))
    );
}

fn plugins(scripts: &[&str], secret: Option<&str>) -> Mode {
    let scripts =
        scripts.iter().enumerate().map(|(number, source)| Script::parse(format!("{number}.js"), *source));
    Mode::ThroughPlugins {
        sandbox: Sandbox::new(SandboxConfig::of(WorkerProgram::InProcessTrustedOnly), Clock::system()),
        scripts: scripts.collect::<crate::Result<_>>().unwrap(),
        secret: secret.map(Secret::from),
    }
}

#[tokio::test]
async fn plugins_that_are_given_run_on_the_recorded_message() {
    let receiver = Receiver::new();
    receiver.answer(200, "{\"n\":7}");
    let tag = "function onRequest(ctx) { ctx.req.body.tag = 1; ctx.reply('seen'); ctx.state.a = 2; }
        function onResponse(ctx) { ctx.reply('n ' + JSON.parse(ctx.res.body).n + ' a ' + ctx.state.a); }";
    let shout = "function onRequest(ctx) { ctx.req.body.tag += 1; ctx.req.headers['X-Kind'] = 'order'; }";
    let carrier = to_url(&receiver, plugins(&[tag, shout], Some("a-secret")));
    let (summary, reports) = run(&Replay::default(), recordings(1), &carrier).await;
    assert_eq!(summary.totals.ok, 1, "{reports:?}");
    assert_eq!(reports[0].replies, ["seen", "n 7 a 2"]);
    let request = &receiver.requests()[0];
    assert_eq!(
        (&receiver.bodies()[0]["tag"], &receiver.bodies()[0]["content"]),
        (&json!(2), &json!("order 0"))
    );
    assert_eq!(request.headers()["x-kind"], "order");
    assert!(request.headers().contains_key("x-signature"));

    let carrier = to_url(&receiver, plugins(&["function onRequest(ctx) { ctx.skip() }"], None));
    let (summary, reports) = run(&Replay::default(), recordings(1), &carrier).await;
    assert_eq!((summary.totals.skipped, &*reports[0].reason), (1, "0.js skips it"));
    let carrier = to_url(&receiver, plugins(&["function onRequest(ctx) { throw new Error('no') }"], None));
    let (summary, reports) = run(&Replay::default(), recordings(1), &carrier).await;
    assert!(summary.totals.failed == 1 && reports[0].reason.contains("0.js failed"), "{reports:?}");
    let mut gone = recordings(1);
    gone[0].message = None;
    let carrier = to_url(&receiver, plugins(&[shout], None));
    let (summary, reports) = run(&Replay::default(), gone, &carrier).await;
    assert!(summary.totals.failed == 1 && reports[0].reason.contains("not known any more"), "{reports:?}");
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn through_the_hub_each_replay_is_a_delivery_of_its_own() {
    let receiver = Receiver::new();
    let hub = TestHub::builder().receiver("receiver.test", &receiver).start().await;
    let ada = hub.register("ada").await;
    let bot = hub.bind(&ada).await;
    let secret = Change::Set("a-secret-of-some-length".into());
    let webhook = WebhookUpdate {
        url: "http://receiver.test/hook".to_owned(),
        auth: AuthUpdate { method: AuthMethod::Hmac, secret, ..AuthUpdate::default() },
        ..WebhookUpdate::default()
    };
    let channel = hub.webhook_channel(&ada, bot.id, "orders", webhook).await;
    receiver.answer(200, "{\"a\":1}");
    hub.say(&bot, "order 42");
    let trace = hub.trace(&ada, bot.id, channel, TraceStatus::Ok).await;
    let message = hub.hub().bots().message(&ada, bot.id, trace.message_id).await.unwrap();
    let mut recorded = Recording::new(trace.clone(), Some(&message.into()));
    assert_eq!(recorded.message.as_ref().unwrap()["content"], "order 42");
    assert!(!serde_json::to_string(&recorded).unwrap().contains("AARz"), "no context token");

    receiver.answer(200, "{\"a\":2}");
    receiver.answer(503, "later");
    let carrier = ThroughHub {
        hub: AsActor { hub: hub.hub().clone(), actor: ada },
        to: None,
        supersede: false,
        timeout: Duration::from_secs(30),
        clock: Clock::system(),
    };
    let compare = Replay { compare: true, ..Replay::default() };
    let (summary, reports) = run(&compare, vec![recorded.clone(), recorded.clone()], &carrier).await;
    assert_eq!(summary.totals, Totals { ok: 1, failed: 1, skipped: 0, differing: 2 }, "{reports:?}");
    assert!(reports[0].differences.as_ref().unwrap().body.as_ref().unwrap().contains("+  \"a\": 2"));
    assert!(reports[1].reason.contains("tries again") && reports[1].status == Some(503), "{reports:?}");
    let traces = hub.hub().traces();
    let made = traces.get(&ada, bot.id, reports[0].new_trace_id.unwrap()).await.unwrap();
    assert_eq!(made.replay_of, Some(trace.trace_id));
    assert!(receiver.requests()[1].headers().contains_key("x-signature"));

    recorded.trace.channel_id = None;
    let (summary, _) = run(&Replay::default(), vec![recorded.clone()], &carrier).await;
    assert_eq!(summary.totals.skipped, 1);
    recorded.trace.channel_id = Some(channel);
    recorded.trace.trace_id = id(1);
    let (summary, reports) = run(&Replay::default(), vec![recorded.clone()], &carrier).await;
    assert!(summary.totals.failed == 1 && reports[0].reason.contains("not found"), "{reports:?}");

    // What a channel sent is no message for its webhook.
    let sends = hub.hub().channels().create(&ada, bot.id, NewChannel::named("sends"), None).await.unwrap();
    let client = hub.hub().channels().authenticate_key(sends.api_key.expose()).await.unwrap();
    let new = NewSend { content: "from the channel".to_owned(), ..NewSend::default() };
    let sent = hub.hub().bots().send(&client, bot.id, new, None).await.unwrap();
    let of_send = traces.get(&ada, bot.id, sent.trace_id).await.unwrap();
    let refused =
        traces.replay(&ada, bot.id, sent.trace_id, ReplayTo::Url("http://receiver.test/x"), None).await;
    assert_eq!(refused.unwrap_err().code(), crate::ErrorCode::Conflict);
    let (summary, reports) = run(&Replay::default(), vec![Recording::new(of_send, None)], &carrier).await;
    assert!(summary.totals.skipped == 1 && reports[0].reason.contains("a send"), "{reports:?}");

    // Oldest first and within a time, as a replay goes through them.
    let all = TraceQuery { oldest_first: true, ..TraceQuery::default() };
    let found = hub.traces(&ada, bot.id, &all).await;
    assert_eq!(found[0].trace_id, trace.trace_id);
    assert!(found.iter().all(|trace| trace.steps[0].name == StepName::Received));
    let none = TraceQuery { until: Some(trace.started_at), ..all.clone() };
    assert!(hub.traces(&ada, bot.id, &none).await.is_empty());
    let wrong = TraceQuery { since: Some(NOW), until: Some(Timestamp::MIN), ..all };
    let page = crate::page::PageRequest::default();
    let refused = traces.list(&ada, bot.id, &wrong, &page).await.unwrap_err();
    assert_eq!(refused.details()[0].field, "until");
}

#[tokio::test]
async fn a_replay_does_not_wait_without_limit_for_a_hub_without_workers() {
    let receiver = Receiver::new();
    let mut hub = TestHub::builder().receiver("receiver.test", &receiver).start().await;
    let ada = hub.register("ada").await;
    let bot = hub.bind(&ada).await;
    let webhook = WebhookUpdate { url: "http://receiver.test/hook".to_owned(), ..WebhookUpdate::default() };
    let channel = hub.webhook_channel(&ada, bot.id, "orders", webhook).await;
    hub.say(&bot, "order 42");
    let trace = hub.trace(&ada, bot.id, channel, TraceStatus::Ok).await;
    hub.work(false);
    hub.restart().await;
    let carrier = ThroughHub {
        hub: AsActor { hub: hub.hub().clone(), actor: ada },
        to: None,
        supersede: false,
        timeout: Duration::ZERO,
        clock: Clock::system(),
    };
    let (summary, reports) = run(&Replay::default(), vec![Recording::new(trace, None)], &carrier).await;
    assert!(summary.totals.failed == 1 && reports[0].reason.contains("the hub continues"), "{reports:?}");
    assert!(reports[0].new_trace_id.is_some());
}
