use serde_json::json;

use super::*;
use crate::{
    delivery::channels::{ChannelRuntime, Route, RouteInput, load},
    model::{
        cause::Cause,
        sinks::{AuthMethod, AuthUpdate, Change, Ordering, WebhookSink},
    },
    network::MessageKind,
    secret::Secret,
    signing::SigningSecret,
};

const FIRST: &str = "first-secret-of-the-webhook";
const SECOND: &str = "second-secret-of-the-webhook";

fn webhook(secret: Change<Secret>) -> WebhookUpdate {
    WebhookUpdate {
        url: "https://example.com/hook".into(),
        auth: AuthUpdate { method: AuthMethod::Hmac, header_name: None, secret },
        ..Default::default()
    }
}

fn set(secret: &str) -> Change<Secret> {
    Change::Set(secret.into())
}

impl World {
    async fn runtime(&self) -> std::sync::Arc<ChannelRuntime> {
        load(&self.hub.context().for_work(), BOT).await.unwrap().channels.remove(0)
    }

    async fn set_webhook(&self, id: ChannelId, secret: Change<Secret>) -> Result<Channel> {
        self.channels().set_webhook(&ada(), BOT, id, webhook(secret)).await
    }

    /// Current and old webhook secret as the workers see them now.
    async fn secrets(&self) -> (Option<String>, Option<String>) {
        let runtime = self.runtime().await;
        let text = |secret: &SigningSecret| secret.secret().expose().to_owned();
        (runtime.webhook_secret.as_ref().map(text), runtime.old_secret_at(self.clock.now()).map(text))
    }
}

fn some(current: &str, old: Option<&str>) -> (Option<String>, Option<String>) {
    (Some(current.to_owned()), old.map(str::to_owned))
}

#[tokio::test]
async fn parts_are_replaced_one_by_one() {
    let world = World::new().await;
    let channels = world.channels();
    let id = world.create("a").await.channel.id;
    world.clock.advance(Duration::from_secs(1));
    let filter = Filter { keywords: vec!["order".into()], ..Default::default() };
    let channel = channels.set_filter(&ada(), BOT, id, &filter).await.unwrap();
    assert_eq!((&channel.filter, channel.updated_at), (&filter, world.clock.now()));
    let websocket =
        WebSocketSettings { enabled: false, include_outbound: true, ..WebSocketSettings::default() };
    channels.set_websocket(&ada(), BOT, id, &websocket).await.unwrap();
    world.set_webhook(id, set(FIRST)).await.unwrap();
    let ai = AiUpdate { model: "m".into(), max_history: 3, ..Default::default() };
    channels.set_ai(&ada(), BOT, id, ai).await.unwrap();
    let patch = ChannelPatch {
        name: Some("b".into()),
        on_plugin_error: Some(OnPluginError::Drop),
        lane_hold_s: Some(7),
        ..Default::default()
    };
    channels.update(&ada(), BOT, id, patch).await.unwrap();

    let channel = channels.get(&ada(), BOT, id).await.unwrap();
    assert_eq!((channel.filter, channel.websocket), (filter, websocket));
    assert_eq!(
        (channel.webhook.settings.url.as_str(), channel.webhook.settings.enabled),
        ("https://example.com/hook", true)
    );
    assert_eq!((channel.ai.settings.model.as_str(), channel.ai.settings.max_history), ("m", 3));
    assert_eq!(
        (channel.name.as_str(), channel.options.on_plugin_error, channel.options.lane_hold_s),
        ("b", OnPluginError::Drop, 7)
    );
    let runtime = world.runtime().await;
    assert_eq!(runtime.lane_hold, Duration::from_secs(7));
    assert_eq!(runtime.on_plugin_error, OnPluginError::Drop);
}

