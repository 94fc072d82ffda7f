use std::time::Duration;

use hub_core::{
    apps::{App, AppEventState, sockets::SocketScope},
    id::{AppEventId, AppId, BotId, InstallationId, SocketId},
    page::PageRequest,
    store::{
        app_events::{EventAttempt, NewAppEvent, QueuedEvent},
        app_sockets::{OpenSocket, SocketEvent, WrittenEvent},
    },
    time::Timestamp,
};

use super::{
    apps::{add, app},
    installations::install,
    scene::{HOSTILE_TEXTS, just_before},
};
use crate::support::database::{Db, START};

contract!("app_sockets": {
    installations_and_apps_tell_how_they_stand => [installations, apps, due],
    a_socket_gets_what_follows_oldest_first => [following],
    of_several_sockets_the_newest_is_served => [following, announce, close, close_all],
    a_whole_apps_socket_gets_what_no_other_does => [following],
    stored_events_are_announced_where_there_is_no_webhook => [written],
    events_taken_by_a_webhook_are_also_written_to_open_sockets => [written],
});

const MINUTE: Duration = Duration::from_secs(60);

struct Scene {
    app: AppId,
    bot: BotId,
    installation: InstallationId,
    has_webhook: bool,
}

impl Scene {
    fn scope(&self) -> SocketScope {
        SocketScope::Installation(self.installation)
    }

    fn socket(&self, db: &Db) -> OpenSocket {
        OpenSocket { id: db.ids.next(), app_id: self.app, installation_id: Some(self.installation) }
    }
}

/// An app of a user, on a bot of theirs; with a webhook or without.
async fn scene(db: &Db, name: &str, has_webhook: bool) -> Scene {
    let owner = db.user(name).await;
    let bot = db.bot(owner).await;
    let webhook_url = has_webhook.then(|| format!("https://{name}.example"));
    let app = add(db, App { webhook_url, webhook_verified: has_webhook, ..app(db, owner, name) }).await;
    Scene { app, bot, installation: install(db, app, bot, name).await, has_webhook }
}

async fn happen(db: &Db, scene: &Scene, kind: &str, text: &str) -> AppEventId {
    let event = NewAppEvent {
        id: db.ids.next(),
        app_id: scene.app,
        bot_id: scene.bot,
        installation_id: scene.installation,
        message_id: None,
        trace_id: Some(db.ids.next()),
        kind: kind.to_owned(),
        peer: String::new(),
        event: text.to_owned(),
        now: START,
    };
    let id = event.id;
    let queued = QueuedEvent::new(event, scene.has_webhook.then(|| db.ids.next()));
    commit!(db, |tx| tx.app_events().insert(&[&queued]).await).unwrap();
    id
}

async fn open(db: &Db, sockets: &[OpenSocket], now: Timestamp) {
    let sockets = sockets.to_vec();
    commit!(db, |tx| tx.app_sockets().announce(&sockets, now, now + MINUTE).await).unwrap();
}

async fn rows(
    db: &Db,
    scope: SocketScope,
    socket: SocketId,
    given: &[AppEventId],
    limit: u32,
    now: Timestamp,
) -> Vec<SocketEvent> {
    let mut read = db.store.read().await.unwrap();
    read.app_sockets().following(scope, socket, given, (limit, i64::MAX), now).await.unwrap()
}

async fn ids(db: &Db, scope: SocketScope, socket: SocketId, now: Timestamp) -> Vec<String> {
    rows(db, scope, socket, &[], 50, now).await.into_iter().map(|row| row.id.to_string()).collect()
}

async fn write(db: &Db, ids: &[AppEventId]) -> Vec<WrittenEvent> {
    let ids = ids.to_vec();
    commit!(db, |tx| tx.app_sockets().written(&ids, START).await).unwrap()
}

async fn settle(db: &Db, id: AppEventId, state: AppEventState) {
    let told = EventAttempt {
        id,
        state,
        response_status: Some(200),
        response_body: String::new(),
        error: None,
        duration_ms: 1,
    };
    commit!(db, |tx| tx.app_events().settle(&told, START).await).unwrap();
}

