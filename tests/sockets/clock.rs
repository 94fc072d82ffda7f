//! Signs of life, and clients that stand still. Time is moved by hand.

use std::time::Duration;

use futures_util::SinkExt;
use tokio_tungstenite::tungstenite::Message;

use super::stage::Stage;

/// Waits until someone waits for this moment, then moves the clock there.
async fn pass(stage: &Stage, span: Duration) {
    let clock = stage.clock();
    let at = clock.now() + span;
    stage
        .world
        .until("the hub waits for that moment", async || clock.waits().contains(&at).then_some(()))
        .await;
    clock.advance(at.since(clock.now()));
}

#[tokio::test]
async fn a_silent_client_is_asked_and_then_closed() {
    let stage = Stage::new().await;
    let (mut client, _) = stage.connect("").await;
    let clock = stage.clock();
    clock.advance(Duration::from_secs(30));
    assert!(matches!(client.next().await, Some(Message::Ping(_))));
    // The library answers with the next thing the client writes or reads.
    client.0.flush().await.unwrap();
    client.0.send(Message::text(r#"{"type":"ping"}"#)).await.unwrap();
    client.hear("pong").await;
    clock.advance(Duration::from_secs(31));
    assert!(matches!(client.next().await, Some(Message::Ping(_))), "it was heard 31 seconds ago");
    clock.advance(Duration::from_secs(120));
    assert_eq!(client.closed().await.0, 4408);
    stage.wait_sockets(0).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_costs_the_others_nothing() {
    const MESSAGES: usize = 40;
    let stage = Stage::new().await;
    let (stalled, _) = stage.connect("").await;
    let (mut reader, _) = stage.connect("").await;
    // More than the buffers between two programs of one machine hold.
    let text = "x".repeat(200_000);
    for _ in 0..MESSAGES {
        stage.say(&text);
    }
    for n in 1..=MESSAGES {
        let (seq, text) = reader.message().await;
        assert_eq!((usize::try_from(seq).unwrap(), text.len()), (n, 200_000));
    }
    pass(&stage, Duration::from_secs(10)).await;
    stage.wait_sockets(1).await;
    drop(stalled);
    let (mut again, _) = stage.connect("since=39").await;
    assert_eq!(again.message().await.0, 40, "what it did not read is still there");
    stage.stop().await;
}
