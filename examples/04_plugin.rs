//! A plugin in a channel: it changes the request, and its log is in the trace.
//! Run it: `cargo run -p hub-examples --example 04_plugin`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc, time::Duration};

use hub_core::{
    Hub,
    plugins::{NewInstallation, Submission},
    presets::Dev,
    traces::{StepName, TraceQuery},
};
use support::{Prints, bind_simulated, posting_to};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let preset = Dev::in_folder(folder.path()).receiver("shop.example", Arc::new(Prints));
    let people = preset.simulator();
    let hub = Hub::open(preset).await?;
    hub.start().await?;
    let (ada, bot) = bind_simulated(&hub, &people).await?;
    let channel =
        hub.channels().create(&ada, bot.id, posting_to("http://shop.example/"), None).await?.channel;

    let script = include_str!("plugins/tagger.js").to_owned();
    let plugin = hub.plugins().submit(&ada, Submission { script, ..Submission::default() }, None).await?;
    // Its author may run it before anybody reviewed it.
    let new = NewInstallation { plugin_id: plugin.id, version: None, position: None };
    hub.plugins().install(&ada, bot.id, channel.id, new).await?;

    people.say(&bot.wx_id, None, "where is order 42?")?;
    let within = Duration::from_secs(5);
    let trace =
        hub.traces().wait_for(&ada, bot.id, &TraceQuery::default(), within).await?.ok_or("no trace")?;
    for step in trace.steps.iter().filter(|step| step.name == StepName::PluginOnRequest) {
        println!("{}", serde_json::to_string_pretty(&step.detail)?);
    }
    hub.shutdown().await;
    Ok(())
}
