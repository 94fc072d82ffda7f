//! Tests of well-behaved clients.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::*;

#[tokio::test]
async fn a_drain_finishes_the_request_in_hand_and_takes_no_other() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let gates = (Arc::clone(&entered), Arc::clone(&leave));
    let endpoint = make(move |request: Request| {
        let (entered, leave) = gates.clone();
        async move {
            if request.uri().path() == "/hold" {
                entered.notify_one();
                leave.notified().await;
            }
            "finished"
        }
    });
    let stage = Stage::open(endpoint.map_to_response(), ServeLimits::default()).await;
    let mut idle = stage.connect().await;
    idle.say(GET).await;
    idle.read_until("finished").await;
    let mut held = stage.connect().await;
    held.say("GET /hold HTTP/1.1\r\nHost: hub\r\n\r\n").await;
    entered.notified().await;
    stage.tasks.stop();
    assert_eq!(idle.read_to_end().await, "", "an idle connection ends at once");
    leave.notify_one();
    let answer = held.read_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("finished"), "{answer}");
    assert!(stage.tasks.wait(&Clock::system(), TEST_TIMEOUT).await);
    assert!(TcpStream::connect(stage.address).await.is_err(), "the listener is closed");
}

#[tokio::test]
async fn a_change_goes_on_when_its_client_has_gone() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let done = Arc::new(AtomicUsize::new(0));
    let shared = (Arc::clone(&entered), Arc::clone(&leave), Arc::clone(&done));
    let endpoint = make(move |_: Request| {
        let (entered, leave, done) = shared.clone();
        async move {
            entered.notify_one();
            leave.notified().await;
            done.fetch_add(1, Ordering::SeqCst);
            "done"
        }
    });
    let stage = Stage::open(endpoint.map_to_response(), ServeLimits::default()).await;
    let mut client = stage.connect().await;
    client.say("POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 0\r\n\r\n").await;
    entered.notified().await;
    drop(client);
    until(|| stage.server.stats().open() == 0).await;
    leave.notify_one();
    until(|| done.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn requests_in_a_row_are_answered_in_order() {
    let stage = Stage::reading().await;
    let mut client = stage.connect().await;
    let post =
        |body: &str| format!("POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    client.say(&format!("{}\r\n{}{}", post("a"), post("bb"), post(""))).await;
    let answers = client.read_until("read 0").await;
    let order: Vec<_> = ["read 1", "read 2", "read 0"].map(|text| answers.find(text).unwrap()).into();
    assert!(order.is_sorted(), "{answers}");
    client.say(&post(&"c".repeat(200_000))).await;
    client.read_until("read 200000").await;
}

#[tokio::test]
async fn a_chunked_body_is_the_last_of_its_connection() {
    let stage = Stage::reading().await;
    let mut client = stage.connect().await;
    client
        .say(
            "POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
             GET /second HTTP/1.1\r\nHost: hub\r\n\r\n",
        )
        .await;
    let mut answer = client.read_until("read 3").await;
    client.0.shutdown().await.unwrap();
    answer.push_str(&client.read_to_end().await);
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn a_body_is_asked_for_when_it_is_wanted() {
    let stage = Stage::reading().await;
    let mut client = stage.connect().await;
    client.say("POST / HTTP/1.1\r\nHost: hub\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").await;
    client.read_until("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.say("hi").await;
    client.read_until("read 2").await;
}

#[tokio::test]
async fn head_is_get_without_the_body_and_other_methods_are_listed() {
    let hub = App::new().await;
    let stage = Stage::application(&hub, ServeLimits::default()).await;
    let ask = async |request: &str| {
        let mut client = stage.connect().await;
        client.say(&format!("{request} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")).await;
        client.read_to_end().await
    };
    let length = |answer: &str| {
        let line = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("content-length: "));
        line.map(str::to_owned)
    };
    for path in ["/healthz", "/openapi.json", "/login", "/api/nothing"] {
        let (get, head) = (ask(&format!("GET {path}")).await, ask(&format!("HEAD {path}")).await);
        assert_eq!(get.lines().next(), head.lines().next(), "{path}");
        assert_eq!(length(&get), length(&head), "{path}");
        assert!(head.ends_with("\r\n\r\n"), "{path}: {head}");
    }
    for (request, allow) in [
        ("POST /healthz", "GET, HEAD"),
        ("BREW /api/auth/me", "GET, HEAD"),
        ("GET /api/auth/login", "POST"),
        ("PATCH /openapi.json", "GET, HEAD"),
    ] {
        let answer = ask(request).await;
        assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("METHOD_NOT_ALLOWED"), "{answer}");
        assert!(answer.contains(&format!("\r\nallow: {allow}\r\n")), "{request}: {answer}");
    }
}

#[tokio::test]
async fn a_handler_that_is_lost_answers_with_the_envelope() {
    let endpoint =
        make(|request: Request| async move { request.header("x-absent").expect("on purpose").to_owned() });
    let stage = Stage::open(endpoint.map_to_response(), ServeLimits::default()).await;
    let mut client = stage.connect().await;
    client.say("POST / HTTP/1.1\r\nHost: hub\r\nContent-Length: 0\r\n\r\n").await;
    assert_refused(&client.read_to_end().await, 500, "INTERNAL_ERROR");
    assert_eq!(stage.tasks.panics(), 1);
}
