use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{
    error::ErrorCode,
    model::{
        bot::BotStatus,
        message::MessageStatus,
        sinks::WebhookUpdate,
        trace::{Step, StepKind, StepName},
        window::Window,
    },
    network::MessageKind,
    sandbox::SandboxFault,
    testing::{Receiver, TestHub},
    traces::TraceQuery,
};

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

fn delivery(state: DeliveryState, attempts: u64, error: Option<&str>) -> DeliveryFacts {
    let due_at = NOW + Duration::from_secs(60);
    DeliveryFacts { sink: SinkKind::Webhook, state, attempts, due_at, last_error: error.map(str::to_owned) }
}

fn step(name: StepName, status: TraceStatus, detail: serde_json::Value) -> Step {
    Step::new(name, StepKind::Webhook, status, NOW, NOW, serde_json::from_value(detail).unwrap())
}

/// A message that one attempt delivered.
fn facts() -> Facts {
    let (bot_id, message_id, channel_id) = (BotId::MAX, MessageId::MAX, ChannelId::MAX);
    let text = |text: &str| text.to_owned();
    let mut trace = Trace::new(TraceId::MAX, message_id, bot_id, NOW, Vec::new());
    trace.channel_id = Some(channel_id);
    trace.status = TraceStatus::Ok;
    trace.summary = text("status 200");
    trace.attempts = 1;
    Facts {
        now: NOW,
        bot: BotRecord {
            id: bot_id,
            owner_id: crate::id::UserId::MAX,
            name: text("Shop"),
            network: text("sim"),
            status: BotStatus::Online,
            status_reason: None,
            status_since: NOW,
            wx_id: String::new(),
            owner_user_id: String::new(),
            last_inbound_at: None,
            last_poll_at: None,
            last_error: None,
            lease_owner: Some(text("node")),
            lease_name: None,
            lease_until: NOW + Duration::from_secs(30),
            created_at: NOW,
            owner_window: Window::default(),
        },
        message: Message {
            id: message_id,
            bot_id,
            channel_ids: Vec::new(),
            direction: Direction::Inbound,
            from_user_id: text("ann"),
            to_user_id: text("bot"),
            user_name: String::new(),
            session_id: String::new(),
            kind: MessageKind::Text,
            content: text("order 42"),
            items: Vec::new(),
            media: Vec::new(),
            quoted: None,
            status: MessageStatus::Received,
            status_reason: None,
            trace_id: None,
            created_at: NOW,
        },
        channel: Some(ChannelFacts {
            id: channel_id,
            name: text("orders"),
            enabled: true,
            webhook_on: true,
            webhook_disabled: None,
            ai_on: false,
            created_at: NOW,
        }),
        trace: Some(trace),
        deliveries: vec![delivery(DeliveryState::Done, 1, None)],
        window_closed: None,
    }
}

/// A message whose trace has a status and a last step.
fn ended(status: TraceStatus, last: Step) -> Facts {
    let mut facts = facts();
    let trace = facts.trace.as_mut().unwrap();
    trace.status = status;
    trace.steps.push(last);
    facts
}

fn failed(last: Step) -> Facts {
    let mut facts = ended(TraceStatus::Error, last);
    facts.deliveries = vec![delivery(DeliveryState::Dead, 8, Some("status 500"))];
    let trace = facts.trace.as_mut().unwrap();
    (trace.attempts, trace.summary) = (8, "failed after 8 attempt(s): status 500".to_owned());
    facts
}

fn pending(delivery: DeliveryFacts) -> Facts {
    let response = step(StepName::Response, TraceStatus::Error, json!({ "status": 503 }));
    let mut facts = ended(TraceStatus::Pending, response);
    facts.deliveries = vec![delivery];
    facts
}

fn sent(status: MessageStatus) -> Facts {
    let mut facts = facts();
    facts.message.direction = Direction::Outbound;
    facts.message.status = status;
    facts
}

fn with(mut facts: Facts, change: impl FnOnce(&mut Facts)) -> Facts {
    change(&mut facts);
    facts
}

