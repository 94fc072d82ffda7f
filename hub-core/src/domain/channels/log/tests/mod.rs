//! Clients of a channel on one hub, from the network to the page they read.

use std::{collections::BTreeSet, future::pending, task::Poll};

use serde_json::Value;

use super::*;
use crate::{
    Hub,
    bots::BotStatus,
    channels::{ChannelPatch, NewChannel},
    error::ErrorCode,
    id::ChannelId,
    model::sinks::WebSocketSettings,
    secret::Secret,
    testing::{TestBot, TestHub},
};

mod memory;
mod positions;

/// A hub with one bot and one channel.
struct Stage {
    hub: TestHub,
    ada: Actor,
    bot: TestBot,
    channel: ChannelId,
    key: Secret,
}

impl Stage {
    async fn new() -> Self {
        Self::with(NewChannel::named("orders")).await
    }

    async fn with(channel: NewChannel) -> Self {
        let hub = TestHub::start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        // Else this would be news to some listener.
        hub.bot_status(&ada, bot.id, BotStatus::Online).await;
        let created = hub.hub().channels().create(&ada, bot.id, channel, None).await.unwrap();
        Self { hub, ada, bot, channel: created.channel.id, key: created.api_key.0 }
    }

    fn hub(&self) -> &Hub {
        self.hub.hub()
    }

    async fn client(&self) -> Actor {
        self.hub().channels().authenticate_key(self.key.expose()).await.unwrap()
    }

    async fn listen(&self, since: Option<i64>) -> Listener {
        let start = since.map_or(Start::Acknowledged, Start::After);
        self.hub().channels().listen(&self.client().await, ListenerKind::Socket, start).await.unwrap()
    }

    /// A client that names no start.
    async fn listen_live(&self) -> Listener {
        let client = self.client().await;
        self.hub().channels().listen(&client, ListenerKind::Socket, Start::default()).await.unwrap()
    }

    async fn try_listen(&self) -> Result<Listener> {
        self.hub().channels().listen(&self.client().await, ListenerKind::Socket, Start::Acknowledged).await
    }

    /// People write this many messages; returns when the log holds them.
    async fn write(&self, texts: impl IntoIterator<Item = String>) {
        let before = self.listen(None).await.newest();
        let mut count = 0;
        for text in texts {
            self.hub.say(&self.bot, &text);
            count += 1;
        }
        let mut listener = self.listen(None).await;
        while listener.newest() < before + count {
            listener.changed().await;
        }
    }

    async fn sql(&self, sql: &'static str) {
        let store = &self.hub().context().store;
        store
            .write(move |tx| Box::pin(async move { tx.channels().execute(sql.to_owned()).await }))
            .await
            .unwrap();
    }

    /// Lets the watch handle its hints.
    async fn settle(&self, mut done: impl FnMut() -> bool) {
        let poll = async || done().then_some(());
        self.hub.advance_until("the clients know", Duration::from_millis(100), poll).await;
    }
}

fn texts(numbers: std::ops::Range<i64>) -> impl Iterator<Item = String> {
    numbers.map(|n| format!("text {n}"))
}

fn data(item: &Item) -> Value {
    let Item::Message(entry) = item else { panic!("{item:?}") };
    serde_json::from_slice(entry.data()).unwrap()
}

/// Everything there is to read, as numbers; marks are negative.
async fn drain(listener: &mut Listener, limit: usize) -> Vec<i64> {
    let mut seen = Vec::new();
    while listener.is_behind() {
        for item in listener.read(limit).await.unwrap() {
            match item {
                Item::Message(entry) => seen.push(entry.seq),
                Item::Lagged { from, .. } | Item::Gone { from, .. } => seen.push(-from),
            }
        }
    }
    seen
}

#[tokio::test]
async fn a_client_gets_what_came_before_and_what_comes_without_gap_or_repeat() {
    let stage = Stage::new().await;
    stage.write(texts(1..4)).await;
    let (mut all, mut rest) = (stage.listen(Some(0)).await, stage.listen(Some(2)).await);
    assert_eq!(drain(&mut all, 2).await, [1, 2, 3]);
    assert_eq!(drain(&mut rest, PAGE).await, [3]);
    stage.write(texts(4..7)).await;
    assert_eq!(drain(&mut all, 1).await, [4, 5, 6]);
    assert_eq!(drain(&mut rest, PAGE).await, [4, 5, 6]);
    let mut beyond = stage.listen(Some(100)).await;
    assert_eq!((beyond.position(), drain(&mut beyond, PAGE).await.len()), (6, 0));
    let refused =
        stage.hub().channels().listen(&stage.client().await, ListenerKind::Socket, Start::After(-1)).await;
    assert_eq!(refused.unwrap_err().details()[0].field, "since");
    let foreign = stage.hub().channels().listen(&stage.ada, ListenerKind::Socket, Start::Unspecified).await;
    assert_eq!(foreign.unwrap_err().code(), ErrorCode::Forbidden);
}

