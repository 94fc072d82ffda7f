//! Endpoints of models that misbehave: everything that a receiver of webhooks can do, and what only a stream can do.

use std::time::Duration;

use futures_util::future::join_all;
use hub_core::{
    ai::{self, AiFault, AiFaultClass, Completion, Dialects, Endpoint, Limits, Message, Prompt, Role},
    egress::{Egress, EgressConfig, EgressFault},
    time::Clock,
};

use crate::support::fault_receiver::{Behaviour, FaultReceiver, Seen, Slot, behaviours};

/// Deadlines: of behaviours that only a deadline ends, and of all others.
const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(60);
/// Tolerance of the deadline for a busy machine.
const MARGIN: Duration = Duration::from_secs(20);
/// Maximum bytes read per connection: the limit of a response, and the buffers of two systems.
const MOST_BYTES: u64 = 40 << 20;

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const PIECE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n";
const LAST: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn egress() -> Egress {
    let allow = vec!["127.0.0.0/8".parse().unwrap()];
    Egress::new(EgressConfig { allow, ..EgressConfig::default() }).unwrap()
}

async fn ask(egress: &Egress, receiver: &FaultReceiver, limits: Limits) -> Result<Completion, AiFault> {
    let endpoint = Endpoint {
        base_url: receiver.url(),
        api_key: Some("sk-a-key-of-somebody".into()),
        key_header: String::new(),
    };
    let prompt = Prompt {
        model: "m".to_owned(),
        messages: vec![Message::text(Role::User, "hello")],
        max_tokens: None,
        temperature: None,
        tools: Vec::new(),
    };
    ai::complete(egress, &Dialects::default(), &Clock::system(), &endpoint, &prompt, limits).await
}

/// Sends a prompt to a misbehaving endpoint. Returns the result and the problems: too slow, too much read, or retried
/// by itself.
async fn tried(egress: &Egress, behaviour: &Behaviour) -> (Result<Completion, AiFault>, Vec<String>) {
    let receiver = FaultReceiver::open(behaviour).await;
    let deadline = if behaviour.slot == Slot::Timeout { SHORT } else { LONG };
    let started = Clock::system().now();
    let limits = Limits { silence: deadline, total: deadline };
    let answered = ask(egress, &receiver, limits).await;
    let took = Clock::system().now().since(started);
    let mut wrong = Vec::new();
    if took > SHORT + MARGIN {
        wrong.push(format!("{}: it took {took:?}", behaviour.name));
    }
    if receiver.exchanges().iter().any(|exchange| exchange.written > MOST_BYTES) {
        wrong.push(format!("{}: too much was read", behaviour.name));
    }
    if receiver.requests().len() > 1 {
        wrong.push(format!("{}: asked again without being told to", behaviour.name));
    }
    (answered, wrong)
}

fn fits(seen: Seen, class: AiFaultClass) -> bool {
    match seen {
        Seen::Class(fault) => class == AiFaultClass::Egress(fault),
        // A webhook accepts it, but it is not a completion, or it exceeds the limit of one.
        Seen::Status(200..=299) => {
            matches!(class, AiFaultClass::NotUnderstood | AiFaultClass::Cut)
                || class == AiFaultClass::Egress(EgressFault::TooLarge)
        }
        Seen::Status(status) => class == AiFaultClass::Status(status),
    }
}

