use hub_core::{
    ErrorCode,
    id::{PluginId, PluginVersionId, UserId},
    page::PageRequest,
    plugins::VersionState::{self, Approved, Pending, Rejected, Superseded, Withdrawn},
    store::plugins::{NewPlugin, NewVersion, StateChange},
};

use super::{
    channel_plugins::{in_channel, install},
    scene::{HOSTILE_TEXTS, add_channel, everything, scope},
};
use crate::support::database::{Db, START};

contract!("plugins": {
    a_plugin_comes_back_as_it_was_stored => [insert, insert_version, find, source, versions],
    a_name_has_one_plugin => [insert, find_by_name, count_of],
    other_users_see_approved_versions => [find, versions, source, page, page_of, is_owned],
    a_new_version_supersedes_what_waited => [insert_version, pending],
    a_state_changes_once => [change_state, pending],
    the_marketplace_is_in_pages => [page, page_of, pending],
    only_the_owner_runs_plugins_in_the_channels_of_a_bot => [versions_for],
    versions_that_are_over_are_forgotten => [trim_versions],
    a_deleted_plugin_leaves_its_channels => [delete],
});

pub(super) async fn add_plugin(db: &Db, author_id: UserId, name: &str) -> PluginId {
    let (name, name_key) = (name.to_owned(), name.to_lowercase());
    let plugin = NewPlugin { id: db.ids.next(), author_id, name, name_key, now: START };
    let id = plugin.id;
    commit!(db, |tx| tx.plugins().insert(&plugin).await).unwrap();
    id
}

fn version(db: &Db, plugin_id: PluginId, name: &str) -> NewVersion {
    NewVersion {
        id: db.ids.next(),
        plugin_id,
        version: name.to_owned(),
        description: format!("what {name} does"),
        script: format!("// {name}"),
        content_hash: format!("hash of {name}"),
        matches: vec!["*".to_owned()],
        connects: Vec::new(),
        timeout_ms: 5000,
        now: START,
    }
}

pub(super) async fn add_version(db: &Db, plugin_id: PluginId, name: &str) -> PluginVersionId {
    let version = version(db, plugin_id, name);
    let id = version.id;
    commit!(db, |tx| tx.plugins().insert_version(&version).await).unwrap();
    id
}

async fn review(db: &Db, id: PluginVersionId, from: VersionState, to: VersionState) -> bool {
    let (reason, by) = ((to != Approved).then(|| "bad".to_owned()), "usr_admin".to_owned());
    let change = StateChange { id, from, to, reason, by, now: START };
    commit!(db, |tx| tx.plugins().change_state(&change).await).unwrap()
}

async fn a_plugin_comes_back_as_it_was_stored(db: &Db) {
    let ada = db.user("ada").await;
    for (n, text) in HOSTILE_TEXTS.into_iter().enumerate() {
        let id = add_plugin(db, ada, &format!("plugin {n}")).await;
        let stored = NewVersion {
            script: text.to_owned(),
            description: text.to_owned(),
            connects: vec!["a.example".to_owned()],
            timeout_ms: 10_000,
            ..version(db, id, "1")
        };
        let copy = stored.clone();
        commit!(db, |tx| tx.plugins().insert_version(&copy).await).unwrap();
        let mut read = db.store.read().await.unwrap();
        let plugin = read.plugins().find(scope(ada), id).await.unwrap().unwrap();
        assert_eq!((plugin.name.as_str(), plugin.author.as_str()), (format!("plugin {n}").as_str(), "ada"));
        assert_eq!((plugin.installs, plugin.created_at, plugin.approved), (0, START, None));
        let row = plugin.latest;
        assert_eq!((row.id, row.state), (stored.id, Pending));
        assert_eq!((&*row.description, &*row.content_hash), (text, "hash of 1"));
        assert_eq!((&*row.matches, &*row.connects), (&["*".to_owned()][..], &["a.example".to_owned()][..]));
        assert_eq!(
            (row.timeout_ms, row.reason, row.reviewed_at, row.created_at),
            (10_000, None, None, START)
        );
        let source = read.plugins().source(scope(ada), stored.id).await.unwrap().unwrap();
        assert_eq!((&*source.script, source.plugin_id, source.name), (text, id, format!("plugin {n}")));
        assert_eq!(read.plugins().versions(scope(ada), id).await.unwrap().len(), 1);
        let scripts = read.channel_plugins().scripts(&[stored.id]).await.unwrap();
        assert_eq!(scripts, [(stored.id, text.to_owned())]);
    }
}

