//! `channels list`, `show`, `create`, `edit`, `delete`, `rotate-key`.

use hub_core::id::SocketId;
use serde_json::{Value, json};

use crate::{
    args::{
        ChannelArgs, ChannelsClientsArgs, ChannelsCreateArgs, ChannelsDeleteArgs, ChannelsEditArgs,
        ChannelsListArgs, ChannelsRotateKeyArgs,
    },
    context::Context,
    document::{cell, without_nulls},
    exit::Failure,
    printer::List,
};

pub async fn list(args: ChannelsListArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.list.hub).await?;
    let path = format!("/api/bots/{}/channels", client.bot(&args.bot).await?);
    let page = client.list(&path, &[], &args.list.page).await?;
    let row = |channel: &Value| {
        let sinks = ["websocket", "ilink", "webhook", "ai"]
            .into_iter()
            .filter(|sink| channel[sink]["enabled"] == true);
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
    cx.printer.list(List::of(page, columns, row, "this bot has no channels"))
}

pub async fn show(args: ChannelArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let channel = client.get(&client.channel_ref(&args.bot, &args.channel).await?.path()).await?;
    let text = serde_json::to_string_pretty(&channel).unwrap_or_default();
    cx.printer.one(channel, &text)
}

pub async fn create(args: ChannelsCreateArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let bot = client.bot(&args.bot).await?;
    let mut body = without_nulls(&args.settings);
    body["name"] = args.name.as_str().into();
    if args.include_outbound {
        body["websocket"] = json!({ "include_outbound": true });
    }
    let there = if args.if_absent { client.channel_named(bot, &args.name).await? } else { None };
    let channel = match there {
        Some(channel) => channel,
        None => client.post(&format!("/api/bots/{bot}/channels"), &body).await?,
    };
    let text = format!("{}\t{}", cell(&channel, "id"), cell(&channel, "api_key"));
    cx.printer.one(channel, &text)
}

pub async fn edit(args: ChannelsEditArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let channel = client.channel_ref(&args.which.bot, &args.which.channel).await?;
    let mut body = without_nulls(&args.settings);
    if let Some(name) = args.name {
        body["name"] = name.into();
    }
    if args.no_handle {
        body["handle"] = Value::Null;
    }
    let channel = client.put(&channel.path(), &body).await?;
    let text = format!("{}\t{}\t{}", cell(&channel, "id"), cell(&channel, "name"), state(&channel));
    cx.printer.one(channel, &text)
}

pub async fn delete(args: ChannelsDeleteArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let place = client.channel_ref(&args.which.bot, &args.which.channel).await?;
    let channel = client.get(&place.path()).await?;
    let (id, name) = (cell(&channel, "id"), cell(&channel, "name"));
    let what = format!("{name} ({id}), which received {} messages", cell(&channel["stats"], "received"));
    let confirmed =
        args.confirm.is_confirmed_by_name(&format!("this deletes {what}"), &name, &cx.printer).await?;
    if confirmed {
        client.delete(&place.path()).await?;
    }
    let document = json!({ "id": id, "name": name, "deleted": confirmed });
    let verb = if confirmed { "deleted" } else { "would delete" };
    cx.printer.one(document, &format!("{verb} {what}"))
}

pub async fn rotate_key(args: ChannelsRotateKeyArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    let place = client.channel_ref(&args.which.bot, &args.which.channel).await?;
    let grace = [("grace_hours", args.grace.map(|hours| hours.to_string()))];
    let path = format!("{}/regenerate-key", place.path());
    let made = client.call("POST", &path, &grace, &Value::Null).await?;
    let key = cell(&made, "api_key");
    let document = json!({
        "id": place.channel, "api_key": made["api_key"], "old_key_expires_at": made["old_key_expires_at"],
    });
    cx.printer.one(document, &key)
}

pub async fn clients(args: ChannelsClientsArgs, cx: &Context) -> Result<(), Failure> {
    let client = cx.hub(&args.hub).await?;
    client.expect_running_server().await?;
    let path = format!("{}/clients", client.channel_ref(&args.which.bot, &args.which.channel).await?.path());
    if let Some(id) = &args.disconnect {
        let id: SocketId = id.parse().map_err(|_| Failure::not_found(format!("there is no client {id}")))?;
        client.delete(&format!("{path}/{id}")).await?;
        return cx.printer.one(json!({ "id": id, "disconnected": true }), &format!("disconnected {id}"));
    }
    let found = client.get(&path).await?;
    let mut text = String::new();
    for client in found["clients"].as_array().into_iter().flatten() {
        let columns = ["id", "address", "user_agent", "connected_at", "sent_seq", "acked_seq", "lag"];
        let row = columns.map(|name| crate::screen::clean(&cell(client, name)));
        text = format!("{text}{}\n", row.join("\t"));
    }
    let others = &found["on_other_nodes"];
    if *others != json!(0) {
        cx.printer.note(&format!("{others} more on other nodes of the hub"));
    }
    if text.is_empty() {
        cx.printer.note("no client is connected to this node");
    }
    cx.printer.one(found, text.trim_end())
}

/// Whether a channel or a sink is enabled.
pub fn state(part: &Value) -> &'static str {
    if part["enabled"] == true { "on" } else { "off" }
}
