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
    events::Event,
    local_http::{Cut, LocalService},
    network::sim::{SimConfig, Simulator},
    random::Random,
    store::StoreConfig,
    time::Clock,
    traces::TraceStatus,
};

/// Stands where the receiver of the demo's channel would.
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
    let mut events = hub.events();
    hub.start().await?;
    let demo = seed(&hub, &simulator, &DemoReceiver::new(clock)).await?.ok_or("there is no demo")?;
    simulator.say(&demo.wx_id, Some(ADA), "hello")?;
    while let Ok(event) = events.recv().await {
        let Event::Trace { trace_id, status: TraceStatus::Ok, bot_id } = event else { continue };
        println!("{:#?}", hub.traces().get(&Actor::Operator, bot_id, trace_id).await?.steps);
        break;
    }
    let reply = simulator.wait_outbound(Some(&demo.wx_id), 0, Duration::from_secs(5)).await;
    println!("the chat shows {:?}", reply.first().map(|sent| &sent.text));
    hub.shutdown().await;
    Ok(())
}
