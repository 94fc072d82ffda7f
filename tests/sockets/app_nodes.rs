//! Two nodes on one PostgreSQL database: an app's socket hangs at either of them, whichever has the bot, and what one
//! node ends is ended on the other. Nodes go by the database's clock, so this runs on the machine's.

use std::{sync::Arc, time::Duration};

use hub_core::{
    Hub,
    access::Actor,
    apps::{
        AppPatch, Install, NewApp, NewInstallation,
        sockets::{AppListener, Ended},
    },
    tasks::Tasks,
    testing::{TestHub, until},
};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::support::postgres;

/// Renewed three times in it, so that a busy machine does not lose it.
const LEASE: Duration = Duration::from_secs(6);
const EACH: usize = 10;

/// Texts that a socket received, in order, and the reason for its end.
#[derive(Default)]
struct Got {
    texts: Vec<String>,
    /// Number of texts that are stored as sent. A socket that takes over receives the others again.
    noted: usize,
    ended: Option<Ended>,
}

async fn follow(mut listener: AppListener, got: Arc<Mutex<Got>>) {
    loop {
        if let Some(ended) = listener.ended() {
            got.lock().await.ended = Some(ended);
            return;
        }
        if !listener.is_behind() {
            listener.changed().await;
            continue;
        }
        let Ok(page) = listener.read().await else { return };
        for event in page {
            let event: Value = serde_json::from_slice(&event.frame).unwrap();
            got.lock().await.texts.push(event["event"]["data"]["content"].as_str().unwrap().to_owned());
        }
        if listener.written().await.is_err() {
            return;
        }
        let mut got = got.lock().await;
        got.noted = got.texts.len();
    }
}

async fn socket(hub: &Hub, app: &Actor, tasks: &Tasks) -> Arc<Mutex<Got>> {
    let (listener, got) = (hub.apps().listen(app, false).await.unwrap(), Arc::<Mutex<Got>>::default());
    tasks.spawn("socket", follow(listener, Arc::clone(&got)));
    got
}

async fn has(got: &Arc<Mutex<Got>>, wanted: &[String]) {
    until("the socket has everything", async || (got.lock().await.noted >= wanted.len()).then_some(())).await;
    assert_eq!(got.lock().await.texts, wanted, "in order, each once");
}

#[tokio::test]
async fn an_app_receives_events_on_the_node_of_its_socket() {
    let Some(server) = postgres::server() else { return };
    let store = server.create_database().await;
    let builder = TestHub::builder().store(store.clone()).system_clock();
    let mut first = builder.config(|config| config.lease = LEASE).start().await;
    let ada = first.register("ada").await;
    let bot = first.bind(&ada).await;
    let mut second = first.another().seed(2).start().await;
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    let rest = AppPatch {
        events: words(&["message.text"]),
        scopes: words(&["message:read"]),
        ..AppPatch::default()
    };
    let new = NewApp { name: "Weather".to_owned(), slug: None, rest };
    let app = first.hub().apps().create(&ada, new, None).await.unwrap().app;
    let new = NewInstallation { app_id: app.id, scopes: None, handle: None, config: None };
    let Install::Done(installed) = first.hub().apps().install(&ada, bot.id, new, None).await.unwrap() else {
        panic!("the app has no page of its own");
    };
    let token = installed.app_token.expose().to_owned();
    let actor = first.hub().apps().authenticate_token(&token).await.unwrap();

    let tasks = Tasks::new();
    let mut said = Vec::new();
    let mut say = |hub: &TestHub, from: &str| {
        let texts: Vec<String> = (0..EACH).map(|n| format!("{from} {n}")).collect();
        for text in &texts {
            hub.say(&bot, text);
        }
        said.extend(texts.clone());
        texts
    };
    // The bot is the first node's, the socket the second's.
    let there = socket(second.hub(), &actor, &tasks).await;
    let texts = say(&first, "there");
    has(&there, &texts).await;
    // A newer one elsewhere takes over; this one is on standby.
    let here = socket(first.hub(), &actor, &tasks).await;
    let more = say(&first, "here");
    has(&here, &more).await;
    assert_eq!(there.lock().await.texts, texts);
    // Its node dies, without a word to the other, and takes the bot along.
    let sim = first.sim().clone();
    first.kill().await;
    let last: Vec<String> = (0..EACH).map(|n| format!("after {n}")).collect();
    for text in &last {
        sim.say(&bot.wx_id, None, text).unwrap();
    }
    // A dead node's sockets are forgotten after half a minute. What it gave out and did not note comes again.
    for _ in 0..6 {
        if there.lock().await.texts.last() == last.last() {
            break;
        }
        hub_core::time::Clock::system().sleep(Duration::from_secs(10)).await;
    }
    let mut got = there.lock().await.texts.clone();
    got.retain(|text| !more.contains(text));
    assert_eq!(got, [texts, last].concat(), "in order, each once");
    // Ended here, ended there.
    let third = first.another().seed(3).start().await;
    third.hub().apps().uninstall(&ada, bot.id, app.id).await.unwrap();
    until("the socket ends", async || there.lock().await.ended).await;
    assert_eq!(there.lock().await.ended, Some(Ended::Revoked));
    let mut third = third;
    third.shutdown().await;
    second.shutdown().await;
    server.drop_database(&store).await;
}
