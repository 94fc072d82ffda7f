//! Clients that take their time, against the real figures.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_head_has_five_seconds_in_all() {
    let stage = Stage::ok().await;
    let mut client = stage.connect().await;
    client.say("GET / HT").await;
    stage.pass(5 * SECOND).await;
    assert_refused(&client.read_to_end().await, 408, "INVALID_PARAMS");
    assert_eq!(stage.closed("slow_head"), 1);

    // Single bytes do not extend the deadline.
    drop(client);
    let mut client = stage.connect().await;
    client.say("G").await;
    let deadline = stage.clock.now() + 5 * SECOND;
    until(|| stage.clock.waits() == [deadline]).await;
    for byte in ["E", "T", " ", "/"] {
        client.say(byte).await;
        stage.clock.advance(SECOND);
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.clock.waits(), [deadline]);
    stage.clock.advance(SECOND);
    assert_refused(&client.read_to_end().await, 408, "INVALID_PARAMS");
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_a_response() {
    let stage = Stage::ok().await;
    let mut client = stage.connect().await;
    stage.pass(5 * SECOND).await;
    assert_eq!(client.read_to_end().await, "");
    assert_eq!(stage.closed("idle"), 1);
}

#[tokio::test]
async fn a_kept_connection_may_be_idle_for_a_minute() {
    let stage = Stage::ok().await;
    let mut client = stage.connect().await;
    for _ in 0..3 {
        client.say(GET).await;
        client.read_until("ok").await;
        until(|| !stage.clock.waits().is_empty()).await;
        stage.clock.advance(59 * SECOND);
    }
    client.say(GET).await;
    client.read_until("ok").await;
    stage.pass(60 * SECOND).await;
    assert_eq!(client.read_to_end().await, "");
    assert_eq!(stage.closed("idle"), 1);
}

#[tokio::test]
async fn the_second_head_of_a_connection_has_its_own_five_seconds() {
    let stage = Stage::ok().await;
    let mut client = stage.connect().await;
    client.say(GET).await;
    client.read_until("ok").await;
    until(|| !stage.clock.waits().is_empty()).await;
    stage.clock.advance(50 * SECOND);
    client.say("GET / HT").await;
    stage.pass(5 * SECOND).await;
    assert_refused(&client.read_to_end().await, 408, "INVALID_PARAMS");
}

#[tokio::test]
async fn a_request_being_answered_is_not_idle() {
    let (entered, leave) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let gates = (Arc::clone(&entered), Arc::clone(&leave));
    let endpoint = make(move |_: Request| {
        let (entered, leave) = gates.clone();
        async move {
            entered.notify_one();
            leave.notified().await;
            "late"
        }
    });
    let stage = Stage::open(endpoint.map_to_response(), ServeLimits::default()).await;
    let mut client = stage.connect().await;
    client.say(GET).await;
    entered.notified().await;
    // Also not when the next request has begun to come meanwhile.
    client.say("GET /").await;
    stage.clock.advance(600 * SECOND);
    tokio::task::yield_now().await;
    leave.notify_one();
    client.read_until("late").await;
}

#[tokio::test]
async fn a_body_has_to_come_at_a_kibibyte_per_second() {
    let stage = Stage::reading().await;
    let head = "POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 100000\r\n\r\n";
    for head in [head, "POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n"] {
        let mut client = stage.connect().await;
        client.say(head).await;
        stage.pass(5 * SECOND).await;
        client.say("1").await;
        stage.pass(SECOND).await;
        assert_refused(&client.read_to_end().await, 408, "INVALID_PARAMS");
    }
    assert_eq!(stage.closed("slow_body"), 2);
}

#[tokio::test]
async fn a_body_that_keeps_the_pace_has_thirty_seconds() {
    let stage = Stage::reading().await;
    let mut client = stage.connect().await;
    client.say("POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 1000000\r\n\r\n").await;
    client.say(&"x".repeat(100_000)).await;
    stage.pass(5 * SECOND).await;
    for _ in 5..30 {
        stage.pass(SECOND).await;
    }
    assert_refused(&client.read_to_end().await, 408, "INVALID_PARAMS");

    let mut client = stage.connect().await;
    client.say("POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 3\r\n\r\n").await;
    stage.pass(5 * SECOND).await;
    client.say("abc").await;
    assert!(client.read_until("read 3").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_cut() {
    let endpoint = make(|_: Request| async { vec![b'x'; 64 << 20] }).map_to_response();
    let stage = Stage::open(endpoint, ServeLimits::default()).await;
    let mut client = stage.connect().await;
    client.say(GET).await;
    client.0.readable().await.unwrap();
    stage.pass(20 * SECOND).await;
    // What the kernels hold of 64 MiB lasts for a while at the demanded pace.
    let cut = async {
        while stage.closed("slow_reader") == 0 {
            stage.clock.advance(SECOND);
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, cut).await.expect("it is cut");
    until(|| stage.server.stats().open() == 0).await;
}
