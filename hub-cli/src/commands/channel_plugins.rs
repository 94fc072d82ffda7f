//! `channels plugins …`.

use hub_core::plugins::{InstallationPatch, NewInstallation};
use serde_json::Value;

use super::users::cell;
use crate::{
    args::{ChannelPluginsCommand, ChannelTarget},
    exit::Failure,
    printer::{List, Printer},
    reach::{ChannelPlace, Reach},
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
    reach: Reach,
    channel: ChannelPlace,
}

pub async fn run(command: ChannelPluginsCommand, local: bool, printer: &Printer) -> Result<(), Failure> {
    match command {
        ChannelPluginsCommand::List(args) => Place::find(&args.target, local).await?.list(printer).await,
        ChannelPluginsCommand::Install(args) => {
            let place = Place::find(&args.target, local).await?;
            let plugin_id = place.reach.plugin_id(&args.plugin).await?;
            let new = NewInstallation { plugin_id, version: args.version, position: args.position };
            let done = place.reach.install_channel_plugin(place.channel, new).await?;
            printer.note(&format!("{} {} runs in this channel", cell(&done, "name"), cell(&done, "version")));
            place.show(done, printer).await
        }
        ChannelPluginsCommand::Uninstall(args) => {
            let place = Place::find(&args.target, local).await?;
            let id = place.reach.plugin_id(&args.plugin).await?;
            let what =
                format!("{} runs no more in this channel, and loses its place in the order", args.plugin);
            if args.confirm.is_meant(&what, printer).await? {
                place.reach.uninstall_channel_plugin(place.channel, id).await?;
            } else {
                printer.note(&format!("{what}; nothing was changed"));
            }
            place.list(printer).await
        }
        ChannelPluginsCommand::Order(args) => {
            let place = Place::find(&args.target, local).await?;
            for (position, plugin) in (0..).zip(&args.plugins) {
                place
                    .change(plugin, InstallationPatch { position: Some(position), ..Default::default() })
                    .await?;
            }
            place.list(printer).await
        }
        ChannelPluginsCommand::Enable(args) => switch(&args.plugin, &args.target, true, local, printer).await,
        ChannelPluginsCommand::Disable(args) => {
            switch(&args.plugin, &args.target, false, local, printer).await
        }
    }
}

async fn switch(
    plugin: &str,
    target: &ChannelTarget,
    on: bool,
    local: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    let place = Place::find(target, local).await?;
    let patch = InstallationPatch { enabled: Some(on), ..Default::default() };
    let done = place.change(plugin, patch).await?;
    place.show(done, printer).await
}

impl Place {
    async fn find(target: &ChannelTarget, local: bool) -> Result<Self, Failure> {
        let reach = Reach::open(&target.hub, local).await?;
        let channel = reach.channel_place(&target.bot, &target.channel).await?;
        Ok(Self { reach, channel })
    }

    async fn change(&self, plugin: &str, patch: InstallationPatch) -> Result<Value, Failure> {
        let id = self.reach.plugin_id(plugin).await?;
        self.reach.change_channel_plugin(self.channel, id, patch).await
    }

    async fn list(self, printer: &Printer) -> Result<(), Failure> {
        let installed = self.reach.channel_plugins(self.channel).await?;
        self.reach.close().await;
        let row = |plugin: &Value| {
            let state = match plugin {
                plugin if plugin["enabled"] == false => "off".to_owned(),
                plugin if !plugin["paused"].is_null() => "paused".to_owned(),
                plugin => cell(plugin, "status"),
            };
            let [position, name, version, id] =
                ["position", "name", "version", "plugin_id"].map(|field| cell(plugin, field));
            vec![position, name, version, state, id]
        };
        printer.list(List {
            columns: &["#", "NAME", "VERSION", "STATUS", "PLUGIN ID"],
            rows: installed.iter().map(row).collect(),
            items: installed,
            next_cursor: None,
            empty: "no plugins in this channel",
        })
    }

    async fn show(self, plugin: Value, printer: &Printer) -> Result<(), Failure> {
        self.reach.close().await;
        let state = if plugin["enabled"] == true { "on" } else { "off" };
        let [position, name, version] = ["position", "name", "version"].map(|field| cell(&plugin, field));
        printer.one(plugin, &format!("{position}\t{name} {version}\t{state}"))
    }
}
