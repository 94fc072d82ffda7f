//! Event streams on one of two nodes of a PostgreSQL database, about bots that the other one has.

use std::time::Duration;

use hub_core::{
    event_feed::{EventFeed, EventQuery, FeedItem},
    events::EventKind,
    testing::TestHub,
};

use super::client::TEST_TIMEOUT;
use crate::support::postgres;

/// Renewed three times in it, so that a busy machine does not lose it.
const LEASE: Duration = Duration::from_secs(6);

/// The items until one is as `is_last`, that one included.
async fn until(feed: &mut EventFeed, is_last: impl Fn(&FeedItem) -> bool) -> Vec<FeedItem> {
    let mut seen = Vec::new();
    loop {
        let items = tokio::time::timeout(TEST_TIMEOUT, feed.next()).await.expect("an item").unwrap();
        for item in items {
            let is_over = is_last(&item);
            seen.push(item);
            if is_over {
                return seen;
            }
        }
    }
}

fn is_message(item: &FeedItem) -> bool {
    matches!(item, FeedItem::Event { facts, .. } if facts.kind == EventKind::Message)
}

fn is_resync(item: &FeedItem) -> bool {
    matches!(item, FeedItem::Resync { .. })
}

#[tokio::test]
async fn a_stream_has_the_events_of_another_nodes_bots_or_reports_that_some_are_missing() {
    let Some(server) = postgres::server() else { return };
    let store = server.create_database().await;
    let builder = TestHub::builder().store(store.clone()).system_clock();
    let mut first = builder.config(|config| config.lease = LEASE).start().await;
    let (ada, eve) = (first.register("ada").await, first.register("eve").await);
    let bot = first.bind(&ada).await;
    let mut second = first.another().seed(2).start().await;
    let query = EventQuery { kinds: vec![EventKind::Message], ..EventQuery::default() };
    let mut there = second.hub().follow(&ada, query.clone()).await.unwrap();
    let mut of_eve = second.hub().follow(&eve, query).await.unwrap();

    // A node that has just started may have missed something: the first message arrives, or the notice.
    first.say(&bot, "first");
    until(&mut there, |item| is_message(item) || is_resync(item)).await;
    for text in ["second", "third", "fourth"] {
        first.say(&bot, text);
        until(&mut there, is_message).await;
    }

    // The node dies: what it did not pass on is covered by a notice when the other one takes over the bot.
    first.kill().await;
    until(&mut there, is_resync).await;
    first.sim().say(&bot.wx_id, None, "after").unwrap();
    until(&mut there, is_message).await;
    // Another user has the notices, too, and none of the messages.
    let seen = until(&mut of_eve, is_resync).await;
    assert!(!seen.iter().any(is_message));
    second.shutdown().await;
    server.drop_database(&store).await;
}
