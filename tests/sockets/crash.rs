//! SIGKILL again and again: a consumer over a WebSocket and one by long polling miss nothing, get everything in
//! order, and see again at most what they had not acknowledged.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt};
use hub_core::{tasks::Tasks, time::Clock};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio_tungstenite::tungstenite::Message;

use super::{client::open, stage::CONNECT};
use crate::support::{
    http::{Caller, until},
    hub_process::{HubProcess, NetworkProcess},
};

const KILLS: usize = 3;
const BETWEEN: usize = 25;

/// Texts that a consumer received, in the order of their numbers, and the messages out of order.
#[derive(Default)]
struct Got {
    texts: Vec<String>,
    faults: Vec<String>,
}

impl Got {
    fn take(&mut self, message: &Value) -> i64 {
        let (seq, text) = (message["seq"].as_i64().unwrap(), message["content"].as_str().unwrap());
        let place = usize::try_from(seq).unwrap();
        match place {
            new if new == self.texts.len() + 1 => self.texts.push(text.to_owned()),
            old if self.texts.get(old - 1).is_some_and(|known| known == text) => {}
            _ => self.faults.push(format!("{seq} {text:?} after {}", self.texts.len())),
        }
        seq
    }
}

/// Parses the address of a server from the URL that it prints.
pub fn address_of(url: &str) -> SocketAddr {
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    host.replace("localhost", "127.0.0.1").parse().unwrap_or_else(|_| panic!("{url} names no address"))
}

async fn follow_socket(mut url: watch::Receiver<String>, key: String, got: Arc<Mutex<Got>>) {
    loop {
        let address: SocketAddr = address_of(&url.borrow_and_update());
        if tokio::net::TcpStream::connect(address).await.is_ok()
            && let Ok(mut client) = open(address, &format!("{CONNECT}?api_key={key}&ack=true"), &[]).await
        {
            while let Some(Ok(message)) = client.0.next().await {
                let Message::Text(text) = message else { continue };
                let frame: Value = serde_json::from_str(&text).unwrap();
                if frame["type"] == "message" {
                    let seq = got.lock().await.take(&frame["data"]);
                    let ack = json!({ "type": "ack", "data": { "seq": seq } });
                    if client.0.send(Message::text(ack.to_string())).await.is_err() {
                        break;
                    }
                }
            }
        }
        Clock::system().sleep(Duration::from_millis(50)).await;
    }
}

async fn follow_polls(mut url: watch::Receiver<String>, key: String, got: Arc<Mutex<Got>>) {
    let mut cursor = String::new();
    loop {
        let caller = Caller::stranger(&url.borrow_and_update());
        let path = format!("/api/v1/channels/messages?key={key}&timeout=5{cursor}");
        match caller.attempt(Method::GET, &path, "poll", &Value::Null).await {
            Ok((status, _, answer)) if status.is_success() => {
                let mut got = got.lock().await;
                for message in answer["data"]["items"].as_array().unwrap() {
                    got.take(message);
                }
                cursor = format!("&cursor={}", answer["data"]["next_cursor"].as_str().unwrap());
            }
            _ => Clock::system().sleep(Duration::from_millis(50)).await,
        }
    }
}

#[tokio::test]
async fn consumers_miss_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let network = NetworkProcess::start().await;
    let mut hub = HubProcess::start(folder.path(), &network, &[]).await;
    let mut ada = Caller::stranger(&hub.url);
    ada.sign_in(
        "/api/auth/register",
        json!({ "username": "ada", "password": "correct horse battery staple" }),
    )
    .await;
    let (bot, wx_id) = network.bind(&ada).await;
    let (urls, tasks) = (watch::Sender::new(hub.url.clone()), Tasks::new());
    let consumers = [Arc::<Mutex<Got>>::default(), Arc::default()];
    for (n, got) in consumers.iter().enumerate() {
        let channel =
            ada.post(&format!("/api/bots/{bot}/channels"), json!({ "name": format!("c{n}") })).await;
        let (key, url) = (channel["api_key"].as_str().unwrap().to_owned(), urls.subscribe());
        if n == 0 {
            tasks.spawn("socket", follow_socket(url, key, Arc::clone(got)));
        } else {
            tasks.spawn("polls", follow_polls(url, key, Arc::clone(got)));
        }
    }
    let mut said = Vec::new();
    for life in 0..=KILLS {
        for n in 0..BETWEEN {
            let text = format!("{life}-{n}");
            network.say(&wx_id, &text).await;
            said.push(text);
            if n == BETWEEN / 2 && life < KILLS {
                until("the consumers are under way", async || {
                    (consumers[0].lock().await.texts.len() + 10 >= said.len()).then_some(())
                })
                .await;
                hub.process.kill().await;
                hub = HubProcess::start(folder.path(), &network, &[]).await;
                urls.send_replace(hub.url.clone());
            }
        }
    }
    for got in &consumers {
        until("everything is there", async || (got.lock().await.texts.len() >= said.len()).then_some(()))
            .await;
        let got = got.lock().await;
        assert!(got.faults.is_empty(), "{:?}", got.faults);
        assert_eq!(got.texts, said);
    }
}