#[tokio::test]
async fn every_behaviour_of_a_receiver_is_sorted_and_ends_in_time() {
    let egress = egress();
    let all = behaviours();
    assert!(all.len() >= 40, "{}", all.len());
    let tries = all.iter().map(async |behaviour| {
        let (answered, mut wrong) = tried(&egress, behaviour).await;
        let name = &behaviour.name;
        match answered {
            Ok(completion) => wrong.push(format!("{name}: that was no answer: {completion:?}")),
            Err(fault) if fits(behaviour.whole, fault.class) => {}
            Err(fault) if behaviour.or.is_some_and(|or| fits(or, fault.class)) => {}
            Err(fault) => wrong.push(format!("{name}: {fault}, not {:?}", behaviour.whole)),
        }
        wrong
    });
    let wrong: Vec<String> = join_all(tries).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// Behaviours of a stream, each with the expected completion or fault.
fn streams() -> Vec<(Behaviour, Result<&'static str, AiFaultClass>)> {
    let saying = |name: &str, does, text: String| Behaviour::saying(name, does, Seen::Status(200), text);
    let egress = |fault| Err(AiFaultClass::Egress(fault));
    vec![
        (saying("whole", "says it all", format!("{STREAM}{PIECE}{LAST}{DONE}")), Ok("Hello")),
        (saying("no-done", "ends without a word", format!("{STREAM}{PIECE}{LAST}")), Ok("Hello")),
        (
            Behaviour::new(
                "lingers",
                "keeps the connection after the end",
                Seen::Status(200),
                |mut peer| async move {
                    peer.read_request().await;
                    peer.send(format!("{STREAM}{PIECE}{LAST}{DONE}")).await;
                    peer.hold().await;
                },
            ),
            Ok("Hello"),
        ),
        (
            Behaviour::new(
                "late-reset",
                "resets after the last piece",
                Seen::Status(200),
                |mut peer| async move {
                    peer.read_request().await;
                    peer.send(format!("{STREAM}{PIECE}{LAST}")).await;
                    // What was sent is read before the connection goes.
                    Clock::system().sleep(Duration::from_millis(300)).await;
                    peer.reset();
                },
            ),
            Ok("Hello"),
        ),
        (saying("cut", "ends in the middle", format!("{STREAM}{PIECE}")), Err(AiFaultClass::Cut)),
        (saying("cut-event", "ends in the middle of an event", format!("{STREAM}{PIECE}{}", &LAST[..40])), {
            Err(AiFaultClass::Cut)
        }),
        (
            saying("chunk-cut", "announces more than it sends", {
                let head = STREAM.replace("\r\n\r\n", "\r\ncontent-length: 5000\r\n\r\n");
                format!("{head}{PIECE}")
            }),
            egress(EgressFault::Broken),
        ),
        (
            Behaviour::new(
                "silent-stream",
                "begins and says nothing more",
                Seen::Class(EgressFault::Timeout),
                {
                    |mut peer| async move {
                        peer.read_request().await;
                        peer.send(format!("{STREAM}{PIECE}")).await;
                        peer.hold().await;
                    }
                },
            ),
            egress(EgressFault::Timeout),
        ),
        (
            Behaviour::new("keep-alive", "comments for ever", Seen::Class(EgressFault::Timeout), {
                |mut peer| async move {
                    peer.read_request().await;
                    peer.send(STREAM).await;
                    peer.drip(": wait\n\n").await;
                }
            }),
            egress(EgressFault::Timeout),
        ),
        (
            Behaviour::new(
                "babbles",
                "never stops",
                Seen::Class(EgressFault::TooLarge),
                |mut peer| async move {
                    peer.read_request().await;
                    peer.send(STREAM).await;
                    peer.send_endlessly(PIECE.repeat(200)).await;
                },
            ),
            egress(EgressFault::TooLarge),
        ),
        (
            Behaviour::new(
                "one-line",
                "a line without end",
                Seen::Class(EgressFault::TooLarge),
                |mut peer| async move {
                    peer.read_request().await;
                    peer.send(format!("{STREAM}data: ")).await;
                    peer.send_endlessly("x".repeat(16 * 1024)).await;
                },
            ),
            egress(EgressFault::TooLarge),
        ),
    ]
}

#[tokio::test]
async fn every_behaviour_of_a_stream_is_sorted_and_ends_in_time() {
    let egress = egress();
    let all = streams();
    let tries = all.iter().map(async |(behaviour, expected)| {
        let (answered, mut wrong) = tried(&egress, behaviour).await;
        let found = answered.map(|completion| completion.text).map_err(|fault| fault.class);
        if found.as_deref().map_err(|class| *class) != expected.as_deref().map_err(|class| *class) {
            wrong.push(format!("{}: {found:?}, not {expected:?}", behaviour.name));
        }
        wrong
    });
    let wrong: Vec<String> = join_all(tries).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// A stream that is never silent for long: so many comments, one every 50 ms, and then an answer.
fn alive(comments: usize) -> Behaviour {
    let does = "says nothing for a long time, and is alive";
    Behaviour::new("alive", does, Seen::Status(200), move |mut peer| async move {
        peer.read_request().await;
        peer.send(STREAM).await;
        for _ in 0..comments {
            Clock::system().sleep(Duration::from_millis(50)).await;
            if !peer.send(": wait\n\n").await {
                return;
            }
        }
        peer.send(format!("{PIECE}{LAST}{DONE}")).await;
    })
}

/// A stream that begins, and is silent from then on.
fn silent() -> Behaviour {
    Behaviour::new("silent", "begins", Seen::Class(EgressFault::Timeout), |mut peer| async move {
        peer.read_request().await;
        peer.send(format!("{STREAM}{PIECE}")).await;
        peer.hold().await;
    })
}

#[tokio::test]
async fn a_stream_has_a_limit_of_silence_and_another_of_its_whole_time() {
    let egress = egress();
    let tried = async |behaviour: Behaviour, limits: Limits| {
        let receiver = FaultReceiver::open(&behaviour).await;
        ask(&egress, &receiver, limits).await.map(|completion| completion.text)
    };
    let limits = |silence_ms, total_ms| Limits {
        silence: Duration::from_millis(silence_ms),
        total: Duration::from_millis(total_ms),
    };
    let (alive_to_the_end, silent, alive_for_too_long) = tokio::join!(
        // Four times the limit of silence.
        tried(alive(120), limits(1_500, 60_000)),
        tried(silent(), limits(1_500, 60_000)),
        tried(alive(usize::MAX), limits(1_500, 4_500)),
    );
    assert_eq!(alive_to_the_end.unwrap(), "Hello");
    // Which limit it was is in the message.
    for (cut, message) in [
        (silent, "nothing came from the model for 1500 ms"),
        (alive_for_too_long, "no complete response within 4500 ms"),
    ] {
        let fault = cut.unwrap_err();
        assert_eq!(fault.class, AiFaultClass::Egress(EgressFault::Timeout), "{fault}");
        assert_eq!(fault.message, message);
    }
}
