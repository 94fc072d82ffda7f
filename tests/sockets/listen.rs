//! `hub-cli listen` between a channel's socket and a program on this machine: what it posts, what it answers, and
//! what happens to both when the connection or the key is lost.

use hub_core::access::Actor;
use serde_json::json;

use super::stage::Stage;
use crate::support::{
    binaries,
    fault_proxy::{Fault, FaultProxy, Target},
    http::until,
    port::ReceiverPort,
    process::Process,
    receiver::Reply,
};

const SECRET: &str = "a secret of at least sixteen characters";

fn listen(server: &str, key: &str, to: &ReceiverPort) -> Process {
    let hook = format!("http://{}/hook", to.address);
    let arguments = ["listen", "--server", server, "--forward-to", &hook, "--header", "X-Env: test"];
    let environment = [("HUB_CHANNEL_KEY", key), ("HUB_WEBHOOK_SECRET", SECRET)];
    Process::start(&binaries::program("hub-cli"), &arguments, &environment)
}

async fn arrived(port: &ReceiverPort, texts: &[&str]) {
    until("the messages at the local program", async || (port.contents() == texts).then_some(())).await;
}

#[tokio::test]
async fn messages_are_forwarded_signed_and_replies_go_back_over_lost_connections() {
    let stage = Stage::new().await;
    let mut port = ReceiverPort::open().await;
    let reply = json!({ "reply": "coming" });
    port.receiver.then("/hook", [Reply::status(204), Reply::json(&reply)]);
    let proxy = FaultProxy::open(Target::Tcp(stage.address)).await;
    let mut program = listen(&format!("http://{}", proxy.address()), &stage.key, &port);
    assert!(program.wait_line("ready channel=").await.starts_with("orders forward=http://"));

    stage.say("one");
    stage.say("two");
    arrived(&port, &["one", "two"]).await;
    let first = port.receiver.received()[0].clone();
    assert!(first.is_signed_with(SECRET) && first.is_standard_signed_with(SECRET));
    assert_eq!(first.header("x-env"), "test");
    let body = first.json();
    assert_eq!((&body["type"], &body["msg_type"]), (&json!("message"), &json!(1)));
    for name in ["seq", "items", "context_token"] {
        assert!(body.get(name).is_none(), "a webhook has no {name}: {body}");
    }
    assert_eq!(stage.world.wait_sent(&stage.bot, 1).await[0].text, "coming");

    until("the acknowledgement of both", async || {
        (stage.connect("ack=true").await.1["data"]["since"] == 2).then_some(())
    })
    .await;

    // The connection is cut; what comes meanwhile is there afterwards, once.
    proxy.set(Fault::Reset);
    program.wait_line("connection lost").await;
    stage.say("three");
    proxy.set(Fault::None);
    arrived(&port, &["one", "two", "three"]).await;

    // No one answers at the local URL: the line says so, and the message counts as delivered.
    port.close().await;
    stage.say("four");
    program.wait_line("no response").await;
    port.reopen().await;
    stage.say("five");
    arrived(&port, &["one", "two", "three", "five"]).await;

    let channels = stage.world.hub.channels();
    channels.regenerate_key(&Actor::Operator, stage.bot.id, stage.channel, None, None).await.unwrap();
    stage.world.until("the program's end", async || program.has_ended().then_some(())).await;
    let (ended, log) = program.wait().await;
    assert_eq!(ended.code(), Some(4), "{log}");
    stage.stop().await;
}

#[tokio::test]
async fn listen_ends_at_once_without_a_valid_key_or_a_server() {
    let stage = Stage::new().await;
    let port = ReceiverPort::open().await;
    let (ended, log) = listen(&format!("http://{}", stage.address), "hubc_nobody", &port).wait().await;
    assert_eq!(ended.code(), Some(4), "{log}");
    let (ended, log) = listen("http://127.0.0.1:1", &stage.key, &port).wait().await;
    assert_eq!(ended.code(), Some(7), "{log}");
    stage.stop().await;
}
