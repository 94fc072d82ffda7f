//! The replies to users of the simulated network, and the traces of their messages.

use std::time::Duration;

use hub_core::{id::BotId, time::Clock};
use serde_json::Value;

use crate::{
    args::{LocalArgs, PageArgs},
    client::{Client, id_of},
    document::{cell, take_items},
    exit::Failure,
    screen,
    sim_client::SimClient,
};

/// Time for which further replies are collected after the first.
const FURTHER_REPLIES: Duration = Duration::from_millis(300);
const MAX_TRACES: u32 = 20;

/// A message to a bot: sender and recipient.
#[derive(Debug)]
pub struct SentMessage<'a> {
    pub simulator: &'a SimClient,
    pub wx_id: &'a str,
    pub from_user_id: &'a str,
    /// Number of the bot's last message before it.
    pub after: u64,
}

/// The number of the last message that a bot sent.
pub async fn last_sent(simulator: &SimClient, wx_id: &str) -> Result<u64, Failure> {
    let mut last = 0;
    loop {
        let path = format!("/_sim/outbound?wx_id={wx_id}&after={last}&limit=1000");
        let next = simulator.get(&path).await?["next"].as_u64().unwrap_or(last);
        if next == last {
            return Ok(last);
        }
        last = next;
    }
}

impl SentMessage<'_> {
    /// Returns the replies within `wait`. It ends shortly after the first one.
    pub async fn replies(&self, wait: Duration) -> Result<Vec<String>, Failure> {
        let clock = Clock::system();
        let (mut until, mut after, mut replies) = (clock.now() + wait, self.after, Vec::new());
        loop {
            let left = until.since(clock.now());
            if left.is_zero() {
                return Ok(replies);
            }
            let path = format!(
                "/_sim/outbound?wx_id={}&after={after}&wait_ms={}",
                self.wx_id,
                left.as_millis().max(1)
            );
            let page = self.simulator.get(&path).await?;
            after = page["next"].as_u64().unwrap_or(after);
            let sent = page["items"].as_array().into_iter().flatten();
            let was_empty = replies.is_empty();
            replies.extend(sent.filter(|one| one["to_user_id"] == self.from_user_id).map(shown));
            if was_empty && !replies.is_empty() {
                until = until.min(clock.now() + FURTHER_REPLIES);
            }
        }
    }

    /// The bot's name in the hub on this machine, and the traces of the message there; `None` without one.
    pub async fn in_hub(&self, text: &str, args: &LocalArgs) -> Option<(String, Vec<String>)> {
        let client = Client::in_process(args).await.ok()?;
        let found = self.find(&client, text).await;
        client.close().await;
        found.ok().flatten()
    }

    async fn find(&self, client: &Client, text: &str) -> Result<Option<(String, Vec<String>)>, Failure> {
        let bot = client.first("/api/bots", |bot| bot["wx_id"] == self.wx_id).await?;
        let Some(bot) = bot else { return Ok(None) };
        let (id, name): (BotId, _) = (id_of(&bot)?, cell(&bot, "name"));
        let filters =
            [("direction", Some("inbound".to_owned())), ("user_id", Some(self.from_user_id.to_owned()))];
        let page = PageArgs { limit: 1, cursor: None };
        let mut newest = client.list(&format!("/api/bots/{id}/messages"), &filters, &page).await?;
        let Some(message) = take_items(&mut newest).pop().filter(|message| message["content"] == text) else {
            return Ok(Some((name, Vec::new())));
        };
        let filters = [("message_id", Some(cell(&message, "id")))];
        let page = PageArgs { limit: MAX_TRACES, cursor: None };
        let mut traces = client.list(&format!("/api/bots/{id}/traces"), &filters, &page).await?;
        let ids = take_items(&mut traces).iter().map(|trace| cell(trace, "trace_id")).collect();
        Ok(Some((name, ids)))
    }
}

/// A message as its recipient sees it.
fn shown(sent: &Value) -> String {
    let text = cell(sent, "text");
    match sent["media"].as_object() {
        Some(file) => {
            let name = file.get("file_name").and_then(Value::as_str).unwrap_or("a file");
            screen::clean(format!("[{name}] {text}").trim_end())
        }
        None => screen::clean(&text),
    }
}
