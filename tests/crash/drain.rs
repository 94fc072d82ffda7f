//! SIGTERM under load: the process says at once that it is not ready, ends by itself with success, and nothing that
//! was finished is done again.

use std::time::Duration;

use hub_core::{config::HubConfig, time::Clock};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    number,
    server::Server,
    sinks::{MODEL, SINKS},
    stage::Stage,
};

/// Shortest and longest life of a process, in milliseconds.
const LIFE: (u64, u64) = (300, 2_000);

#[tokio::test]
async fn a_stop_under_load_loses_and_repeats_nothing() {
    let clock = Clock::system();
    let (mut stage, mut server) = Stage::open("SIGTERM", None).await;
    let mut url = server.ready().await;
    stage.moved(Some(url.clone()));
    stage.start();
    for _ in 0..number("HUB_TEST_DRAIN_CYCLES", 10) {
        clock.sleep(Duration::from_millis(LIFE.0 + stage.random.below(LIFE.1 - LIFE.0))).await;
        let question = half_a_question(&url).await;
        server.process.signal("TERM");
        server.process.wait_line("\"message\":\"draining\"").await;
        let answer = the_other_half(question).await;
        // A closed door is as good an answer as a no.
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 503 "), "{answer}");
        let (ended, log) = server.process.wait().await;
        stage.moved(None);
        assert!(ended.success(), "{ended}:\n{log}");
        server = Server::spawn(&stage.home);
        url = server.ready().await;
        stage.moved(Some(url.clone()));
    }
    // No crash is in the books: any repeat at all is one that nothing explains.
    let stage = stage.settle(0).await;
    stage.close(server).await;
}

/// Opens a connection and sends a request for `/readyz` without the last line.
async fn half_a_question(url: &str) -> TcpStream {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: hub\r\n").await.unwrap();
    // The server reads it: until then the connection may wait in the backlog, which a stop closes.
    Clock::system().sleep(Duration::from_millis(100)).await;
    stream
}

/// The response to a request that was under way when the process began to drain.
async fn the_other_half(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    if stream.write_all(b"\r\n").await.is_err() {
        return answer;
    }
    let read = stream.read_to_string(&mut answer);
    // A reset is an end like any other.
    let _ = tokio::time::timeout(Duration::from_secs(20), read).await.expect("the server answers");
    answer
}

#[tokio::test]
async fn a_second_sigterm_ends_it_at_once_and_loses_nothing() {
    let (mut stage, mut server) = Stage::open("SIGTERM twice", None).await;
    let url = server.ready().await;
    stage.moved(Some(url));
    // A receiver that never answers keeps the first stop waiting.
    stage.sinks.hold();
    stage.start();
    stage.sinks.wait_held(SINKS[0]).await;
    server.process.signal("TERM");
    Clock::system().sleep(Duration::from_millis(300)).await;
    assert!(!server.process.has_ended(), "it waits for what is in flight:\n{}", server.process.log());
    server.process.signal("TERM");
    let (ended, log) = server.process.wait().await;
    assert_eq!(ended.code(), Some(1), "cut short is no success:\n{log}");
    stage.crashed();
    stage.sinks.release();
    let mut server = Server::spawn(&stage.home);
    let url = server.ready().await;
    stage.moved(Some(url));
    let in_flight = stage.in_flight();
    let stage = stage.settle(in_flight).await;
    stage.close(server).await;
}

#[tokio::test]
async fn a_stop_with_a_receiver_that_hangs_takes_the_drain_time_once() {
    let (mut stage, mut server) = Stage::open("SIGTERM, a receiver hangs", None).await;
    let url = server.ready().await;
    stage.moved(Some(url));
    // A model has a minute to respond; a webhook no longer than the drain.
    stage.sinks.hold();
    stage.start();
    stage.sinks.wait_held(MODEL).await;
    let (clock, drain) = (Clock::system(), HubConfig::default().drain);
    let begun = clock.instant();
    server.process.signal("TERM");
    let (ended, log) = server.process.wait().await;
    let took = clock.instant().since(begun);
    assert!(ended.success(), "{ended}:\n{log}");
    assert!(log.contains("work for a bot did not end in time"), "nothing was waited for:\n{log}");
    assert!(took < 2 * drain, "{took:?}:\n{log}");
    stage.crashed();
    stage.sinks.release();
    let mut server = Server::spawn(&stage.home);
    let url = server.ready().await;
    stage.moved(Some(url));
    let in_flight = stage.in_flight();
    let stage = stage.settle(in_flight).await;
    stage.close(server).await;
}
