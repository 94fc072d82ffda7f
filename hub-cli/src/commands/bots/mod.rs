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
        BotArgs, BotsCommand, BotsContactsArgs, BotsDeleteArgs, BotsListArgs, BotsMessagesArgs,
        BotsRenameArgs, BotsStatusArgs, word,
    },
    client::Client,
    document::cell,
    exit::Failure,
    fields::Fields,
    poll::every,
    printer::{List, Printer, Tone},
    screen,
};

const DELETE_FIELDS: [&str; 3] = ["id", "name", "deleted"];

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The names in a command's JSON document.
pub fn fields(command: &BotsCommand) -> Fields {
    match command {
        BotsCommand::List(_) => Fields::of("listBots"),
        BotsCommand::Show(_) => Fields::of("getBot"),
        BotsCommand::Rename(_) => Fields::of("renameBot"),
        BotsCommand::Reconnect(_) => Fields::of("reconnectBot"),
        BotsCommand::Bind(_) => Fields::own(&bind::FIELDS),
        BotsCommand::Delete(_) => Fields::own(&DELETE_FIELDS),
        BotsCommand::Status(_) => Fields::of("getBotStatus"),
        BotsCommand::Contacts(_) => Fields::of("listContacts"),
        BotsCommand::Messages(_) => Fields::of("listMessages"),
    }
}

fn path(bot: BotId) -> String {
    format!("/api/bots/{bot}")
}

pub async fn run(command: BotsCommand, local: bool, printer: &Printer) -> Result<(), Failure> {
    match command {
        BotsCommand::List(args) => list(args, local, printer).await,
        BotsCommand::Show(args) => show(args, local, printer).await,
        BotsCommand::Bind(args) => bind::run(*args, local, printer).await,
        BotsCommand::Rename(args) => rename(args, local, printer).await,
        BotsCommand::Delete(args) => delete(args, local, printer).await,
        BotsCommand::Status(args) => status(args, local, printer).await,
        BotsCommand::Reconnect(args) => reconnect(args, local, printer).await,
        BotsCommand::Contacts(args) => contacts(args, local, printer).await,
        BotsCommand::Messages(args) => messages(args, local, printer).await,
    }
}

async fn list(args: BotsListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.list.hub, local).await?;
    let page = client.list("/api/bots", &[], &args.list.page).await?;
    client.close().await;
    let row = |bot: &Value| {
        ["id", "name", "network", "status", "last_inbound_at"].map(|field| cell(bot, field)).to_vec()
    };
    let columns = &["BOT ID", "NAME", "NETWORK", "STATUS", "LAST INBOUND"];
    printer.list(List::of(page, columns, row, "there are no bots: hub-cli bots bind"))
}

async fn show(args: BotArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let bot = client.get(&path(client.bot(&args.bot).await?)).await?;
    client.close().await;
    print(bot, "getBot", printer)
}

async fn rename(args: BotsRenameArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let bot = client.put(&path(client.bot(&args.bot).await?), &json!({ "name": args.name })).await?;
    client.close().await;
    line(bot, printer)
}

async fn delete(args: BotsDeleteArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let id = client.bot(&args.bot).await?;
    let bot = client.get(&path(id)).await?;
    let name = screen::clean(&cell(&bot, "name"));
    let what = format!("this permanently deletes {name} with its channels, messages and contacts");
    let meant = args.confirm.is_meant_for_good(&what, &name, printer).await?;
    if meant {
        client.delete(&path(id)).await?;
    }
    client.close().await;
    printer.note(&if meant {
        format!("{name} was deleted")
    } else {
        format!("{name} would be deleted with its channels, messages and contacts; nothing was changed")
    });
    let document = json!({ "id": bot["id"], "name": bot["name"], "deleted": meant });
    printer.one(document, &cell(&bot, "id"))
}

async fn status(args: BotsStatusArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let bot = client.bot(&args.bot).await?;
    if args.watch {
        return watch(&client, bot, printer).await;
    }
    let health = client.get(&format!("{}/status", path(bot))).await?;
    client.close().await;
    print(health, "getBotStatus", printer)
}

/// Prints a connection, and again whenever its state changes.
async fn watch(client: &Client, bot: BotId, printer: &Printer) -> Result<(), Failure> {
    // Fields that change with every poll of the chat network are not compared.
    let state = |health: &Value| ["status", "status_reason", "last_error"].map(|field| cell(health, field));
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

async fn reconnect(args: BotArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.hub, local).await?;
    let bot = client.post(&format!("{}/reconnect", path(client.bot(&args.bot).await?)), &Value::Null).await;
    let bot = bot.map_err(|failure| match failure.code {
        "CONFLICT" => failure.with_hint("hub-cli bots bind: the same account keeps its bot and channels"),
        _ => failure,
    })?;
    client.close().await;
    line(bot, printer)
}

async fn contacts(args: BotsContactsArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let client = Client::open(&args.list.hub, local).await?;
    let page = client
        .list(&format!("{}/contacts", path(client.bot(&args.bot).await?)), &[], &args.list.page)
        .await?;
    client.close().await;
    let row = |contact: &Value| {
        let name = ["remark", "user_name"].map(|field| cell(contact, field));
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        let [id, count, last, left] =
            ["user_id", "message_count", "last_message_at", "sends_left"].map(|field| cell(contact, field));
        vec![id, name, count, left, last]
    };
    let columns = &["USER ID", "NAME", "MESSAGES", "SENDS LEFT", "LAST MESSAGE"];
    printer.list(List::of(page, columns, row, "this bot has no contacts yet"))
}

async fn messages(args: BotsMessagesArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let times = Times::of(args.since.as_ref(), args.until.as_ref())?;
    let filters = [
        ("direction", args.direction.as_ref().map(word)),
        ("user_id", args.user),
        ("since", times.since.map(|at| at.to_string())),
        ("until", times.until.map(|at| at.to_string())),
        ("q", args.q),
    ];
    let client = Client::open(&args.list.hub, local).await?;
    let path = format!("{}/messages", path(client.bot(&args.bot).await?));
    let page = client.list(&path, &filters, &args.list.page).await?;
    client.close().await;
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
    printer.list(List::of(page, columns, row, "no such messages"))
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
    let line = |field| format!("{field:<20}  {}", screen::clean(&cell(&document, field)));
    let text = Fields::of(operation).names().into_iter().map(line).collect::<Vec<_>>().join("\n");
    printer.one(document, &text)
}
