//! `bots …`.

use std::time::Duration;

use hub_core::id::BotId;
use serde_json::{Value, json};

mod bind;
mod code;
mod progress;

use super::recordings::Times;
use crate::{
    args::{
        BotArgs, BotsCommand, BotsContactsArgs, BotsDeleteArgs, BotsMessagesArgs, BotsRenameArgs,
        BotsStatusArgs, ListArgs,
    },
    client::Client,
    context::Context,
    document::{cell, cells, lines},
    exit::Failure,
    fields::Fields,
    poll::every,
    printer::{List, Printer, Tone},
    screen,
};

const POLL_INTERVAL: Duration = Duration::from_millis(500);

fn path(bot: BotId) -> String {
    format!("/api/bots/{bot}")
}

pub async fn run(command: BotsCommand, cx: &Context) -> Result<(), Failure> {
    match command {
        BotsCommand::List(args) => list(args, cx).await,
        BotsCommand::Show(args) => show(args, cx).await,
        BotsCommand::Bind(args) => bind::run(*args, cx).await,
        BotsCommand::Rename(args) => rename(args, cx).await,
        BotsCommand::Delete(args) => delete(args, cx).await,
        BotsCommand::Status(args) => status(args, cx).await,
        BotsCommand::Reconnect(args) => reconnect(args, cx).await,
        BotsCommand::Contacts(args) => contacts(args, cx).await,
        BotsCommand::Messages(args) => messages(args, cx).await,
    }
}

async fn list(args: ListArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let page = client.list("/api/bots", &[], &args.page).await?;
    let row = |bot: &Value| cells(bot, ["id", "name", "network", "status", "last_inbound_at"]).to_vec();
    let columns = &["BOT ID", "NAME", "NETWORK", "STATUS", "LAST INBOUND"];
    cx.printer.list(List::of(page, columns, row, "there are no bots: hub-cli bots bind"))
}

async fn show(args: BotArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let bot = client.get(&path(client.bot(&args.bot).await?)).await?;
    print(bot, "getBot", &cx.printer)
}

async fn rename(args: BotsRenameArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let bot = client.put(&path(client.bot(&args.bot).await?), &json!({ "name": args.name })).await?;
    line(bot, &cx.printer)
}

async fn delete(args: BotsDeleteArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let id = client.bot(&args.bot).await?;
    let bot = client.get(&path(id)).await?;
    let name = screen::clean(&cell(&bot, "name"));
    let what = format!("this permanently deletes {name} with its channels, messages and contacts");
    let confirmed = args.confirm.is_confirmed_by_name(&what, &name, &cx.printer).await?;
    if confirmed {
        client.delete(&path(id)).await?;
        cx.printer.note(&format!("{name} was deleted"));
    }
    let document = json!({ "id": bot["id"], "name": bot["name"], "deleted": confirmed });
    cx.printer.one(document, &cell(&bot, "id"))
}

async fn status(args: BotsStatusArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let bot = client.bot(&args.bot).await?;
    if args.watch {
        return watch(&client, bot, &cx.printer).await;
    }
    let health = client.get(&format!("{}/status", path(bot))).await?;
    print(health, "getBotStatus", &cx.printer)
}

/// Prints a connection, and again whenever its state changes.
async fn watch(client: &Client, bot: BotId, printer: &Printer) -> Result<(), Failure> {
    // Fields that change with every poll of the chat network are not compared.
    let state = |health: &Value| cells(health, ["status", "status_reason", "last_error"]);
    let mut shown = None;
    every(POLL_INTERVAL, async || {
        let health = client.get(&format!("{}/status", path(bot))).await?;
        let now = state(&health);
        if shown.as_ref() != Some(&now) {
            let why = if now[1].is_empty() { &now[2] } else { &now[1] };
            let tone = tone(&now[0]);
            let status = printer.paint(&format!("{:<10}", screen::clean(&now[0])), tone);
            let text = format!("{}  {status}  {}", cell(&health, "since"), screen::clean(why));
            printer.one(health, text.trim_end())?;
            shown = Some(now);
        }
        Ok(None)
    })
    .await
}

async fn reconnect(args: BotArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let bot = client.post(&format!("{}/reconnect", path(client.bot(&args.bot).await?)), &Value::Null).await;
    let bot = bot.map_err(|failure| match failure.code {
        "CONFLICT" => failure.with_hint("hub-cli bots bind: the same account keeps its bot and channels"),
        _ => failure,
    })?;
    line(bot, &cx.printer)
}

async fn contacts(args: BotsContactsArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.list.hub).await?;
    let page = client
        .list(&format!("{}/contacts", path(client.bot(&args.bot).await?)), &[], &args.list.page)
        .await?;
    let row = |contact: &Value| {
        let name = cells(contact, ["remark", "user_name"]);
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        let [id, count, last, left] =
            cells(contact, ["user_id", "message_count", "last_message_at", "sends_left"]);
        vec![id, name, count, left, last]
    };
    let columns = &["USER ID", "NAME", "MESSAGES", "SENDS LEFT", "LAST MESSAGE"];
    cx.printer.list(List::of(page, columns, row, "this bot has no contacts yet"))
}

async fn messages(args: BotsMessagesArgs, cx: &Context) -> Result<(), Failure> {
    let times = Times::of(args.since.as_ref(), args.until.as_ref())?;
    let filters = [
        ("direction", args.direction.map(|direction| direction.as_str().to_owned())),
        ("user_id", args.contact),
        ("since", times.since.map(|at| at.to_string())),
        ("until", times.until.map(|at| at.to_string())),
        ("q", args.q),
    ];
    let client = cx.hub(&args.list.hub).await?;
    let path = format!("{}/messages", path(client.bot(&args.bot).await?));
    let page = client.list(&path, &filters, &args.list.page).await?;
    let row = |message: &Value| {
        let (arrow, person) = match message["direction"].as_str() {
            Some("inbound") => ("<", "from_user_id"),
            _ => (">", "to_user_id"),
        };
        let [id, at, status, person, content] =
            ["id", "created_at", "status", person, "content"].map(|field| cell(message, field));
        vec![id, at, arrow.to_owned(), person, status, screen::fit(&screen::clean(&content), 80)]
    };
    let columns = &["MESSAGE ID", "AT", "", "PERSON", "STATUS", "TEXT"];
    cx.printer.list(List::of(page, columns, row, "no such messages"))
}

fn tone(status: &str) -> Tone {
    match status {
        "online" => Tone::Good,
        "expired" | "error" | "offline" => Tone::Bad,
        _ => Tone::Doubtful,
    }
}

/// A bot on one line.
fn line(bot: Value, printer: &Printer) -> Result<(), Failure> {
    let [id, name, status] = ["id", "name", "status"].map(|field| screen::clean(&cell(&bot, field)));
    printer.one(bot, &format!("{id}\t{name}\t{status}"))
}

fn print(document: Value, operation: &'static str, printer: &Printer) -> Result<(), Failure> {
    let text = lines(&document, Fields::of(operation).names(), 20);
    printer.one(document, &text)
}
