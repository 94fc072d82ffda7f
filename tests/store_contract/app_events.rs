use std::time::Duration;

use hub_core::{
    apps::{App, AppEventState, AppScopes},
    id::{AppEventId, AppId, BotId, InstallationId},
    page::PageRequest,
    store::app_events::{EventAttempt, NewAppEvent},
    time::Timestamp,
};

use super::{
    apps::{add, app},
    installations::install,
    scene::HOSTILE_TEXTS,
};
use crate::support::database::{Db, START};

contract!("app_events": {
    an_event_is_stored_taken_told_and_shown => [insert, claim, settle, page],
    an_event_is_taken_by_one_node_at_a_time => [claim, has_due],
    one_app_is_limited_to_its_share => [claim],
    undelivered_events_of_an_installation_are_abandoned => [give_up],
    an_event_without_a_webhook_waits_for_a_socket => [park, hasten],
    old_events_are_forgotten => [delete_before],
    events_delivered_at_once_are_recorded_and_found => [note, find],
});

const MINUTE: Duration = Duration::from_secs(60);

struct Scene {
    app: AppId,
    bot: BotId,
    installation: InstallationId,
}

/// An app of a user, on a bot of theirs.
async fn scene(db: &Db, name: &str) -> Scene {
    let owner = db.user(name).await;
    let bot = db.bot(owner).await;
    let url = Some(format!("https://{name}.example"));
    let app = add(db, App { webhook_url: url, webhook_verified: true, ..app(db, owner, name) }).await;
    Scene { app, bot, installation: install(db, app, bot, name).await }
}

fn event(db: &Db, scene: &Scene, text: &str, at: Timestamp) -> NewAppEvent {
    NewAppEvent {
        id: db.ids.next(),
        app_id: scene.app,
        bot_id: scene.bot,
        installation_id: scene.installation,
        message_id: None,
        trace_id: Some(db.ids.next()),
        kind: "command".to_owned(),
        peer: text.to_owned(),
        event: text.to_owned(),
        now: at,
    }
}

async fn tell(db: &Db, scene: &Scene, text: &str, at: Timestamp) -> AppEventId {
    let event = event(db, scene, text, at);
    let id = event.id;
    commit!(db, |tx| tx.app_events().insert(&[&event]).await).unwrap();
    id
}

async fn claim(db: &Db, now: Timestamp, per_app: u32) -> Vec<String> {
    let taken = commit!(db, |tx| tx.app_events().claim(now, now + MINUTE, per_app, 50).await).unwrap();
    taken.into_iter().map(|event| event.id.to_string()).collect()
}

fn told(id: AppEventId, state: AppEventState, due_at: Timestamp) -> EventAttempt {
    EventAttempt {
        id,
        state,
        due_at,
        response_status: Some(500),
        response_body: "answer".to_owned(),
        error: Some("status 500".to_owned()),
        duration_ms: 7,
    }
}

