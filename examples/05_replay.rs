//! A delivery that was made once is sent again, to another address: what a trace is good for.
//! Run it: `cargo run -p hub-examples --example 05_replay`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc, time::Duration};

use hub_core::{
    Hub,
    presets::Dev,
    traces::{ReplayTo, TraceQuery},
};
use support::{Prints, bind_simulated, posting_to};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let preset = Dev::in_folder(folder.path())
        .receiver("first.example", Arc::new(Prints))
        .receiver("second.example", Arc::new(Prints));
    let people = preset.simulator();
    let hub = Hub::open(preset).await?;
    hub.start().await?;
    let (ada, bot) = bind_simulated(&hub, &people).await?;
    hub.channels().create(&ada, bot.id, posting_to("http://first.example/"), None).await?;

    people.say(&bot.wx_id, None, "order 42")?;
    let within = Duration::from_secs(5);
    let first =
        hub.traces().wait_for(&ada, bot.id, &TraceQuery::default(), within).await?.ok_or("no trace")?;
    println!("delivered: {}", first.summary);

    let again = hub
        .traces()
        .replay(&ada, bot.id, first.trace_id, ReplayTo::Url("http://second.example/"), None)
        .await?;
    let again = hub.traces().wait(&ada, bot.id, again, within).await?;
    println!("delivered again: {}", again.summary);
    hub.shutdown().await;
    Ok(())
}