/// The facts of each verdict, a part of its sentence, and the actions of its remedies with what they concern.
fn cases() -> Vec<(Verdict, Facts, &'static str, &'static str)> {
    use DeliveryState::{Dead, Parked, Pending};
    use StepName::{Ai, Filter, PluginOnRequest, Reply, Request, Response};
    use TraceStatus::{Error, Skipped};
    let filter = |reason: &str| ended(Skipped, step(Filter, Skipped, json!({ "reason": reason })));
    let response = |status: u16| failed(step(Response, Error, json!({ "status": status })));
    let tls = json!({ "error": { "class": "tls", "message": "the certificate expired" } });
    let throws = json!({ "plugin": "tagger", "error": { "kind": "throw", "message": "id is null" } });
    let paused = json!({ "plugin": "tagger", "paused": "it had to be stopped 5 times" });
    let unfiltered = SandboxFault::Unfiltered;
    let unfiltered = json!({ "kind": unfiltered.as_str(), "message": unfiltered.to_string() });
    let unfiltered = json!({ "plugin": "tagger", "error": unfiltered });
    let no_reply = json!({ "error": "the conversation is closed" });
    vec![
        (Verdict::Delivered, facts(), "delivered to the channel orders: status 200", ""),
        (
            Verdict::LogOnly,
            with(facts(), |facts| facts.deliveries.clear()),
            "in the log of the channel orders",
            "connect_client set_webhook/url",
        ),
        (
            Verdict::Unreadable,
            with(facts(), |facts| facts.message.status = MessageStatus::Quarantined),
            "could not read",
            "update_hub write_text",
        ),
        (
            Verdict::NoUserMessage,
            with(facts(), |facts| facts.message.status = MessageStatus::Recalled),
            "(recalled)",
            "write",
        ),
        (
            Verdict::NoChannel,
            with(facts(), |facts| (facts.channel, facts.trace) = (None, None)),
            "no channel",
            "create_channel",
        ),
        (
            Verdict::OlderThanChannel,
            with(facts(), |facts| {
                facts.trace = None;
                facts.channel.as_mut().unwrap().created_at = NOW + Duration::from_secs(1);
            }),
            "The channel orders was created after",
            "write",
        ),
        (
            Verdict::NoTrace,
            with(facts(), |facts| facts.trace = None),
            "no trace of the message in the channel orders",
            "write change_setting/trace_retention",
        ),
        (Verdict::ChannelOff, filter("disabled"), "The channel orders was off", "enable_channel"),
        (Verdict::NotAddressed, filter("handle"), "does not mention", "mention_handle remove_handle"),
        (Verdict::Filtered, filter("keywords"), "did not match: keywords", "set_filter"),
        (Verdict::FilterBroken, filter("the filter does not work: x"), "nothing passes", "set_expression"),
        (
            Verdict::SkippedByPlugin,
            ended(Skipped, step(PluginOnRequest, Skipped, json!({ "plugin": "tagger", "skipped": true }))),
            "The plugin tagger skipped the message.",
            "disable_plugin/tagger",
        ),
        (
            Verdict::IgnoredBySink,
            ended(Skipped, step(Ai, Skipped, json!({ "reason": "no text" }))),
            "ignores",
            "set_webhook/url",
        ),
        (
            Verdict::PluginFailed,
            failed(step(PluginOnRequest, Error, throws)),
            "tagger failed: id is null",
            "debug_plugin replay",
        ),
        (
            Verdict::PluginFailed,
            failed(step(PluginOnRequest, Error, paused)),
            "tagger failed: failed after 8 attempt(s)",
            "enable_plugin/tagger replay",
        ),
        (
            Verdict::PluginFailed,
            failed(step(PluginOnRequest, Error, unfiltered)),
            "tagger failed: plugins do not run",
            "change_setting/sandbox_filter replay",
        ),
        (
            Verdict::SinkOff,
            with(response(500), |facts| facts.channel.as_mut().unwrap().webhook_on = false),
            "the sink webhook is off",
            "enable_sink/webhook replay",
        ),
        (Verdict::Gone, response(410), "410", "set_webhook/url replay"),
        (
            Verdict::ReceiverError,
            response(500),
            "after 8 attempts: the receiver responded with status 500",
            "correct_receiver replay",
        ),
        (Verdict::ReceiverError, response(401), "status 401", "set_webhook/auth replay"),
        (
            Verdict::ReceiverError,
            response(302),
            "status 302, and redirects are not followed",
            "set_webhook/url replay",
        ),
        (Verdict::ReceiverError, response(404), "status 404", "set_webhook/url replay"),
        (Verdict::ReceiverError, response(422), "status 422", "correct_receiver open_trace replay"),
        (Verdict::ReceiverError, response(429), "status 429", "set_webhook/rate_limit_per_s replay"),
        (
            Verdict::Unreachable,
            failed(step(Request, Error, tls)),
            "tls: the certificate expired",
            "renew_certificate replay",
        ),
        (
            Verdict::Failed,
            failed(step(Ai, Error, json!({ "error": "x" }))),
            "failed after 8 attempts",
            "test_model replay",
        ),
        (
            Verdict::ReplyFailed,
            ended(Error, step(Reply, Error, no_reply)),
            "could not be sent: the conversation is closed",
            "open_bot",
        ),
        (
            Verdict::Retrying,
            pending(delivery(Pending, 2, Some("status 503"))),
            "Attempt 2",
            "correct_receiver",
        ),
        (
            Verdict::Retrying,
            pending(delivery(Parked, 3, Some("status 503"))),
            "do not wait for it",
            "correct_receiver attempt",
        ),
        (
            Verdict::Waiting,
            pending(delivery(Parked, 0, Some("no model is configured"))),
            "waits: no model is configured",
            "set_model",
        ),
        (
            Verdict::Queued,
            pending(delivery(Pending, 0, None)),
            "first attempt",
            "wait set_webhook/max_concurrency",
        ),
        (
            Verdict::NoNode,
            with(pending(delivery(Pending, 0, None)), |facts| facts.bot.lease_until = NOW),
            "No node",
            "start_node open_bot",
        ),
        (Verdict::Sent, sent(MessageStatus::Sent), "has the message", ""),
        (Verdict::Sending, sent(MessageStatus::Queued), "waits for the chat network", "wait open_bot"),
        (
            Verdict::WindowClosed,
            with(sent(MessageStatus::Queued), |facts| {
                facts.window_closed = Some("they have to write first".into());
            }),
            "they have to write first",
            "write",
        ),
        (
            Verdict::LoginExpired,
            with(sent(MessageStatus::Queued), |facts| facts.bot.status = BotStatus::Expired),
            "new login",
            "bind_bot",
        ),
        (Verdict::SendFailed, sent(MessageStatus::Failed), "refused", "send"),
        (Verdict::SendUnknown, sent(MessageStatus::Unknown), "unknown whether", "check_phone send"),
        (Verdict::SendUnknown, sent(MessageStatus::Unconfirmed), "without an id", "check_phone send"),
        (Verdict::SendExpired, sent(MessageStatus::Expired), "too long", "write send"),
        (
            Verdict::Gone,
            with(failed(step(Response, Error, json!({ "status": 500 }))), |facts| {
                let channel = facts.channel.as_mut().unwrap();
                channel.webhook_on = false;
                channel.webhook_disabled = Some("the receiver answered 410 Gone".into());
                facts.deliveries = vec![delivery(Dead, 1, None)];
            }),
            "the hub switched the webhook off: the receiver answered 410",
            "enable_sink/webhook replay",
        ),
    ]
}