async fn an_event_is_stored_taken_told_and_shown(db: &Db) {
    let scene = scene(db, "weather").await;
    for text in HOSTILE_TEXTS {
        tell(db, &scene, text, START).await;
    }
    // No one is notified of a bot that is gone.
    let gone = Scene { app: scene.app, bot: db.ids.next(), installation: scene.installation };
    tell(db, &gone, "{}", START).await;
    let due = commit!(db, |tx| tx.app_events().claim(START, START + MINUTE, 50, 50).await).unwrap();
    let texts: Vec<&str> = due.iter().map(|event| &*event.event).collect();
    assert_eq!(texts, HOSTILE_TEXTS);
    let first = &due[0];
    assert_eq!((first.webhook_url.as_deref(), &*first.kind), (Some("https://weather.example"), "command"));
    assert_eq!((first.attempts, first.scopes), (0, Some(AppScopes::parse(["bot:read"]).unwrap())));
    let id = first.id;
    let later = told(id, AppEventState::Pending, START + MINUTE);
    commit!(db, |tx| tx.app_events().settle(&later).await).unwrap();
    let mut read = db.store.read().await.unwrap();
    let all = read.app_events().page(scene.installation, &PageRequest::default()).await.unwrap();
    let shown = all.last().unwrap();
    assert_eq!((shown.id, shown.state, shown.attempts), (id, AppEventState::Pending, 1));
    assert_eq!((shown.response_status, &*shown.response_body, shown.duration_ms), (Some(500), "answer", 7));
    assert_eq!((shown.next_attempt_at, shown.error.as_deref()), (Some(START + MINUTE), Some("status 500")));
    let cursor = hub_core::page::encode("events", &all[1].id.to_string());
    let page = PageRequest::parse("events", Some(1), Some(&cursor)).unwrap();
    assert_eq!(read.app_events().page(scene.installation, &page).await.unwrap(), all[2..4]);
    drop(read);
    let done = told(id, AppEventState::Delivered, START);
    commit!(db, |tx| tx.app_events().settle(&done).await).unwrap();
    // What is over stays over.
    let again = told(id, AppEventState::Failed, START);
    commit!(db, |tx| tx.app_events().settle(&again).await).unwrap();
    let mut read = db.store.read().await.unwrap();
    let all = read.app_events().page(scene.installation, &PageRequest::default()).await.unwrap();
    let shown = all.last().unwrap();
    assert_eq!((shown.state, shown.attempts, shown.next_attempt_at), (AppEventState::Delivered, 2, None));
}

async fn an_event_is_taken_by_one_node_at_a_time(db: &Db) {
    let scene = scene(db, "weather").await;
    let id = tell(db, &scene, "{}", START).await;
    let before = START - Duration::from_millis(1);
    let has_due = async |at| db.store.read().await.unwrap().app_events().has_due(at).await.unwrap();
    assert!(!has_due(before).await && claim(db, before, 4).await.is_empty());
    assert!(has_due(START).await);
    let takers = futures_util::future::join_all((0..10).map(|_| claim(db, START, 4))).await;
    assert_eq!(takers.concat(), [id.to_string()]);
    assert!(!has_due(START).await);
    // Its node died.
    assert!(has_due(START + MINUTE).await);
    assert_eq!(claim(db, START + MINUTE, 4).await, [id.to_string()]);
}