async fn a_name_has_one_plugin(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let id = add_plugin(db, ada, "Tagger").await;
    let again = NewPlugin {
        id: db.ids.next(),
        author_id: bob,
        name: "TAGGER".into(),
        name_key: "tagger".into(),
        now: START,
    };
    let refused = commit!(db, |tx| tx.plugins().insert(&again).await).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Conflict);
    let mut read = db.store.read().await.unwrap();
    let found = read.plugins().find_by_name("tagger").await.unwrap();
    assert_eq!(found, Some((id, Some(ada))));
    assert_eq!(read.plugins().find_by_name("Tagger").await.unwrap(), None);
    assert_eq!(read.plugins().count_of(ada).await.unwrap(), 1);
    assert_eq!(read.plugins().count_of(bob).await.unwrap(), 0);
    drop(read);
    db.sql(format!("DELETE FROM users WHERE id = '{ada}'")).await;
    let mut read = db.store.read().await.unwrap();
    assert_eq!(read.plugins().find_by_name("tagger").await.unwrap(), Some((id, None)));
}

async fn other_users_see_approved_versions(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let id = add_plugin(db, ada, "tagger").await;
    let first = add_version(db, id, "1").await;
    // What each of them sees: the newest version, how many, and whether the first one's source.
    let sees = async |scope| {
        let mut read = db.store.read().await.unwrap();
        let newest = read.plugins().find(scope, id).await.unwrap().map(|plugin| plugin.latest.version);
        let count = read.plugins().versions(scope, id).await.unwrap().len();
        let source = read.plugins().source(scope, first).await.unwrap().is_some();
        (newest, count, source)
    };
    let listed = async || {
        let mut read = db.store.read().await.unwrap();
        let rows = read.plugins().page(&PageRequest::default()).await.unwrap();
        rows.into_iter().map(|plugin| plugin.latest.version).collect::<Vec<_>>()
    };
    let one = |name: &str, count, source| (Some(name.to_owned()), count, source);
    assert_eq!(sees(scope(ada)).await, one("1", 1, true));
    assert_eq!(sees(everything()).await, one("1", 1, true));
    assert_eq!(sees(scope(bob)).await, (None, 0, false));
    assert!(listed().await.is_empty());
    assert!(review(db, first, Pending, Approved).await);
    let second = add_version(db, id, "2").await;
    assert_eq!(sees(scope(bob)).await, one("1", 1, true));
    assert_eq!(sees(scope(ada)).await, one("2", 2, true));
    assert_eq!(listed().await, ["1"]);
    let mut read = db.store.read().await.unwrap();
    let own = read.plugins().page_of(ada, &PageRequest::default()).await.unwrap();
    assert_eq!(own.len(), 1);
    assert_eq!((&*own[0].latest.version, own[0].approved.clone()), ("2", Some((first, "1".to_owned()))));
    assert!(read.plugins().page_of(bob, &PageRequest::default()).await.unwrap().is_empty());
    assert!(read.plugins().source(scope(bob), second).await.unwrap().is_none());
    assert!(read.plugins().is_owned(scope(ada), id).await.unwrap());
    assert!(read.plugins().is_owned(everything(), id).await.unwrap());
    assert!(!read.plugins().is_owned(scope(bob), id).await.unwrap());
    assert!(!read.plugins().is_owned(everything(), db.ids.next()).await.unwrap());
    drop(read);
    assert!(review(db, first, Approved, Withdrawn).await);
    assert_eq!(sees(scope(bob)).await, (None, 0, false));
}

async fn a_new_version_supersedes_what_waited(db: &Db) {
    let ada = db.user("ada").await;
    let (id, other) = (add_plugin(db, ada, "a").await, add_plugin(db, ada, "b").await);
    add_version(db, other, "9").await;
    let approved = add_version(db, id, "1").await;
    review(db, approved, Pending, Approved).await;
    for name in ["2", "3", "4"] {
        add_version(db, id, name).await;
    }
    let mut read = db.store.read().await.unwrap();
    let versions = read.plugins().versions(everything(), id).await.unwrap();
    let states: Vec<_> = versions.iter().map(|row| (&*row.version, row.state)).collect();
    let wanted = [("4", Pending), ("3", Superseded), ("2", Superseded), ("1", Approved)];
    assert_eq!(states, wanted);
    let pending = read.plugins().pending(&PageRequest::default()).await.unwrap();
    let waits: Vec<_> = pending.iter().map(|row| (&*row.name, &*row.version.version, &*row.script)).collect();
    assert_eq!(waits, [("a", "4", "// 4"), ("b", "9", "// 9")]);
    assert_eq!(pending[0].approved_script.as_deref(), Some("// 1"));
    assert_eq!(pending[0].approved_version.as_deref(), Some("1"));
    assert_eq!((pending[1].approved_script.as_deref(), &*pending[1].author), (None, "ada"));
    assert_eq!(pending[0].plugin_id, id);
}

async fn a_state_changes_once(db: &Db) {
    let ada = db.user("ada").await;
    let id = add_plugin(db, ada, "a").await;
    let first = add_version(db, id, "1").await;
    assert!(review(db, first, Pending, Rejected).await);
    assert!(!review(db, first, Pending, Approved).await, "another review was faster");
    assert!(!review(db, db.ids.next(), Pending, Approved).await);
    let mut read = db.store.read().await.unwrap();
    let row = read.plugins().find(everything(), id).await.unwrap().unwrap().latest;
    assert_eq!((row.state, row.reason.as_deref(), row.reviewed_at), (Rejected, Some("bad"), Some(START)));
    assert!(read.plugins().pending(&PageRequest::default()).await.unwrap().is_empty());
    assert_eq!(db.text("SELECT reviewed_by FROM plugin_versions").await.as_deref(), Some("usr_admin"));
}

