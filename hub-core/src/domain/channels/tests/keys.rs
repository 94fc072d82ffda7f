use super::*;
use crate::secret::KeyMark;

const HOUR: Duration = Duration::from_secs(60 * 60);

#[tokio::test]
async fn only_its_key_authenticates_for_a_channel() {
    let world = World::new().await;
    let created = world.create("a").await;
    let key = created.api_key.expose();
    let actor = world.channels().authenticate_key(key).await.unwrap();
    let mark = KeyMark::of(TokenHash::of(key).as_str());
    let expected =
        ChannelActor { channel_id: created.channel.id, bot_id: BOT, owner_id: ADA, key: mark, ilink: None };
    assert_eq!(actor, Actor::Channel(expected));
    let never_made = crate::secret::new_token(crate::secret::TokenKind::ChannelKey, &Random::seeded(9));
    let session = crate::secret::new_token(crate::secret::TokenKind::Session, &Random::seeded(9));
    for wrong in
        ["", "hubc_", &key[..key.len() - 1], &key.to_uppercase(), never_made.expose(), session.expose()]
    {
        assert_eq!(code(world.channels().authenticate_key(wrong).await), ErrorCode::InvalidToken, "{wrong}");
    }
}

#[tokio::test]
async fn a_replaced_key_ends_at_once_or_after_its_grace() {
    let world = World::new().await;
    let channels = world.channels();
    let created = world.create("a").await;
    let id = created.channel.id;
    let works = async |key: &crate::secret::Secret| channels.authenticate_key(key.expose()).await.is_ok();

    let second = channels.regenerate_key(&ada(), BOT, id, None, None).await.unwrap();
    assert_eq!(second.old_key_expires_at, None);
    assert!(works(&second.api_key).await && !works(&created.api_key).await);

    let third = channels.regenerate_key(&ada(), BOT, id, Some(2), None).await.unwrap();
    assert_eq!(third.old_key_expires_at, Some(world.clock.now() + 2 * HOUR));
    assert!(works(&third.api_key).await && works(&second.api_key).await);
    let last4 = &third.api_key.last4();
    assert!(channels.get(&ada(), BOT, id).await.unwrap().api_key_prefix.ends_with(last4));
    world.clock.advance(2 * HOUR);
    assert!(works(&third.api_key).await && !works(&second.api_key).await);

    // A replacement without grace ends an old key that still had some.
    let fourth = channels.regenerate_key(&ada(), BOT, id, Some(72), None).await.unwrap();
    let fifth = channels.regenerate_key(&ada(), BOT, id, None, None).await.unwrap();
    assert!(works(&fifth.api_key).await && !works(&fourth.api_key).await && !works(&third.api_key).await);

    // A repeated call replaces nothing.
    let sixth = channels.regenerate_key(&ada(), BOT, id, None, Some("once")).await.unwrap();
    assert_eq!(channels.regenerate_key(&ada(), BOT, id, None, Some("once")).await.unwrap(), sixth);
    assert!(works(&sixth.api_key).await && !works(&fifth.api_key).await);

    for hours in [0, 73] {
        let outcome = channels.regenerate_key(&ada(), BOT, id, Some(hours), None).await;
        assert_eq!(fields(outcome), ["grace_hours"]);
    }
}

#[tokio::test]
async fn replacements_at_the_same_time_leave_one_key() {
    let world = World::new().await;
    let channels = world.channels();
    let ada = ada();
    let created = world.create("a").await;
    for (grace, alive) in [(None, 1), (Some(1), 2)] {
        let calls = (0..20).map(|_| channels.regenerate_key(&ada, BOT, created.channel.id, grace, None));
        let outcomes = futures_util::future::join_all(calls).await;
        let keys: Vec<RegeneratedKey> = outcomes.into_iter().map(Result::unwrap).collect();
        let mut working = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            if channels.authenticate_key(key.api_key.expose()).await.is_ok() {
                working.push(n);
            }
        }
        assert_eq!(working.len(), alive, "{grace:?} {working:?}");
        assert!(channels.authenticate_key(created.api_key.expose()).await.is_err());
    }
}

#[tokio::test]
async fn keys_of_disabled_or_deleted_channels_are_rejected() {
    let world = World::new().await;
    let channels = world.channels();
    let created = world.create("a").await;
    let key = created.api_key.expose();
    let enabled = |enabled| ChannelPatch { enabled: Some(enabled), ..Default::default() };
    channels.update(&ada(), BOT, created.channel.id, enabled(false)).await.unwrap();
    assert_eq!(code(channels.authenticate_key(key).await), ErrorCode::Forbidden);
    channels.update(&ada(), BOT, created.channel.id, enabled(true)).await.unwrap();
    assert!(channels.authenticate_key(key).await.is_ok());
    world.execute(format!("UPDATE users SET status = 'disabled' WHERE id = '{ADA}'")).await;
    assert_eq!(code(channels.authenticate_key(key).await), ErrorCode::Forbidden);
    world.execute(format!("UPDATE users SET status = 'active' WHERE id = '{ADA}'")).await;
    channels.delete(&ada(), BOT, created.channel.id).await.unwrap();
    assert_eq!(code(channels.authenticate_key(key).await), ErrorCode::InvalidToken);
}

#[tokio::test]
async fn no_key_is_ever_shown_or_stored_again() {
    let world = World::new().await;
    let created = world.channels().create(&ada(), BOT, NewChannel::named("a"), Some("k")).await.unwrap();
    let key = created.api_key.expose();
    assert!(!format!("{created:?}").contains(key));
    let channel = world.channels().get(&ada(), BOT, created.channel.id).await.unwrap();
    assert!(!serde_json::to_string(&channel).unwrap().contains(key));
    for entry in std::fs::read_dir(world.folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()));
    }
}
