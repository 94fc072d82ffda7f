use hub_core::{
    apps::{App, AppEventKind, AppScopes, AppTool, AppView, Listing},
    id::{AppId, UserId},
    page::PageRequest,
    secret::Sealed,
    store::{apps::AppSecrets, fault::is_constraint},
};
use serde_json::json;

use super::{
    installations::install,
    scene::{HOSTILE_TEXTS, everything, scope},
};
use crate::support::database::{Db, START};

contract!("apps": {
    an_app_is_stored_with_everything => [insert, find, find_own, update, secrets],
    a_short_name_is_taken_once => [has_slug, insert, count_of],
    users_see_their_own_and_listed_apps => [page, find, find_own],
    apps_wait_for_an_administrator => [pending],
    a_url_is_verified_while_it_is_the_same => [set_verified],
    a_deleted_app_takes_its_installations_along => [delete, begin_change],
});

/// An app of a user, whose short name is its name.
pub fn app(db: &Db, owner: UserId, name: &str) -> App {
    App {
        id: db.ids.next(),
        owner_id: owner,
        owner_name: String::new(),
        name: name.to_owned(),
        slug: name.to_owned(),
        description: String::new(),
        icon_url: String::new(),
        homepage: String::new(),
        redirect_uris: Vec::new(),
        setup_url: None,
        webhook_url: None,
        webhook_verified: false,
        events: Vec::new(),
        scopes: AppScopes::default(),
        tools: Vec::new(),
        listing: Listing::Unlisted,
        listing_reason: None,
        installs: 0,
        created_at: START,
        updated_at: START,
    }
}

/// Stores an app.
pub async fn add(db: &Db, app: App) -> AppId {
    let id = app.id;
    let secrets = AppSecrets {
        client_secret_hash: format!("hash {}", app.slug),
        webhook_secret: "sealed".to_owned().into(),
    };
    commit!(db, |tx| tx.apps().insert(&app, &secrets).await).unwrap();
    id
}

async fn an_app_is_stored_with_everything(db: &Db) {
    let ada = db.user("ada").await;
    for (n, text) in HOSTILE_TEXTS.into_iter().enumerate() {
        let mut made = app(db, ada, &format!("app-{n}"));
        "ada".clone_into(&mut made.owner_name);
        made.description = text.to_owned();
        made.icon_url = text.to_owned();
        made.redirect_uris = vec![text.to_owned(), "https://b.example".to_owned()];
        made.setup_url = Some(text.to_owned());
        made.webhook_url = Some(text.to_owned());
        made.events = vec![AppEventKind::Command, AppEventKind::MessageText];
        made.scopes = AppScopes::parse(["bot:read", "message:write"]).unwrap();
        made.tools = vec![AppTool {
            name: "t".to_owned(),
            description: text.to_owned(),
            command: Some("c".to_owned()),
            parameters: Some(json!({ "title": text })),
        }];
        let id = add(db, made.clone()).await;
        let mut read = db.store.read().await.unwrap();
        assert_eq!(read.apps().find(scope(ada), id).await.unwrap(), Some(made.clone()));
        drop(read);
        made.name = text.to_owned();
        made.homepage = text.to_owned();
        made.webhook_verified = true;
        made.listing = Listing::Rejected;
        made.listing_reason = Some(text.to_owned());
        let changed = made.clone();
        commit!(db, |tx| tx.apps().update(&changed).await).unwrap();
        let mut read = db.store.read().await.unwrap();
        assert_eq!(read.apps().find_own(scope(ada), id).await.unwrap(), Some(made));
        let secrets = read.apps().secrets(id).await.unwrap().unwrap();
        assert_eq!(secrets.client_secret_hash, format!("hash app-{n}"));
        assert!(secrets.webhook_secret == Sealed::from("sealed".to_owned()));
        assert!(read.apps().secrets(db.ids.next()).await.unwrap().is_none());
    }
}

async fn a_short_name_is_taken_once(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    add(db, app(db, ada, "weather")).await;
    let again = app(db, bob, "weather");
    let secrets = AppSecrets { client_secret_hash: String::new(), webhook_secret: String::new().into() };
    let taken = commit!(db, |tx| tx.apps().insert(&again, &secrets).await).unwrap_err();
    assert!(is_constraint(&taken));
    let mut read = db.store.read().await.unwrap();
    assert!(read.apps().has_slug("weather").await.unwrap());
    assert!(!read.apps().has_slug("Weather").await.unwrap());
    assert_eq!(read.apps().count_of(ada).await.unwrap(), 1);
    assert_eq!(read.apps().count_of(bob).await.unwrap(), 0);
}

