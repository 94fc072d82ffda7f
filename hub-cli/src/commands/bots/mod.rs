//! `bots …`.

use std::time::Duration;

use hub_core::{bots::MessageFilter, id::BotId, time::Clock};
use serde_json::{Value, json};

mod bind;
mod code;
mod view;

use super::{recordings::Times, users::cell};
use crate::{
    args::{
        BotArgs, BotsCommand, BotsContactsArgs, BotsDeleteArgs, BotsListArgs, BotsMessagesArgs,
        BotsRenameArgs, BotsStatusArgs,
    },
    exit::Failure,
    printer::{List, Printer, Tone},
    reach::Reach,
    screen,
};

const FIELDS: [&str; 11] = [
    "id",
    "name",
    "network",
    "status",
    "status_reason",
    "wx_id",
    "owner_id",
    "can_send",
    "send_disabled_reason",
    "last_inbound_at",
    "created_at",
];
const STATUS_FIELDS: [&str; 10] = [
    "bot_id",
    "status",
    "status_reason",
    "since",
    "last_poll_at",
    "last_error",
    "poller_node",
    "can_send",
    "send_disabled_reason",
    "last_inbound_at",
];
const CONTACT_FIELDS: [&str; 9] = [
    "user_id",
    "user_name",
    "remark",
    "avatar_url",
    "last_message_at",
    "message_count",
    "window_expires_at",
    "sends_left",
    "next_send_at",
];
const MESSAGE_FIELDS: [&str; 17] = [
    "id",
    "bot_id",
    "channel_ids",
    "direction",
    "from_user_id",
    "to_user_id",
    "user_name",
    "content",
    "msg_type",
    "items",
    "session_id",
    "quoted",
    "media",
    "status",
    "status_reason",
    "trace_id",
    "created_at",
];
const DELETE_FIELDS: [&str; 3] = ["id", "name", "deleted"];

/// Time between two looks at a connection.
const LOOK: Duration = Duration::from_millis(500);

/// The names in a command's JSON document.
pub fn fields(command: &BotsCommand) -> &'static [&'static str] {
    match command {
        BotsCommand::List(_) | BotsCommand::Show(_) | BotsCommand::Rename(_) | BotsCommand::Reconnect(_) => {
            &FIELDS
        }
        BotsCommand::Bind(_) => &bind::FIELDS,
        BotsCommand::Delete(_) => &DELETE_FIELDS,
        BotsCommand::Status(_) => &STATUS_FIELDS,
        BotsCommand::Contacts(_) => &CONTACT_FIELDS,
        BotsCommand::Messages(_) => &MESSAGE_FIELDS,
    }
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
    let reach = Reach::open(&args.hub, local).await?;
    let page = reach.bot_page(&args.page).await?;
    reach.close().await;
    let row = |bot: &Value| {
        ["id", "name", "network", "status", "last_inbound_at"].map(|field| cell(bot, field)).to_vec()
    };
    let columns = &["BOT ID", "NAME", "NETWORK", "STATUS", "LAST INBOUND"];
    printer.list(List::of(page, columns, row, "there are no bots yet: hub-cli bots bind"))
}

async fn show(args: BotArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let bot = reach.bot_document(reach.bot(&args.bot).await?).await?;
    reach.close().await;
    print(bot, &FIELDS, printer)
}

async fn rename(args: BotsRenameArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let bot = reach.rename_bot(reach.bot(&args.bot).await?, &args.name).await?;
    reach.close().await;
    line(bot, printer)
}

async fn delete(args: BotsDeleteArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let id = reach.bot(&args.bot).await?;
    let bot = reach.bot_document(id).await?;
    let name = screen::clean(&cell(&bot, "name"));
    let what = format!("{name} goes for good, with its channels, messages and contacts");
    let meant = args.confirm.is_meant_for_good(&what, &name, printer).await?;
    if meant {
        reach.delete_bot(id).await?;
    }
    reach.close().await;
    printer.note(&if meant {
        format!("{name} is gone")
    } else {
        format!("{name} would go, with its channels, messages and contacts; nothing was changed")
    });
    let document = json!({ "id": bot["id"], "name": bot["name"], "deleted": meant });
    printer.one(document, &cell(&bot, "id"))
}

async fn status(args: BotsStatusArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let bot = reach.bot(&args.bot).await?;
    let health = reach.bot_health(bot).await?;
    if args.watch {
        return watch(&reach, bot, health, printer).await;
    }
    reach.close().await;
    print(health, &STATUS_FIELDS, printer)
}

/// Shows a connection, and again whenever its state changes.
async fn watch(reach: &Reach, bot: BotId, mut health: Value, printer: &Printer) -> Result<(), Failure> {
    let clock = Clock::system();
    // What comes with every poll is no change.
    let state = |health: &Value| ["status", "status_reason", "last_error"].map(|field| cell(health, field));
    let mut shown = None;
    loop {
        let now = state(&health);
        if shown.as_ref() != Some(&now) {
            let why = if now[1].is_empty() { &now[2] } else { &now[1] };
            let tone = tone(&now[0]);
            let status = printer.paint(&format!("{:<10}", screen::clean(&now[0])), tone);
            let text = format!("{}  {status}  {}", cell(&health, "since"), screen::clean(why));
            printer.one(health, text.trim_end())?;
            shown = Some(now);
        }
        clock.sleep(LOOK).await;
        health = reach.bot_health(bot).await?;
    }
}

async fn reconnect(args: BotArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let bot = reach.reconnect_bot(reach.bot(&args.bot).await?).await;
    let bot = bot.map_err(|failure| match failure.code {
        "CONFLICT" => failure.with_hint("hub-cli bots bind: the same account keeps its bot and channels"),
        _ => failure,
    })?;
    reach.close().await;
    line(bot, printer)
}

async fn contacts(args: BotsContactsArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let page = reach.contacts(reach.bot(&args.bot).await?, &args.page).await?;
    reach.close().await;
    let row = |contact: &Value| {
        let name = ["remark", "user_name"].map(|field| cell(contact, field));
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        let [id, count, last, left] =
            ["user_id", "message_count", "last_message_at", "sends_left"].map(|field| cell(contact, field));
        vec![id, name, count, left, last]
    };
    let columns = &["USER ID", "NAME", "MESSAGES", "SENDS LEFT", "LAST MESSAGE"];
    printer.list(List::of(page, columns, row, "nobody has written to this bot yet"))
}

async fn messages(args: BotsMessagesArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let times = Times::of(args.since.as_ref(), args.until.as_ref())?;
    let filter = MessageFilter {
        direction: args.direction.map(Into::into),
        user_id: args.user,
        since: times.since,
        until: times.until,
        q: args.q,
    };
    let reach = Reach::open(&args.hub, local).await?;
    let page = reach.messages(reach.bot(&args.bot).await?, &filter, &args.page).await?;
    reach.close().await;
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

fn print(document: Value, fields: &[&str], printer: &Printer) -> Result<(), Failure> {
    let line = |field: &&str| format!("{field:<20}  {}", screen::clean(&cell(&document, field)));
    let text = fields.iter().map(line).collect::<Vec<_>>().join("\n");
    printer.one(document, &text)
}
