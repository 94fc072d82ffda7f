//! Retries and permanent failures of AI replies.

use hub_core::{
    ErrorCode,
    channels::{NewChannel, sinks::AiUpdate},
    traces::{ReplayTo, TraceStatus},
};
use serde_json::json;

use super::{MINUTE, MODEL, OWN_KEY, SECOND, ai_steps, ended, own_model, said, scene};
use crate::support::{receiver::Reply, world::World};

#[tokio::test]
async fn a_model_that_hangs_delays_no_webhook_and_times_out() {
    let hub = World::start().await;
    hub.receiver.always(MODEL, said("never").after(MINUTE * 60));
    let bot = hub.bot().await;
    let both = NewChannel {
        webhook: Some(World::webhook("/hook")),
        ai: Some(AiUpdate { timeout_ms: 300, ..own_model() }),
        ..NewChannel::named("both")
    };
    let channel = hub.channel_with(&bot, both).await;
    for n in 0..8 {
        hub.say(&bot, &n.to_string());
    }
    hub.until("the webhook has everything", async || {
        (hub.receiver.received_at("/hook").len() == 8).then_some(())
    })
    .await;
    let mut given_up = None;
    for _ in 0..200 {
        // Attempts end in real time, and the waits between them by the clock.
        hub.jump(MINUTE).await;
        given_up = hub.traces(&bot).await.into_iter().find(|trace| trace.status == TraceStatus::Error);
        if given_up.is_some() {
            break;
        }
    }
    let given_up = given_up.expect("the schedule ends");
    assert_eq!(
        (given_up.channel_id, given_up.attempts),
        (Some(channel), 6),
        "the first try and one per wait"
    );
    assert!(given_up.summary.contains("timeout"), "{}", given_up.summary);
    assert_eq!(hub.sent(&bot).len(), 0);
}

#[tokio::test]
async fn a_temporary_failure_is_retried_and_answered_once() {
    let (hub, bot, channel) = scene().await;
    let start = hub.now();
    hub.receiver.then(
        MODEL,
        [
            Reply::status(500),
            Reply::status(429).header("retry-after", "40"),
            Reply::text("text/html", "<html>not a model</html>"),
            Reply::text("text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n"),
        ],
    );
    hub.say(&bot, "hello");
    let sent = hub.wait_sent(&bot, 1).await;
    assert_eq!(sent[0].text, "Hello!");
    let trace = ended(&hub, &bot, channel, TraceStatus::Ok).await;
    let (failed, ok) = (("ai", TraceStatus::Error), ("ai", TraceStatus::Ok));
    assert_eq!((trace.attempts, ai_steps(&trace)), (5, vec![failed, failed, failed, failed, ok]));
    let asked = hub.receiver.received_at(MODEL);
    assert!(asked[2].at.since(asked[1].at) >= SECOND * 40, "the pause that was asked for");
    assert!(asked[4].at.since(start) < MINUTE * 10);
    hub.jump(MINUTE * 60).await;
    assert_eq!(hub.sent(&bot).len(), 1);
}

#[tokio::test]
async fn the_sender_gets_the_error_reply_when_the_model_fails_or_returns_nothing() {
    let (hub, bot, channel) = scene().await;
    let ai = AiUpdate { error_reply: "No answer today, sorry.".to_owned(), ..own_model() };
    hub.hub.channels().set_ai(&hub.owner, bot.id, channel, ai).await.unwrap();
    hub.receiver.always(MODEL, Reply::status(401));
    hub.say(&bot, "hello");
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "No answer today, sorry.");
    hub.wait_trace(&bot, channel, |trace| {
        trace.status == TraceStatus::Error && trace.summary.contains("401")
    })
    .await;
    hub.receiver.always(MODEL, said(""));
    hub.say(&bot, "are you there?");
    assert_eq!(hub.wait_sent(&bot, 2).await[1].text, "No answer today, sorry.");
    hub.wait_trace(&bot, channel, |trace| {
        trace.status == TraceStatus::Error && trace.summary.contains("empty response")
    })
    .await;
}

#[tokio::test]
async fn a_permanent_error_of_the_model_is_not_retried() {
    let (hub, bot, channel) = scene().await;
    let refusal = json!({ "error": { "message": format!("Incorrect API key provided: {OWN_KEY}") } });
    hub.receiver.always(MODEL, Reply::json(&refusal).with_status(401));
    hub.say(&bot, "hello");
    let dead = ended(&hub, &bot, channel, TraceStatus::Error).await;
    assert_eq!(dead.attempts, 1);
    assert!(dead.summary.contains("Incorrect API key provided: ***"), "{}", dead.summary);
    hub.jump(MINUTE * 60).await;
    assert_eq!(hub.receiver.received_at(MODEL).len(), 1);

    // The channel is repaired and the message sent to its model again.
    hub.receiver.always(MODEL, said("Hello!"));
    let off = AiUpdate { enabled: false, ..own_model() };
    hub.hub.channels().set_ai(&hub.owner, bot.id, channel, off).await.unwrap();
    let refused =
        hub.hub.traces().replay(&hub.owner, bot.id, dead.trace_id, ReplayTo::Model, None).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
    hub.hub.channels().set_ai(&hub.owner, bot.id, channel, own_model()).await.unwrap();
    let replay =
        hub.hub.traces().replay(&hub.owner, bot.id, dead.trace_id, ReplayTo::Model, None).await.unwrap();
    assert_eq!(hub.wait_sent(&bot, 1).await[0].text, "Hello!");
    let trace = hub.wait_trace(&bot, channel, |trace| trace.trace_id == replay && trace.attempts == 1).await;
    assert_eq!((trace.status, trace.replay_of), (TraceStatus::Ok, Some(dead.trace_id)));
}

#[tokio::test]
async fn a_second_run_after_a_crash_adds_no_second_answer() {
    let (hub, bot, channel) = scene().await;
    hub.keep_ended().await;
    hub.say(&bot, "hello");
    hub.wait_sent(&bot, 1).await;
    ended(&hub, &bot, channel, TraceStatus::Ok).await;
    hub.receiver.always(MODEL, said("something else"));
    // The delivery is found again, as after a crash between the answer and the commit of its outcome.
    hub.reopen().await;
    hub.until("the model is asked again", async || {
        (hub.receiver.received_at(MODEL).len() == 2).then_some(())
    })
    .await;
    hub.jump(MINUTE).await;
    let sent = hub.sent(&bot);
    assert_eq!(sent.iter().map(|sent| sent.text.as_str()).collect::<Vec<_>>(), ["Hello!"]);
}
