use hub_core::id::{BotId, UserId};

use super::{apps, scene::scope};
use crate::support::database::Db;

contract!("demo": {
    the_seeded_bot_is_remembered => [bot, remember_bot],
    the_app_under_test_is_remembered => [app, remember_app],
    the_demo_belongs_to_a_user_who_can_sign_in => [holder, hand_over],
});

async fn the_seeded_bot_is_remembered(db: &Db) {
    let bot = async || db.store.read().await.unwrap().demo().bot().await.unwrap();
    assert_eq!(bot().await, None);
    for id in [db.ids.next::<hub_core::id::kind::Bot>(), db.ids.next()] {
        commit!(db, |tx| tx.demo().remember_bot(id).await).unwrap();
        assert_eq!(bot().await, Some(id));
    }
}

async fn the_app_under_test_is_remembered(db: &Db) {
    let known = async || db.store.read().await.unwrap().demo().app().await.unwrap();
    assert_eq!(known().await, None);
    for _ in 0..2 {
        let (bot, app) = (db.ids.next(), db.ids.next());
        commit!(db, |tx| tx.demo().remember_app(bot, app).await).unwrap();
        assert_eq!(known().await, Some((bot, app)));
    }
}

async fn the_demo_belongs_to_a_user_who_can_sign_in(db: &Db) {
    let holder = async || db.store.read().await.unwrap().demo().holder().await.unwrap();
    assert_eq!(holder().await, None);
    let demo: UserId = db.user(hub_core::store::demo::DEMO_USER).await;
    let bot: BotId = db.bot(demo).await;
    let app = apps::add(db, apps::app(db, demo, "test-app")).await;
    assert_eq!(holder().await, Some(demo));
    let ada = db.user("ada").await;
    assert_eq!(holder().await, Some(demo), "a member does not hold it");
    db.sql(format!("UPDATE users SET role = 'admin' WHERE id = '{ada}'")).await;
    assert_eq!(holder().await, Some(ada));
    let mine = db.bot(ada).await;
    commit!(db, |tx| tx.demo().hand_over(ada).await).unwrap();
    let mut read = db.store.read().await.unwrap();
    for id in [bot, mine] {
        assert_eq!(read.bots().find(None, id).await.unwrap().unwrap().owner_id, ada);
    }
    assert_eq!(read.apps().find_own(scope(ada), app).await.unwrap().unwrap().owner_id, ada);
    assert!(read.accounts().find_user(demo).await.unwrap().is_none());
}
