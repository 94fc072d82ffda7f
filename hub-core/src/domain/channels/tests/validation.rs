use super::*;
use crate::model::sinks::{AiSource, AuthMethod, AuthUpdate, Change, RetrySettings};

/// A channel in which every field is wrong.
fn all_wrong() -> NewChannel {
    NewChannel {
        name: "a\u{202e}b".into(),
        handle: Some("@Orders".into()),
        filter: Filter {
            user_ids: vec![String::new()],
            keywords: vec![" ".into()],
            message_types: vec!["sticker".into()],
            expression: Some("content ==".into()),
            ..Default::default()
        },
        webhook: Some(WebhookUpdate {
            url: "http://127.0.0.1:9/".into(),
            auth: AuthUpdate {
                method: AuthMethod::Header,
                header_name: Some("Host".into()),
                secret: Change::Set("a\nb".into()),
            },
            timeout_ms: 30_001,
            retry: RetrySettings { schedule_s: vec![0] },
            max_concurrency: 0,
            rate_limit_per_s: Some(0),
            ..Default::default()
        }),
        ai: Some(AiUpdate {
            source: AiSource::Custom,
            base_url: "http://169.254.169.254/".into(),
            api_key: Change::Set(" ".into()),
            max_history: 0,
            max_tokens: Some(0),
            temperature: Some(f64::NAN),
            timeout_ms: 0,
            system_prompt: "x".repeat(40_000),
            ..Default::default()
        }),
        options: ChannelOptions { lane_hold_s: 3601, ..ChannelOptions::default() },
        ..NewChannel::named("")
    }
}

#[tokio::test]
async fn every_wrong_field_of_a_new_channel_is_named_at_once() {
    let world = World::new().await;
    let mut wrong = fields(world.channels().create(&ada(), BOT, all_wrong(), None).await);
    let mut expected = [
        "name",
        "handle",
        "lane_hold_s",
        "filter.user_ids[0]",
        "filter.keywords[0]",
        "filter.message_types[0]",
        "filter.expression",
        "webhook.url",
        "webhook.auth.header_name",
        "webhook.auth.secret",
        "webhook.timeout_ms",
        "webhook.max_concurrency",
        "webhook.rate_limit_per_s",
        "webhook.retry.schedule_s[0]",
        "ai.base_url",
        "ai.model",
        "ai.system_prompt",
        "ai.max_history",
        "ai.max_tokens",
        "ai.temperature",
        "ai.timeout_ms",
        "ai.api_key",
    ]
    .map(str::to_owned);
    wrong.sort();
    expected.sort();
    assert_eq!(wrong, expected);
    assert_eq!(world.config_rev(BOT).await, 5);
    assert!(world.list(&ada(), BOT, 9, None).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn names_and_handles_have_their_forms() {
    let world = World::new().await;
    let id = world.create("a").await.channel.id;
    let update = async |name: &str, handle: &str| {
        let patch = ChannelPatch {
            name: Some(name.to_owned()),
            handle: Change::Set(handle.to_owned()),
            lane_hold_s: Some(0),
            ..Default::default()
        };
        world.channels().update(&ada(), BOT, id, patch).await
    };
    let longest = "名".repeat(64);
    for (name, handle) in [("n", "ab"), (longest.as_str(), "a-b_9"), ("客服", &"a".repeat(32))] {
        let channel = update(name, handle).await.unwrap();
        assert_eq!((channel.name.as_str(), channel.handle.unwrap().as_str()), (name, handle));
    }
    let longer = "名".repeat(65);
    for name in ["", " ", "a\0b", "a\nb", longer.as_str()] {
        assert_eq!(fields(update(name, "ab").await), ["name"], "{name:?}");
    }
    for handle in ["", "a", "Ab", "@ab", "a b", &"a".repeat(33)] {
        assert_eq!(fields(update("n", handle).await), ["handle"], "{handle:?}");
    }
    let patch = ChannelPatch { lane_hold_s: Some(3601), name: Some(String::new()), ..Default::default() };
    assert_eq!(fields(world.channels().update(&ada(), BOT, id, patch).await), ["name", "lane_hold_s"]);
}

#[tokio::test]
async fn parts_name_their_fields_without_a_prefix() {
    let world = World::new().await;
    let channels = world.channels();
    let id = world.create("a").await.channel.id;
    let wrong = all_wrong();
    let filter = channels.set_filter(&ada(), BOT, id, &wrong.filter).await;
    assert_eq!(fields(filter), ["user_ids[0]", "keywords[0]", "message_types[0]", "expression"]);
    let webhook = fields(channels.set_webhook(&ada(), BOT, id, wrong.webhook.unwrap()).await);
    assert!(
        webhook.contains(&"url".to_owned()) && webhook.contains(&"auth.secret".to_owned()),
        "{webhook:?}"
    );
    let ai = fields(channels.set_ai(&ada(), BOT, id, wrong.ai.unwrap()).await);
    assert!(ai.contains(&"base_url".to_owned()) && ai.contains(&"api_key".to_owned()), "{ai:?}");
    let patch = ChannelPatch { enabled: Some(false), ..Default::default() };
    assert!(channels.update(&ada(), BOT, id, patch).await.is_ok());
    assert_eq!(world.config_rev(BOT).await, 7, "only the create and the last change counted");
}

#[tokio::test]
async fn a_handle_belongs_to_one_channel_of_a_bot() {
    let world = World::new().await;
    let channels = world.channels();
    let with_handle =
        |name: &str| NewChannel { handle: Some("orders".into()), ..NewChannel::named(name.to_owned()) };
    let first = channels.create(&ada(), BOT, with_handle("a"), None).await.unwrap().channel;
    assert_eq!(code(channels.create(&ada(), BOT, with_handle("b"), None).await), ErrorCode::Conflict);
    channels.create(&ada(), OTHER_BOT, with_handle("c"), None).await.unwrap();
    let second = world.create("d").await.channel.id;
    let take = || ChannelPatch { handle: Change::Set("orders".into()), ..Default::default() };
    assert_eq!(code(channels.update(&ada(), BOT, second, take()).await), ErrorCode::Conflict);
    channels.update(&ada(), BOT, first.id, take()).await.unwrap();
    let give_up = ChannelPatch { handle: Change::Clear, ..Default::default() };
    assert_eq!(channels.update(&ada(), BOT, first.id, give_up).await.unwrap().handle, None);
    assert!(channels.update(&ada(), BOT, second, take()).await.unwrap().handle.is_some());
}

#[tokio::test]
async fn a_bot_has_at_most_so_many_channels() {
    let world = World::new().await;
    let channels = world.channels();
    let most = world.hub.context().config.max_channels as usize;
    let calls = (0..most + 5).map(|n| {
        let new = NewChannel::named(format!("c{n}"));
        async move { channels.create(&ada(), BOT, new, None).await }
    });
    let outcomes = futures_util::future::join_all(calls).await;
    let refused = outcomes.into_iter().filter_map(Result::err).collect::<Vec<_>>();
    assert_eq!(refused.len(), 5);
    assert!(refused.iter().all(|error| error.code() == ErrorCode::Conflict));
    assert!(channels.create(&ada(), OTHER_BOT, NewChannel::named("x"), None).await.is_ok());
}
