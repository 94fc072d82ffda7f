use std::time::Duration;

use hub_core::{
    ErrorCode,
    channels::{AfterChange, ChannelHealth, ChannelRecord, NewKey, OnPluginError},
    id::{BotId, ChannelId},
    page::PageRequest,
    secret::{Sealed, TokenHash},
    store::deliveries::DeliveryState,
    time::Timestamp,
};

use super::scene::{HOSTILE_TEXTS, accept_one, add_channel, channel, everything, just_before, scope, stage};
use crate::support::database::{Db, START};

contract!("channels": {
    a_channel_comes_back_as_it_was_stored => [insert, find, of_bot],
    an_update_keeps_what_the_delivery_counts => [update],
    a_handle_is_unique_within_a_bot => [insert, update],
    a_name_is_found_among_the_other_channels_of_its_bot => [has_name],
    channels_are_listed_for_their_owner_newest_first => [page, sees_bot, count, bot_of],
    a_change_is_the_owners_and_raises_the_revision => [begin_change, config_rev],
    keys_open_their_channel_while_they_are_valid => [find_by_key, replace_key],
    deliveries_are_counted_by_state => [deliveries_by_state],
    the_health_of_a_channel_comes_from_its_deliveries => [health, totals],
    the_open_work_of_a_deleted_channel_is_deleted => [delete],
});

const HOUR: Duration = Duration::from_secs(3600);

async fn find(db: &Db, bot: BotId, id: ChannelId) -> Option<ChannelRecord> {
    db.store.read().await.unwrap().channels().find(everything(), bot, id).await.unwrap()
}

async fn a_channel_comes_back_as_it_was_stored(db: &Db) {
    let owner = db.user("ada").await;
    let bot = db.bot(owner).await;
    for (n, text) in HOSTILE_TEXTS.into_iter().enumerate() {
        let mut record = channel(db, bot, text);
        record.handle = Some(format!("handle{n}"));
        record.enabled = n % 2 == 0;
        record.filter = format!("{{\"n\":{n}}}");
        record.webhook_secret = Some(Sealed::from("secret".to_owned()));
        record.ai_api_key = Some(Sealed::from("key".to_owned()));
        record.options.on_plugin_error = OnPluginError::Drop;
        record.options.lane_hold_s = 3600;
        let (id, hash, wanted) = (record.id, TokenHash::of(&format!("{n}")), format!("{record:?}"));
        commit!(db, |tx| tx.channels().insert(&record, &hash).await).unwrap();
        assert_eq!(format!("{:?}", find(db, bot, id).await.unwrap()), wanted);
    }
    let all = db.store.read().await.unwrap().channels().of_bot(bot).await.unwrap();
    assert_eq!(all.iter().map(|record| record.name.as_str()).collect::<Vec<_>>(), HOSTILE_TEXTS);
    assert!(db.store.read().await.unwrap().channels().of_bot(db.ids.next()).await.unwrap().is_empty());
}

async fn an_update_keeps_what_the_delivery_counts(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let failing = START.as_millis();
    db.sql(format!("UPDATE channels SET failing_since = {failing}, webhook_disabled = 'failed'")).await;
    let mut record = find(db, on.bot, on.channel).await.unwrap();
    record.name = "renamed".into();
    record.enabled = false;
    record.webhook_old_secret = Some(Sealed::from("old".to_owned()));
    record.webhook_old_until = Some(START + HOUR);
    record.last_seq = 77;
    record.updated_at = START + HOUR;
    let changed = record.clone();
    commit!(db, |tx| tx.channels().update(&changed, AfterChange::Nothing).await).unwrap();
    let stored = find(db, on.bot, on.channel).await.unwrap();
    assert_eq!(stored.last_seq, 1, "the log counts, not the settings");
    assert_eq!(stored.webhook_disabled.as_deref(), Some("failed"));
    record.last_seq = 1;
    assert_eq!(format!("{stored:?}"), format!("{record:?}"));
    commit!(db, |tx| tx.channels().update(&record, AfterChange::RestartWebhook).await).unwrap();
    assert_eq!(find(db, on.bot, on.channel).await.unwrap().webhook_disabled, None);
    assert_eq!(db.number("SELECT count(*) FROM channels WHERE failing_since IS NULL").await, 1);
}

async fn a_handle_is_unique_within_a_bot(db: &Db) {
    let owner = db.user("ada").await;
    let (bot, other) = (db.bot(owner).await, db.bot(owner).await);
    let add = async |bot, name: &'static str, handle: Option<&str>| {
        let mut record = channel(db, bot, name);
        record.handle = handle.map(str::to_owned);
        let (hash, copy) = (TokenHash::of(name), record.clone());
        commit!(db, |tx| tx.channels().insert(&copy, &hash).await).map(|()| record)
    };
    add(bot, "a", Some("desk")).await.unwrap();
    assert_eq!(add(bot, "b", Some("desk")).await.unwrap_err().code(), ErrorCode::Conflict);
    add(other, "c", Some("desk")).await.unwrap();
    let mut plain = add(bot, "d", None).await.unwrap();
    add(bot, "e", None).await.unwrap();
    plain.handle = Some("desk".into());
    let refused = commit!(db, |tx| tx.channels().update(&plain, AfterChange::Nothing).await).unwrap_err();
    assert!(hub_core::store::fault::is_constraint(&refused) || refused.code() == ErrorCode::Conflict);
    assert_eq!(
        add(other, "a", None).await.unwrap_err().code(),
        ErrorCode::Conflict,
        "a key is one channel's"
    );
}