async fn one_app_is_limited_to_its_share(db: &Db) {
    let (busy, quiet) = (scene(db, "busy").await, scene(db, "quiet").await);
    let mut events = Vec::new();
    for _ in 0..5 {
        events.push(tell(db, &busy, "{}", START).await);
    }
    let other = tell(db, &quiet, "{}", START).await;
    let ids = |ids: &[AppEventId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(claim(db, START, 2).await, ids(&[events[0], events[1], other]));
    assert!(claim(db, START, 2).await.is_empty(), "two of it are in hand");
    let done = told(events[0], AppEventState::Delivered, START);
    commit!(db, |tx| tx.app_events().settle(&done).await).unwrap();
    assert_eq!(claim(db, START, 2).await, ids(&[events[2]]));
}

async fn undelivered_events_of_an_installation_are_abandoned(db: &Db) {
    let (weather, news) = (scene(db, "weather").await, scene(db, "news").await);
    tell(db, &weather, "{}", START).await;
    let stays = tell(db, &news, "{}", START).await;
    let id = weather.installation;
    commit!(db, |tx| tx.app_events().give_up(id, "gone").await).unwrap();
    let mut read = db.store.read().await.unwrap();
    let given_up = read.app_events().page(id, &PageRequest::default()).await.unwrap();
    assert_eq!((given_up[0].state, given_up[0].error.as_deref()), (AppEventState::Failed, Some("gone")));
    drop(read);
    assert_eq!(claim(db, START, 4).await, [stays.to_string()]);
}

async fn an_event_without_a_webhook_waits_for_a_socket(db: &Db) {
    let (waits, goes) = (scene(db, "weather").await, scene(db, "news").await);
    db.sql(format!("UPDATE apps SET webhook_verified = FALSE WHERE id = '{}'", waits.app)).await;
    let waiting = tell(db, &waits, "{}", START).await;
    let going = tell(db, &goes, "{}", START).await;
    let park = async |at| commit!(db, |tx| tx.app_events().park(at, MINUTE).await).unwrap();
    let has_due = async |at| db.store.read().await.unwrap().app_events().has_due(at).await.unwrap();
    park(START).await;
    assert_eq!(claim(db, START, 4).await, [going.to_string()]);
    let done = told(going, AppEventState::Delivered, START);
    commit!(db, |tx| tx.app_events().settle(&done).await).unwrap();
    let later = START + Duration::from_secs(30);
    assert!(!has_due(later).await);
    // Its time is over.
    park(START + MINUTE).await;
    assert!(has_due(START + MINUTE).await);
    let app = waits.app;
    commit!(db, |tx| tx.app_events().hasten(app, later).await).unwrap();
    assert!(has_due(later).await, "the webhook has just answered");
    park(later).await;
    assert!(claim(db, later, 4).await.is_empty(), "it has not, after all");
    db.sql("UPDATE apps SET webhook_verified = TRUE").await;
    commit!(db, |tx| tx.app_events().hasten(app, later).await).unwrap();
    park(later).await;
    assert_eq!(claim(db, later, 4).await, [waiting.to_string()]);
}

async fn old_events_are_forgotten(db: &Db) {
    let scene = scene(db, "weather").await;
    for _ in 0..3 {
        tell(db, &scene, "{}", START).await;
    }
    let stays = tell(db, &scene, "{}", START + MINUTE).await;
    let gone =
        async |limit| commit!(db, |tx| tx.app_events().delete_before(START + MINUTE, limit).await).unwrap();
    assert_eq!((gone(2).await, gone(2).await, gone(2).await), (2, 1, 0));
    let mut read = db.store.read().await.unwrap();
    let left = read.app_events().page(scene.installation, &PageRequest::default()).await.unwrap();
    assert_eq!(left.iter().map(|event| event.id).collect::<Vec<_>>(), [stays]);
}

async fn events_delivered_at_once_are_recorded_and_found(db: &Db) {
    let scene = scene(db, "weather").await;
    let find = async |id| db.store.read().await.unwrap().app_events().find(id).await.unwrap();
    for text in HOSTILE_TEXTS {
        let called = event(db, &scene, text, START);
        let id = called.id;
        assert_eq!(find(id).await, None);
        let failed = told(id, AppEventState::Failed, START);
        let first = called.clone();
        commit!(db, |tx| tx.app_events().note(&first, &failed).await).unwrap();
        let noted = find(id).await.unwrap();
        assert_eq!((&*noted.event, noted.state, noted.attempts), (text, AppEventState::Failed, 1));
        assert_eq!((noted.response_status, noted.error.as_deref()), (Some(500), Some("status 500")));
        assert_eq!((noted.trace_id, noted.created_at), (called.trace_id, START));
        // The same call once more, which went well.
        let again = EventAttempt {
            response_status: Some(200),
            response_body: text.to_owned(),
            error: None,
            duration_ms: 9,
            ..told(id, AppEventState::Delivered, START)
        };
        commit!(db, |tx| tx.app_events().note(&called, &again).await).unwrap();
        let noted = find(id).await.unwrap();
        assert_eq!((&*noted.response_body, noted.state, noted.attempts), (text, AppEventState::Delivered, 2));
        assert_eq!((noted.response_status, noted.error, noted.duration_ms), (Some(200), None, 9));
    }
    // No one takes it up, and it is in the log with the others.
    assert!(claim(db, START, 50).await.is_empty());
    let mut read = db.store.read().await.unwrap();
    let log = read.app_events().page(scene.installation, &PageRequest::default()).await.unwrap();
    assert_eq!(log.len(), HOSTILE_TEXTS.len());
    drop(read);
    let gone = Scene { app: scene.app, bot: db.ids.next(), installation: scene.installation };
    let called = event(db, &gone, "{}", START);
    let (id, of_gone) = (called.id, told(called.id, AppEventState::Delivered, START));
    commit!(db, |tx| tx.app_events().note(&called, &of_gone).await).unwrap();
    assert_eq!(find(id).await, None);
}
