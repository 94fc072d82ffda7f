use super::*;
use crate::{
    channels::NewChannel,
    error::ErrorCode,
    events::Changed,
    id::{ChannelId, MessageId, PluginId},
    model::{plugin::VersionState, sinks::WebhookUpdate},
    testing::{Receiver, TestHub},
};

/// What the next items are: kinds with states, and the words `hello`, `resync`.
async fn next(feed: &mut EventFeed) -> Vec<String> {
    let items = tokio::time::timeout(std::time::Duration::from_secs(30), feed.next()).await;
    let items = items.expect("an event arrives").unwrap();
    items.into_iter().map(|item| word(&item)).collect()
}

fn word(item: &FeedItem) -> String {
    match item {
        FeedItem::Hello { resync: false, .. } => "hello".to_owned(),
        FeedItem::Hello { resync: true, .. } => "hello resync".to_owned(),
        FeedItem::Resync { .. } => "resync".to_owned(),
        FeedItem::Event { facts, .. } => {
            let state = facts.state.as_ref().map(|state| format!(" {state}")).unwrap_or_default();
            format!("{}{state}", facts.kind)
        }
    }
}

async fn follow(hub: &TestHub, actor: &Actor, query: EventQuery) -> EventFeed {
    let mut feed = hub.hub().follow(actor, query).await.unwrap();
    assert_eq!(next(&mut feed).await, ["hello"]);
    feed
}

/// A bot that is online: no more events of it come by themselves.
async fn online(hub: &TestHub, actor: &Actor) -> BotId {
    let mut feed = follow(hub, actor, EventQuery::default()).await;
    let bot = hub.bind(actor).await;
    while next(&mut feed).await.last().is_none_or(|word| word != "bot online") {}
    bot.id
}

fn message(bot_id: BotId, number: usize) -> Event {
    Event::Message { bot_id, message_id: MessageId::from_u128(number as u128) }
}

#[tokio::test]
async fn an_owner_follows_a_message_from_its_arrival_to_its_delivery() {
    let shop = Receiver::new();
    let hub = TestHub::builder().receiver("shop.test", &shop).start().await;
    let (ada, eve) = (hub.register("ada").await, hub.register("eve").await);
    let (bot, other) = (hub.bind(&ada).await, hub.bind(&eve).await);
    let webhook = WebhookUpdate { url: "http://shop.test/orders".to_owned(), ..WebhookUpdate::default() };
    hub.webhook_channel(&ada, bot.id, "orders", webhook).await;
    let kinds = vec![EventKind::Message, EventKind::Trace];
    let query = EventQuery { kinds, ..EventQuery::default() };
    let (mut feed, mut of_eve) = (follow(&hub, &ada, query.clone()).await, follow(&hub, &eve, query).await);

    hub.say(&other, "not for ada");
    assert_eq!(next(&mut of_eve).await, ["message"]);
    hub.say(&bot, "order 42");
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.extend(next(&mut feed).await);
    }
    assert_eq!(seen, ["message", "trace ok"], "another user's message is not among them");
}

#[tokio::test]
async fn a_feed_continues_after_the_event_that_the_client_names() {
    let hub = TestHub::start().await;
    let ada = hub.register("ada").await;
    let bot = online(&hub, &ada).await;
    let kinds = vec![EventKind::Message];
    let mut feed = follow(&hub, &ada, EventQuery { kinds: kinds.clone(), ..EventQuery::default() }).await;
    let events = &hub.hub().context().node.events;
    (0..600).for_each(|number| events.notify(message(bot, number)));
    let mut seen = VecDeque::new();
    while seen.len() < 600 {
        seen.extend(feed.next().await.unwrap());
    }
    let FeedItem::Event { id, .. } = &seen[99] else { panic!("an event") };

    let query = EventQuery { kinds, after: Some(id.clone()), ..EventQuery::default() };
    let mut again = hub.hub().follow(&ada, query).await.unwrap();
    let hello = again.next().await.unwrap();
    assert_eq!(hello, [FeedItem::Hello { id: id.clone(), resync: false }], "at the named event");
    let mut rest = VecDeque::new();
    while rest.len() < 500 {
        rest.extend(again.next().await.unwrap());
    }
    assert_eq!(rest, seen.split_off(100), "each later event once, in the order");
    assert_eq!(again.position(), feed.position());
}

#[tokio::test]
async fn a_client_that_missed_events_has_to_start_over() {
    let hub = TestHub::start().await;
    let ada = hub.register("ada").await;
    let bot = online(&hub, &ada).await;
    let events = &hub.hub().context().node.events;
    let mut slow = follow(&hub, &ada, EventQuery::default()).await;
    let old = slow.position();
    (0..5_000).for_each(|number| events.notify(message(bot, number)));
    assert_eq!(next(&mut slow).await, ["resync"], "a client that did not read");
    events.notify(message(bot, 5_000));
    assert_eq!(next(&mut slow).await, ["message"]);

    let newest = slow.position();
    let (series, _) = newest.split_once('-').unwrap();
    for after in [&*old, &format!("{series}-999999"), "0000000000000000-1", "1", ""] {
        let query = EventQuery { after: Some(after.to_owned()), ..EventQuery::default() };
        let mut feed = hub.hub().follow(&ada, query).await.unwrap();
        assert_eq!(next(&mut feed).await, ["hello resync"], "{after}");
        assert_eq!(feed.position(), newest);
    }
    events.forget();
    assert_eq!(next(&mut slow).await, ["resync"], "events of another node were lost");
}