async fn a_name_is_found_among_the_other_channels_of_its_bot(db: &Db) {
    let on = stage(db).await;
    let name = find(db, on.bot, on.channel).await.unwrap().name;
    let none: ChannelId = db.ids.next();
    let elsewhere: BotId = db.ids.next();
    for (bot, name, except, expected) in [
        (on.bot, name.clone(), none, true),
        (on.bot, name.to_uppercase(), none, true),
        (on.bot, name.clone(), on.channel, false),
        (on.bot, format!("{name}2"), none, false),
        (elsewhere, name.clone(), none, false),
    ] {
        let found = db.store.read().await.unwrap().channels().has_name(bot, &name, except).await.unwrap();
        assert_eq!(found, expected, "{name}");
    }
}

async fn channels_are_listed_for_their_owner_newest_first(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let (bot, other) = (db.bot(ada).await, db.bot(ada).await);
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(add_channel(db, bot, name).await);
    }
    add_channel(db, other, "elsewhere").await;
    ids.reverse();
    let list = async |scope, page: PageRequest| {
        let mut read = db.store.read().await.unwrap();
        let rows = read.channels().page(scope, bot, &page).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(list(scope(ada), PageRequest::default()).await, ids);
    assert_eq!(list(everything(), PageRequest::default()).await, ids);
    assert_eq!(list(scope(bob), PageRequest::default()).await, []);
    let page = PageRequest::parse("c", Some(1), None).unwrap();
    assert_eq!(list(scope(ada), page).await, ids[..2]);
    let cursor = hub_core::page::encode("c", &ids[0].to_string());
    let page = PageRequest::parse("c", Some(1), Some(&cursor)).unwrap();
    assert_eq!(list(scope(ada), page).await, ids[1..]);
    let mut read = db.store.read().await.unwrap();
    assert_eq!(read.channels().count(bot).await.unwrap(), 3);
    assert!(read.channels().sees_bot(scope(ada), bot).await.unwrap());
    assert!(!read.channels().sees_bot(scope(bob), bot).await.unwrap());
    assert!(!read.channels().sees_bot(everything(), db.ids.next()).await.unwrap());
    assert_eq!(read.channels().bot_of(scope(ada), ids[0]).await.unwrap(), Some(bot));
    assert_eq!(read.channels().bot_of(everything(), ids[0]).await.unwrap(), Some(bot));
    assert_eq!(read.channels().bot_of(scope(bob), ids[0]).await.unwrap(), None);
    let of = async |scope, bot, id| {
        db.store.read().await.unwrap().channels().find(scope, bot, id).await.unwrap().is_some()
    };
    assert!(of(scope(ada), bot, ids[0]).await);
    assert!(!of(scope(bob), bot, ids[0]).await);
    assert!(!of(scope(ada), other, ids[0]).await, "a channel of another bot");
}

async fn a_change_is_the_owners_and_raises_the_revision(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let bot = db.bot(ada).await;
    let rev = async || db.store.read().await.unwrap().channels().config_rev(bot).await.unwrap();
    let change = async |scope, bot| commit!(db, |tx| tx.channels().begin_change(scope, bot).await);
    assert_eq!(rev().await, Some(0));
    assert_eq!(change(scope(bob), bot).await.unwrap_err().code(), ErrorCode::NotFound);
    let nobody: BotId = db.ids.next();
    assert_eq!(change(everything(), nobody).await.unwrap_err().code(), ErrorCode::NotFound);
    assert_eq!(rev().await, Some(0));
    change(scope(ada), bot).await.unwrap();
    change(everything(), bot).await.unwrap();
    assert_eq!(rev().await, Some(2));
    assert_eq!(db.store.read().await.unwrap().channels().config_rev(nobody).await.unwrap(), None);
}

