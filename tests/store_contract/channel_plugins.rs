use std::time::Duration;

use hub_core::{
    id::{BotId, ChannelId, PluginId, PluginVersionId},
    plugins::VersionState,
    store::channel_plugins::Installation,
};

use super::{
    plugins::{add_plugin, add_version},
    scene::add_channel,
};
use crate::support::database::{Db, START};

contract!("channel_plugins": {
    a_channel_has_plugins_in_order => [install, installed, installed_of_bot, uninstall],
    installed_plugins_are_read_with_one_query => [scripts],
    a_change_touches_the_bots_that_run_it => [touch_bots, installed_elsewhere],
    a_plugin_is_stopped_in_one_channel_until_it_is_installed_again => [pause, install],
});

pub(super) async fn install(
    db: &Db,
    channel_id: ChannelId,
    id: (PluginId, PluginVersionId),
    position: u32,
    enabled: bool,
) {
    let installation = Installation {
        channel_id,
        plugin_id: id.0,
        version_id: id.1,
        position,
        enabled,
        paused: None,
        installed_at: START + Duration::from_millis(7),
    };
    commit!(db, |tx| tx.channel_plugins().install(&installation).await).unwrap();
}

/// Plugins in a channel: name, version and whether they are switched on.
pub(super) async fn in_channel(db: &Db, bot: BotId, channel: ChannelId) -> Vec<(String, String, bool)> {
    let rows =
        db.store.read().await.unwrap().channel_plugins().installed(bot, channel, channel).await.unwrap();
    rows.into_iter().map(|row| row.plugin).map(|row| (row.name, row.version, row.enabled)).collect()
}

async fn a_channel_has_plugins_in_order(db: &Db) {
    let ada = db.user("ada").await;
    let bot = db.bot(ada).await;
    let (first, second) = (add_channel(db, bot, "first").await, add_channel(db, bot, "second").await);
    let (a, b) = (add_plugin(db, ada, "a").await, add_plugin(db, ada, "b").await);
    let (a1, b1) = (add_version(db, a, "1").await, add_version(db, b, "1").await);
    let a2 = add_version(db, a, "2").await;
    install(db, first, (a, a1), 2, true).await;
    install(db, first, (b, b1), 1, true).await;
    install(db, second, (a, a1), 0, true).await;
    let row = |name: &str, version: &str, on| (name.to_owned(), version.to_owned(), on);
    assert_eq!(in_channel(db, bot, first).await, [row("b", "1", true), row("a", "1", true)]);
    // Once more: another version, another place, switched off; the rest is as it was.
    install(db, first, (a, a2), 0, false).await;
    assert_eq!(in_channel(db, bot, first).await, [row("a", "2", false), row("b", "1", true)]);
    let mut read = db.store.read().await.unwrap();
    let rows = read.channel_plugins().installed_of_bot(bot).await.unwrap();
    let places: Vec<_> = rows.iter().map(|row| (row.channel_id, &*row.plugin.name)).collect();
    assert_eq!(places, [(first, "a"), (first, "b"), (second, "a")]);
    let moved = &rows[0].plugin;
    assert_eq!((&*moved.content_hash, moved.state, moved.position), ("hash of 2", VersionState::Pending, 0));
    assert_eq!((moved.version_id, moved.installed_at), (a2, START + Duration::from_millis(7)));
    assert_eq!((moved.plugin_id, moved.reason.as_deref()), (a, None));
    assert!(read.channel_plugins().installed_of_bot(db.ids.next()).await.unwrap().is_empty());
    assert!(
        read.channel_plugins().installed(db.ids.next(), first, second).await.unwrap().is_empty(),
        "another bot's"
    );
    assert_eq!(read.channel_plugins().installed(bot, first, second).await.unwrap().len(), 3);
    drop(read);
    assert!(commit!(db, |tx| tx.channel_plugins().uninstall(first, a).await).unwrap());
    assert!(!commit!(db, |tx| tx.channel_plugins().uninstall(first, a).await).unwrap());
    assert_eq!(in_channel(db, bot, first).await, [row("b", "1", true)]);
    assert_eq!(in_channel(db, bot, second).await, [row("a", "1", true)]);
}

