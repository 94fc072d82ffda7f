//! `events`: follows the events of a user's objects.

use std::time::Duration;

use hub_core::{events::EventKind, time::Clock};
use serde_json::Value;

use crate::{
    args::EventsArgs,
    client::EventStream,
    context::Context,
    exit::{Exit, Failure},
    printer::{Printer, print_note},
    screen,
};

/// Delay before the command reconnects.
const RECONNECT: Duration = Duration::from_secs(2);

pub async fn run(args: EventsArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let Some(server) = client.server() else {
        return Err(Failure::usage("events: only a server has events")
            .with_hint("name one with --server, or sign in with hub-cli login"));
    };
    let bot = match &args.bot {
        Some(bot) => Some(client.bot(bot).await?),
        None => None,
    };
    let kinds: Vec<_> = args.kinds.iter().copied().map(EventKind::as_str).collect();
    let mut after = None;
    loop {
        let query = [
            ("bot_id", bot.map(|bot| bot.to_string())),
            ("kinds", (!kinds.is_empty()).then(|| kinds.join(","))),
            ("scope", args.all.then(|| "all".to_owned())),
            ("after", after.clone()),
        ];
        let mut stream = EventStream::new(|event| {
            if after.is_none() {
                Printer::ready("ready");
            }
            after = event["id"].as_str().map(str::to_owned).or(after.take());
            show(event, &cx.printer)
        });
        match server.follow("/api/events", &query, &mut stream).await {
            Ok(()) => {}
            // The server restarts. The first connection has to succeed.
            Err(failure) if failure.exit == Exit::Unreachable && after.is_some() => {}
            Err(failure) => return Err(failure),
        }
        print_note("the connection ended; connecting again");
        Clock::system().sleep(RECONNECT).await;
    }
}

fn show(event: Value, printer: &Printer) -> Result<(), Failure> {
    let names = ["type", "state", "bot_id", "channel_id", "message_id", "trace_id", "plugin_id", "app_id"];
    let words = names.iter().filter_map(|name| event[*name].as_str());
    let mut line = words.collect::<Vec<_>>().join("  ");
    if event["resync"] == true {
        line.push_str("  resync");
    }
    printer.one(event, &screen::clean(&line))?;
    Printer::flush()
}