#[tokio::test]
async fn only_administrators_follow_the_things_of_other_users() {
    let hub = TestHub::start().await;
    let (root, ada) = (hub.register("root-1").await, hub.register("ada").await);
    let bot = online(&hub, &ada).await;
    let everyone = EventQuery { of_everyone: true, ..EventQuery::default() };
    let refused = hub.hub().follow(&ada, everyone.clone()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Forbidden);
    let of_bot = |id| EventQuery { bots: vec![id], ..EventQuery::default() };
    for (actor, query) in [
        (&root, of_bot(bot)),
        (&root, EventQuery { of_everyone: true, ..of_bot(BotId::from_u128(1)) }),
        (&ada, of_bot(BotId::from_u128(1))),
    ] {
        let refused = hub.hub().follow(actor, query).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::NotFound);
    }
    let channel = hub.hub().channels().create(&ada, bot, NewChannel::named("orders"), None).await.unwrap();
    let client = hub.hub().channels().authenticate_key(channel.api_key.expose()).await.unwrap();
    let refused = hub.hub().follow(&client, EventQuery::default()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Forbidden);

    let mut all = follow(&hub, &root, everyone).await;
    let mut own = follow(&hub, &root, EventQuery::default()).await;
    let mut of_ada = follow(&hub, &ada, of_bot(bot)).await;
    let events = &hub.hub().context().node.events;
    let owner_id = ada.user().unwrap().user_id;
    events.notify(Event::PluginReview {
        owner_id,
        plugin_id: PluginId::from_u128(1),
        state: VersionState::Pending,
    });
    events.notify(message(bot, 1));
    events.notify(Event::PluginReview {
        owner_id: root.user().unwrap().user_id,
        plugin_id: PluginId::from_u128(2),
        state: VersionState::Approved,
    });
    assert_eq!(next(&mut all).await, ["review pending", "message", "review approved"]);
    assert_eq!(next(&mut own).await, ["review approved"]);
    assert_eq!(next(&mut of_ada).await, ["message"], "a review is of no bot");
}

#[tokio::test]
async fn changes_of_a_users_things_are_reported() {
    let hub = TestHub::start().await;
    let ada = hub.register("ada").await;
    let mut feed = follow(&hub, &ada, EventQuery::default()).await;
    let bot = hub.bind(&ada).await;
    let mut seen = Vec::new();
    while !seen.iter().any(|word| word == "bot online") {
        seen.extend(next(&mut feed).await);
    }
    assert_eq!(seen[0], "bot pending");
    hub.hub().bots().rename(&ada, bot.id, "Shop").await.unwrap();
    assert_eq!(next(&mut feed).await, ["bot online"]);
    let (channel_id, plugin_id) = (ChannelId::from_u128(1), PluginId::from_u128(1));
    let change = Changed::Installed;
    hub.hub().context().node.events.notify(Event::Plugin { bot_id: bot.id, channel_id, plugin_id, change });
    assert_eq!(next(&mut feed).await, ["plugin installed"]);
    hub.hub().bots().delete(&ada, bot.id).await.unwrap();
    while next(&mut feed).await.last().is_none_or(|word| word != "bot removed") {}
}

#[tokio::test]
async fn a_user_has_eight_feeds_at_a_time() {
    let hub = TestHub::start().await;
    let (ada, eve) = (hub.register("ada").await, hub.register("eve").await);
    let mut feeds = Vec::new();
    for _ in 0..MAX_STREAMS_PER_USER {
        feeds.push(follow(&hub, &ada, EventQuery::default()).await);
    }
    let refused = hub.hub().follow(&ada, EventQuery::default()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::RateLimited);
    assert_eq!(refused.message(), "there are too many event streams of this user");
    assert_eq!(refused.hint(), Some("close another one: a user may have 8 at a time"));
    follow(&hub, &eve, EventQuery::default()).await;
    feeds.pop();
    follow(&hub, &ada, EventQuery::default()).await;
}

#[tokio::test]
async fn owners_are_looked_up_once_per_bot() {
    let hub = TestHub::start().await;
    let ada = hub.register("ada").await;
    let bot = hub.bind(&ada).await;
    let context = hub.hub().context();
    let owner = ada.user().unwrap().user_id;
    let owners = async |bots: &[BotId]| {
        context.node.bot_owners.of(&context.store, bots.iter().copied().collect()).await.unwrap()
    };
    let nobodys = BotId::from_u128(1);
    assert_eq!(owners(&[bot.id, nobodys]).await, [(bot.id, owner)].into());
    context.store.close().await;
    assert_eq!(owners(&[bot.id, nobodys]).await, [(bot.id, owner)].into(), "without the store");
}