#[tokio::test]
async fn a_webhook_secret_is_kept_rotated_and_cleared() {
    let world = World::new().await;
    let id = world.create("a").await.channel.id;
    assert_eq!(fields(world.set_webhook(id, Change::Clear).await), ["auth.secret"], "hmac needs one");
    assert_eq!(fields(world.set_webhook(id, set("whsec_not base64 at all")).await), ["auth.secret"]);

    let channel = world.set_webhook(id, set(FIRST)).await.unwrap();
    assert!(channel.webhook.auth.has_secret && channel.webhook.auth.old_secret_expires_at.is_none());
    assert_eq!(channel.webhook.auth.secret, None);
    assert_eq!(world.secrets().await, some(FIRST, None));
    world.set_webhook(id, Change::Keep).await.unwrap();
    world.set_webhook(id, set(FIRST)).await.unwrap();
    assert_eq!(world.secrets().await, some(FIRST, None), "the same again rotates nothing");

    let channel = world.set_webhook(id, set(SECOND)).await.unwrap();
    assert_eq!(channel.webhook.auth.old_secret_expires_at, Some(world.clock.now() + OLD_SECRET_LIFE));
    assert_eq!(world.secrets().await, some(SECOND, Some(FIRST)));
    let loaded_before = world.runtime().await;
    world.clock.advance(OLD_SECRET_LIFE.saturating_sub(Duration::from_millis(1)));
    assert_eq!(world.secrets().await, some(SECOND, Some(FIRST)));
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.secrets().await, some(SECOND, None));
    assert!(loaded_before.old_secret_at(world.clock.now()).is_none());
    let channel = world.channels().get(&ada(), BOT, id).await.unwrap();
    assert_eq!(channel.webhook.auth.old_secret_expires_at, None);

    world.set_webhook(id, set(FIRST)).await.unwrap();
    let mut cleared = webhook(Change::Clear);
    assert_eq!(fields(world.channels().set_webhook(&ada(), BOT, id, cleared.clone()).await), ["auth.secret"]);
    assert_eq!(world.secrets().await, some(FIRST, Some(SECOND)), "a refused change changes nothing");
    cleared.auth.method = AuthMethod::None;
    let channel = world.channels().set_webhook(&ada(), BOT, id, cleared).await.unwrap();
    assert!(!channel.webhook.auth.has_secret && channel.webhook.auth.old_secret_expires_at.is_none());
    assert_eq!(world.secrets().await, (None, None));
}

#[tokio::test]
async fn hmac_without_a_secret_gets_a_generated_one_that_is_shown_once() {
    let world = World::new().await;
    let id = world.create("a").await.channel.id;
    let generated = world.set_webhook(id, Change::Keep).await.unwrap().webhook.auth.secret.unwrap();
    assert!(generated.expose().starts_with("whsec_"), "{}", generated.expose());
    assert_eq!(world.secrets().await, some(generated.expose(), None));
    let again = world.set_webhook(id, Change::Keep).await.unwrap();
    assert_eq!((again.webhook.auth.has_secret, again.webhook.auth.secret), (true, None));
    assert_eq!(world.secrets().await, some(generated.expose(), None), "what is there is kept");
    let shown = world.channels().get(&ada(), BOT, id).await.unwrap();
    assert_eq!(shown.webhook.auth.secret, None);

    let new = || NewChannel { webhook: Some(webhook(Change::Keep)), ..NewChannel::named("b") };
    let first = world.channels().create(&ada(), BOT, new(), Some("once")).await.unwrap();
    assert!(first.channel.webhook.auth.secret.is_some());
    let again = world.channels().create(&ada(), BOT, new(), Some("once")).await.unwrap();
    assert_eq!(again, first, "the repeated request gets the same secret");
    let mut none = webhook(Change::Keep);
    none.auth.method = AuthMethod::None;
    let plain = NewChannel { webhook: Some(none), ..NewChannel::named("c") };
    let plain = world.channels().create(&ada(), BOT, plain, None).await.unwrap().channel;
    assert_eq!((plain.webhook.auth.has_secret, plain.webhook.auth.secret), (false, None));
}

#[tokio::test]
async fn secrets_are_sealed_at_rest_and_never_shown() {
    let world = World::new().await;
    let id = world.create("a").await.channel.id;
    world.set_webhook(id, set(FIRST)).await.unwrap();
    world.set_webhook(id, set(SECOND)).await.unwrap();
    let key = "sk-the-key-of-the-model";
    let ai = AiUpdate {
        source: crate::model::sinks::AiSource::Custom,
        base_url: "https://ai.example/v1".into(),
        model: "m".into(),
        api_key: set(key),
        ..Default::default()
    };
    let channel = world.channels().set_ai(&ada(), BOT, id, ai).await.unwrap();
    assert!(channel.ai.has_api_key && channel.webhook.auth.has_secret);
    let runtime = world.runtime().await;
    assert_eq!(runtime.ai_api_key.as_ref().map(Secret::expose), Some(key));
    let seen = [
        format!("{channel:?}"),
        serde_json::to_string(&channel).unwrap(),
        format!("{runtime:?}"),
        format!("{:?}", webhook(set(FIRST))),
    ];
    let files = std::fs::read_dir(world.folder.path())
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let everything: Vec<Vec<u8>> = seen.into_iter().map(String::into_bytes).chain(files).collect();
    for secret in [FIRST, SECOND, key] {
        for bytes in &everything {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
        }
    }
    let ai = AiUpdate { api_key: Change::Clear, ..Default::default() };
    assert!(!world.channels().set_ai(&ada(), BOT, id, ai).await.unwrap().ai.has_api_key);
    assert_eq!(world.runtime().await.ai_api_key, None);
}