async fn keys_open_their_channel_while_they_are_valid(db: &Db) {
    let owner = db.user("ada").await;
    let bot = db.bot(owner).await;
    let id = add_channel(db, bot, "first").await;
    let opens = async |key: &str, after: Duration| {
        let hash = TokenHash::of(key);
        let found =
            db.store.read().await.unwrap().channels().find_by_key(&hash, START + after).await.unwrap();
        found.map(|(actor, on)| {
            assert_eq!((actor.channel_id, actor.bot_id, actor.owner_id), (id, bot, owner));
            on
        })
    };
    let replace = async |bot, key: &str, old_until| {
        let new = NewKey { hash: TokenHash::of(key), last4: "new4".into(), at: START, old_until };
        commit!(db, |tx| tx.channels().replace_key(bot, id, &new).await).unwrap()
    };
    assert_eq!(opens("first", Duration::ZERO).await, Some(true));
    assert_eq!(opens("unknown", Duration::ZERO).await, None);
    assert!(!replace(db.ids.next(), "x", None).await, "a channel of another bot");
    assert!(replace(bot, "second", Some(START + HOUR)).await);
    assert_eq!(opens("first", just_before(HOUR)).await, Some(true));
    assert_eq!(opens("first", HOUR).await, None);
    assert_eq!(opens("second", HOUR * 99).await, Some(true));
    assert!(replace(bot, "third", None).await);
    for ended in ["first", "second"] {
        assert_eq!(opens(ended, Duration::ZERO).await, None, "{ended}");
    }
    assert_eq!(find(db, bot, id).await.unwrap().key_last4, "new4");
    db.sql("UPDATE channels SET enabled = (1 = 0)").await;
    assert_eq!(opens("third", Duration::ZERO).await, Some(false));
    db.sql("UPDATE channels SET enabled = (1 = 1)").await;
    db.sql("UPDATE users SET status = 'disabled'").await;
    assert_eq!(opens("third", Duration::ZERO).await, Some(false));
}

async fn deliveries_are_counted_by_state(db: &Db) {
    let on = stage(db).await;
    let second = add_channel(db, on.bot, "second").await;
    for key in ["1", "2", "3"] {
        accept_one(db, &on, "ann", key, 0).await;
    }
    db.sql("UPDATE deliveries SET state = 'dead' WHERE seq = 1").await;
    db.sql(format!("UPDATE successes SET count = 5 WHERE channel_id = '{second}'")).await;
    let mut read = db.store.read().await.unwrap();
    let count = async |first, last, read: &mut hub_core::store::Read| {
        let mut rows = read.channels().deliveries_by_state(on.bot, first, last).await.unwrap();
        rows.sort_by_key(|(id, state, _)| (*id, state.as_str()));
        rows
    };
    let wanted = [(on.channel, DeliveryState::Dead, 1), (on.channel, DeliveryState::Pending, 2)];
    assert_eq!(count(on.channel, on.channel, &mut read).await, wanted);
    let done = (second, DeliveryState::Done, 5);
    assert_eq!(count(on.channel, second, &mut read).await, [wanted[0], wanted[1], done]);
    assert_eq!(count(second, second, &mut read).await, [done]);
}

async fn the_health_of_a_channel_comes_from_its_deliveries(db: &Db) {
    let on = stage(db).await;
    let second = add_channel(db, on.bot, "second").await;
    let mut deliveries = Vec::new();
    for key in ["1", "2"] {
        deliveries.push(accept_one(db, &on, "ann", key, 0).await.1);
    }
    let at = |minutes: u32| START + HOUR / 60 * minutes;
    for (delivery, state, due, finished) in [(0, "parked", at(5).as_millis(), "NULL"), (1, "dead", 0, "7")] {
        let set = format!("SET state = '{state}', due_at = {due}, finished_at = {finished}");
        db.sql(format!("UPDATE deliveries {set} WHERE id = '{}'", deliveries[delivery])).await;
    }
    db.sql(format!("UPDATE channels SET failing_since = 9 WHERE id = '{}'", on.channel)).await;
    let last = at(1).as_millis();
    db.sql(format!("UPDATE successes SET last_at = {last} WHERE channel_id = '{}'", on.channel)).await;
    let expected = ChannelHealth {
        failing_since: Some(Timestamp::from_millis(9)),
        last_ok_at: Some(at(1)),
        next_attempt_at: Some(at(5)),
        parked: 1,
        dead: 1,
    };
    let mut read = db.store.read().await.unwrap();
    let mut health = read.channels().health(on.bot, on.channel, second).await.unwrap();
    health.sort_by_key(|(id, _)| *id);
    assert_eq!(health, [(on.channel, expected), (second, ChannelHealth::default())]);
    assert_eq!(read.channels().health(on.bot, second, second).await.unwrap().len(), 1);
    let totals = read.channels().totals(on.owner, 10).await.unwrap();
    assert_eq!(totals.iter().map(|channel| channel.id).collect::<Vec<_>>(), [second, on.channel]);
    assert_eq!((totals[1].health, totals[1].received, totals[1].pending), (expected, 2, 0));
    assert_eq!(read.channels().totals(on.owner, 1).await.unwrap().len(), 1);
    assert!(read.channels().totals(db.ids.next(), 10).await.unwrap().is_empty());
}

async fn the_open_work_of_a_deleted_channel_is_deleted(db: &Db) {
    let on = stage(db).await;
    accept_one(db, &on, "ann", "1", 0).await;
    let other = add_channel(db, on.bot, "other").await;
    let delete = async |bot, id| commit!(db, |tx| tx.channels().delete(bot, id).await).unwrap();
    assert!(!delete(db.ids.next(), on.channel).await);
    assert!(delete(on.bot, on.channel).await);
    assert!(!delete(on.bot, on.channel).await);
    for table in ["channel_log", "deliveries", "traces"] {
        assert_eq!(db.count(table).await, 0, "{table}");
    }
    assert_eq!(db.count("messages").await, 1, "a message is the bot's");
    assert_eq!(db.texts("SELECT id FROM channels").await, [other.to_string()]);
}
