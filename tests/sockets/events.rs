//! Event streams over real sockets: what they contain, how a client continues, and what ends them.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use hub_core::{
    access::Actor,
    accounts::{CreatedApiKey, NewApiKey},
    event_feed::EventQuery,
    events::Event,
    id::{BotId, MessageId},
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    time::timeout,
};

use super::{client::TEST_TIMEOUT, stage::Stage};

/// An open stream, line by line. The sizes of chunks are lines, too, which no one looks at.
struct Stream {
    head: String,
    lines: Lines<BufReader<TcpStream>>,
}

async fn open(address: SocketAddr, key: &str, query: &str, lines: &str) -> Stream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /api/events{query} HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer {key}\r\n{lines}Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut stream = Stream { head: String::new(), lines: BufReader::new(stream).lines() };
    while let Some(line) = stream.line().await {
        if line.is_empty() {
            break;
        }
        stream.head.push_str(&line.to_lowercase());
        stream.head.push('\n');
    }
    stream
}

impl Stream {
    fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    /// The next line; `None` at the end.
    async fn line(&mut self) -> Option<String> {
        timeout(TEST_TIMEOUT, self.lines.next_line()).await.expect("the hub writes or closes").unwrap_or(None)
    }

    /// The next event; `None` at the end.
    async fn event(&mut self) -> Option<Value> {
        loop {
            if let Some(data) = self.line().await?.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    async fn expect(&mut self, kind: &str) -> Value {
        let event = self.event().await.expect("the stream is open");
        assert_eq!(event["type"], kind, "{event}");
        event
    }

    async fn expect_end(&mut self) {
        assert_eq!(self.event().await, None);
    }
}

async fn key(stage: &Stage, actor: &Actor) -> CreatedApiKey {
    let new = NewApiKey { name: "events".to_owned(), expires_in_days: None };
    stage.world.hub.accounts().create_api_key(actor, new, None).await.unwrap()
}

fn tell(stage: &Stage, bot_id: BotId, numbers: std::ops::Range<u128>) {
    for number in numbers {
        let event = Event::Message { bot_id, message_id: MessageId::from_u128(number) };
        stage.world.hub.context().node.events.notify(event);
    }
}

#[tokio::test]
async fn a_client_follows_its_bot_and_continues_after_a_broken_connection() {
    let stage = Stage::new().await;
    let created = key(&stage, &stage.world.owner).await;
    let secret = created.secret.expose();
    let query = format!("?kinds=message,sent&bot_id={}", stage.bot.id);
    let mut stream = open(stage.address, secret, &query, "").await;
    assert_eq!(stream.status(), "200", "{}", stream.head);
    for line in ["content-type: text/event-stream", "cache-control: no-store", "x-accel-buffering: no"] {
        assert!(stream.head.contains(line), "{}", stream.head);
    }
    let hello = stream.expect("hello").await;
    assert_eq!(hello["resync"], false);
    stage.say("order 42");
    let message = stream.expect("message").await;
    assert_eq!(message["bot_id"], stage.bot.id.to_string());
    assert!(!message.to_string().contains("order 42"), "{message}");
    message["message_id"].as_str().unwrap().parse::<MessageId>().unwrap();
    drop(stream);

    tell(&stage, stage.bot.id, 1..4);
    let last = message["id"].as_str().unwrap();
    // A browser sends the header, and repeats the address of its first request.
    let query = format!("{query}&after={}", hello["id"].as_str().unwrap());
    let mut again = open(stage.address, secret, &query, &format!("Last-Event-ID: {last}\r\n")).await;
    assert_eq!(again.expect("hello").await["id"], last);
    for number in 1..4 {
        let event = again.expect("message").await;
        assert_eq!(event["message_id"], MessageId::from_u128(number).to_string());
    }
    let mut old = open(stage.address, secret, "?after=0000000000000000-1", "").await;
    assert_eq!(old.expect("hello").await["resync"], true);
    stage.stop().await;
}

#[tokio::test]
async fn a_silent_stream_has_comments_with_its_position() {
    let stage = Stage::new().await;
    let created = key(&stage, &stage.world.owner).await;
    let mut stream = open(stage.address, created.secret.expose(), "?kinds=review", "").await;
    stream.expect("hello").await;
    // Of none of the kinds that the client follows.
    tell(&stage, stage.bot.id, 0..7);
    let clock = stage.clock();
    let mut comment = VecDeque::new();
    stage
        .world
        .until("a comment", async || {
            clock.advance(Duration::from_secs(15));
            let line = timeout(Duration::from_millis(20), stream.lines.next_line()).await.ok()?.unwrap()?;
            if comment.is_empty() && line != ": ping" {
                return None;
            }
            comment.push_back(line);
            (comment.len() == 2).then_some(())
        })
        .await;
    let newest = stage.world.hub.follow(&stage.world.owner, EventQuery::default()).await.unwrap().position();
    assert_eq!(comment, [": ping".to_owned(), format!("id: {newest}")]);
    stage.stop().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_credential() {
    let stage = Stage::new().await;
    let hub = &stage.world.hub;
    let (kept, revoked) = (key(&stage, &stage.world.owner).await, key(&stage, &stage.world.owner).await);
    let mut open_one = open(stage.address, kept.secret.expose(), "?kinds=message", "").await;
    let mut ending = open(stage.address, revoked.secret.expose(), "?kinds=message", "").await;
    open_one.expect("hello").await;
    ending.expect("hello").await;
    hub.accounts().delete_api_key(&stage.world.owner, revoked.key.id).await.unwrap();
    ending.expect_end().await;
    tell(&stage, stage.bot.id, 1..2);
    open_one.expect("message").await;
    assert_eq!(open(stage.address, revoked.secret.expose(), "", "").await.status(), "401");
    stage.stop().await;
}

#[tokio::test]
async fn a_stream_ends_after_the_requested_time() {
    let stage = Stage::new().await;
    let created = key(&stage, &stage.world.owner).await;
    let mut stream = open(stage.address, created.secret.expose(), "?timeout=0", "").await;
    stream.expect("hello").await;
    stream.expect_end().await;
    assert_eq!(open(stage.address, created.secret.expose(), "?timeout=3601", "").await.status(), "400");
    stage.stop().await;
}

#[tokio::test]
async fn streams_end_when_the_server_drains() {
    let stage = Stage::new().await;
    let created = key(&stage, &stage.world.owner).await;
    let mut stream = open(stage.address, created.secret.expose(), "", "").await;
    stream.expect("hello").await;
    stage.settings.draining.cancel();
    stream.expect_end().await;
    stage.stop().await;
}

#[tokio::test]
async fn the_ninth_stream_of_a_user_is_refused_until_one_is_closed() {
    let stage = Stage::new().await;
    let created = key(&stage, &stage.world.owner).await;
    let secret = created.secret.expose();
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut stream = open(stage.address, secret, "", "").await;
        stream.expect("hello").await;
        streams.push(stream);
    }
    let mut refused = open(stage.address, secret, "", "").await;
    assert_eq!(refused.status(), "429", "{}", refused.head);
    assert!(refused.head.contains("retry-after: "), "{}", refused.head);
    let body = refused.line().await.unwrap();
    assert!(body.contains("there are too many event streams of this user"), "{body}");
    streams.pop();
    stage
        .world
        .until("the place of the closed stream", async || {
            // The hub finds that a client is gone when it writes.
            tell(&stage, stage.bot.id, 1..2);
            (open(stage.address, secret, "", "").await.status() == "200").then_some(())
        })
        .await;
    stage.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_gets_a_resync() {
    let stage = Stage::new().await;
    let created = key(&stage, &stage.world.owner).await;
    let mut slow = open(stage.address, created.secret.expose(), "?kinds=message", "").await;
    slow.expect("hello").await;
    // Many times what the hub keeps and what the connection holds.
    let mut told = 0;
    for _ in 0..60 {
        tell(&stage, stage.bot.id, told..told + 5_000);
        told += 5_000;
        tokio::task::yield_now().await;
    }
    let mut seen = 0;
    loop {
        let event = slow.event().await.unwrap();
        if event["type"] == "resync" {
            break;
        }
        seen += 1;
    }
    assert!(seen < told, "{seen}");
    tell(&stage, stage.bot.id, told..told + 1);
    loop {
        let event = slow.event().await.unwrap();
        if event["message_id"] == MessageId::from_u128(told).to_string() {
            break;
        }
    }
    stage.stop().await;
}