#[tokio::test]
async fn private_targets_are_refused_when_saved() {
    let world = World::new().await;
    let id = world.create("a").await.channel.id;
    for url in ["http://10.0.0.1/", "http://[::1]/", "http://2130706433/", "ftp://x.example/"] {
        let update = WebhookUpdate { url: url.into(), ..Default::default() };
        assert_eq!(
            fields(world.channels().set_webhook(&ada(), BOT, id, update.clone()).await),
            ["url"],
            "{url}"
        );
        let new = NewChannel { webhook: Some(update), ..NewChannel::named("b") };
        assert_eq!(fields(world.channels().create(&ada(), BOT, new, None).await), ["webhook.url"], "{url}");
    }
}

#[tokio::test]
async fn setting_a_webhook_that_switched_itself_off_starts_it_again() {
    let world = World::new().await;
    let id = world.create("a").await.channel.id;
    world.set_webhook(id, set(FIRST)).await.unwrap();
    world
        .execute(format!(
            "UPDATE channels SET failing_since = 1, webhook_disabled = 'failed for 5 days' WHERE id = '{id}'"
        ))
        .await;
    let patch = ChannelPatch { name: Some("b".into()), ..Default::default() };
    let channel = world.channels().update(&ada(), BOT, id, patch).await.unwrap();
    assert_eq!(channel.webhook_disabled_reason.as_deref(), Some("failed for 5 days"));
    assert!(!channel.webhook.settings.enabled && !world.runtime().await.webhook.enabled);
    let channel = world.set_webhook(id, Change::Keep).await.unwrap();
    assert!(channel.webhook.settings.enabled && channel.webhook_disabled_reason.is_none());
    assert!(world.runtime().await.webhook.enabled);
}

fn message(content: &str) -> RouteInput<'_> {
    RouteInput {
        content,
        user_id: "u1",
        user_name: "Bob",
        session_id: "s",
        kind: MessageKind::Text,
        sent_at: Timestamp::from_millis(1_790_000_000_000),
    }
}

#[tokio::test]
async fn messages_are_routed_by_handle_then_filter() {
    let world = World::new().await;
    let channels = world.channels();
    let new = NewChannel {
        handle: Some("orders".into()),
        filter: Filter { keywords: vec!["order".into()], ..Default::default() },
        ..NewChannel::named("a")
    };
    let id = channels.create(&ada(), BOT, new, None).await.unwrap().channel.id;
    let runtime = world.runtime().await;
    assert_eq!(runtime.route(&message("@orders order 7")), Route::Passed { content: "order 7" });
    assert_eq!(runtime.route(&message("order 7")), Route::Skipped { cause: Cause::NotAddressed });
    // The filter sees the text without the mention, which would match.
    assert_eq!(runtime.route(&message("@orders hello")), Route::Skipped { cause: Cause::read("keyword") });

    let filter = Filter {
        expression: Some(format!("channel_id == '{id}' && bot_id == '{BOT}' && timestamp == 1790000000")),
        ..Default::default()
    };
    channels.set_filter(&ada(), BOT, id, &filter).await.unwrap();
    let passed = world.runtime().await;
    assert_eq!(passed.route(&message("hi @orders")), Route::Passed { content: "hi @orders" });
    let off = ChannelPatch { enabled: Some(false), ..Default::default() };
    channels.update(&ada(), BOT, id, off).await.unwrap();
    let disabled = Route::Skipped { cause: Cause::Disabled };
    assert_eq!(world.runtime().await.route(&message("@orders x")), disabled);
}

#[tokio::test]
async fn a_filter_that_no_longer_works_stops_its_channel_alone() {
    let world = World::new().await;
    let first = world.create("a").await.channel.id;
    let second = world.create("b").await.channel.id;
    let third = world.create("c").await.channel.id;
    world
        .execute(format!(
            "UPDATE channels SET filter = '{{\"expression\":\"gone(1)\"}}' WHERE id = '{first}'"
        ))
        .await;
    world.execute(format!("UPDATE channels SET filter = 'not json' WHERE id = '{second}'")).await;
    let loaded = load(&world.hub.context().for_work(), BOT).await.unwrap();
    assert_eq!(loaded.config_rev, world.config_rev(BOT).await);
    assert_eq!(loaded.channels.iter().map(|channel| channel.id).collect::<Vec<_>>(), [first, second, third]);
    for broken in &loaded.channels[..2] {
        let Route::Skipped { cause } = broken.route(&message("x")) else { panic!("nothing passes") };
        assert!(matches!(cause, Cause::FilterFails { .. }), "{cause}");
    }
    assert_eq!(loaded.channels[2].route(&message("x")), Route::Passed { content: "x" });
    assert_eq!(code(load(&world.hub.context().for_work(), BotId::from_u128(99)).await), ErrorCode::NotFound);
}