async fn users_see_their_own_and_listed_apps(db: &Db) {
    let (ada, bob) = (db.user("ada").await, db.user("bob").await);
    let bobs_bot = db.bot(bob).await;
    let own = add(db, app(db, bob, "own")).await;
    let listed = add(db, App { listing: Listing::Listed, ..app(db, ada, "listed") }).await;
    let installed = add(db, app(db, ada, "installed")).await;
    let hidden = add(db, App { listing: Listing::Pending, ..app(db, ada, "hidden") }).await;
    install(db, installed, bobs_bot, "installed").await;
    let seen = async |who, view, limit, after: Option<AppId>| {
        let cursor = after.map(|id| hub_core::page::encode("apps", &id.to_string()));
        let page = PageRequest::parse("apps", Some(limit), cursor.as_deref()).unwrap();
        let mut read = db.store.read().await.unwrap();
        let found = read.apps().page(who, view, &page).await.unwrap();
        found.into_iter().map(|app| app.id).collect::<Vec<_>>()
    };
    assert_eq!(seen(scope(bob), AppView::All, 9, None).await, [installed, listed, own]);
    assert_eq!(seen(scope(bob), AppView::Own, 9, None).await, [own]);
    assert_eq!(seen(scope(bob), AppView::Public, 9, None).await, [listed]);
    assert_eq!(seen(scope(bob), AppView::Installed, 9, None).await, [installed]);
    assert_eq!(seen(scope(ada), AppView::All, 9, None).await, [hidden, installed, listed]);
    assert_eq!(seen(everything(), AppView::All, 9, None).await, [hidden, installed, listed, own]);
    // One more than the page has room for, from where the page before ended.
    assert_eq!(seen(scope(bob), AppView::All, 1, None).await, [installed, listed]);
    assert_eq!(seen(scope(bob), AppView::All, 1, Some(listed)).await, [own]);
    let mut read = db.store.read().await.unwrap();
    assert!(read.apps().find(scope(bob), hidden).await.unwrap().is_none());
    let found = read.apps().find(scope(bob), installed).await.unwrap().unwrap();
    assert_eq!((found.installs, &*found.owner_name), (1, "ada"));
    assert!(read.apps().find_own(scope(bob), installed).await.unwrap().is_none());
    assert!(read.apps().find_own(everything(), installed).await.unwrap().is_some());
}

async fn apps_wait_for_an_administrator(db: &Db) {
    let ada = db.user("ada").await;
    let first = add(db, App { listing: Listing::Pending, ..app(db, ada, "first") }).await;
    add(db, App { listing: Listing::Listed, ..app(db, ada, "listed") }).await;
    let second = add(db, App { listing: Listing::Pending, ..app(db, ada, "second") }).await;
    let mut read = db.store.read().await.unwrap();
    let pending = read.apps().pending(&PageRequest::default()).await.unwrap();
    assert_eq!(pending.iter().map(|app| app.id).collect::<Vec<_>>(), [second, first]);
    let cursor = hub_core::page::encode("apps", &second.to_string());
    let page = PageRequest::parse("apps", Some(1), Some(&cursor)).unwrap();
    let pending = read.apps().pending(&page).await.unwrap();
    assert_eq!(pending.iter().map(|app| app.id).collect::<Vec<_>>(), [first]);
}

async fn a_url_is_verified_while_it_is_the_same(db: &Db) {
    let ada = db.user("ada").await;
    let url = "https://app.example/hub";
    let id = add(db, App { webhook_url: Some(url.to_owned()), ..app(db, ada, "app") }).await;
    assert!(!commit!(db, |tx| tx.apps().set_verified(id, "https://other.example", true).await).unwrap());
    let verified = async || {
        let mut read = db.store.read().await.unwrap();
        read.apps().find(scope(ada), id).await.unwrap().unwrap().webhook_verified
    };
    assert!(!verified().await);
    assert!(commit!(db, |tx| tx.apps().set_verified(id, url, true).await).unwrap());
    assert!(verified().await);
}

async fn a_deleted_app_takes_its_installations_along(db: &Db) {
    let ada = db.user("ada").await;
    let (first, second, other) = (db.bot(ada).await, db.bot(ada).await, db.bot(ada).await);
    let (gone, stays) = (add(db, app(db, ada, "gone")).await, add(db, app(db, ada, "stays")).await);
    install(db, gone, first, "gone").await;
    install(db, gone, second, "gone").await;
    install(db, stays, other, "stays").await;
    let mut bots = commit!(db, |tx| tx.apps().begin_change(gone).await).unwrap();
    bots.sort();
    assert_eq!(bots, [first, second]);
    let raised = "SELECT CAST(count(*) AS BIGINT) FROM bots WHERE config_rev = 1";
    assert_eq!(db.number(raised).await, 2);
    commit!(db, |tx| tx.apps().delete(gone).await).unwrap();
    assert_eq!((db.count("apps").await, db.count("app_installations").await), (1, 1));
}
