//! A receiver that keeps its connections, and closes each at the moment in which it is used again.

use std::sync::{Arc, Mutex};

use hub_core::{
    channels::sinks::WebhookUpdate,
    tasks::Tasks,
    traces::{TraceQuery, TraceStatus},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::scene::Scene;

const PEOPLE: usize = 10;
const ROUNDS: usize = 30;

/// Reads one request and gives its id.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let field = |name: &str| {
            let mut fields = head.lines().filter_map(|line| line.split_once(':'));
            fields
                .find(|(field, _)| field.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim().to_owned())
        };
        let length: usize = field("content-length")?.parse().ok()?;
        if body.len() >= length {
            return field("webhook-id");
        }
    }
}

/// Answers the first request of a connection, and closes at the next: by reading it first, or with a reset.
async fn keep_and_close(mut stream: TcpStream, number: u32, answered: Arc<Mutex<Vec<String>>>) {
    let Some(id) = read(&mut stream).await else { return };
    answered.lock().unwrap().push(id);
    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nkeep-alive: timeout=60\r\n\r\n").await;
    if number.is_multiple_of(2) {
        read(&mut stream).await;
    } else {
        let _ = stream.readable().await;
        let _ = stream.set_zero_linger();
    }
}

#[tokio::test]
async fn first_attempts_succeed_at_a_receiver_that_closes_every_kept_connection_when_it_is_used() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (answered, tasks) = (Arc::new(Mutex::new(Vec::new())), Tasks::new());
    let (list, inner) = (Arc::clone(&answered), tasks.clone());
    tasks.spawn("receiver", async move {
        for number in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            inner.spawn("connection", keep_and_close(stream, number, Arc::clone(&list)));
        }
    });
    // The clock of the scene does not move, so a second attempt never comes.
    let scene = Scene::open().await;
    let webhook = WebhookUpdate { url, max_concurrency: 10, ..WebhookUpdate::default() };
    let channel = scene.hub.webhook_channel(&scene.ada, scene.bot.id, "closing", webhook).await;
    let delivered =
        TraceQuery { channel_id: Some(channel), status: Some(TraceStatus::Ok), ..TraceQuery::default() };
    for round in 1..=ROUNDS {
        for person in 0..PEOPLE {
            scene.say(&format!("person {person}"), &format!("round {round}"));
        }
        scene
            .hub
            .until("every message of the round", async || {
                (answered.lock().unwrap().len() >= round * PEOPLE).then_some(())
            })
            .await;
    }
    let pending = TraceQuery { status: Some(TraceStatus::Pending), ..delivered.clone() };
    scene
        .hub
        .until("the ends of all deliveries", async || {
            scene.hub.traces(&scene.ada, scene.bot.id, &pending).await.is_empty().then_some(())
        })
        .await;
    let traces = scene.hub.traces(&scene.ada, scene.bot.id, &delivered).await;
    assert!(!traces.is_empty() && traces.iter().all(|trace| trace.attempts == 1), "{traces:?}");
    let mut ids = answered.lock().unwrap().clone();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), count), (PEOPLE * ROUNDS, PEOPLE * ROUNDS), "each arrived once");
    tasks.stop();
}