async fn installations_and_apps_tell_how_they_stand(db: &Db) {
    let (weather, news) = (scene(db, "weather", false).await, scene(db, "news", false).await);
    let event = happen(db, &weather, "command", "{}").await;
    let of = async |scene: &Scene| {
        let mut read = db.store.read().await.unwrap();
        let gone = db.ids.next();
        let rows = read.app_sockets().installations(&[scene.installation, gone]).await.unwrap();
        let apps = read.app_sockets().apps(&[scene.app, db.ids.next()]).await.unwrap();
        assert_eq!((rows.len(), apps.len()), (1, 1));
        (rows.into_iter().next().unwrap(), apps.into_iter().next().unwrap())
    };
    let (row, whole) = of(&weather).await;
    assert_eq!(
        (&*row.id, &*row.name, &*row.slug),
        (&*weather.installation.to_string(), "weather", "weather")
    );
    assert_eq!((row.bot_id, row.old_credential, row.old_until), (Some(weather.bot), None, None));
    assert_eq!((row.credential.len(), row.open, row.has_due), (64, true, true));
    assert_eq!((&*whole.id, whole.bot_id, &*whole.credential), (&*weather.app.to_string(), None, "sealed"));
    assert_eq!((whole.author_id == row.author_id, whole.open, whole.has_due), (true, true, true));
    let (row, whole) = of(&news).await;
    assert_eq!((row.has_due, whole.has_due), (false, false));
    let due = async || {
        let (installations, apps) = ([weather.installation, news.installation], [news.app, weather.app]);
        db.store.read().await.unwrap().app_sockets().due(&installations, &apps).await.unwrap()
    };
    assert_eq!(due().await, [weather.installation.to_string(), weather.app.to_string()]);
    write(db, &[event]).await;
    assert!(due().await.is_empty() && !of(&weather).await.0.has_due);
    db.sql(format!("UPDATE app_installations SET enabled = FALSE WHERE id = '{}'", weather.installation))
        .await;
    let (row, whole) = of(&weather).await;
    assert_eq!((row.open, whole.open), (false, true));
    db.sql("UPDATE users SET status = 'disabled' WHERE username = 'news'").await;
    let (row, whole) = of(&news).await;
    assert_eq!((row.open, whole.open), (false, false));
}

async fn a_socket_gets_what_follows_oldest_first(db: &Db) {
    let (weather, news) = (scene(db, "weather", false).await, scene(db, "news", false).await);
    let mut events = Vec::new();
    for text in HOSTILE_TEXTS {
        events.push(happen(db, &weather, "command", text).await);
        happen(db, &news, "command", "{}").await;
    }
    let socket = weather.socket(db);
    open(db, &[socket], START).await;
    let all = rows(db, weather.scope(), socket.id, &[], 50, START).await;
    assert_eq!(all.iter().map(|row| &*row.event).collect::<Vec<_>>(), HOSTILE_TEXTS);
    assert_eq!(all.iter().map(|row| row.id).collect::<Vec<_>>(), events);
    assert!(all[0].trace_id.is_some());
    assert_eq!((all[0].bot_id, all[0].installation_id), (weather.bot, weather.installation));
    assert_eq!(rows(db, weather.scope(), socket.id, &[], 2, START).await, all[..2]);
    assert_eq!(rows(db, weather.scope(), socket.id, &events[..2], 2, START).await, all[2..4]);
    let mut read = db.store.read().await.unwrap();
    for (chars, seen) in [(1, 2), (4, 2), (5, 3), (i64::MAX, 50)] {
        let page = read.app_sockets().following(weather.scope(), socket.id, &[], (50, chars), START).await;
        assert_eq!(page.unwrap(), all[..seen.min(all.len())], "{chars}: the first text is empty");
    }
    drop(read);
    for event in events {
        settle(db, event, AppEventState::Failed).await;
    }
    assert!(rows(db, weather.scope(), socket.id, &[], 50, START).await.is_empty());
}

async fn of_several_sockets_the_newest_is_served(db: &Db) {
    let weather = scene(db, "weather", false).await;
    let event = happen(db, &weather, "command", "{}").await.to_string();
    let (first, second) = (weather.socket(db), weather.socket(db));
    open(db, &[first, second], START).await;
    assert!(ids(db, weather.scope(), first.id, START).await.is_empty());
    assert_eq!(ids(db, weather.scope(), second.id, START).await, [&*event]);
    // Its node died.
    let later = START + MINUTE;
    assert!(ids(db, weather.scope(), first.id, START + just_before(MINUTE)).await.is_empty());
    assert_eq!(ids(db, weather.scope(), first.id, later).await, [&*event]);
    assert_eq!(db.count("app_sockets").await, 2);
    open(db, &[first], later).await;
    assert_eq!(db.count("app_sockets").await, 1, "what ran out is forgotten");
    open(db, &[first, second], later).await;
    open(db, &[second], later + Duration::from_secs(1)).await;
    let only = second.id;
    commit!(db, |tx| tx.app_sockets().close(only).await).unwrap();
    assert_eq!(ids(db, weather.scope(), first.id, later).await, [&*event]);
    commit!(db, |tx| tx.app_sockets().close_all().await).unwrap();
    assert_eq!(db.count("app_sockets").await, 0);
}

