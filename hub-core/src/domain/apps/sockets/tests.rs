use std::time::Duration;

use super::*;
use crate::{
    apps::{AppPatch, Install, NewApp, NewInstallation},
    id::AppEventId,
    testing::{TestBot, TestHub},
};

struct Scene {
    hub: TestHub,
    ada: Actor,
    bot: TestBot,
    app_id: AppId,
    secret: String,
    token: String,
}

impl Scene {
    /// Ada's app on Ada's bot, which subscribes to texts and has no webhook.
    async fn new() -> Self {
        let hub = TestHub::start().await;
        let ada = hub.register("ada").await;
        let bot = hub.bind(&ada).await;
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        let rest = AppPatch {
            events: words(&["message.text"]),
            scopes: words(&["message:read"]),
            ..AppPatch::default()
        };
        let new = NewApp { name: "Weather".to_owned(), slug: None, rest };
        let created = hub.hub().apps().create(&ada, new, None).await.unwrap();
        let app_id = created.app.id;
        let new = NewInstallation { app_id, scopes: None, handle: None, config: None };
        let installed = hub.hub().apps().install(&ada, bot.id, new, None).await.unwrap();
        let Install::Done(installed) = installed else { panic!("the app has no page of its own") };
        let (secret, token) = (created.webhook_secret, installed.app_token);
        let (secret, token) = (secret.expose().to_owned(), token.expose().to_owned());
        Self { hub, ada, bot, app_id, secret, token }
    }

    async fn listen(&self, acknowledges: bool) -> AppListener {
        let actor = self.hub.hub().apps().authenticate_token(&self.token).await.unwrap();
        self.hub.hub().apps().listen(&actor, acknowledges).await.unwrap()
    }

    /// Reads until there are so many events.
    async fn read(&self, listener: &mut AppListener, count: usize) -> Vec<AppEventId> {
        let mut ids = Vec::new();
        while ids.len() < count {
            self.hub
                .advance_until("there is more", Duration::from_millis(100), async || {
                    listener.is_behind().then_some(())
                })
                .await;
            ids.extend(listener.read().await.unwrap().into_iter().map(|event| event.id));
        }
        ids
    }
}

#[test]
fn an_event_is_retained_as_long_as_a_webhook_is_retried() {
    assert_eq!(socket_wait(), Duration::from_secs(5 + 30 + 120 + 600 + 3600 + 21_600 + 86_400));
}

#[tokio::test]
async fn an_event_is_read_once_per_listener_until_it_is_recorded() {
    let scene = Scene::new().await;
    let mut listener = scene.listen(false).await;
    for n in 0..3 {
        scene.hub.say(&scene.bot, &format!("text {n}"));
    }
    let first = scene.read(&mut listener, 3).await;
    assert!(listener.read().await.unwrap().is_empty(), "it has them");
    drop(listener);
    let mut listener = scene.listen(false).await;
    assert_eq!(scene.read(&mut listener, 3).await, first, "no one said that they were written");
    listener.written().await.unwrap();
    listener.written().await.unwrap();
    drop(listener);
    let mut listener = scene.listen(false).await;
    assert!(listener.is_behind() && listener.read().await.unwrap().is_empty());
    assert!(!listener.is_behind());
}

#[tokio::test]
async fn clients_that_acknowledge_have_a_window() {
    let scene = Scene::new().await;
    let mut listener = scene.listen(true).await;
    for n in 0..=WINDOW {
        scene.hub.say(&scene.bot, &format!("text {n}"));
    }
    let given = scene.read(&mut listener, WINDOW).await;
    assert_eq!(given.len(), WINDOW);
    listener.written().await.unwrap();
    assert!(!listener.is_behind() && listener.read().await.unwrap().is_empty(), "no more than that");
    // What it never got is not its to take.
    listener.acknowledge(AppEventId::from_u128(1)).await.unwrap();
    assert!(!listener.is_behind());
    listener.acknowledge(given[5]).await.unwrap();
    listener.acknowledge(given[5]).await.unwrap();
    let last = scene.read(&mut listener, 1).await;
    assert!(last.len() == 1 && last[0] > given[WINDOW - 1]);
    drop(listener);
    let mut listener = scene.listen(true).await;
    let again = scene.read(&mut listener, WINDOW).await;
    let left: Vec<_> = given.iter().filter(|id| **id != given[5]).copied().chain(last).collect();
    assert_eq!(again, left);
}

#[tokio::test]
async fn a_client_secret_authenticates_only_its_app() {
    let scene = Scene::new().await;
    let apps = scene.hub.hub().apps();
    let code = async |app: &str, secret: &str| {
        apps.authenticate_app(app, secret).await.map(|app| app.app_id).map_err(|error| error.code())
    };
    let app = scene.app_id.to_string();
    assert_eq!(code(&app, &scene.secret).await, Ok(scene.app_id));
    let other = NewApp { name: "Other".to_owned(), slug: None, rest: AppPatch::default() };
    let other = apps.create(&scene.ada, other, None).await.unwrap();
    for (app, secret) in [
        (app.as_str(), other.webhook_secret.expose()),
        (app.as_str(), scene.token.as_str()),
        (app.as_str(), ""),
        ("", scene.secret.as_str()),
        (other.app.id.to_string().as_str(), scene.secret.as_str()),
        ("app_01BX5ZZKBKACTAV9WEVGEMMVRZ", scene.secret.as_str()),
    ] {
        assert_eq!(code(app, secret).await, Err(ErrorCode::InvalidToken), "{app}");
    }
    let holder = apps.authenticate_app(&app, &scene.secret).await.unwrap();
    let mut places = Vec::new();
    for _ in 0..MAX_SOCKETS_PER_SCOPE {
        places.push(apps.listen_for_all(&holder, false).await.unwrap());
    }
    let refused = apps.listen_for_all(&holder, false).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::RateLimited);
    assert_eq!(
        (places[0].state().name.as_str(), places[0].scope()),
        ("Weather", SocketScope::App(scene.app_id))
    );
    apps.delete(&scene.ada, scene.app_id).await.unwrap();
    let ended = async || places.iter().all(|place| place.ended() == Some(Ended::Revoked)).then_some(());
    scene.hub.advance_until("all end", Duration::from_millis(100), ended).await;
    let gone = apps.listen_for_all(&holder, false).await.unwrap_err();
    drop(places);
    assert_eq!(gone.code(), ErrorCode::RateLimited, "their places are still taken");
    let gone = apps.listen_for_all(&holder, false).await.unwrap_err();
    assert_eq!(gone.code(), ErrorCode::InvalidToken);
}
