//! `channels …`, on the store itself.

use hub_core::{
    Hub,
    access::Actor,
    bots::Bot,
    channels::{Channel, ChannelPatch, Channels, NewChannel, sinks::WebSocketSettings},
    id::ChannelId,
    page::{MAX_LIMIT, PageRequest},
};
use serde_json::{Value, json};

use crate::{
    args::{
        ChannelArgs, ChannelsCreateArgs, ChannelsDeleteArgs, ChannelsEditArgs, ChannelsListArgs,
        ChannelsRotateKeyArgs, LocalArgs,
    },
    exit::Failure,
    local::{self, Open},
    printer::{List, Printer},
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

/// Channels that are looked through for a name; a bot has fewer.
const MAX_CHANNELS: usize = 1_000;

pub async fn list(args: ChannelsListArgs, printer: &Printer) -> Result<(), Failure> {
    let hub = local::open(&args.local, Open::Existing).await?;
    let bot = local::find_bot(&hub, &args.bot).await?;
    let page = PageRequest::parse(
        &Channels::channel_list(bot.id),
        Some(args.page.limit),
        args.page.cursor.as_deref(),
    )?;
    let page = hub.channels().list(&Actor::Operator, bot.id, &page).await?;
    hub.shutdown().await;
    let row = |channel: &Channel| {
        let sinks = [
            ("websocket", channel.websocket.enabled),
            ("webhook", channel.webhook.enabled),
            ("ai", channel.ai.enabled),
        ];
        let sinks: Vec<_> = sinks.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
        let state = if channel.enabled { "on" } else { "off" };
        vec![
            channel.id.to_string(),
            channel.name.clone(),
            state.to_owned(),
            sinks.join(","),
            channel.stats.received.to_string(),
        ]
    };
    printer.list(List {
        columns: &["CHANNEL ID", "NAME", "STATE", "SINKS", "RECEIVED"],
        rows: page.items.iter().map(row).collect(),
        items: page.items.iter().map(document).collect(),
        next_cursor: page.next_cursor,
        empty: "this bot has no channels",
    })
}

pub async fn show(args: ChannelArgs, printer: &Printer) -> Result<(), Failure> {
    let (hub, _, channel) = find(&args.local, &args.bot, &args.channel).await?;
    hub.shutdown().await;
    let document = document(&channel);
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    printer.one(document, &text)
}

pub async fn create(args: ChannelsCreateArgs, printer: &Printer) -> Result<(), Failure> {
    let hub = local::open(&args.local, Open::Existing).await?;
    let bot = local::find_bot(&hub, &args.bot).await?;
    let websocket =
        WebSocketSettings { include_outbound: args.include_outbound, ..WebSocketSettings::default() };
    let new = NewChannel { handle: args.handle, websocket, ..NewChannel::named(args.name) };
    let created = hub.channels().create(&Actor::Operator, bot.id, new, None).await?;
    hub.shutdown().await;
    let mut document = document(&created.channel);
    document["api_key"] = json!(created.api_key.expose());
    printer.one(document, &format!("{}\t{}", created.channel.id, created.api_key.expose()))
}

pub async fn edit(args: ChannelsEditArgs, printer: &Printer) -> Result<(), Failure> {
    let (hub, bot, channel) = find(&args.local, &args.which.bot, &args.which.channel).await?;
    let patch = ChannelPatch { name: args.name, enabled: args.enabled, ..ChannelPatch::default() };
    let channel = hub.channels().update(&Actor::Operator, bot.id, channel.id, patch).await?;
    hub.shutdown().await;
    let state = if channel.enabled { "on" } else { "off" };
    printer.one(document(&channel), &format!("{}\t{}\t{state}", channel.id, channel.name))
}

pub async fn delete(args: ChannelsDeleteArgs, printer: &Printer) -> Result<(), Failure> {
    let (hub, bot, channel) = find(&args.local, &args.which.bot, &args.which.channel).await?;
    let what =
        format!("{} ({}), which received {} messages", channel.name, channel.id, channel.stats.received);
    if !args.yes && !args.dry_run {
        return Err(Failure::usage(format!("this deletes {what}")).with_hint("add --yes to do it"));
    }
    if args.yes {
        hub.channels().delete(&Actor::Operator, bot.id, channel.id).await?;
    }
    hub.shutdown().await;
    let document = json!({ "id": channel.id, "name": channel.name, "deleted": args.yes });
    let verb = if args.yes { "deleted" } else { "would delete" };
    printer.one(document, &format!("{verb} {what}"))
}

pub async fn rotate_key(args: ChannelsRotateKeyArgs, printer: &Printer) -> Result<(), Failure> {
    let (hub, bot, channel) = find(&args.local, &args.which.bot, &args.which.channel).await?;
    let made = hub.channels().regenerate_key(&Actor::Operator, bot.id, channel.id, args.grace).await?;
    hub.shutdown().await;
    let document = json!({
        "id": channel.id, "api_key": made.api_key.expose(), "old_key_expires_at": made.old_key_expires_at,
    });
    printer.one(document, made.api_key.expose())
}

pub async fn find(args: &LocalArgs, bot: &str, channel: &str) -> Result<(Hub, Bot, Channel), Failure> {
    let hub = local::open(args, Open::Existing).await?;
    let bot = local::find_bot(&hub, bot).await?;
    let channel = find_channel(&hub, &bot, channel).await?;
    Ok((hub, bot, channel))
}

/// A channel of a bot by its id or its name, which must be unique then.
async fn find_channel(hub: &Hub, bot: &Bot, id_or_name: &str) -> Result<Channel, Failure> {
    if let Ok(id) = id_or_name.parse::<ChannelId>() {
        return Ok(hub.channels().get(&Actor::Operator, bot.id, id).await?);
    }
    let (mut named, mut seen, mut cursor) = (Vec::new(), 0, None::<String>);
    loop {
        let list = Channels::channel_list(bot.id);
        let page = PageRequest::parse(&list, Some(MAX_LIMIT), cursor.as_deref())?;
        let page = hub.channels().list(&Actor::Operator, bot.id, &page).await?;
        seen += page.items.len();
        named.extend(page.items.into_iter().filter(|channel| channel.name == id_or_name));
        cursor = page.next_cursor;
        if cursor.is_none() || seen >= MAX_CHANNELS {
            break;
        }
    }
    match named.len() {
        0 => Err(Failure::not_found(format!("the bot {} has no channel called {id_or_name}", bot.name))
            .with_hint("hub-cli channels list shows them")),
        1 => Ok(named.remove(0)),
        count => {
            let ids: Vec<_> = named.iter().map(|channel| channel.id.to_string()).take(5).collect();
            Err(Failure::usage(format!("{count} channels are called {id_or_name}"))
                .with_hint(format!("use an id: {}", ids.join(", "))))
        }
    }
}

/// A channel without its secrets.
pub fn document(channel: &Channel) -> Value {
    json!({
        "id": channel.id,
        "bot_id": channel.bot_id,
        "name": channel.name,
        "handle": channel.handle.as_ref().map(ToString::to_string),
        "enabled": channel.enabled,
        "api_key_prefix": channel.api_key_prefix,
        "filter": channel.filter,
        "websocket": channel.websocket,
        "webhook": channel.webhook,
        "ai": channel.ai,
        "stats": channel.stats,
        "created_at": channel.created_at,
    })
}
