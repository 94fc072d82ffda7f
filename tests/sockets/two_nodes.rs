//! Two nodes on one PostgreSQL database: clients get everything wherever they are connected, and go on when the node
//! that has the bot dies. Nodes go by the database's clock, so this runs on the machine's.

use std::{sync::Arc, time::Duration};

use hub_core::{
    Hub,
    access::Actor,
    accounts::UserStatus,
    admin::UserPatch,
    channels::{
        NewChannel,
        log::{Ended, Item, ListenerKind, LogEntry, News, PAGE, Start},
    },
    tasks::Tasks,
    testing::{TestHub, until},
};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::support::postgres;

/// Renewed three times in it, so that a busy machine does not lose it.
const LEASE: Duration = Duration::from_secs(6);
const BEFORE: usize = 15;
const AFTER: usize = 5;

/// Messages that a client received, in order: sequence number and text.
type Got = Arc<Mutex<Vec<(i64, String)>>>;

async fn take(got: &Got, entry: &LogEntry) {
    let message: Value = serde_json::from_slice(entry.data()).unwrap();
    got.lock().await.push((entry.seq, message["content"].as_str().unwrap().to_owned()));
}

async fn follow_socket(hub: Hub, client: Actor, got: Got) {
    let mut listener = hub.channels().listen(&client, ListenerKind::Socket, Start::After(0)).await.unwrap();
    loop {
        while listener.is_behind() {
            let Ok(items) = listener.read(PAGE).await else { return };
            for item in items {
                if let Item::Message(entry) = item {
                    take(&got, &entry).await;
                }
            }
        }
        listener.changed().await;
    }
}

async fn follow_polls(hub: Hub, client: Actor, got: Got) {
    let mut cursor: Option<String> = None;
    loop {
        let (wait, never) = (Duration::from_secs(20), std::future::pending());
        let page = hub.channels().poll(&client, cursor.as_deref(), None, wait, never).await;
        let Ok(page) = page else { return };
        for entry in &page.entries {
            take(&got, entry).await;
        }
        cursor = Some(page.next_cursor);
    }
}

/// Two clients on one node.
async fn clients(node: &TestHub, key: &str, tasks: &Tasks) -> [Got; 2] {
    let client = node.hub().channels().authenticate_key(key).await.unwrap();
    let got = [Got::default(), Got::default()];
    tasks.spawn("socket", follow_socket(node.hub().clone(), client, Arc::clone(&got[0])));
    tasks.spawn("polls", follow_polls(node.hub().clone(), client, Arc::clone(&got[1])));
    got
}

#[tokio::test]
async fn clients_of_every_node_get_everything_also_when_the_bots_node_dies() {
    let Some(server) = postgres::server() else { return };
    let store = server.create_database().await;
    let builder = TestHub::builder().store(store.clone()).system_clock();
    let mut first = builder.config(|config| config.lease = LEASE).start().await;
    let ada = first.register("ada").await;
    let bot = first.bind(&ada).await;
    let made = first.hub().channels().create(&ada, bot.id, NewChannel::named("orders"), None).await.unwrap();
    let mut second = first.another().seed(2).start().await;
    let tasks = Tasks::new();
    let here = clients(&first, made.api_key.expose(), &tasks).await;
    let there = clients(&second, made.api_key.expose(), &tasks).await;
    let mut said = Vec::new();
    for n in 0..BEFORE {
        said.push(format!("{n}"));
        first.say(&bot, &said[n]);
        until("all four have it", async || {
            for got in here.iter().chain(&there) {
                if got.lock().await.len() < said.len() {
                    return None;
                }
            }
            Some(())
        })
        .await;
    }
    let sim = first.sim().clone();
    first.kill().await;
    for n in 0..AFTER {
        said.push(format!("after {n}"));
        sim.say(&bot.wx_id, None, &said[BEFORE + n]).unwrap();
    }
    let expected: Vec<_> = (1..).zip(said).collect();
    for got in &there {
        until("the second node has the bot", async || {
            (got.lock().await.len() >= expected.len()).then_some(())
        })
        .await;
        assert_eq!(*got.lock().await, expected, "in order, without a gap, each once");
    }
    for got in &here {
        assert_eq!(*got.lock().await, expected[..BEFORE]);
    }
    second.shutdown().await;
    server.drop_database(&store).await;
}

/// Keys and channels that end on one node disconnect their clients on the other node.
#[tokio::test]
async fn clients_of_one_node_end_with_what_ends_on_the_other() {
    let Some(server) = postgres::server() else { return };
    let store = server.create_database().await;
    let builder = TestHub::builder().store(store.clone()).system_clock();
    let mut first = builder.config(|config| config.lease = LEASE).start().await;
    let mut second = first.another().seed(2).start().await;
    // The first one is the administrator, who cannot be switched off.
    let _root = first.register("root-1").await;
    let ada = first.register("ada").await;
    let bot = first.bind(&ada).await;
    let mut listeners = Vec::new();
    for name in ["replaced", "deleted", "off"] {
        let made = first.hub().channels().create(&ada, bot.id, NewChannel::named(name), None).await.unwrap();
        let there = second.hub().channels();
        let client = there.authenticate_key(made.api_key.expose()).await.unwrap();
        let listener = there.listen(&client, ListenerKind::Socket, Start::Unspecified).await.unwrap();
        listeners.push((made.channel.id, made.api_key, listener));
    }
    let here = first.hub();
    let seen = first
        .until("the clients of the other node", async || {
            let seen = here.channels().clients(&ada, bot.id, listeners[0].0).await.unwrap();
            (seen.on_other_nodes == 1).then_some(seen)
        })
        .await;
    assert!(seen.clients.is_empty(), "they are only counted: {seen:?}");
    here.channels().regenerate_key(&ada, bot.id, listeners[0].0, None, None).await.unwrap();
    here.channels().delete(&ada, bot.id, listeners[1].0).await.unwrap();
    for n in [0, 1, 2] {
        if n == 2 {
            let off = UserPatch { status: Some(UserStatus::Disabled), ..UserPatch::default() };
            let id = ada.user().unwrap().user_id;
            here.admin().update_user(&Actor::Operator, id, off).await.unwrap();
        }
        let (_, key, listener) = &mut listeners[n];
        let ended = loop {
            match listener.news() {
                Some(News::Ended(ended)) => break ended,
                Some(_) => {}
                None => {
                    let changed = tokio::time::timeout(Duration::from_secs(30), listener.changed()).await;
                    changed.expect("the other node hears of it");
                }
            }
        };
        assert_eq!(ended, if n == 2 { Ended::Off } else { Ended::Revoked });
        second.hub().channels().authenticate_key(key.expose()).await.unwrap_err();
    }
    drop(listeners);
    first.shutdown().await;
    second.shutdown().await;
    server.drop_database(&store).await;
}