async fn a_change_touches_the_bots_that_run_it(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let (hers, his) = (db.bot(ada).await, db.bot(bob).await);
    let (on_hers, on_his) = (add_channel(db, hers, "hers").await, add_channel(db, his, "his").await);
    let id = add_plugin(db, ada, "a").await;
    let (first, second) = (add_version(db, id, "1").await, add_version(db, id, "2").await);
    install(db, on_hers, (id, first), 0, true).await;
    install(db, on_his, (id, second), 0, false).await;
    let touch = async |version| commit!(db, |tx| tx.channel_plugins().touch_bots(id, version).await).unwrap();
    assert_eq!(touch(Some(first)).await, [hers]);
    assert_eq!(touch(Some(second)).await, [his]);
    let mut all = touch(None).await;
    all.sort();
    let mut wanted = [hers, his];
    wanted.sort();
    assert_eq!(all, wanted);
    assert_eq!(db.number("SELECT CAST(SUM(config_rev) AS BIGINT) FROM bots").await, 4);
    let elsewhere = async |user, version| {
        db.store.read().await.unwrap().channel_plugins().installed_elsewhere(user, id, version).await.unwrap()
    };
    assert_eq!(elsewhere(ada, None).await, 1);
    assert_eq!(elsewhere(ada, Some(first)).await, 0);
    assert_eq!(elsewhere(bob, Some(first)).await, 1);
    assert_eq!(elsewhere(db.ids.next(), None).await, 2);
}

async fn installed_plugins_are_read_with_one_query(db: &Db) {
    let ada = db.user("ada").await;
    let id = add_plugin(db, ada, "a").await;
    let (first, second) = (add_version(db, id, "1").await, add_version(db, id, "2").await);
    let mut read = db.store.read().await.unwrap();
    let wanted = [first, second, db.ids.next()];
    let mut scripts = read.channel_plugins().scripts(&wanted).await.unwrap();
    scripts.sort();
    assert_eq!(scripts, [(first, "// 1".to_owned()), (second, "// 2".to_owned())]);
    assert!(read.channel_plugins().scripts(&[]).await.unwrap().is_empty());
}

async fn a_plugin_is_stopped_in_one_channel_until_it_is_installed_again(db: &Db) {
    let ada = db.user("ada").await;
    let bot = db.bot(ada).await;
    let (here, there) = (add_channel(db, bot, "here").await, add_channel(db, bot, "there").await);
    let id = add_plugin(db, ada, "a").await;
    let (runs, other) = (add_version(db, id, "1").await, add_version(db, id, "2").await);
    install(db, here, (id, runs), 0, true).await;
    install(db, there, (id, runs), 0, true).await;
    let pause = async |version, reason| {
        commit!(db, |tx| tx.channel_plugins().pause(here, version, reason).await).unwrap()
    };
    assert!(!pause(other, "another version runs there").await);
    assert!(pause(runs, "it hangs").await);
    assert!(!pause(runs, "it is stopped already").await);
    let paused = async || {
        let mut read = db.store.read().await.unwrap();
        let rows = read.channel_plugins().installed_of_bot(bot).await.unwrap();
        let mut found: Vec<_> = rows.into_iter().map(|row| (row.channel_id, row.plugin.paused)).collect();
        found.sort();
        found
    };
    let mut wanted = [(here, Some("it hangs".to_owned())), (there, None)];
    wanted.sort();
    assert_eq!(paused().await, wanted);
    assert_eq!(db.number("SELECT config_rev FROM bots").await, 1, "the workers read their rules again, once");
    install(db, here, (id, runs), 0, true).await;
    assert!(paused().await.into_iter().all(|(_, reason)| reason.is_none()));
}
