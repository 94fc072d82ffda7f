//! A hub inside a program: a bot on the simulated network, and a webhook that is a function of this program.
//! Run it: `cargo run -p hub-examples --example 01_embed`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use hub_core::{
    Hub,
    access::Actor,
    demo::{ADA, DemoReceiver, connector, seed},
    egress::EgressConfig,
    local_http::{Cut, LocalService},
    network::sim::{SimConfig, Simulator},
    random::Random,
    store::StoreConfig,
    time::Clock,
    traces::TraceQuery,
};

/// Replaces the receiver of the demo's channel.
struct Webhook;

#[async_trait::async_trait]
impl LocalService for Webhook {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Cut> {
        println!("webhook got {}", String::from_utf8_lossy(request.body()));
        let answer = Response::builder().header("content-type", "application/json");
        answer.body(Bytes::from(r#"{"reply":"thank you"}"#)).map_err(|_| Cut)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (folder, clock, random) = (tempfile::tempdir()?, Clock::system(), Random::system());
    let simulator = Simulator::new(SimConfig::quick(), clock.clone(), random.clone());
    let mut egress = EgressConfig::default();
    egress.in_process.insert("receiver.local".to_owned(), Arc::new(Webhook));
    let hub = Hub::builder()
        .store(StoreConfig::Sqlite(folder.path().join("hub.db")))
        .secret_key(random.bytes())
        .network(connector(&simulator, clock.clone(), random)?)
        .egress(egress);
    let hub = hub.open().await?;
    hub.start().await?;
    let demo = seed(&hub, &simulator, &DemoReceiver::new(clock)).await?.ok_or("there is no demo")?;
    simulator.say(&demo.wx_id, Some(ADA), "hello")?;
    let (bot, within) = (demo.bot_id, Duration::from_secs(5));
    let trace = hub.traces().wait_for(&Actor::Operator, bot, &TraceQuery::default(), within).await?;
    println!("{:#?}", trace.ok_or("no trace")?.steps);
    let reply = simulator.wait_outbound(Some(&demo.wx_id), 0, within).await;
    println!("the chat shows {:?}", reply.first().map(|sent| &sent.text));
    hub.shutdown().await;
    Ok(())
}