async fn the_marketplace_is_in_pages(db: &Db) {
    let ada = db.user("ada").await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        let id = add_plugin(db, ada, name).await;
        let version = add_version(db, id, name).await;
        ids.push((id.to_string(), version));
    }
    ids.reverse();
    let two = PageRequest::parse("p", Some(1), None).unwrap();
    let after = |position: &str| {
        PageRequest::parse("p", Some(5), Some(&hub_core::page::encode("p", position))).unwrap()
    };
    let mut read = db.store.read().await.unwrap();
    let pending = read.plugins().pending(&two).await.unwrap();
    assert_eq!(pending.iter().map(|row| &*row.name).collect::<Vec<_>>(), ["c", "b"]);
    let pending = read.plugins().pending(&after(&ids[0].1.to_string())).await.unwrap();
    assert_eq!(pending.iter().map(|row| &*row.name).collect::<Vec<_>>(), ["b", "a"]);
    let own = read.plugins().page_of(ada, &after(&ids[1].0)).await.unwrap();
    assert_eq!(own.iter().map(|row| &*row.name).collect::<Vec<_>>(), ["a"]);
    drop(read);
    for (_, version) in &ids {
        review(db, *version, Pending, Approved).await;
    }
    let mut read = db.store.read().await.unwrap();
    let page = read.plugins().page(&two).await.unwrap();
    assert_eq!(page.iter().map(|row| &*row.name).collect::<Vec<_>>(), ["c", "b"]);
    let page = read.plugins().page(&after(&ids[0].0)).await.unwrap();
    assert_eq!(page.iter().map(|row| &*row.name).collect::<Vec<_>>(), ["b", "a"]);
}

async fn only_the_owner_runs_plugins_in_the_channels_of_a_bot(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let (hers, his) = (db.bot(ada).await, db.bot(bob).await);
    let id = add_plugin(db, ada, "a").await;
    let first = add_version(db, id, "1").await;
    let may_run = async |bot| {
        let rows = db.store.read().await.unwrap().plugins().versions_for(bot, id).await.unwrap();
        rows.into_iter().map(|row| row.version).collect::<Vec<_>>()
    };
    assert_eq!(may_run(hers).await, ["1"]);
    assert!(may_run(his).await.is_empty());
    review(db, first, Pending, Approved).await;
    add_version(db, id, "2").await;
    assert_eq!(may_run(hers).await, ["2", "1"]);
    assert_eq!(may_run(his).await, ["1"]);
}

async fn versions_that_are_over_are_forgotten(db: &Db) {
    let ada = db.user("ada").await;
    let bot = db.bot(ada).await;
    let channel = add_channel(db, bot, "c").await;
    let id = add_plugin(db, ada, "a").await;
    let runs = add_version(db, id, "0").await;
    install(db, channel, (id, runs), 0, true).await;
    let approved = add_version(db, id, "1").await;
    review(db, approved, Pending, Approved).await;
    for name in ["2", "3", "4", "5"] {
        add_version(db, id, name).await;
    }
    let trim = async |keep| commit!(db, |tx| tx.plugins().trim_versions(id, keep).await).unwrap();
    assert_eq!(trim(3).await, 0);
    assert_eq!(trim(1).await, 2, "the newest of them is kept, and what runs or is approved or waits");
    let left = db.texts("SELECT version FROM plugin_versions ORDER BY version").await;
    assert_eq!(left, ["0", "1", "4", "5"]);
}

async fn a_deleted_plugin_leaves_its_channels(db: &Db) {
    let ada = db.user("ada").await;
    let bot = db.bot(ada).await;
    let channel = add_channel(db, bot, "c").await;
    let (a, b) = (add_plugin(db, ada, "a").await, add_plugin(db, ada, "b").await);
    let (a1, b1) = (add_version(db, a, "1").await, add_version(db, b, "1").await);
    install(db, channel, (a, a1), 0, true).await;
    install(db, channel, (b, b1), 1, true).await;
    assert!(commit!(db, |tx| tx.plugins().delete(a).await).unwrap());
    assert!(!commit!(db, |tx| tx.plugins().delete(a).await).unwrap());
    assert_eq!(in_channel(db, bot, channel).await, [("b".to_owned(), "1".to_owned(), true)]);
    assert_eq!(db.count("plugin_versions").await, 1);
    assert!(commit!(db, |tx| tx.channels().delete(bot, channel).await).unwrap());
    assert_eq!(db.count("channel_plugins").await, 0);
    assert_eq!(db.count("plugins").await, 1);
}