#[tokio::test]
async fn a_message_has_the_payloads_fields_and_both_spellings() {
    let stage = Stage::new().await;
    stage.write(["where is order 42?".to_owned()]).await;
    let items = stage.listen(Some(0)).await.read(PAGE).await.unwrap();
    let message = data(&items[0]);
    let (bot, channel) = (stage.bot.id.to_string(), stage.channel.to_string());
    for (pointer, value) in [
        ("/type", "message"),
        ("/content", "where is order 42?"),
        ("/sender/user_id", stage.bot.person.as_str()),
        ("/from_user_id", stage.bot.person.as_str()),
        ("/bot_id", bot.as_str()),
        ("/channel_id", channel.as_str()),
        ("/direction", "inbound"),
        ("/items/0/type", "text"),
        ("/items/0/text", "where is order 42?"),
    ] {
        assert_eq!(message.pointer(pointer).and_then(Value::as_str), Some(value), "{pointer}: {message}");
    }
    assert_eq!(
        (&message["seq"], &message["seq_id"], &message["msg_type"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert_eq!(message["timestamp_ms"].as_i64().unwrap() / 1000, message["timestamp"].as_i64().unwrap());
    assert!(message["context_token"].as_str().is_some_and(|token| !token.is_empty()));
    for (camel, snake) in [("contextToken", "context_token"), ("sessionID", "session_id")] {
        assert_eq!(message[camel], message[snake]);
    }
    let Item::Message(entry) = &items[0] else { panic!("a message") };
    let frame: Value = serde_json::from_slice(&entry.frame()).unwrap();
    assert_eq!((&frame["type"], &frame["data"]), (&"message".into(), &message));
}

#[tokio::test]
async fn clients_go_on_after_what_was_acknowledged() {
    let stage = Stage::new().await;
    stage.write(texts(1..6)).await;
    let first = stage.listen(None).await;
    assert_eq!(first.position(), 0, "no one acknowledged anything");
    first.acknowledge(1).await.unwrap();
    first.acknowledge(3).await.unwrap();
    first.acknowledge(2).await.unwrap();
    assert_eq!(stage.listen(None).await.position(), 3, "also before it is stored");
    for bad in [-1, 6, i64::MAX] {
        assert_eq!(first.acknowledge(bad).await.unwrap_err().details()[0].field, "seq");
    }
    let listeners = stage.hub().context().node.channel_listeners.clone();
    stage.settle(|| listeners.acks().is_empty()).await;
    drop(first);
    let mut stage = stage;
    stage.hub.kill().await;
    stage.hub.restart().await;
    assert_eq!(stage.listen(None).await.position(), 3);
}

#[tokio::test]
async fn a_client_that_never_acknowledges_starts_with_the_next_message_each_time() {
    let stage = Stage::new().await;
    stage.write(texts(1..4)).await;
    let mut first = stage.listen_live().await;
    assert_eq!(first.position(), 3, "history is not replayed");
    stage.write(texts(4..5)).await;
    assert_eq!(drain(&mut first, PAGE).await, [4]);
    let mut second = stage.listen_live().await;
    assert_eq!(drain(&mut second, PAGE).await, [0; 0], "what was written counts as delivered");
    second.acknowledge(2).await.unwrap();
    assert_eq!(
        drain(&mut stage.listen_live().await, PAGE).await,
        [3, 4],
        "an acknowledgement makes the position explicit"
    );
}

#[tokio::test]
async fn a_lagging_listener_is_notified_and_served_from_the_store() {
    let stage = Stage::new().await;
    let (mut quick, mut slow) = (stage.listen(None).await, stage.listen(None).await);
    for start in [1, 51, 101] {
        stage.write(texts(start..start + 50)).await;
        assert_eq!(drain(&mut quick, PAGE).await, (start..start + 50).collect::<Vec<_>>());
        if start == 1 {
            assert_eq!(drain(&mut slow, PAGE).await, (1..51).collect::<Vec<_>>());
        }
    }
    let seen = drain(&mut slow, 10).await;
    assert_eq!(seen[0], -51, "the mark names the first that is late");
    assert_eq!(seen[1..], (51..151).collect::<Vec<_>>());
    stage.write(texts(151..152)).await;
    assert_eq!(drain(&mut slow, 10).await, [151], "and is at the end again");
}

#[tokio::test]
async fn a_gap_names_the_first_entry_that_is_kept() {
    let stage = Stage::new().await;
    stage.write(texts(1..7)).await;
    stage.sql("DELETE FROM messages WHERE content IN ('text 1', 'text 2', 'text 4', 'text 6')").await;
    let mut listener = stage.listen(Some(0)).await;
    assert_eq!(drain(&mut listener, PAGE).await, [-1, 3, -4, 5, -6]);
    assert_eq!(listener.position(), 6);
}

#[tokio::test]
async fn a_client_ends_with_its_key_its_channel_or_its_sink() {
    let stage = Stage::new().await;
    let (channels, bot, channel) = (stage.hub().channels(), stage.bot.id, stage.channel);
    let listeners = stage.hub().context().node.channel_listeners.clone();
    assert_eq!(listeners.count(), (0, 0));
    let news = async |listener: &mut Listener| {
        loop {
            if let Some(news) = listener.news() {
                return news;
            }
            stage.settle(|| listener.head_changed()).await;
        }
    };
    let websocket = |enabled| WebSocketSettings { enabled, ..WebSocketSettings::default() };
    let mut listener = stage.listen(None).await;
    channels.set_websocket(&stage.ada, bot, channel, &websocket(false)).await.unwrap();
    assert_eq!(news(&mut listener).await, News::Ended(Ended::SinkOff));
    drop(listener);
    assert_eq!(stage.try_listen().await.unwrap_err().code(), ErrorCode::Forbidden);
    channels.set_websocket(&stage.ada, bot, channel, &websocket(true)).await.unwrap();

    let mut listener = stage.listen(None).await;
    let renamed = ChannelPatch { name: Some("renamed".to_owned()), ..ChannelPatch::default() };
    channels.update(&stage.ada, bot, channel, renamed).await.unwrap();
    assert_eq!(news(&mut listener).await, News::Settings);
    let off = ChannelPatch { enabled: Some(false), ..ChannelPatch::default() };
    channels.update(&stage.ada, bot, channel, off).await.unwrap();
    assert_eq!(news(&mut listener).await, News::Ended(Ended::Off));
    drop(listener);
    let on = ChannelPatch { enabled: Some(true), ..ChannelPatch::default() };
    channels.update(&stage.ada, bot, channel, on).await.unwrap();

    let mut listener = stage.listen(None).await;
    let new = channels.regenerate_key(&stage.ada, bot, channel, Some(1), None).await.unwrap();
    stage.settle(|| listener.head_changed()).await;
    assert_eq!(listener.news(), None, "the old key has an hour left");
    stage.hub.clock().advance(Duration::from_secs(3600));
    assert_eq!(news(&mut listener).await, News::Ended(Ended::Revoked));
    drop(listener);
    let client = channels.authenticate_key(new.api_key.expose()).await.unwrap();
    let mut listener = channels.listen(&client, ListenerKind::Socket, Start::Unspecified).await.unwrap();
    channels.delete(&stage.ada, bot, channel).await.unwrap();
    assert_eq!(news(&mut listener).await, News::Ended(Ended::Revoked));
    drop(listener);
    assert_eq!(listeners.count(), (0, 0), "every place was given back");
}

#[tokio::test]
async fn places_are_counted_per_channel_user_and_node() {
    let stage = Stage::new().await;
    let mut places = Vec::new();
    for _ in 0..5 {
        places.push(stage.listen(None).await);
    }
    assert_eq!(stage.try_listen().await.unwrap_err().code(), ErrorCode::RateLimited);
    places.pop();
    places.push(stage.listen(None).await);
    let client = stage.client().await;
    let channels = stage.hub().channels();
    let poll = || channels.listen(&client, ListenerKind::Poll, Start::Unspecified);
    let _polls = (poll().await.unwrap(), poll().await.unwrap());
    assert_eq!(poll().await.unwrap_err().code(), ErrorCode::RateLimited);
    assert_eq!(stage.hub().context().node.channel_listeners.count(), (5, 2));
}

#[tokio::test]
async fn the_owner_sees_the_sockets_of_a_channel_and_closes_one() {
    let stage = Stage::new().await;
    let (channels, bot, channel) = (stage.hub().channels(), stage.bot.id, stage.channel);
    let clients = async || channels.clients(&stage.ada, bot, channel).await.unwrap().clients;
    assert!(clients().await.is_empty());
    stage.write(texts(1..4)).await;
    let described = ClientInfo { ip: Some([203, 0, 113, 7].into()), user_agent: "orders/1.0".to_owned() };
    let key = stage.client().await;
    let mut first = channels.connect(&key, Start::After(1), described).await.unwrap();
    let second = stage.listen(Some(3)).await;
    let _poll = channels.listen(&key, ListenerKind::Poll, Start::Unspecified).await.unwrap();
    let found = clients().await;
    assert_eq!(found.len(), 2, "a poll is not listed: {found:?}");
    let seen = &found[0];
    assert_eq!((seen.address, &*seen.user_agent), (Some([203, 0, 113, 7].into()), "orders/1.0"));
    assert_eq!((seen.sent_seq, seen.acked_seq, seen.lag), (1, None, 2));
    assert_eq!((found[1].sent_seq, found[1].lag), (3, 0));
    first.read(PAGE).await.unwrap();
    first.acknowledge(2).await.unwrap();
    let seen = clients().await.remove(0);
    assert_eq!((seen.sent_seq, seen.acked_seq, seen.lag), (3, Some(2), 0));

    let eve = stage.hub.register("eve").await;
    assert_eq!(channels.clients(&eve, bot, channel).await.unwrap_err().code(), ErrorCode::NotFound);
    let foreign = channels.close_client(&eve, bot, channel, seen.id).await.unwrap_err();
    assert_eq!(foreign.code(), ErrorCode::NotFound);
    assert_eq!(first.news(), None);
    channels.close_client(&stage.ada, bot, channel, seen.id).await.unwrap();
    first.changed().await;
    assert_eq!(first.news(), Some(News::Ended(Ended::Closed)));
    drop(first);
    assert_eq!(clients().await.len(), 1);
    let gone = channels.close_client(&stage.ada, bot, channel, seen.id).await.unwrap_err();
    assert_eq!(gone.code(), ErrorCode::NotFound);
    drop(second);
    assert!(clients().await.is_empty());
}

#[tokio::test]
async fn a_poll_waits_for_the_first_message_and_its_cursor_acknowledges() {
    let stage = Stage::new().await;
    let (channels, client) = (stage.hub().channels(), stage.client().await);
    let wait = Duration::from_secs(25);
    let poll = async |cursor: Option<&str>, limit| {
        channels.poll(&client, cursor, limit, wait, pending()).await.unwrap()
    };
    let waiting = channels.poll(&client, None, None, wait, pending());
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    stage.hub.say(&stage.bot, "text 1");
    let first = waiting.await.unwrap();
    assert_eq!(first.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1]);
    stage.write(texts(2..6)).await;
    let again = poll(None, None).await;
    assert_eq!(again.entries.len(), 5, "nothing was acknowledged yet");
    let next = poll(Some(&first.next_cursor), Some(3)).await;
    assert_eq!(next.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3, 4]);
    let rest = poll(None, None).await;
    assert_eq!(
        rest.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        [2, 3, 4, 5],
        "after the cursor"
    );
    let waiting = channels.poll(&client, Some(&rest.next_cursor), None, wait, pending());
    tokio::pin!(waiting);
    let begun = stage.hub.clock().now();
    // Polled between the steps: the wait begins once the store was read, which takes as long as it takes.
    let poll_again = async || match futures_util::poll!(&mut waiting) {
        Poll::Ready(polled) => Some(polled.unwrap()),
        Poll::Pending => None,
    };
    let none = stage.hub.advance_until("the poll ends", Duration::from_secs(1), poll_again).await;
    assert!(stage.hub.clock().now().since(begun) >= wait);
    assert_eq!((none.entries.len(), none.next_cursor == rest.next_cursor), (0, true));
    let stopped = channels.poll(&client, Some(&rest.next_cursor), None, wait, async {}).await.unwrap();
    assert!(stopped.entries.is_empty());
    for (cursor, limit, wait) in
        [(Some("x"), None, wait), (None, Some(201), wait), (None, None, Duration::from_secs(61))]
    {
        let refused = channels.poll(&client, cursor, limit, wait, pending()).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::InvalidParams);
    }
}

#[tokio::test]
async fn outbound_messages_are_shown_where_the_channel_wants_them() {
    let websocket = WebSocketSettings { include_outbound: true, ..WebSocketSettings::default() };
    let stage = Stage::with(NewChannel { websocket, ..NewChannel::named("both ways") }).await;
    stage.write(["hello".to_owned()]).await;
    let mut listener = stage.listen(Some(1)).await;
    stage.hub.send(&stage.ada, &stage.bot, "good day").await.unwrap();
    stage.hub.sent(&stage.bot, 1).await;
    stage.settle(|| listener.is_behind()).await;
    let items = listener.read(PAGE).await.unwrap();
    let message = data(&items[0]);
    assert_eq!((&message["direction"], &message["seq"]), (&"outbound".into(), &2.into()));
    assert_eq!(
        (&message["content"], &message["recipient"]),
        (&"good day".into(), &stage.bot.person.clone().into())
    );
    assert_eq!(items.len(), 1);
    let numbers: BTreeSet<i64> = drain(&mut stage.listen(Some(0)).await, PAGE).await.into_iter().collect();
    assert_eq!(numbers, BTreeSet::from([1, 2]));
}