async fn a_whole_apps_socket_gets_what_no_other_does(db: &Db) {
    let weather = scene(db, "weather", false).await;
    let bob = db.user("bob").await;
    let other = db.bot(bob).await;
    let there = install(db, weather.app, other, "there").await;
    let there = Scene { app: weather.app, bot: other, installation: there, has_webhook: false };
    let scope = SocketScope::App(weather.app);
    let [here_1, there_1, here_2] = [
        happen(db, &weather, "command", "{}").await,
        happen(db, &there, "command", "{}").await,
        happen(db, &weather, "app.uninstalled", "{}").await,
    ]
    .map(|id| id.to_string());
    let whole = OpenSocket { id: db.ids.next(), app_id: weather.app, installation_id: None };
    open(db, &[whole], START).await;
    assert_eq!(ids(db, scope, whole.id, START).await, [&*here_1, &*there_1, &*here_2]);
    // A socket of one installation comes first, also an older one.
    let own = weather.socket(db);
    open(db, &[own], START).await;
    assert_eq!(ids(db, scope, whole.id, START).await, [&*there_1]);
    assert_eq!(ids(db, weather.scope(), own.id, START).await, [&*here_1, &*here_2]);
    assert_eq!(ids(db, scope, whole.id, START + MINUTE).await, [&*here_1, &*there_1, &*here_2]);
    let own = own.id;
    commit!(db, |tx| tx.app_sockets().close(own).await).unwrap();
    // Where it is switched off or gone it hears that alone.
    db.sql(format!("UPDATE app_installations SET enabled = FALSE WHERE id = '{}'", weather.installation))
        .await;
    assert_eq!(ids(db, scope, whole.id, START).await, [&*there_1, &*here_2]);
    db.sql("UPDATE users SET status = 'disabled' WHERE username = 'bob'").await;
    assert_eq!(ids(db, scope, whole.id, START).await, [&*here_2]);
    let newer = OpenSocket { id: db.ids.next(), ..whole };
    open(db, &[newer], START).await;
    assert!(ids(db, scope, whole.id, START).await.is_empty());
    assert_eq!(ids(db, scope, newer.id, START).await, [&*here_2]);
}

async fn shown(db: &Db, scene: &Scene) -> Vec<(AppEventState, u32, bool)> {
    let mut read = db.store.read().await.unwrap();
    let page = read.app_events().page(scene.installation, &PageRequest::default()).await.unwrap();
    page.iter().rev().map(|event| (event.state, event.attempts, event.written_at == Some(START))).collect()
}

async fn stored_events_are_announced_where_there_is_no_webhook(db: &Db) {
    use AppEventState::{Delivered, Failed, Pending};
    let (weather, news) = (scene(db, "weather", false).await, scene(db, "news", true).await);
    let (mine, theirs) =
        (happen(db, &weather, "command", "{}").await, happen(db, &news, "command", "{}").await);
    let stays = happen(db, &weather, "command", "{}").await;
    let written = write(db, &[mine, theirs, db.ids.next()]).await;
    let is_over = |id| written.iter().find(|event| event.id == id).map(|event| event.is_over);
    assert_eq!((written.len(), is_over(mine), is_over(theirs)), (2, Some(true), Some(false)));
    assert!(written.iter().all(|event| event.trace_id.is_some()));
    assert_eq!(shown(db, &weather).await, [(Delivered, 1, true), (Pending, 0, false)]);
    assert_eq!(db.count("deliveries").await, 1, "only the app with a webhook has a delivery");
    assert_eq!(shown(db, &news).await, [(Pending, 0, true)]);
    assert!(write(db, &[mine, theirs]).await.is_empty(), "once");
    // A webhook that never takes it changes nothing about that.
    settle(db, theirs, Failed).await;
    assert_eq!(shown(db, &news).await, [(Delivered, 1, true)]);
    settle(db, stays, Failed).await;
    assert!(write(db, &[stays]).await.is_empty(), "what was given up is not written");
    assert_eq!(shown(db, &weather).await[1], (Failed, 1, false));
}

async fn events_taken_by_a_webhook_are_also_written_to_open_sockets(db: &Db) {
    let news = scene(db, "news", true).await;
    let socket = news.socket(db);
    let [before, after, whole, pending] = [
        happen(db, &news, "command", "{}").await,
        happen(db, &news, "command", "{}").await,
        happen(db, &news, "command", "{}").await,
        happen(db, &news, "command", "{}").await,
    ];
    settle(db, before, AppEventState::Delivered).await;
    open(db, &[socket], START).await;
    settle(db, after, AppEventState::Delivered).await;
    commit!(db, |tx| tx.app_sockets().close_all().await).unwrap();
    open(db, &[OpenSocket { installation_id: None, ..socket }], START).await;
    settle(db, whole, AppEventState::Delivered).await;
    settle(db, pending, AppEventState::Pending).await;
    let wanted = [after, whole, pending].map(|id| id.to_string());
    assert_eq!(ids(db, news.scope(), socket.id, START).await, wanted);
    let written = write(db, &[after, whole]).await;
    assert!(written.iter().all(|event| !event.is_over), "the webhook ended their traces");
    assert_eq!(shown(db, &news).await[1], (AppEventState::Delivered, 1, true));
}