/// The actions, with the plugin, sink, field or setting that they concern.
fn actions(remedies: &[Remedy]) -> String {
    let action = |remedy: &Remedy| {
        let remedy = json!(remedy);
        let of = ["plugin", "sink", "field", "setting"].into_iter().find_map(|name| remedy[name].as_str());
        let action = remedy["action"].as_str().unwrap();
        of.map_or_else(|| action.to_owned(), |of| format!("{action}/{of}"))
    };
    remedies.iter().map(action).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_verdict_has_a_sentence_and_remedies_unless_it_is_a_success() {
    let cases = cases();
    for verdict in Verdict::ALL {
        assert!(cases.iter().any(|(expected, ..)| *expected == verdict), "{verdict} has no case");
    }
    for (verdict, facts, part, remedies) in cases {
        let found = facts.explain();
        let sentence = found.sentence();
        assert_eq!(found.verdict, verdict, "{sentence}");
        assert!(sentence.contains(part) && sentence.ends_with('.'), "{verdict}: {sentence}");
        assert_eq!(actions(&found.remedies), remedies, "{verdict}");
        assert_eq!(found.remedy().is_none(), verdict.is_success(), "{verdict}");
    }
}

#[test]
fn remedies_have_the_ids_that_they_need() {
    let remedies = |facts: Facts| json!(facts.explain().remedies);
    let place = json!({ "bot_id": BotId::MAX, "channel_id": ChannelId::MAX });
    let with = |action: &str, field: &str, value: &str| {
        let mut remedy = place.clone();
        (remedy["action"], remedy[field]) = (action.into(), value.into());
        remedy
    };
    let trace = |action: &str| json!({ "action": action, "bot_id": BotId::MAX, "trace_id": TraceId::MAX });
    let response = |status: u16| step(StepName::Response, TraceStatus::Error, json!({ "status": status }));
    assert_eq!(
        remedies(failed(response(401))),
        json!([with("set_webhook", "field", "auth"), trace("replay")])
    );
    let throws = json!({ "plugin": "tagger", "paused": "stopped" });
    let paused = step(StepName::PluginOnRequest, TraceStatus::Error, throws);
    assert_eq!(remedies(failed(paused)), json!([with("enable_plugin", "plugin", "tagger"), trace("replay")]));
    let of_an_app = self::with(failed(response(401)), |facts| facts.channel = None);
    assert_eq!(
        remedies(of_an_app),
        json!([{ "action": "open_apps", "bot_id": BotId::MAX }, trace("replay")])
    );
}

#[test]
fn the_sentence_of_a_delivered_message_says_why_no_reply_was_sent() {
    let reply = |status, detail| ended(TraceStatus::Ok, step(StepName::Reply, status, detail)).explain();
    let skipped = reply(TraceStatus::Skipped, json!({ "reason": "`reply` is empty" }));
    let expected =
        "The message was delivered to the channel orders: status 200. No reply was sent: `reply` is empty.";
    assert_eq!(skipped.sentence(), expected);
    let waits = reply(TraceStatus::Pending, json!({ "error": "they have to write first" }));
    assert!(waits.sentence().ends_with("A reply waits: they have to write first."), "{}", waits.sentence());
    let sent = reply(TraceStatus::Ok, json!({ "state": "sent" }));
    assert!(sent.sentence().ends_with(": status 200."), "{}", sent.sentence());
}

#[test]
fn checks_follow_the_path_and_show_what_is_not_as_it_should_be() {
    use CheckName::{Bot, Channel, Delivery, Filter, Received, Send, Sink};
    let names = |facts: &Facts| {
        facts.explain().checks.into_iter().map(|check| (check.name, check.ok)).collect::<Vec<_>>()
    };
    assert_eq!(
        names(&facts()),
        [(Received, true), (Bot, true), (Channel, true), (Sink, true), (Delivery, true)]
    );
    let filtered = step(StepName::Filter, TraceStatus::Skipped, json!({ "reason": "keywords" }));
    let filtered = with(ended(TraceStatus::Skipped, filtered), |facts| facts.deliveries.clear());
    let expected = [(Received, true), (Bot, true), (Channel, true), (Filter, false), (Sink, true)];
    assert_eq!(names(&filtered), expected);
    assert_eq!(names(&sent(MessageStatus::Failed)), [(Bot, true), (Send, false)]);
    let waiting = pending(delivery(DeliveryState::Parked, 2, Some("status 503"))).explain();
    let last = waiting.checks.last().unwrap();
    assert_eq!((last.ok, last.at), (false, Some(NOW + Duration::from_secs(60))));
    assert_eq!(last.finding.to_string(), "webhook: parked, attempts: 2: status 503");
}

#[tokio::test]
async fn a_message_is_explained_to_its_owner_in_each_channel() {
    let shop = Receiver::new();
    let hub = TestHub::builder().receiver("shop.test", &shop).start().await;
    let (ada, eve) = (hub.register("ada").await, hub.register("eve").await);
    let bot = hub.bind(&ada).await;
    let webhook = || WebhookUpdate { url: "http://shop.test/orders".to_owned(), ..WebhookUpdate::default() };
    let orders = hub.webhook_channel(&ada, bot.id, "orders", webhook()).await;
    shop.answer(401, "{}");
    hub.say(&bot, "order 42");
    let tried = hub
        .until("an attempt", async || {
            let traces = hub.traces(&ada, bot.id, &TraceQuery::default()).await;
            traces.into_iter().find(|trace| trace.attempts > 0)
        })
        .await;
    let traces = hub.hub().traces();
    let message = tried.message_id;
    let found = traces.explain(&ada, bot.id, message, None).await.unwrap();
    assert_eq!(
        (found.verdict, found.trace_id),
        (Verdict::Retrying, Some(tried.trace_id)),
        "{}",
        found.sentence()
    );
    assert_eq!(found.cause, Some(Finding::Response { http_status: 401 }));
    assert!(found.next_attempt_at.is_some() && found.attempts > 0, "{found:?}");
    assert_eq!(found.channel_id, tried.channel_id);

    let later = hub.webhook_channel(&ada, bot.id, "later", webhook()).await;
    let later = traces.explain(&ada, bot.id, message, Some(later)).await.unwrap();
    assert_eq!((later.verdict, later.trace_id), (Verdict::NoTrace, None));
    for (actor, id, channel) in
        [(&eve, message, Some(orders)), (&ada, MessageId::MAX, None), (&ada, message, Some(ChannelId::MAX))]
    {
        let refused = traces.explain(actor, bot.id, id, channel).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NotFound);
    }
}
