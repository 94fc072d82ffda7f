//! Channels through their operations, on SQLite.

use std::time::Duration;

use super::*;
use crate::{
    Hub,
    access::{Role, UserActor},
    error::ErrorCode,
    id::UserId,
    random::Random,
    store::StoreConfig,
    time::{ManualClock, Timestamp},
};

mod keys;
mod settings;
mod validation;

/// A hub with two users: Ada has two bots, Eve has one.
struct World {
    hub: Hub,
    clock: ManualClock,
    folder: tempfile::TempDir,
}

const ADA: UserId = UserId::from_u128(1);
const EVE: UserId = UserId::from_u128(2);
const BOT: BotId = BotId::from_u128(11);
const OTHER_BOT: BotId = BotId::from_u128(12);
const EVES_BOT: BotId = BotId::from_u128(13);

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(Timestamp::from_millis(1_790_000_000_000));
        let hub = Hub::builder()
            .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
            .secret_key([7; 32])
            .random(Random::seeded(1))
            .clock(clock.clone())
            .open()
            .await
            .unwrap();
        let world = Self { hub, clock, folder };
        for user in [ADA, EVE] {
            world
                .execute(format!(
                    "INSERT INTO users (id, username, display_name, email, role, status, created_at, updated_at)
                    VALUES ('{user}', '{user}', '', '', 'member', 'active', 0, 0)"
                ))
                .await;
        }
        for (bot, owner) in [(BOT, ADA), (OTHER_BOT, ADA), (EVES_BOT, EVE)] {
            world
                .execute(format!(
                    "INSERT INTO bots (id, owner_id, name, network, status, status_since, wx_id, owner_user_id,
                        credentials, credentials_rev, cursor, config_rev, lease_fence, created_at)
                    VALUES ('{bot}', '{owner}', 'b', 'sim', 'online', 0, '', '', '', 0, '', 5, 0, 0)"
                ))
                .await;
        }
        world
    }

    fn channels(&self) -> Channels<'_> {
        self.hub.channels()
    }

    async fn execute(&self, sql: String) {
        let store = &self.hub.context().store;
        store.write(move |tx| Box::pin(async move { tx.channels().execute(sql).await })).await.unwrap();
    }

    async fn list(
        &self,
        actor: &Actor,
        bot: BotId,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<Channel>> {
        let page = PageRequest::parse(&Channels::channel_list(bot), Some(limit), cursor)?;
        self.channels().list(actor, bot, &page).await
    }

    async fn create(&self, name: &str) -> CreatedChannel {
        self.channels().create(&ada(), BOT, NewChannel::named(name), None).await.unwrap()
    }

    async fn config_rev(&self, bot: BotId) -> i64 {
        let mut read = self.hub.context().store.read().await.unwrap();
        read.channels().config_rev(bot).await.unwrap().unwrap()
    }
}

fn user(id: UserId) -> Actor {
    Actor::User(UserActor::embedded(id, Role::Member))
}

fn ada() -> Actor {
    user(ADA)
}

fn code<T: std::fmt::Debug>(outcome: Result<T>) -> ErrorCode {
    outcome.unwrap_err().code()
}

fn fields<T: std::fmt::Debug>(outcome: Result<T>) -> Vec<String> {
    outcome.unwrap_err().details().iter().map(|detail| detail.field.to_string()).collect()
}

#[tokio::test]
async fn a_fresh_channel_has_the_websocket_sink_on_and_nothing_else() {
    let world = World::new().await;
    let created = world.create("orders").await;
    let channel = &created.channel;
    assert!(channel.enabled && channel.websocket.enabled && !channel.websocket.include_outbound);
    assert!(
        !channel.webhook.settings.enabled && !channel.webhook.auth.has_secret && !channel.ai.settings.enabled
    );
    assert_eq!(channel.filter, Filter::default());
    assert_eq!((channel.handle.as_ref(), channel.options.lane_hold_s), (None, 60));
    assert_eq!(channel.options.on_plugin_error, OnPluginError::Retry);
    assert_eq!(channel.stats, ChannelStats::default());
    assert_eq!(channel.created_at, world.clock.now());
    let key = created.api_key.expose();
    assert_eq!(channel.api_key_prefix, format!("hubc_…{}", &key[key.len() - 4..]));
    assert_eq!(world.channels().get(&ada(), BOT, channel.id).await.unwrap(), *channel);
}

