//! What people of the simulated network get back after they wrote, and the traces of it.

use std::time::Duration;

use hub_core::{
    Hub,
    access::Actor,
    bots::{Bot, Bots, Direction, MessageFilter},
    page::{MAX_LIMIT, PageRequest},
    time::Clock,
    traces::TraceQuery,
};
use serde_json::Value;

use crate::{
    args::LocalArgs,
    commands::users::cell,
    exit::Failure,
    local::{self, Open},
    screen,
    sim_client::SimClient,
};

/// How long further replies are collected after the first.
const FURTHER: Duration = Duration::from_millis(300);
/// Newest traces among which those of the message are.
const NEWEST: u32 = 20;

/// A message on its way through a bot: who wrote it to whom.
#[derive(Debug)]
pub struct Written<'a> {
    pub simulator: &'a SimClient,
    pub wx_id: &'a str,
    pub from_user_id: &'a str,
    /// Number of the last message that the bot sent before.
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

impl Written<'_> {
    /// What the person gets within `wait`; shortly after the first reply it is complete.
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
                until = until.min(clock.now() + FURTHER);
            }
        }
    }

    /// The bot's name in the hub on this machine, and the traces of the message there; `None` without one.
    pub async fn in_hub(&self, text: &str, args: &LocalArgs) -> Option<(String, Vec<String>)> {
        let hub = local::open(args, Open::Existing).await.ok()?;
        let found = self.find(&hub, text).await;
        hub.shutdown().await;
        found
    }

    async fn find(&self, hub: &Hub, text: &str) -> Option<(String, Vec<String>)> {
        let bot = bot_of(hub, self.wx_id).await?;
        let filter = MessageFilter {
            direction: Some(Direction::Inbound),
            user_id: Some(self.from_user_id.to_owned()),
            ..MessageFilter::default()
        };
        let page = PageRequest::parse(&Bots::message_list(bot.id, &filter), Some(1), None).ok()?;
        let newest = hub.bots().messages(&Actor::Operator, bot.id, &filter, &page).await.ok()?.items.pop();
        let Some(message) = newest.filter(|message| message.content == text) else {
            return Some((bot.name, Vec::new()));
        };
        let query = TraceQuery::default();
        let page = PageRequest::parse(&query.list_name(bot.id), Some(NEWEST), None).ok()?;
        let traces = hub.traces().list(&Actor::Operator, bot.id, &query, &page).await.ok()?.items;
        let of_message = traces.iter().filter(|trace| trace.message_id == message.id);
        Some((bot.name, of_message.map(|trace| trace.trace_id.to_string()).collect()))
    }
}

/// A message as the person reads it.
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

async fn bot_of(hub: &Hub, wx_id: &str) -> Option<Bot> {
    let mut cursor: Option<String> = None;
    loop {
        let list = Bots::bot_list(&Actor::Operator);
        let page = PageRequest::parse(&list, Some(MAX_LIMIT), cursor.as_deref()).ok()?;
        let page = hub.bots().list(&Actor::Operator, &page).await.ok()?;
        if let Some(bot) = page.items.into_iter().find(|bot| bot.wx_id == wx_id) {
            return Some(bot);
        }
        cursor = Some(page.next_cursor?);
    }
}
