//! `channels list`, `show`, `create`, `edit`, `delete`, `rotate-key`.

use serde_json::{Value, json};

use super::users::cell;
use crate::{
    args::{
        ChannelArgs, ChannelsCreateArgs, ChannelsDeleteArgs, ChannelsEditArgs, ChannelsListArgs,
        ChannelsRotateKeyArgs,
    },
    exit::Failure,
    printer::{List, Printer},
    reach::Reach,
};

/// The last one is only there after a test.
pub const FIELDS: [&str; 14] = [
    "id",
    "bot_id",
    "name",
    "handle",
    "enabled",
    "api_key_prefix",
    "filter",
    "websocket",
    "webhook",
    "ai",
    "stats",
    "created_at",
    "api_key",
    "test",
];
pub const KEY_FIELDS: [&str; 3] = ["id", "api_key", "old_key_expires_at"];
pub const DELETE_FIELDS: [&str; 3] = ["id", "name", "deleted"];

pub async fn list(args: ChannelsListArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let page = reach.channels(reach.bot(&args.bot).await?, &args.page).await?;
    reach.close().await;
    let row = |channel: &Value| {
        let sinks =
            ["websocket", "webhook", "ai"].into_iter().filter(|sink| channel[sink]["enabled"] == true);
        let sinks: Vec<_> = sinks.collect();
        vec![
            cell(channel, "id"),
            cell(channel, "name"),
            state(channel).to_owned(),
            sinks.join(","),
            cell(&channel["stats"], "received"),
        ]
    };
    let columns = &["CHANNEL ID", "NAME", "STATE", "SINKS", "RECEIVED"];
    printer.list(List::of(page, columns, row, "this bot has no channels"))
}

pub async fn show(args: ChannelArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let channel = reach.channel_document(reach.channel_place(&args.bot, &args.channel).await?).await?;
    reach.close().await;
    let text = serde_json::to_string_pretty(&channel).unwrap_or_default();
    printer.one(channel, &text)
}

pub async fn create(args: ChannelsCreateArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let bot = reach.bot(&args.bot).await?;
    let there = if args.if_absent { reach.channel_named(bot, &args.name).await? } else { None };
    let channel = match there {
        Some(channel) => channel,
        None => reach.create_channel(bot, args.name, args.handle, args.include_outbound).await?,
    };
    reach.close().await;
    let text = format!("{}\t{}", cell(&channel, "id"), cell(&channel, "api_key"));
    printer.one(channel, &text)
}

pub async fn edit(args: ChannelsEditArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let place = reach.channel_place(&args.which.bot, &args.which.channel).await?;
    let channel = reach.edit_channel(place, args.name, args.enabled).await?;
    reach.close().await;
    let text = format!("{}\t{}\t{}", cell(&channel, "id"), cell(&channel, "name"), state(&channel));
    printer.one(channel, &text)
}

pub async fn delete(args: ChannelsDeleteArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let place = reach.channel_place(&args.which.bot, &args.which.channel).await?;
    let channel = reach.channel_document(place).await?;
    let (id, name) = (cell(&channel, "id"), cell(&channel, "name"));
    let what = format!("{name} ({id}), which received {} messages", cell(&channel["stats"], "received"));
    let meant = args.confirm.is_meant_for_good(&format!("this deletes {what}"), &name, printer).await?;
    if meant {
        reach.delete_channel(place).await?;
    }
    reach.close().await;
    let document = json!({ "id": id, "name": name, "deleted": meant });
    let verb = if meant { "deleted" } else { "would delete" };
    printer.one(document, &format!("{verb} {what}"))
}

pub async fn rotate_key(args: ChannelsRotateKeyArgs, local: bool, printer: &Printer) -> Result<(), Failure> {
    let reach = Reach::open(&args.hub, local).await?;
    let place = reach.channel_place(&args.which.bot, &args.which.channel).await?;
    let made = reach.rotate_channel_key(place, args.grace).await?;
    reach.close().await;
    let key = cell(&made, "api_key");
    let document = json!({
        "id": place.channel, "api_key": made["api_key"], "old_key_expires_at": made["old_key_expires_at"],
    });
    printer.one(document, &key)
}

fn state(channel: &Value) -> &'static str {
    if channel["enabled"] == true { "on" } else { "off" }
}
