//! `sim say`: a user of the simulated network sends a message to a bot.

use hub_core::demo::{NAME, NETWORK, person_id};
use serde_json::{Value, json};

use super::replies::{SentMessage, last_sent};
use crate::{
    args::{LocalArgs, SimBot, SimSayArgs},
    client::Client,
    commands::text_or_stdin,
    document::cell,
    exit::Failure,
    printer::Printer,
    sim_client::SimClient,
};

pub async fn run(args: SimSayArgs, printer: &Printer) -> Result<(), Failure> {
    let text = text_or_stdin(args.text)?.trim_end_matches('\n').to_owned();
    let simulator = SimClient::new(&args.bot.target.sim)?;
    let account = account(&simulator, &args.bot).await?;
    let wx_id = cell(&account, "wx_id");
    let after = if args.wait.is_zero() { 0 } else { last_sent(&simulator, &wx_id).await? };
    let mut said = say(&simulator, &account, args.person.as_deref(), &text).await?;
    let from_user_id = cell(&said, "from_user_id");
    printer.note(&format!("{from_user_id} wrote to {wx_id}"));
    if args.wait.is_zero() {
        let first = said["message_ids"][0].as_str().unwrap_or_default().to_owned();
        (said["replies"], said["trace_ids"]) = (json!([]), json!([]));
        return printer.one(said, &first);
    }
    let written = SentMessage { simulator: &simulator, wx_id: &wx_id, from_user_id: &from_user_id, after };
    let replies = written.replies(args.wait).await?;
    let (bot, traces) = written.in_hub(&text, &args.bot.local).await.unwrap_or((wx_id.clone(), Vec::new()));
    let person = args.person.unwrap_or_else(|| from_user_id.clone());
    let mut lines: Vec<_> = replies.iter().map(|reply| format!("{bot} → {person}: {reply}")).collect();
    if lines.is_empty() {
        lines.push(format!("no reply within {} s", args.wait.as_secs_f32()));
    }
    lines.extend(traces.iter().map(|trace| format!("trace {trace}")));
    (said["replies"], said["trace_ids"]) = (json!(replies), json!(traces));
    printer.one(said, &lines.join("\n"))
}

/// Sends a message to a bot as a user, by default its owner.
pub async fn say(
    simulator: &SimClient,
    account: &Value,
    person: Option<&str>,
    text: &str,
) -> Result<Value, Failure> {
    let from = person.map_or_else(|| cell(account, "owner_user_id"), person_id);
    let message = json!({ "wx_id": account["wx_id"], "from_user_id": from, "text": text });
    let answer = simulator.post("/_sim/messages", &message).await?;
    Ok(json!({ "wx_id": account["wx_id"], "from_user_id": from, "message_ids": answer["message_ids"] }))
}

/// The selected bot, as the simulator lists it.
pub async fn account(simulator: &SimClient, bot: &SimBot) -> Result<Value, Failure> {
    let accounts = simulator.get("/_sim/accounts").await?;
    let accounts = accounts["items"].as_array().cloned().unwrap_or_default();
    choose(&accounts, bot.bot.as_deref(), &bot.local).await
}

/// The selected account: by its id on the network, by its bot in the hub, or the only one.
async fn choose(accounts: &[Value], bot: Option<&str>, hub: &LocalArgs) -> Result<Value, Failure> {
    let by_wx_id = |wx_id: &str| accounts.iter().find(|account| account["wx_id"] == wx_id).cloned();
    match (bot, accounts) {
        (_, []) => Err(Failure::not_found("the simulator has no bots")
            .with_hint("bind one, or start hub-server without --no-demo")),
        (None, [only]) => Ok(only.clone()),
        (Some(wx_id), _) if wx_id.contains('@') => {
            by_wx_id(wx_id).ok_or_else(|| Failure::not_found(format!("the simulator has no bot {wx_id}")))
        }
        (Some(name), _) => {
            let wx_id = wx_id_of(name, hub).await?;
            by_wx_id(&wx_id).ok_or_else(|| {
                Failure::not_found(format!("the simulator does not have the bot {name}"))
                    .with_hint("is --sim the simulator of this hub?")
            })
        }
        (None, _) => {
            let demo = wx_id_of(NAME, hub).await.ok().and_then(|wx_id| by_wx_id(&wx_id));
            demo.ok_or_else(|| {
                let ids = accounts.iter().filter_map(|account| account["wx_id"].as_str()).take(5);
                Failure::usage(format!("the simulator has {} bots: select one with --bot", accounts.len()))
                    .with_hint(format!("some are {}", ids.collect::<Vec<_>>().join(", ")))
            })
        }
    }
}

/// The id on the network of a bot of the hub.
async fn wx_id_of(name: &str, hub: &LocalArgs) -> Result<String, Failure> {
    let client = Client::in_process(hub).await?;
    let bot = client.get(&format!("/api/bots/{}", client.bot(name).await?)).await?;
    client.close().await;
    if bot["network"] == NETWORK {
        return Ok(cell(&bot, "wx_id"));
    }
    let network = cell(&bot, "network");
    Err(Failure::not_found(format!("{name} is a bot of the network {network}, not of the simulator")))
}
