//! `channels plugins …`.

use hub_core::{
    Hub,
    access::Actor,
    channels::Channels,
    id::{BotId, ChannelId},
    page::{MAX_LIMIT, PageRequest},
    plugins::{InstallationPatch, InstalledPlugin, NewInstallation, Plugins},
};
use serde_json::{Value, json};

use crate::{
    args::{ChannelPluginsCommand, ChannelTarget},
    exit::Failure,
    local::{self, Open},
    printer::{List, Printer},
};

pub const FIELDS: [&str; 10] = [
    "plugin_id",
    "name",
    "version",
    "version_id",
    "position",
    "enabled",
    "status",
    "reason",
    "paused",
    "content_hash",
];

/// A channel of an open hub.
struct Place {
    hub: Hub,
    bot: BotId,
    channel: ChannelId,
}

pub async fn run(command: ChannelPluginsCommand, printer: &Printer) -> Result<(), Failure> {
    match command {
        ChannelPluginsCommand::List(args) => Place::find(&args.target).await?.list(printer).await,
        ChannelPluginsCommand::Install(args) => {
            let place = Place::find(&args.target).await?;
            let plugin_id = place.hub.plugins().named(&Actor::Operator, &args.plugin).await?.id;
            let new = NewInstallation { plugin_id, version: args.version, position: args.position };
            let done = place.hub.plugins().install(&Actor::Operator, place.bot, place.channel, new).await?;
            printer.note(&format!("{} {} runs in this channel", done.name, done.version));
            place.show(&done, printer).await
        }
        ChannelPluginsCommand::Uninstall(args) => {
            let place = Place::find(&args.target).await?;
            let id = place.hub.plugins().named(&Actor::Operator, &args.plugin).await?.id;
            place.hub.plugins().uninstall(&Actor::Operator, place.bot, place.channel, id).await?;
            place.list(printer).await
        }
        ChannelPluginsCommand::Order(args) => {
            let place = Place::find(&args.target).await?;
            for (position, plugin) in (0..).zip(&args.plugins) {
                place
                    .change(plugin, InstallationPatch { position: Some(position), ..Default::default() })
                    .await?;
            }
            place.list(printer).await
        }
        ChannelPluginsCommand::Enable(args) => {
            let place = Place::find(&args.target).await?;
            let patch = InstallationPatch { enabled: Some(true), ..Default::default() };
            let done = place.change(&args.plugin, patch).await?;
            place.show(&done, printer).await
        }
        ChannelPluginsCommand::Disable(args) => {
            let place = Place::find(&args.target).await?;
            let patch = InstallationPatch { enabled: Some(false), ..Default::default() };
            let done = place.change(&args.plugin, patch).await?;
            place.show(&done, printer).await
        }
    }
}

impl Place {
    async fn find(target: &ChannelTarget) -> Result<Self, Failure> {
        let hub = local::open(&target.local, Open::Existing).await?;
        let bot = local::find_bot(&hub, &target.bot).await?.id;
        let page = PageRequest::parse(&Channels::channel_list(bot), Some(MAX_LIMIT), None)?;
        let channels = hub.channels().list(&Actor::Operator, bot, &page).await?.items;
        let wanted = &target.channel;
        let mut found =
            channels.iter().filter(|channel| channel.name == *wanted || channel.id.to_string() == *wanted);
        match (found.next(), found.next()) {
            (Some(channel), None) => Ok(Self { bot, channel: channel.id, hub }),
            (None, _) => {
                let names: Vec<&str> = channels.iter().map(|channel| channel.name.as_str()).take(5).collect();
                Err(Failure::not_found(format!("the bot has no channel called {wanted}"))
                    .with_hint(format!("some of its channels: {}", names.join(", "))))
            }
            (Some(one), Some(other)) => Err(Failure::usage(format!("several channels are called {wanted}"))
                .with_hint(format!("use an id: {}, {}", one.id, other.id))),
        }
    }

    async fn change(&self, plugin: &str, patch: InstallationPatch) -> Result<InstalledPlugin, Failure> {
        let id = self.hub.plugins().named(&Actor::Operator, plugin).await?.id;
        let plugins = self.hub.plugins();
        Ok(plugins.change_installation(&Actor::Operator, self.bot, self.channel, id, patch).await?)
    }

    async fn list(self, printer: &Printer) -> Result<(), Failure> {
        let page = PageRequest::parse(&Plugins::installed_list(self.channel), Some(MAX_LIMIT), None)?;
        let installed = self.hub.plugins().installed(&Actor::Operator, self.bot, self.channel, &page).await?;
        self.hub.shutdown().await;
        let row = |plugin: &InstalledPlugin| {
            let state = match plugin {
                InstalledPlugin { enabled: false, .. } => "off",
                InstalledPlugin { paused: Some(_), .. } => "paused",
                _ => plugin.state.as_str(),
            };
            vec![
                plugin.position.to_string(),
                plugin.name.clone(),
                plugin.version.clone(),
                state.to_owned(),
                plugin.plugin_id.to_string(),
            ]
        };
        printer.list(List {
            columns: &["#", "NAME", "VERSION", "STATUS", "PLUGIN ID"],
            rows: installed.items.iter().map(row).collect(),
            items: installed.items.iter().map(document).collect(),
            next_cursor: None,
            empty: "no plugins in this channel",
        })
    }

    async fn show(self, plugin: &InstalledPlugin, printer: &Printer) -> Result<(), Failure> {
        self.hub.shutdown().await;
        let state = if plugin.enabled { "on" } else { "off" };
        let text = format!("{}\t{} {}\t{state}", plugin.position, plugin.name, plugin.version);
        printer.one(document(plugin), &text)
    }
}

fn document(plugin: &InstalledPlugin) -> Value {
    json!({
        "plugin_id": plugin.plugin_id,
        "name": plugin.name,
        "version": plugin.version,
        "version_id": plugin.version_id,
        "position": plugin.position,
        "enabled": plugin.enabled,
        "status": plugin.state,
        "reason": plugin.reason,
        "paused": plugin.paused,
        "content_hash": plugin.content_hash,
    })
}
