//! Every behaviour of a receiver, against a hub.

use std::time::Duration;

use hub_core::{id::ChannelId, traces::TraceStatus};

use super::scene::{Scene, WAIT, next_attempt, seen};
use crate::support::fault_receiver::{Behaviour, FaultReceiver, Seen, Slot, Then, behaviours};

/// The timeout of channels whose receivers only a timeout ends, and of all others. An attempt that ends by
/// itself is distinguished from one that was ended by how far the two are apart.
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(30);
/// Tolerance of timeouts for a busy machine; a longer delay is a fault of the hub.
const MARGIN: Duration = Duration::from_secs(20);
/// Most bytes that may go out to the hub per connection: the cap of an answer, and the buffers of two systems.
const MOST_BYTES: u64 = 16 << 20;

struct Row {
    behaviour: Behaviour,
    receiver: FaultReceiver,
    channel: ChannelId,
}

#[tokio::test]
async fn every_behaviour_is_named_in_the_trace_ends_in_time_and_gives_its_slot_back() {
    let scene = Scene::open().await;
    let mut rows = Vec::new();
    for behaviour in behaviours() {
        let receiver = FaultReceiver::open(&behaviour).await;
        let timeout = if behaviour.slot == Slot::Timeout { SHORT } else { LONG };
        let timeout_ms = u32::try_from(timeout.as_millis()).unwrap();
        let channel = scene.channel(&behaviour.name, receiver.url(), timeout_ms).await;
        rows.push(Row { behaviour, receiver, channel });
    }
    // Two conversations, so that a failing head of one does not hold the other. Each channel has one slot: the
    // second message is tried only if the first has given it back.
    for (from, message) in [("alice", 1), ("bob", 2)] {
        scene.say(from, "hello");
        for row in &rows {
            if row.behaviour.then != Then::Final || message == 1 {
                scene.tried(row.channel, message).await;
            }
        }
    }
    let mut wrong = Vec::new();
    for row in &rows {
        wrong.extend(
            check(&scene, row).await.into_iter().map(|what| format!("{}: {what}", row.behaviour.name)),
        );
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// Returns the problems of a row after two messages.
async fn check(scene: &Scene, row: &Row) -> Vec<String> {
    let Behaviour { seen: expected, or, then, slot, .. } = row.behaviour;
    let messages = if then == Then::Final { 1 } else { 2 };
    let mut wrong = Vec::new();
    for trace in scene.tried(row.channel, messages).await.iter().rev().take(messages) {
        let seen = seen(trace);
        if (seen != expected && Some(seen) != or) || trace.attempts != 1 {
            wrong.push(format!("{seen:?} in {} attempt(s): {}", trace.attempts, trace.summary));
        }
        let (status, next) = (trace.status, next_attempt(trace));
        let right = match then {
            Then::Delivered => (status, next) == (TraceStatus::Ok, None),
            Then::Final => (status, next) == (TraceStatus::Error, None),
            Then::RetriedIn(seconds) => {
                (status, next) == (TraceStatus::Pending, Some(Duration::from_secs(seconds)))
            }
            Then::Retried => {
                let in_time = next.is_some_and(|next| (WAIT * 4 / 5..=WAIT * 6 / 5).contains(&next));
                status == TraceStatus::Pending && in_time
            }
        };
        if !right {
            wrong.push(format!("{status:?} and next after {next:?}, not {then:?}"));
        }
    }
    if then == Then::Final {
        let channel = scene.hub.hub().channels().get(&scene.ada, scene.bot.id, row.channel).await.unwrap();
        if channel.webhook.settings.enabled {
            wrong.push("the sink is still on".to_owned());
        }
    }
    for exchange in row.receiver.exchanges() {
        let most = if slot == Slot::Timeout { SHORT + MARGIN } else { MARGIN };
        // A kept connection may stay open; any other has ended, since its attempt has.
        if exchange.lasted.is_some_and(|lasted| lasted > most) {
            wrong.push(format!("a connection lasted {:?}", exchange.lasted));
        }
        if exchange.written > MOST_BYTES {
            wrong.push(format!("{} bytes were taken", exchange.written));
        }
    }
    let requests = row.receiver.requests();
    if requests.len() > messages {
        wrong.push(format!("{} requests for {messages} message(s)", requests.len()));
    }
    if requests.iter().any(|request| request.header("cookie").is_some()) {
        wrong.push("a cookie was sent back".to_owned());
    }
    wrong
}

#[tokio::test]
async fn an_attempt_that_hangs_delays_no_other_conversation_and_no_other_channel() {
    let scene = Scene::open().await;
    let all = behaviours();
    let behaviour = |name: &str| all.iter().find(|row| row.name == name).unwrap();
    let silent = FaultReceiver::open(behaviour("silent")).await;
    let well = FaultReceiver::open(behaviour("cookie")).await;
    let hangs = scene.channel("hangs", silent.url(), 30_000).await;
    let works = scene.channel("works", well.url(), 30_000).await;
    for n in 0..20 {
        scene.say(&format!("person {n}"), "hello");
    }
    for trace in scene.tried(works, 20).await {
        assert_eq!(seen(&trace), Seen::Status(200));
    }
    // The other channel's one request still hangs, and nothing of it was tried beyond its one slot.
    let hanging = silent.exchanges();
    assert_eq!(hanging.len(), 1);
    assert!(hanging[0].lasted.is_none(), "the timeout came first: the machine is far too slow to tell");
    assert!(scene.tried(hangs, 0).await.is_empty());
}

#[test]
fn the_table_has_every_behaviour_once() {
    let mut names: Vec<String> = behaviours().into_iter().map(|row| row.name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count >= 40, "{count}");
    assert!(behaviours().iter().all(|row| !row.does.is_empty()));
}
