//! Several programs and a webhook on one account: handles decide who receives what, and each program has its own
//! permissions to answer.

use std::{collections::HashSet, sync::Arc};

use hub_core::{
    local_http::{self, Limits},
    tasks::Tasks,
    time::Clock,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::stage::{Stage, confirm};
use crate::{
    clients::{
        foreign::{Foreign, SampleFiles},
        installed,
    },
    support::{http::until, receiver::Receiver},
};

/// Starts a client and confirms its login for a channel.
async fn join(
    stage: &Stage,
    command: std::process::Command,
    samples: &SampleFiles,
    channel: &str,
) -> Foreign {
    let mut client = Foreign::start(command, &stage.hub.url, samples);
    let qr = client.expect("qr").await;
    let login = stage.open(qr["text"].as_str().unwrap()).await;
    client.expect("scanned").await;
    confirm(&stage.ada, &login, channel).await;
    client.expect("logged_in").await;
    client
}

/// Sends a text as a person; as the owner of the account without a name.
async fn write(stage: &Stage, person: Option<&str>, text: &str) {
    let mut message = json!({ "wx_id": stage.wx_id, "text": text });
    if let Some(person) = person {
        message["from_user_id"] = json!(person);
    }
    stage.network.control.control("/_sim/messages", Some(json!({ "messages": [message] }))).await;
}

#[tokio::test]
async fn two_clients_and_a_webhook_share_an_account_and_handles_address_them() {
    let (Some(openilink), Some(wechat_link)) = (installed::openilink(), installed::wechat_link()) else {
        return;
    };
    let (tasks, receiver) = (Tasks::new(), Receiver::new(Clock::system()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let service = Arc::new(receiver.clone());
    tasks.spawn("receiver", local_http::serve(listener, service, Limits::default(), tasks.clone()));
    let stage = Stage::with(&[("HUB_EGRESS_ALLOW", &address)]).await;
    let webhook =
        json!({ "name": "all", "webhook": { "enabled": true, "url": format!("http://{address}/hook") } });
    stage.add_channel(webhook).await;
    let addressed = |handle: &str| json!({ "name": handle, "handle": handle, "ilink": { "enabled": true } });
    let one = stage.add_channel(addressed("one")).await;
    let two = stage.add_channel(addressed("two")).await;
    let (files_of_one, files_of_two) = (SampleFiles::create(), SampleFiles::create());
    let mut first = join(&stage, openilink, &files_of_one, &one).await;
    let mut second = join(&stage, wechat_link, &files_of_two, &two).await;

    write(&stage, None, "@one what is new?").await;
    write(&stage, Some("bea@im.wechat"), "@two hello").await;
    let (of_first, of_second) = (first.expect("received").await, second.expect("received").await);
    assert_eq!((&of_first["text"], &of_second["text"]), (&json!("what is new?"), &json!("hello")));
    assert_eq!(of_second["user_id"], "bea@im.wechat");
    first.expect("replied").await;
    second.expect("replied").await;
    first.expect("upload_allowed").await;
    second.expect("sent_media").await;

    // Each reply goes to the person who asked, and the tokens of the network are not those of the programs.
    let sent = stage.outbound(4).await;
    let texts: HashSet<(&str, &str)> = sent
        .iter()
        .filter(|one| one["text"] != "")
        .map(|one| (one["to_user_id"].as_str().unwrap(), one["text"].as_str().unwrap()))
        .collect();
    let owner = of_first["user_id"].as_str().unwrap();
    let expected = [(owner, "you said: what is new?"), ("bea@im.wechat", "you said: hello")];
    assert_eq!(texts, HashSet::from(expected));
    let tokens: HashSet<&Value> = [&of_first["context_token"], &of_second["context_token"]]
        .into_iter()
        .chain(sent.iter().map(|one| &one["context_token"]))
        .collect();
    assert_eq!(tokens.len(), 4, "two of programs and two of the network: {tokens:?}");

    // The webhook gets both, and a message without a handle is for it alone.
    write(&stage, None, "for anyone").await;
    let received = until("the webhook has all of it", async || {
        let received = receiver.received_at("/hook");
        (received.len() >= 3).then_some(received)
    })
    .await;
    let mut contents: Vec<String> =
        received.iter().map(|one| one.json()["content"].as_str().unwrap().to_owned()).collect();
    contents.sort();
    assert_eq!(contents, ["@one what is new?", "@two hello", "for anyone"]);

    // What a program receives next is addressed to it: nothing of the others came before.
    write(&stage, None, "@two bye").await;
    assert_eq!(second.expect("received").await["text"], "bye");
    second.expect("stopped").await;
    second.end().await;
    write(&stage, None, "@one bye").await;
    assert_eq!(first.expect("received").await["text"], "bye");
    tasks.stop();
}
