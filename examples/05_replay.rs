//! A delivery that was made once is sent again, to another address: what a trace is good for.
//! Run it: `cargo run -p hub-examples --example 05_replay`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use hub_core::{Hub, presets::Dev};
use support::{Prints, bind_simulated, next_trace, posting_to};

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

    let mut events = hub.events();
    people.say(&bot.wx_id, None, "order 42")?;
    let (bot_id, trace_id) = next_trace(&mut events).await?;
    println!("delivered: {trace_id}");

    hub.traces().replay(&ada, bot_id, trace_id, Some("http://second.example/")).await?;
    let (_, again) = next_trace(&mut events).await?;
    println!("delivered again: {again}");
    hub.shutdown().await;
    Ok(())
}
