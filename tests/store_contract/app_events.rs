use std::time::Duration;

use hub_core::{
    apps::{App, AppEvent, AppEventState, AppScopes, sockets::SocketScope},
    channels::sinks::SinkKey,
    id::{AppEventId, AppId, BotId, InstallationId},
    page::PageRequest,
    store::{
        app_events::{DueEvent, EventAttempt, NewAppEvent, QueuedEvent},
        deliveries::{DeliveryState, EventJobRow},
    },
    time::Timestamp,
};

use super::{
    apps::{add, app},
    installations::install,
    scene::HOSTILE_TEXTS,
};
use crate::support::database::{Db, START};

contract!("app_events": {
    an_event_is_stored_with_its_delivery_and_shown => [insert, due, settle, page],
    an_event_without_a_webhook_waits_for_a_socket => [hasten, expire],
    old_events_are_forgotten => [delete_before],
    events_delivered_at_once_are_recorded_and_found => [note, find],
});

/// The deliveries of events.
pub const BACKLOG: super::Covered = ("deliveries", &[&["event_backlog"]]);

const MINUTE: Duration = Duration::from_secs(60);

pub struct Scene {
    pub app: AppId,
    pub bot: BotId,
    pub installation: InstallationId,
}

/// An app of a user, on a bot of theirs.
pub async fn scene(db: &Db, name: &str) -> Scene {
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

pub async fn queue(db: &Db, scene: &Scene, text: &str, has_webhook: bool) -> AppEventId {
    let event = event(db, scene, text, START);
    let id = event.id;
    let queued = QueuedEvent::new(event, has_webhook.then(|| db.ids.next()));
    commit!(db, |tx| tx.app_events().insert(&[&queued]).await).unwrap();
    id
}

pub fn attempt(id: AppEventId, state: AppEventState) -> EventAttempt {
    EventAttempt {
        id,
        state,
        response_status: Some(500),
        response_body: "answer".to_owned(),
        error: Some("status 500".to_owned()),
        duration_ms: 7,
    }
}

async fn settle(db: &Db, id: AppEventId, state: AppEventState) {
    let attempt = attempt(id, state);
    commit!(db, |tx| tx.app_events().settle(&attempt, START).await).unwrap();
}

/// The open deliveries of the bot that are not held under a fence.
pub async fn backlog(db: &Db, scene: &Scene, fence: i64, at: Timestamp) -> Vec<EventJobRow> {
    let mut read = db.store.read().await.unwrap();
    read.deliveries().event_backlog(scene.bot, fence, &[], at, 50).await.unwrap()
}

pub async fn due(db: &Db, id: AppEventId) -> Option<DueEvent> {
    db.store.read().await.unwrap().app_events().due(id).await.unwrap()
}

pub async fn log(db: &Db, scene: &Scene) -> Vec<AppEvent> {
    let mut read = db.store.read().await.unwrap();
    read.app_events().page(scene.installation, &PageRequest::default()).await.unwrap()
}

async fn an_event_is_stored_with_its_delivery_and_shown(db: &Db) {
    let scene = scene(db, "weather").await;
    for text in HOSTILE_TEXTS {
        queue(db, &scene, text, true).await;
    }
    // Nothing is sent for a bot that is gone.
    let gone = Scene { app: scene.app, bot: db.ids.next(), installation: scene.installation };
    queue(db, &gone, "{}", true).await;
    assert_eq!((db.count("app_events").await, db.count("deliveries").await), {
        let count = i64::try_from(HOSTILE_TEXTS.len()).unwrap();
        (count, count)
    });
    let rows = backlog(db, &scene, 1, START).await;
    for (row, text) in rows.iter().zip(HOSTILE_TEXTS) {
        let lane = if text.is_empty() { scene.installation.to_string() } else { text.to_owned() };
        assert_eq!((row.lane.as_str(), row.state, row.attempts), (&*lane, DeliveryState::Pending, 0));
        assert_eq!(
            (row.installation_id, row.due_at, row.first_attempt_at),
            (scene.installation, START, None)
        );
        assert_eq!(due(db, row.event_id).await.unwrap().event, text);
    }
    let full = [SinkKey::App(scene.installation)];
    let mut read = db.store.read().await.unwrap();
    let rest = read.deliveries().event_backlog(scene.bot, 1, &full, START, 50).await.unwrap();
    assert!(rest.is_empty(), "its memory is used up");
    drop(read);
    let id = rows[0].event_id;
    let first = due(db, id).await.unwrap();
    assert_eq!((first.webhook_url.as_deref(), &*first.kind), (Some("https://weather.example"), "command"));
    assert_eq!((first.attempts, first.scopes), (0, Some(AppScopes::parse(["bot:read"]).unwrap())));
    assert_eq!((first.state, first.created_at), (AppEventState::Pending, START));
    settle(db, id, AppEventState::Pending).await;
    let all = log(db, &scene).await;
    let shown = all.last().unwrap();
    assert_eq!((shown.id, shown.state, shown.attempts), (id, AppEventState::Pending, 1));
    assert_eq!((shown.response_status, &*shown.response_body, shown.duration_ms), (Some(500), "answer", 7));
    assert_eq!((shown.next_attempt_at, shown.error.as_deref()), (Some(START), Some("status 500")));
    let cursor = hub_core::page::encode("events", &all[1].id.to_string());
    let page = PageRequest::parse("events", Some(1), Some(&cursor)).unwrap();
    let mut read = db.store.read().await.unwrap();
    assert_eq!(read.app_events().page(scene.installation, &page).await.unwrap(), all[2..4]);
    drop(read);
    settle(db, id, AppEventState::Delivered).await;
    // What is over stays over.
    settle(db, id, AppEventState::Failed).await;
    let shown = log(db, &scene).await.pop().unwrap();
    assert_eq!((shown.state, shown.attempts), (AppEventState::Delivered, 2));
}

async fn an_event_without_a_webhook_waits_for_a_socket(db: &Db) {
    let (weather, news) = (scene(db, "weather").await, scene(db, "news").await);
    queue(db, &weather, "ann", false).await;
    queue(db, &news, "ann", false).await;
    let is_due = async |scene: &Scene, at| !backlog(db, scene, 1, at).await.is_empty();
    assert!(!is_due(&weather, START + MINUTE).await);
    let app = SocketScope::App(weather.app);
    commit!(db, |tx| tx.app_events().hasten(app, START + MINUTE).await).unwrap();
    assert!(is_due(&weather, START + MINUTE).await, "the webhook has just answered");
    assert!(!is_due(&news, START + MINUTE).await);
    let installation = SocketScope::Installation(news.installation);
    commit!(db, |tx| tx.app_events().hasten(installation, START + MINUTE).await).unwrap();
    assert!(is_due(&news, START + MINUTE).await, "the app was taken off the bot");
    commit!(db, |tx| tx.app_events().hasten(app, START + MINUTE).await).unwrap();
    assert_eq!(db.count("deliveries").await, 2, "each is queued once");
    for n in 0..3 {
        queue(db, &weather, &n.to_string(), false).await;
    }
    let expire = async |before, limit| {
        commit!(db, |tx| tx.app_events().expire(before, START + MINUTE, limit).await).unwrap()
    };
    assert_eq!(expire(START, 9).await, 0);
    let later = START + Duration::from_millis(1);
    assert_eq!((expire(later, 2).await, expire(later, 2).await, expire(later, 2).await), (2, 1, 0));
    assert_eq!(backlog(db, &weather, 1, START).await.len(), 4, "their time is over");
}

async fn old_events_are_forgotten(db: &Db) {
    let scene = scene(db, "weather").await;
    for _ in 0..3 {
        queue(db, &scene, "{}", true).await;
    }
    let event = QueuedEvent::new(event(db, &scene, "{}", START + MINUTE), Some(db.ids.next()));
    let stays = event.event.id;
    commit!(db, |tx| tx.app_events().insert(&[&event]).await).unwrap();
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
        let failed = attempt(id, AppEventState::Failed);
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
            ..attempt(id, AppEventState::Delivered)
        };
        commit!(db, |tx| tx.app_events().note(&called, &again).await).unwrap();
        let noted = find(id).await.unwrap();
        assert_eq!((&*noted.response_body, noted.state, noted.attempts), (text, AppEventState::Delivered, 2));
        assert_eq!((noted.response_status, noted.error, noted.duration_ms), (Some(200), None, 9));
    }
    // No one takes it up, and it is in the log with the others.
    assert!(backlog(db, &scene, 1, START).await.is_empty());
    let mut read = db.store.read().await.unwrap();
    let log = read.app_events().page(scene.installation, &PageRequest::default()).await.unwrap();
    assert_eq!(log.len(), HOSTILE_TEXTS.len());
    drop(read);
    let gone = Scene { app: scene.app, bot: db.ids.next(), installation: scene.installation };
    let called = event(db, &gone, "{}", START);
    let (id, of_gone) = (called.id, attempt(called.id, AppEventState::Delivered));
    commit!(db, |tx| tx.app_events().note(&called, &of_gone).await).unwrap();
    assert_eq!(find(id).await, None);
}