#[tokio::test]
async fn expressions_are_compiled_off_the_async_threads() {
    let world = World::new().await;
    let (channels, actor) = (world.channels(), ada());
    let id = world.create("a").await.channel.id;
    // Every place for computations is taken: without one a bad expression cannot even be refused.
    let computations = &world.hub.context().computations;
    let (gates, held): (Vec<_>, Vec<_>) = (0..8)
        .map(|_| {
            let (gate, wait) = std::sync::mpsc::sync_channel::<()>(1);
            (gate, Box::pin(computations.run(move || wait.recv().is_ok())))
        })
        .unzip();
    let mut held = futures_util::future::join_all(held);
    assert!(futures_util::poll!(&mut held).is_pending());
    let bad = Filter { expression: Some("content ==".into()), ..Default::default() };
    let new = NewChannel { filter: bad.clone(), ..NewChannel::named("b") };
    let set = channels.set_filter(&actor, BOT, id, &bad);
    let create = channels.create(&actor, BOT, new, None);
    tokio::pin!(set, create);
    assert!(futures_util::poll!(&mut set).is_pending());
    assert!(futures_util::poll!(&mut create).is_pending());
    for gate in &gates {
        gate.send(()).unwrap();
    }
    held.await;
    assert_eq!(set.await.unwrap_err().code(), ErrorCode::InvalidParams);
    assert_eq!(create.await.unwrap_err().code(), ErrorCode::InvalidParams);
}

#[test]
fn a_response_that_version_0_1_kept_for_an_idempotency_key_is_read() {
    let kept = json!({
        "channel": {
            "id": "ch_01K9ZC3V5T8QK4X7M2N6P0RSWA",
            "bot_id": "bot_01K9ZC3V5T8QK4X7M2N6P0RSWA",
            "name": "orders",
            "handle": null,
            "enabled": true,
            "api_key_prefix": "hubc_…abcd",
            "filter": { "user_ids": [], "keywords": ["order"], "message_types": [], "match": "all" },
            "websocket": { "enabled": true, "include_outbound": false, "allowed_origins": [] },
            "ilink": { "enabled": false },
            "webhook": {
                "enabled": true, "url": "https://example.com/hook", "auth": { "method": "hmac" }, "timeout_ms": 9000,
                "retry": { "schedule_s": [5] }, "ordering": "none", "max_concurrency": 8, "rate_limit_per_s": null,
                "auto_reply": true,
            },
            "webhook_has_secret": true,
            "webhook_generated_secret": "whsec_abc",
            "webhook_old_secret_expires_at": null,
            "webhook_disabled_reason": null,
            "ai": { "enabled": true, "source": "custom", "base_url": "https://models.example/v1", "model": "small" },
            "ai_has_api_key": true,
            "plugins": [],
            "stats": { "received": 1, "delivered": 2, "failed": 3, "pending": 4 },
            "health": {
                "failing_since": null, "last_ok_at": null, "next_attempt_at": null, "parked": 0, "dead": 0,
            },
            "on_plugin_error": "retry",
            "lane_hold_s": 60,
            "created_at": "2026-11-21T09:30:00.000Z",
            "updated_at": "2026-11-21T09:30:00.000Z",
        },
        "api_key": "hubc_secret",
    });
    let CreatedChannel { channel, api_key } = serde_json::from_value(kept).unwrap();
    assert_eq!((api_key.expose(), channel.filter.keywords[0].as_str()), ("hubc_secret", "order"));
    let WebhookSink { settings, auth } = &channel.webhook;
    assert_eq!(
        (settings.timeout_ms, settings.ordering, settings.auth.method),
        (9000, Ordering::None, AuthMethod::Hmac)
    );
    assert!(auth.has_secret && auth.settings == settings.auth && auth.old_secret_expires_at.is_none());
    assert_eq!(auth.secret.as_ref().unwrap().expose(), "whsec_abc");
    assert_eq!(
        (channel.ai.settings.model.as_str(), channel.ai.has_api_key, channel.ai.warning.as_deref()),
        ("small", true, None)
    );
    let kept = serde_json::to_value(CreatedChannel { channel: channel.clone(), api_key }).unwrap();
    assert_eq!(serde_json::from_value::<CreatedChannel>(kept).unwrap().channel, channel);
}