#[tokio::test]
async fn lists_are_newest_first_and_counted_with_the_deliveries() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(world.create(name).await.channel.id);
    }
    let message = "msg_00000000000000000000000001";
    world
        .execute(format!(
            "INSERT INTO messages (id, bot_id, direction, peer, from_user_id, to_user_id, user_name, session_id,
                group_id, kind, content, items, dedupe_key, status, sent_at, created_at)
            VALUES ('{message}', '{BOT}', 'in', '', '', '', '', '', '', 'text', '', '[]', 'k', '', 0, 0)"
        ))
        .await;
    for (n, (channel, state)) in
        [(2, "dead"), (2, "parked"), (2, "pending"), (2, "skipped")].into_iter().enumerate()
    {
        world
            .execute(format!(
                "INSERT INTO deliveries (id, message_id, bot_id, channel_id, trace_id, lane, seq, state, attempts,
                    due_at, claim, created_at)
                VALUES ('d{n}', '{message}', '{BOT}', '{}', 't', '', {n}, '{state}', 0, 0, 0, 0)",
                ids[channel]
            ))
            .await;
    }
    world.execute(format!("UPDATE channels SET last_seq = 9 WHERE id = '{}'", ids[2])).await;
    world.execute(format!("UPDATE successes SET count = 1 WHERE channel_id = '{}'", ids[0])).await;
    world.execute(format!("UPDATE successes SET count = 2 WHERE channel_id = '{}'", ids[2])).await;

    let first = world.list(&ada(), BOT, 2, None).await.unwrap();
    assert_eq!(first.items.iter().map(|channel| channel.id).collect::<Vec<_>>(), [ids[2], ids[1]]);
    assert_eq!(first.items[0].stats, ChannelStats { received: 9, delivered: 2, failed: 1, pending: 2 });
    assert_eq!(first.items[1].stats, ChannelStats::default());
    let cursor = first.next_cursor.unwrap();
    world.create("d").await;
    let second = world.list(&ada(), BOT, 2, Some(&cursor)).await.unwrap();
    assert_eq!(second.items.iter().map(|channel| channel.id).collect::<Vec<_>>(), [ids[0]]);
    assert_eq!(second.items[0].stats.delivered, 1);
    assert_eq!(second.next_cursor, None);
    assert_eq!(fields(world.list(&ada(), OTHER_BOT, 2, Some(&cursor)).await), ["cursor"]);
    assert!(world.list(&ada(), OTHER_BOT, 2, None).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_channel_of_another_user_does_not_exist() {
    let world = World::new().await;
    let mine = world.create("mine").await.channel.id;
    let eve = user(EVE);
    let eves = world.channels().create(&eve, EVES_BOT, NewChannel::named("hers"), None).await.unwrap();
    let client = world.channels().authenticate_key(eves.api_key.expose()).await.unwrap();
    let channels = world.channels();
    // Another person; another bot of the same person; a bot and a channel that never were.
    for (actor, bot, id) in [
        (eve, BOT, mine),
        (ada(), OTHER_BOT, mine),
        (ada(), BOT, eves.channel.id),
        (ada(), EVES_BOT, eves.channel.id),
        (ada(), BotId::from_u128(99), mine),
        (ada(), BOT, ChannelId::from_u128(99)),
    ] {
        let outcomes = [
            channels.get(&actor, bot, id).await,
            channels.update(&actor, bot, id, ChannelPatch::default()).await,
            channels.set_filter(&actor, bot, id, &Filter::default()).await,
            channels.set_websocket(&actor, bot, id, &WebSocketSettings::default()).await,
            channels
                .set_webhook(&actor, bot, id, WebhookUpdate { enabled: false, ..Default::default() })
                .await,
            channels.set_ai(&actor, bot, id, AiUpdate::default()).await,
        ];
        for (n, outcome) in outcomes.into_iter().enumerate() {
            assert_eq!(code(outcome), ErrorCode::NotFound, "{n} {actor:?} {bot} {id}");
        }
        assert_eq!(code(channels.regenerate_key(&actor, bot, id, None, None).await), ErrorCode::NotFound);
        assert_eq!(code(channels.delete(&actor, bot, id).await), ErrorCode::NotFound);
    }
    for actor in [eve, client] {
        let expected = if actor == client { ErrorCode::Forbidden } else { ErrorCode::NotFound };
        assert_eq!(code(world.list(&actor, BOT, 9, None).await), expected);
        assert_eq!(code(channels.create(&actor, BOT, NewChannel::named("x"), None).await), expected);
    }
    assert_eq!(world.config_rev(BOT).await, 6, "only the create of the channel itself counted");
    assert_eq!(world.list(&Actor::Operator, BOT, 9, None).await.unwrap().items.len(), 1);
    let Actor::Channel(client) = client else { panic!("a key makes a channel client") };
    assert_eq!(channels.of_client(&client).await.unwrap().name, "hers");
}

#[tokio::test]
async fn every_change_raises_the_revision_of_the_rules_and_wakes_the_workers() {
    let world = World::new().await;
    let mut hints = world.hub.context().node.wake.listen();
    let channels = world.channels();
    let id = world.create("a").await.channel.id;
    let mut expected = 6;
    let mut changed = async |what: &str| {
        assert_eq!(world.config_rev(BOT).await, expected, "{what}");
        let mut hint = hints.try_recv().unwrap().hint;
        if hint == Hint::Revoked {
            // Revocations of keys are reported, too.
            hint = hints.try_recv().unwrap().hint;
        }
        assert_eq!(hint, Hint::Bot(BOT), "{what}");
        expected += 1;
    };
    changed("create").await;
    channels.update(&ada(), BOT, id, ChannelPatch::default()).await.unwrap();
    changed("update").await;
    channels.set_filter(&ada(), BOT, id, &Filter::default()).await.unwrap();
    changed("filter").await;
    channels.set_websocket(&ada(), BOT, id, &WebSocketSettings::default()).await.unwrap();
    changed("websocket").await;
    let off = WebhookUpdate { enabled: false, ..Default::default() };
    channels.set_webhook(&ada(), BOT, id, off).await.unwrap();
    changed("webhook").await;
    channels.set_ai(&ada(), BOT, id, AiUpdate::default()).await.unwrap();
    changed("ai").await;
    channels.regenerate_key(&ada(), BOT, id, None, None).await.unwrap();
    changed("key").await;
    channels.delete(&ada(), BOT, id).await.unwrap();
    changed("delete").await;

    assert!(channels.set_webhook(&ada(), BOT, id, WebhookUpdate::default()).await.is_err());
    assert!(hints.try_recv().is_err());
    assert_eq!((world.config_rev(BOT).await, world.config_rev(OTHER_BOT).await), (13, 5));
    assert_eq!(code(channels.get(&ada(), BOT, id).await), ErrorCode::NotFound);
}

#[tokio::test]
async fn a_repeated_create_gives_the_first_answer() {
    let world = World::new().await;
    let channels = world.channels();
    let new = || NewChannel {
        handle: Some("orders".into()),
        webhook: Some(WebhookUpdate {
            url: "https://example.com/hook".into(),
            auth: sinks::AuthUpdate {
                secret: sinks::Change::Set("0123456789abcdef".into()),
                ..Default::default()
            },
            ..Default::default()
        }),
        ..NewChannel::named("a")
    };
    let first = channels.create(&ada(), BOT, new(), Some("k")).await.unwrap();
    let again = channels.create(&ada(), BOT, new(), Some("k")).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(world.list(&ada(), BOT, 9, None).await.unwrap().items.len(), 1);
    let mut other_secret = new();
    other_secret.webhook.as_mut().unwrap().auth.secret = sinks::Change::Set("0123456789abcdeF".into());
    let renamed = NewChannel { name: "b".into(), ..new() };
    for (bot, other) in [(BOT, other_secret), (BOT, renamed), (OTHER_BOT, new())] {
        assert_eq!(code(channels.create(&ada(), bot, other, Some("k")).await), ErrorCode::Conflict);
    }
    assert_eq!(fields(channels.create(&ada(), BOT, new(), Some("a b")).await), ["Idempotency-Key"]);
}

#[tokio::test]
async fn a_name_belongs_to_one_channel_of_a_bot() {
    let world = World::new().await;
    let channels = world.channels();
    let first = world.create("Mine").await.channel;
    let create = |bot, name: &str| {
        let new = NewChannel::named(name);
        async move { channels.create(&ada(), bot, new, None).await }
    };
    for taken in ["Mine", "mine", "MINE"] {
        assert_eq!(code(create(BOT, taken).await), ErrorCode::Conflict, "{taken}");
    }
    let second = create(BOT, "Other").await.unwrap().channel;
    let rename = |id, name: &str| {
        let patch = ChannelPatch { name: Some(name.to_owned()), ..ChannelPatch::default() };
        async move { channels.update(&ada(), BOT, id, patch).await }
    };
    assert_eq!(code(rename(second.id, "mINE").await), ErrorCode::Conflict);
    assert_eq!(rename(first.id, "mine").await.unwrap().name, "mine", "its own name in other letters");
    channels.delete(&ada(), BOT, first.id).await.unwrap();
    rename(second.id, "Mine").await.unwrap();
    // Ten at once: one gets the name.
    let all = (0..10).map(|_| create(BOT, "race"));
    let outcomes = futures_util::future::join_all(all).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(outcomes.into_iter().filter_map(Result::err).all(|error| error.code() == ErrorCode::Conflict));
}
